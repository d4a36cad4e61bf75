//! The integral histogram on tasks: for each block one that makes the pixels, one that scans the rows,
//! one that scans the columns.

use isochrone_stats::derive_seed;
use isochrone_tasks::{Data, Failure, Footprint, Kernel, Mem, Part, TaskError, Tasks};

use super::{BINS, Count, Image, scan_columns, scan_rows};
use crate::dataflow::first_touch::FirstTouch;

/// The image, its integral histogram, and the last columns of blocks.
#[derive(Clone, Copy, Debug)]
pub struct Integral {
    image: Image,
    pixels: Data<u8>,
    counts: Data<Count>,
    edges: Data<Count>,
}

impl Integral {
    /// Registers the data and makes the pixels.
    ///
    /// # Errors
    /// [`TaskError`] where there is no room or a task failed.
    pub fn new(
        tasks: &mut impl Tasks,
        image: Image,
        seed: u64,
        touch: FirstTouch,
    ) -> Result<Self, TaskError> {
        let blocks = image.blocks * image.blocks;
        let pixels = tasks.data(blocks * image.pixels())?;
        let counts = tasks.data(blocks * image.counts())?;
        let edges = tasks.data(blocks * image.side * BINS)?;
        match touch {
            FirstTouch::Serial => {
                tasks.spawn(FillAll { pixels, counts, blocks: Block::of(image, 0, 0), seed })?;
            }
            FirstTouch::Inputs => {
                for block in Block::all(image) {
                    tasks.spawn(Fill { pixels, block, seed })?;
                }
            }
            FirstTouch::Blocks | FirstTouch::Panels => {
                for block in Block::all(image) {
                    tasks.spawn(Prepare { pixels, counts, edges, block, seed })?;
                }
            }
        }
        tasks.wait()?;
        Ok(Self { image, pixels, counts, edges })
    }

    /// Registers the tasks that scan the image.
    ///
    /// # Errors
    /// [`TaskError`] where a task cannot be registered.
    pub fn submit(self, tasks: &mut impl Tasks) -> Result<(), TaskError> {
        let Self { pixels, counts, edges, .. } = self;
        for block in Block::all(self.image) {
            tasks.spawn(Rows { pixels, counts, edges, block })?;
            tasks.spawn(Columns { counts, block })?;
        }
        Ok(())
    }

    /// The counts of the block in row `y` and column `x` of blocks, `[row][column][bin]`.
    #[must_use]
    pub const fn block(self, y: usize, x: usize) -> Part<Count> {
        let each = self.image.counts();
        self.counts.part((y * self.image.blocks + x) * each, each)
    }
}

/// The pixel at row `y`, column `x` of the input of `seed`.
#[must_use]
pub fn pixel(seed: u64, y: usize, x: usize) -> u8 {
    derive_seed(seed, ((y as u64) << 32) | x as u64).to_le_bytes()[7]
}

/// Which block, and of what size.
#[derive(Clone, Copy, Debug)]
struct Block {
    y: u16,
    x: u16,
    blocks: u16,
    side: u16,
}

impl Block {
    fn of(image: Image, y: usize, x: usize) -> Self {
        let short = |n| u16::try_from(n).unwrap_or(u16::MAX);
        Self { y: short(y), x: short(x), blocks: short(image.blocks), side: short(image.side) }
    }

    /// All blocks of an image, row by row.
    fn all(image: Image) -> impl Iterator<Item = Self> {
        let rows = 0..image.blocks;
        rows.flat_map(move |y| (0..image.blocks).map(move |x| Self::of(image, y, x)))
    }

    const fn side(self) -> usize {
        self.side as usize
    }

    /// Its number, row by row.
    const fn at(self) -> usize {
        self.y as usize * self.blocks as usize + self.x as usize
    }

    const fn pixels(self, pixels: Data<u8>) -> Part<u8> {
        let each = self.side() * self.side();
        pixels.part(self.at() * each, each)
    }

    const fn counts(self, counts: Data<Count>) -> Part<Count> {
        let each = self.side() * self.side() * BINS;
        counts.part(self.at() * each, each)
    }

    /// The last column, `[row][bin]`, beside the block itself.
    const fn edge(self, edges: Data<Count>) -> Part<Count> {
        let each = self.side() * BINS;
        edges.part(self.at() * each, each)
    }

    /// The last column of the block to the left.
    fn left(self, edges: Data<Count>) -> Option<Part<Count>> {
        let x = self.x.checked_sub(1)?;
        Some(Self { x, ..self }.edge(edges))
    }

    /// The last row of the block above.
    fn above(self, counts: Data<Count>) -> Option<Part<Count>> {
        let y = self.y.checked_sub(1)?;
        let block = Self { y, ..self }.counts(counts);
        let row = self.side() * BINS;
        Some(counts.part(block.first() + block.len() - row, row))
    }
}

