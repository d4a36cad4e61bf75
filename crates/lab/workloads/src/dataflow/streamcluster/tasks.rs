//! Streamcluster's passes on tasks: one for each block and pass. The search waits for the sums of a pass
//! before it decides.

use isochrone_tasks::{Data, Failure, Footprint, Kernel, Mem, Part, TaskError, Tasks};

use super::Parameters;
use super::arrays::{Arrays, Block, LEFT, SLOTS_MAX, SUMMED_SLOTS};
use super::points::{self, Point};
use super::port::{self, Port};
use super::search::Passes;
use super::stream::{Centre, Chunk, add_to_sums, centres_of, coordinate};
use crate::dataflow::first_touch::FirstTouch;

/// A chunk of the stream whose passes are tasks.
#[derive(Debug)]
pub struct OnTasks<'t, T> {
    tasks: &'t mut T,
    arrays: Arrays,
    closed: Data<u32>,
    sums: Data<f64>,
    block: usize,
    points: usize,
    seed: u64,
    touch: FirstTouch,
    /// Where tasks declare what those of the public port do.
    port: Option<Port>,
}

impl<'t, T: Tasks> OnTasks<'t, T> {
    /// Registers memory for the largest chunk.
    ///
    /// # Errors
    /// [`TaskError`] where there is no room.
    pub fn new(
        tasks: &'t mut T,
        parameters: &Parameters,
        seed: u64,
        touch: FirstTouch,
    ) -> Result<Self, TaskError> {
        let chunk = parameters.chunk.min(parameters.points).max(parameters.centres);
        let blocks = chunk.div_ceil(parameters.block);
        if parameters.block > usize::from(u16::MAX) || blocks > usize::from(u16::MAX) {
            return Err(TaskError::Config(format!(
                "{chunk} points in blocks of {}: points of a block and blocks are at most 65535",
                parameters.block
            )));
        }
        let arrays = Arrays {
            coordinates: tasks.data(chunk * parameters.dimensions)?,
            points: tasks.data(chunk)?,
            left: tasks.data(blocks * LEFT)?,
        };
        let closed = tasks.data(SLOTS_MAX)?;
        let sums = tasks.data(blocks * SUMMED_SLOTS * (1 + parameters.dimensions))?;
        let block = parameters.block;
        Ok(Self { tasks, arrays, closed, sums, block, points: 0, seed, touch, port: None })
    }

    /// The same, whose passes declare what the tasks of the public OmpSs port do: for simulations. Each block has whole
    /// pages of its own, or they share some.
    ///
    /// # Errors
    /// [`TaskError`] where there is no room for the port's arrays.
    pub fn with_port_declarations(self, whole_pages: bool) -> Result<Self, TaskError> {
        let port = Some(Port::new(self.tasks, self.arrays, self.block, whole_pages)?);
        Ok(Self { port, ..self })
    }

    /// The port's declarations for the points that are loaded.
    fn port(&self) -> Option<Port> {
        self.port.map(|port| port.of(short(self.points)))
    }

    fn blocks(&self) -> impl Iterator<Item = Block> + use<T> {
        let (points, size) = (self.points, self.block);
        (0..points).step_by(size).enumerate().map(move |(number, first)| Block {
            first: short(first),
            points: u16::try_from(size.min(points - first)).unwrap_or(u16::MAX),
            number: u16::try_from(number).unwrap_or(u16::MAX),
        })
    }

    /// Does a pass with point `x` and adds up what each block left, in order. `slots` values come behind
    /// the sum.
    fn pass(
        &mut self,
        pass: Pass,
        x: usize,
        slot: u32,
        slots: usize,
    ) -> Result<Vec<f64>, TaskError> {
        if slots.max(slot as usize + 1) > SLOTS_MAX {
            return Err(TaskError::Config(format!(
                "more than {SLOTS_MAX} centres are open at once; ask for fewer, or for larger chunks"
            )));
        }
        let (arrays, x) = (self.arrays, short(x));
        let slots = u16::try_from(slots).unwrap_or(u16::MAX);
        let slot = u16::try_from(slot).unwrap_or(u16::MAX);
        let port = self.port();
        for block in self.blocks() {
            if let Some(port) = port {
                let left = arrays.left(block, usize::from(slots)).range();
                match pass {
                    Pass::First | Pass::Take => {
                        self.tasks.spawn(port.task::<port::Speedy>(block, x, left))?;
                    }
                    Pass::Gain => self.tasks.spawn(port.task::<port::Gain>(block, x, left))?,
                }
                continue;
            }
            match pass {
                Pass::First => self.tasks.spawn(First { arrays, block, x, slot })?,
                Pass::Take => self.tasks.spawn(Take { arrays, block, x, slot })?,
                Pass::Gain => self.tasks.spawn(Gain { arrays, block, x, slots })?,
            }
        }
        let mut sums = vec![0.0; 1 + usize::from(slots)];
        let each = self.points as f64 / self.blocks().count().max(1) as f64;
        let dimensions = arrays.dimensions() as f64;
        for block in self.blocks() {
            let part = arrays.left(block, usize::from(slots));
            let left = self.tasks.values(part, |i| pass.assumed(i, each, dimensions))?;
            for (sum, left) in sums.iter_mut().zip(left) {
                *sum += left;
            }
        }
        Ok(sums)
    }
}

