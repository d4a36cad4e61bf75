//! Jacobi's method on tasks: one for each block and sweep, and a wait after each sweep, as the paper has
//! it (section 5).

use isochrone_tasks::{Data, Failure, Footprint, Kernel, Mem, Part, TaskError, Tasks};

use super::{Grid, start, sweep};
use crate::dataflow::first_touch::FirstTouch;

/// The old and the new grid.
#[derive(Clone, Copy, Debug)]
pub struct Grids {
    grid: Grid,
    values: [Data<f64>; 2],
}

impl Grids {
    /// Registers both grids and sets them.
    ///
    /// # Errors
    /// [`TaskError`] where there is no room or a task failed.
    pub fn new(tasks: &mut impl Tasks, grid: Grid, touch: FirstTouch) -> Result<Self, TaskError> {
        let grids = Self { grid, values: [tasks.data(grid.len())?, tasks.data(grid.len())?] };
        for values in grids.values {
            let blocks = match touch {
                FirstTouch::Serial => {
                    vec![Grid { blocks: 1, rows: grid.blocks * grid.rows, ..grid }]
                }
                FirstTouch::Blocks | FirstTouch::Panels | FirstTouch::Inputs => {
                    vec![grid; grid.blocks]
                }
            };
            for (block, grid) in blocks.into_iter().enumerate() {
                tasks.spawn(Start { block: Block::of(grid, values, block) })?;
            }
        }
        tasks.wait()?;
        Ok(grids)
    }

    /// Sweeps `sweeps` times and waits after each.
    ///
    /// # Errors
    /// [`TaskError`] if a task failed.
    pub fn sweep(self, tasks: &mut impl Tasks, sweeps: usize) -> Result<(), TaskError> {
        for done in 0..sweeps {
            for block in 0..self.grid.blocks {
                let old = Block::of(self.grid, self.after(done), block);
                let (new, blocks) = (self.after(done + 1), short(self.grid.blocks));
                tasks.spawn(Sweep { old, new, blocks })?;
            }
            tasks.wait()?;
        }
        Ok(())
    }

    /// The grid that holds the result after `sweeps` sweeps.
    #[must_use]
    pub const fn after(self, sweeps: usize) -> Data<f64> {
        self.values[sweeps % 2]
    }
}

fn short(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// A block of one grid.
#[derive(Clone, Copy, Debug)]
struct Block {
    values: Data<f64>,
    block: u32,
    rows: u32,
    columns: u32,
}

impl Block {
    fn of(grid: Grid, values: Data<f64>, block: usize) -> Self {
        let (block, rows, columns) = (short(block), short(grid.rows), short(grid.columns));
        Self { values, block, rows, columns }
    }

    const fn len(self) -> usize {
        self.rows as usize * self.columns as usize
    }

    const fn part(self) -> Part<f64> {
        self.values.part(self.block as usize * self.len(), self.len())
    }

    /// The row before the first one.
    fn above(self) -> Option<Part<f64>> {
        let first = self.part().first();
        (self.block > 0)
            .then(|| self.values.part(first - self.columns as usize, self.columns as usize))
    }

    /// The row behind the last one.
    fn below(self, blocks: u32) -> Option<Part<f64>> {
        let end = self.part().first() + self.len();
        (self.block + 1 < blocks).then(|| self.values.part(end, self.columns as usize))
    }
}

/// Sets a block of one grid.
#[derive(Clone, Copy, Debug)]
struct Start {
    block: Block,
}

impl Kernel for Start {
    const NAME: &'static str = "start";

    fn declare(&self, footprint: &mut Footprint) {
        footprint.output(self.block.part());
    }

    fn run(&self, mem: &Mem<'_>) -> Result<(), Failure> {
        start(&mut mem.write(self.block.part())?);
        Ok(())
    }
}

/// One sweep of a block.
#[derive(Clone, Copy, Debug)]
struct Sweep {
    old: Block,
    new: Data<f64>,
    blocks: u32,
}

/// Additions and a multiplication for each value.
const FLOPS: f64 = 4.0;

impl Kernel for Sweep {
    const NAME: &'static str = "sweep";

    #[allow(clippy::cast_precision_loss, reason = "a block is far below 2^52")]
    fn declare(&self, footprint: &mut Footprint) {
        footprint.input(self.old.part());
        for row in self.old.above().into_iter().chain(self.old.below(self.blocks)) {
            footprint.input(row);
        }
        footprint.output(Block { values: self.new, ..self.old }.part());
        footprint.flops(FLOPS * self.old.len() as f64);
    }

    fn run(&self, mem: &Mem<'_>) -> Result<(), Failure> {
        let old = mem.read(self.old.part())?;
        let above = self.old.above().map(|row| mem.read(row)).transpose()?;
        let below = self.old.below(self.blocks).map(|row| mem.read(row)).transpose()?;
        let mut new = mem.write(Block { values: self.new, ..self.old }.part())?;
        sweep(&old, above.as_deref(), below.as_deref(), &mut new, self.old.columns as usize);
        Ok(())
    }
}