/// Makes the pixels of a block.
#[derive(Clone, Copy, Debug)]
struct Fill {
    pixels: Data<u8>,
    block: Block,
    seed: u64,
}

impl Fill {
    /// Writes the pixels of the block.
    fn write(&self, out: &mut [u8]) {
        let side = self.block.side();
        let (top, left) = (usize::from(self.block.y) * side, usize::from(self.block.x) * side);
        for (at, out) in out.iter_mut().enumerate() {
            *out = pixel(self.seed, top + at / side, left + at % side);
        }
    }
}

impl Kernel for Fill {
    const NAME: &'static str = "fill pixels";

    fn declare(&self, footprint: &mut Footprint) {
        footprint.output(self.block.pixels(self.pixels));
    }

    fn run(&self, mem: &Mem<'_>) -> Result<(), Failure> {
        self.write(&mut mem.write(self.block.pixels(self.pixels))?);
        Ok(())
    }
}

/// Makes the pixels of a block and touches its counts, so that both lie together: the paper's programs have
/// all code that allocates memory in tasks (section 4.1).
#[derive(Clone, Copy, Debug)]
struct Prepare {
    pixels: Data<u8>,
    counts: Data<Count>,
    edges: Data<Count>,
    block: Block,
    seed: u64,
}

impl Kernel for Prepare {
    const NAME: &'static str = "prepare block";

    fn declare(&self, footprint: &mut Footprint) {
        footprint.output(self.block.pixels(self.pixels)).output(self.block.counts(self.counts));
        footprint.output(self.block.edge(self.edges));
    }

    fn run(&self, mem: &Mem<'_>) -> Result<(), Failure> {
        let Self { pixels, block, seed, .. } = *self;
        Fill { pixels, block, seed }.write(&mut mem.write(block.pixels(pixels))?);
        mem.write(block.counts(self.counts))?.fill(0);
        mem.write(block.edge(self.edges))?.fill(0);
        Ok(())
    }
}

/// Makes all pixels and touches all counts, so that they lie where one task ran.
#[derive(Clone, Copy, Debug)]
struct FillAll {
    pixels: Data<u8>,
    counts: Data<Count>,
    blocks: Block,
    seed: u64,
}

impl Kernel for FillAll {
    const NAME: &'static str = "fill all";

    fn declare(&self, footprint: &mut Footprint) {
        footprint.output(self.pixels).output(self.counts);
    }

    fn run(&self, mem: &Mem<'_>) -> Result<(), Failure> {
        let mut pixels = mem.write(self.pixels.all())?;
        let image = Image { blocks: self.blocks.blocks.into(), side: self.blocks.side.into() };
        for (block, out) in Block::all(image).zip(pixels.chunks_exact_mut(image.pixels())) {
            Fill { pixels: self.pixels, block, seed: self.seed }.write(out);
        }
        mem.write(self.counts.all())?.fill(0);
        Ok(())
    }
}

/// Scans the rows of a block.
#[derive(Clone, Copy, Debug)]
struct Rows {
    pixels: Data<u8>,
    counts: Data<Count>,
    edges: Data<Count>,
    block: Block,
}

impl Kernel for Rows {
    const NAME: &'static str = "scan rows";

    fn declare(&self, footprint: &mut Footprint) {
        footprint.input(self.block.pixels(self.pixels));
        if let Some(left) = self.block.left(self.edges) {
            footprint.input(left);
        }
        footprint.output(self.block.counts(self.counts)).output(self.block.edge(self.edges));
    }

    fn run(&self, mem: &Mem<'_>) -> Result<(), Failure> {
        let pixels = mem.read(self.block.pixels(self.pixels))?;
        let mut counts = mem.write(self.block.counts(self.counts))?;
        let mut edge = mem.write(self.block.edge(self.edges))?;
        match self.block.left(self.edges) {
            Some(left) => edge.copy_from_slice(&mem.read(left)?),
            None => edge.fill(0),
        }
        scan_rows(&pixels, &mut edge, &mut counts, self.block.side());
        Ok(())
    }
}

/// Scans the columns of a block.
#[derive(Clone, Copy, Debug)]
struct Columns {
    counts: Data<Count>,
    block: Block,
}

impl Kernel for Columns {
    const NAME: &'static str = "scan columns";

    fn declare(&self, footprint: &mut Footprint) {
        if let Some(above) = self.block.above(self.counts) {
            footprint.input(above);
        }
        footprint.inout(self.block.counts(self.counts));
    }

    fn run(&self, mem: &Mem<'_>) -> Result<(), Failure> {
        let above = self.block.above(self.counts).map(|row| mem.read(row)).transpose()?;
        let mut counts = mem.write(self.block.counts(self.counts))?;
        scan_columns(above.as_deref(), &mut counts, self.block.side());
        Ok(())
    }
}