fn short(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// The passes that leave sums.
#[derive(Clone, Copy, Debug)]
enum Pass {
    First,
    Take,
    Gain,
}

impl Pass {
    /// What a block of `points` uniform points is assumed to leave where nothing is computed: the mean
    /// squared distance of two such points is `dimensions / 6`, and no candidate saves anything, so
    /// that each round of the search is gone through once.
    const fn assumed(self, i: usize, points: f64, dimensions: f64) -> f64 {
        match (self, i) {
            (Self::First, 0) => points * dimensions / 6.0,
            (Self::Gain, 1..) => f64::INFINITY,
            _ => 0.0,
        }
    }
}

impl<T: Tasks> Passes for OnTasks<'_, T> {
    type Error = TaskError;

    fn points(&self) -> usize {
        self.points
    }

    fn first(&mut self, x: usize, slot: u32) -> Result<f64, TaskError> {
        Ok(self.pass(Pass::First, x, slot, 0)?[0])
    }

    fn take(&mut self, x: usize, slot: u32) -> Result<f64, TaskError> {
        Ok(self.pass(Pass::Take, x, slot, 0)?[0])
    }

    fn gain(&mut self, x: usize, closing: &mut [f64]) -> Result<f64, TaskError> {
        let sums = self.pass(Pass::Gain, x, 0, closing.len())?;
        closing.copy_from_slice(&sums[1..]);
        Ok(sums[0])
    }

    fn open(&mut self, x: usize, slot: u32, closed: &[bool]) -> Result<(), TaskError> {
        let slots = u16::try_from(closed.len()).unwrap_or(u16::MAX);
        self.tasks.store(self.closed.part(0, closed.len()), |out| {
            for (out, closed) in out.iter_mut().zip(closed) {
                *out = u32::from(*closed);
            }
        })?;
        let Arrays { coordinates, points, .. } = self.arrays;
        let closed = self.closed;
        let slot = u16::try_from(slot).unwrap_or(u16::MAX);
        let port = self.port();
        for block in self.blocks() {
            if let Some(port) = port {
                let closed = closed.part(0, usize::from(slots)).range();
                self.tasks.spawn(port.task::<port::Open>(block, short(x), closed))?;
                continue;
            }
            self.tasks.spawn(Open {
                coordinates,
                points,
                closed,
                block,
                x: short(x),
                slot,
                slots,
            })?;
        }
        self.tasks.wait()
    }

    fn point(&mut self, x: usize) -> Result<(f64, f64), TaskError> {
        let cost = self.arrays.dimensions() as f32 / 6.0;
        let assumed = |_| Point { weight: 1.0, cost, slot: 0, nearer: 0 };
        let point = self.tasks.values(self.arrays.points.part(x, 1), assumed)?[0];
        Ok((f64::from(point.cost), f64::from(point.weight)))
    }
}

