//! What tasks of streamcluster's public OmpSs port say of memory: points and a block of flags, while coordinates are
//! reached through pointers. The list of its tasks is in docs/results/papers-port.md.
//!
//! It is for simulations: these tasks touch what the scheduler does not know of, so they compute nothing.

use core::marker::PhantomData;

use isochrone_tasks::{DataId, Failure, Footprint, Kernel, Mem, Mode, Range, TaskError, Tasks};

use super::arrays::{Arrays, Block, FLOPS};
use super::points::Point;

/// Bytes of a page, by which a scheduler knows where data are.
const PAGE: u64 = 4096;
/// Bytes of a point.
const POINT: u64 = size_of::<Point>() as u64;
/// Bytes of a point's flag.
const FLAG: u64 = 1;

/// The arrays of the port, in a kernel's arguments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Port {
    coordinates: DataId,
    points: DataId,
    /// `switch_membership`: a byte for each point.
    membership: DataId,
    dimensions: u32,
    /// Points of a block.
    block: u32,
    /// Whether each block has whole pages of its own, so that a scheduler that knows pages counts what ranges say.
    whole_pages: bool,
    /// Points of the chunk that is clustered now.
    all: u32,
}

impl Port {
    /// Registers what the port has in the place of our points, and beside our coordinates.
    pub(super) fn new<T: Tasks>(
        tasks: &mut T,
        arrays: Arrays,
        block: usize,
        whole_pages: bool,
    ) -> Result<Self, TaskError> {
        let short = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let port = Self {
            coordinates: arrays.coordinates.id(),
            points: arrays.points.id(),
            membership: arrays.points.id(),
            dimensions: short(arrays.dimensions()),
            block: short(block),
            whole_pages,
            all: 0,
        };
        let blocks = arrays.points.len().div_ceil(block) as u64;
        let mut array = |each: u64| -> Result<DataId, TaskError> {
            let bytes = usize::try_from(blocks * port.stride(each)).unwrap_or(usize::MAX);
            Ok(tasks.data::<u8>(bytes)?.id())
        };
        Ok(Self { points: array(POINT)?, membership: array(FLAG)?, ..port })
    }

    /// The same with a chunk of so many points.
    pub(super) const fn of(self, all: u32) -> Self {
        Self { all, ..self }
    }

    /// A task over a block, with the candidate `x` and a range of its own.
    pub(super) const fn task<K: Kind>(self, block: Block, x: u32, own: Range) -> Task<K> {
        Task { port: self, block, x, own, kind: PhantomData }
    }

    /// Makes a block's points.
    pub(super) fn load(self, block: Block) -> Task<Load> {
        self.task(block, 0, self.coordinates(block.first, block.points.into()))
    }

    /// Makes all points.
    pub(super) fn load_all(self) -> Task<LoadAll> {
        let none = Block { first: 0, points: 0, number: 0 };
        self.task(none, 0, self.coordinates(0, self.all))
    }

    /// Bytes from a block to the next where a point has `each`.
    const fn stride(self, each: u64) -> u64 {
        let bytes = self.block as u64 * each;
        if self.whole_pages { bytes.next_multiple_of(PAGE) } else { bytes }
    }

    fn points(self, block: Block) -> Range {
        self.part(self.points, block, POINT)
    }

    fn flags(self, block: Block) -> Range {
        self.part(self.membership, block, FLAG)
    }

    fn part(self, data: DataId, block: Block, each: u64) -> Range {
        let start = u64::from(block.number) * self.stride(each);
        Range { data, start, bytes: u64::from(block.points) * each }
    }

    fn all_points(self) -> Range {
        let [full, rest] = [self.all / self.block, self.all % self.block].map(u64::from);
        Range { data: self.points, start: 0, bytes: full * self.stride(POINT) + rest * POINT }
    }

    fn coordinates(self, first: u32, count: u32) -> Range {
        let each = u64::from(self.dimensions) * size_of::<f32>() as u64;
        let [start, bytes] = [first, count].map(|points| u64::from(points) * each);
        Range { data: self.coordinates, start, bytes }
    }

    /// Coordinates, which no task of the port declares once they are there.
    fn reach(self, first: u32, count: u32, footprint: &mut Footprint) {
        footprint.touched(self.coordinates(first, count), Mode::In);
    }

    /// A block's distances from the candidate.
    fn distances(self, block: Block, x: u32, footprint: &mut Footprint) {
        self.reach(block.first, block.points.into(), footprint);
        self.reach(x, 1, footprint);
        footprint.flops(FLOPS * f64::from(block.points) * f64::from(self.dimensions));
    }
}