impl<T: Tasks> Chunk for OnTasks<'_, T> {
    fn load(&mut self, first: usize, count: usize) -> Result<(), TaskError> {
        self.points = count;
        let Arrays { coordinates, points, .. } = self.arrays;
        let (stream, seed) = (first as u64, self.seed);
        let (port, serial) = (self.port(), self.touch == FirstTouch::Serial);
        match port {
            Some(port) if serial => self.tasks.spawn(port.load_all())?,
            Some(port) => {
                for block in self.blocks() {
                    self.tasks.spawn(port.load(block))?;
                }
            }
            None if serial => {
                let count = short(count);
                self.tasks.spawn(LoadAll { coordinates, points, count, stream, seed })?;
            }
            None => {
                for block in self.blocks() {
                    self.tasks.spawn(Load { coordinates, points, block, stream, seed })?;
                }
            }
        }
        self.tasks.wait()
    }

    fn load_centres(&mut self, centres: &[Centre]) -> Result<(), TaskError> {
        self.points = centres.len();
        let dimensions = self.arrays.dimensions();
        let at = self.arrays.coordinates.part(0, centres.len() * dimensions);
        self.tasks.store(at, |out| {
            for (out, centre) in out.chunks_exact_mut(dimensions).zip(centres) {
                out.copy_from_slice(&centre.at);
            }
        })?;
        self.tasks.store(self.arrays.points.part(0, centres.len()), |out| {
            for (out, centre) in out.iter_mut().zip(centres) {
                *out = Point { weight: centre.weight, ..Point::default() };
            }
        })
    }

    fn join(&mut self, slots: usize) -> Result<Vec<Option<Centre>>, TaskError> {
        let dimensions = self.arrays.dimensions();
        if slots > SUMMED_SLOTS {
            return Err(TaskError::Config(format!(
                "{slots} centres are more than {SUMMED_SLOTS}; ask for fewer"
            )));
        }
        let Arrays { coordinates, points, .. } = self.arrays;
        let (sums, slots) = (self.sums, u16::try_from(slots).unwrap_or(u16::MAX));
        let port = self.port();
        for block in self.blocks() {
            match port {
                Some(port) => {
                    let own = block.sums(sums, slots, dimensions).range();
                    self.tasks.spawn(port.task::<port::Join>(block, 0, own))?;
                }
                None => self.tasks.spawn(Join { coordinates, points, sums, block, slots })?,
            }
        }
        let mut all = vec![0.0; usize::from(slots) * (1 + dimensions)];
        for block in self.blocks() {
            let part = block.sums(sums, slots, dimensions);
            let own = self.tasks.values(part, |_| 1.0)?;
            for (sum, own) in all.iter_mut().zip(own) {
                *sum += own;
            }
        }
        Ok(centres_of(&all, dimensions))
    }
}

/// Makes the points of a block.
#[derive(Clone, Copy, Debug)]
struct Load {
    coordinates: Data<f32>,
    points: Data<Point>,
    block: Block,
    stream: u64,
    seed: u64,
}

impl Load {
    fn arrays(&self) -> (Part<f32>, Part<Point>) {
        let dimensions = self.coordinates.len() / self.points.len();
        (self.block.coordinates(self.coordinates, dimensions), self.block.points(self.points))
    }
}

/// Writes points of the stream from point `first` on.
fn write_points(seed: u64, first: u64, coordinates: &mut [f32], points: &mut [Point]) {
    let dimensions = coordinates.len() / points.len();
    let first = usize::try_from(first).unwrap_or(0);
    for (i, out) in coordinates.iter_mut().enumerate() {
        *out = coordinate(seed, first + i / dimensions, i % dimensions);
    }
    points.fill(Point { weight: 1.0, ..Point::default() });
}

impl Kernel for Load {
    const NAME: &'static str = "load points";

    fn declare(&self, footprint: &mut Footprint) {
        let (coordinates, points) = self.arrays();
        footprint.output(coordinates).output(points);
    }

    fn run(&self, mem: &Mem<'_>) -> Result<(), Failure> {
        let (coordinates, points) = self.arrays();
        let first = self.stream + u64::from(self.block.first);
        write_points(self.seed, first, &mut mem.write(coordinates)?, &mut mem.write(points)?);
        Ok(())
    }
}

/// Makes all points of a chunk.
#[derive(Clone, Copy, Debug)]
struct LoadAll {
    coordinates: Data<f32>,
    points: Data<Point>,
    count: u32,
    stream: u64,
    seed: u64,
}

impl LoadAll {
    fn arrays(&self) -> (Part<f32>, Part<Point>) {
        let dimensions = self.coordinates.len() / self.points.len();
        let count = self.count as usize;
        (self.coordinates.part(0, count * dimensions), self.points.part(0, count))
    }
}

impl Kernel for LoadAll {
    const NAME: &'static str = "load all points";

    fn declare(&self, footprint: &mut Footprint) {
        let (coordinates, points) = self.arrays();
        footprint.output(coordinates).output(points);
    }

    fn run(&self, mem: &Mem<'_>) -> Result<(), Failure> {
        let (coordinates, points) = self.arrays();
        write_points(self.seed, self.stream, &mut mem.write(coordinates)?, &mut mem.write(points)?);
        Ok(())
    }
}