/// What tasks of one kind say of memory.
pub(super) trait Kind: Copy + Send + 'static {
    /// What traces, tables and errors call it.
    const NAME: &'static str;

    /// Says which ranges a task uses and how.
    fn declare(task: Task<Self>, footprint: &mut Footprint);
}

/// A task of the port: it declares what its kind does, and computes nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task<K> {
    port: Port,
    block: Block,
    /// The candidate, where there is one.
    x: u32,
    /// What it has beside points and flags: coordinates that it makes, sums that it leaves, which centres close.
    own: Range,
    kind: PhantomData<K>,
}

impl<K: Kind> Kernel for Task<K> {
    const NAME: &'static str = K::NAME;

    fn declare(&self, footprint: &mut Footprint) {
        K::declare(*self, footprint);
    }

    fn run(&self, _: &Mem<'_>) -> Result<(), Failure> {
        Err(Failure::new(REFUSED))
    }
}

/// What a task of the port is refused with outside of a simulation.
const REFUSED: &str = "the port's declarations are for simulations: run streamcluster with its own";

/// What a block's points are called where they are made.
const LOAD: &str = "port: load points";

/// `SIMSTREAM-COORD-INIT` and `POINT-COORD-INIT` of a block: they declare what they make.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load;

impl Kind for Load {
    const NAME: &'static str = LOAD;

    fn declare(task: Task<Self>, footprint: &mut Footprint) {
        footprint.output(task.own).output(task.port.points(task.block));
    }
}

/// The same of all points.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoadAll;

impl Kind for LoadAll {
    const NAME: &'static str = LOAD;

    fn declare(task: Task<Self>, footprint: &mut Footprint) {
        footprint.output(task.own).output(task.port.all_points());
    }
}

/// `PSPEEDY-FIRST-CENTER` and `PSPEEDY-OPEN-CENTERS`: each declares its points.
#[derive(Clone, Copy, Debug)]
pub(super) struct Speedy;

impl Kind for Speedy {
    const NAME: &'static str = "port: take points";

    fn declare(task: Task<Self>, footprint: &mut Footprint) {
        let Task { port, block, x, own, .. } = task;
        footprint.inout(port.points(block)).output(own);
        port.distances(block, x, footprint);
    }
}

/// `PGAIN-UPDT-COSTS`: it declares all points, and of its own block the flags alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gain;

impl Kind for Gain {
    const NAME: &'static str = "port: gain";

    fn declare(task: Task<Self>, footprint: &mut Footprint) {
        let Task { port, block, x, own, .. } = task;
        // `concurrent`: tasks that say the same of a range run at once. Of all points it touches its own.
        footprint.input(port.all_points()).passes(0.0);
        footprint.inout(port.flags(block)).output(own);
        footprint.touched(port.points(block), Mode::InOut);
        port.distances(block, x, footprint);
    }
}

/// `PGAIN-SAVE-MONEY`: it declares its points and flags.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open;

impl Kind for Open {
    const NAME: &'static str = "port: open centre";

    fn declare(task: Task<Self>, footprint: &mut Footprint) {
        let Task { port, block, x, own, .. } = task;
        footprint.inout(port.points(block)).input(port.flags(block)).input(own);
        // Our own task counts no operations either.
        port.reach(block.first, block.points.into(), footprint);
        port.reach(x, 1, footprint);
    }
}

/// Sums up the points of each slot: serial in the port, so the points are all that is declared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Join;

impl Kind for Join {
    const NAME: &'static str = "port: join points";

    fn declare(task: Task<Self>, footprint: &mut Footprint) {
        let Task { port, block, own, .. } = task;
        footprint.input(port.points(block)).output(own);
        port.reach(block.first, block.points.into(), footprint);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_on_whole_pages_share_none_and_the_last_ends_where_all_do() {
        let port = |whole_pages| Port {
            coordinates: DataId(0),
            points: DataId(1),
            membership: DataId(2),
            dimensions: 128,
            block: 5000,
            whole_pages,
            all: 12_000,
        };
        let block = |number: u16, points| Block { first: 5000 * u32::from(number), points, number };
        let shares = |range: fn(Port, Block) -> Range, whole_pages| {
            let [one, next] = [0, 1].map(|number| range(port(whole_pages), block(number, 5000)));
            (one.end() - 1) / PAGE == next.start / PAGE
        };
        for range in [Port::points, Port::flags] {
            assert!(shares(range, false) && !shares(range, true));
        }
        for whole_pages in [false, true] {
            let port = port(whole_pages);
            assert_eq!(port.all_points().end(), port.points(block(2, 2000)).end());
        }
    }
}