/// A pass that leaves one sum.
macro_rules! summing_pass {
    ($name:ident, $text:literal, $pass:path) => {
        #[derive(Clone, Copy, Debug)]
        struct $name {
            arrays: Arrays,
            block: Block,
            x: u32,
            slot: u16,
        }

        impl Kernel for $name {
            const NAME: &'static str = $text;

            fn declare(&self, footprint: &mut Footprint) {
                self.arrays.declare(self.block, self.x, 0, footprint);
            }

            fn run(&self, mem: &Mem<'_>) -> Result<(), Failure> {
                let coordinates = mem.read(self.arrays.block(self.block))?;
                let candidate = mem.read(self.arrays.candidate(self.x))?;
                let mut points = mem.write(self.block.points(self.arrays.points))?;
                let mut left = mem.write(self.arrays.left(self.block, 0))?;
                left[0] = $pass(&mut points, &coordinates, &candidate, u32::from(self.slot));
                Ok(())
            }
        }
    };
}

summing_pass!(First, "first centre", points::first);
summing_pass!(Take, "take points", points::take);

/// What opening a candidate would change.
#[derive(Clone, Copy, Debug)]
struct Gain {
    arrays: Arrays,
    block: Block,
    x: u32,
    slots: u16,
}

impl Kernel for Gain {
    const NAME: &'static str = "gain";

    fn declare(&self, footprint: &mut Footprint) {
        self.arrays.declare(self.block, self.x, usize::from(self.slots), footprint);
    }

    fn run(&self, mem: &Mem<'_>) -> Result<(), Failure> {
        let coordinates = mem.read(self.arrays.block(self.block))?;
        let candidate = mem.read(self.arrays.candidate(self.x))?;
        let mut points = mem.write(self.block.points(self.arrays.points))?;
        let mut left = mem.write(self.arrays.left(self.block, usize::from(self.slots)))?;
        let (saved, closing) = left.split_at_mut(1);
        closing.fill(0.0);
        saved[0] = points::gain(&mut points, &coordinates, &candidate, closing);
        Ok(())
    }
}

/// Opens a candidate.
#[derive(Clone, Copy, Debug)]
struct Open {
    coordinates: Data<f32>,
    points: Data<Point>,
    closed: Data<u32>,
    block: Block,
    x: u32,
    slot: u16,
    slots: u16,
}

impl Open {
    fn candidate(&self) -> (usize, Part<f32>) {
        let dimensions = self.coordinates.len() / self.points.len();
        (dimensions, self.coordinates.part(self.x as usize * dimensions, dimensions))
    }
}

impl Kernel for Open {
    const NAME: &'static str = "open centre";

    fn declare(&self, footprint: &mut Footprint) {
        let (dimensions, candidate) = self.candidate();
        footprint.input(self.block.coordinates(self.coordinates, dimensions)).input(candidate);
        footprint.input(self.closed.part(0, usize::from(self.slots)));
        footprint.inout(self.block.points(self.points));
    }

    fn run(&self, mem: &Mem<'_>) -> Result<(), Failure> {
        let (dimensions, candidate) = self.candidate();
        let coordinates = mem.read(self.block.coordinates(self.coordinates, dimensions))?;
        let candidate = mem.read(candidate)?;
        let closed = mem.read(self.closed.part(0, usize::from(self.slots)))?;
        let mut points = mem.write(self.block.points(self.points))?;
        points::open(&mut points, &coordinates, &candidate, u32::from(self.slot), |slot| {
            closed.get(slot as usize) == Some(&1)
        });
        Ok(())
    }
}

/// Sums up the points of each slot.
#[derive(Clone, Copy, Debug)]
struct Join {
    coordinates: Data<f32>,
    points: Data<Point>,
    sums: Data<f64>,
    block: Block,
    slots: u16,
}

impl Join {
    fn dimensions(&self) -> usize {
        self.coordinates.len() / self.points.len()
    }
}

impl Kernel for Join {
    const NAME: &'static str = "join points";

    fn declare(&self, footprint: &mut Footprint) {
        let dimensions = self.dimensions();
        footprint.input(self.block.coordinates(self.coordinates, dimensions));
        footprint.input(self.block.points(self.points));
        footprint.output(self.block.sums(self.sums, self.slots, dimensions));
    }

    fn run(&self, mem: &Mem<'_>) -> Result<(), Failure> {
        let dimensions = self.dimensions();
        let coordinates = mem.read(self.block.coordinates(self.coordinates, dimensions))?;
        let points = mem.read(self.block.points(self.points))?;
        let mut sums = mem.write(self.block.sums(self.sums, self.slots, dimensions))?;
        sums.fill(0.0);
        add_to_sums(&points, &coordinates, dimensions, &mut sums);
        Ok(())
    }
}
