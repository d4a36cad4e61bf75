//! What tasks of streamcluster's public OmpSs port say of memory: points and a block of flags, while coordinates are
//! reached through pointers. The list of its tasks is in docs/results/papers-port.md.
//!
//! It is for simulations: these tasks touch what the scheduler does not know of, so they compute nothing.

use isochrone_tasks::{
    DataId, Failure, Footprint, Kernel, Mem, Mode, Part, Range, TaskError, Tasks,
};

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
        of(self.coordinates, first, count, u64::from(self.dimensions) * size_of::<f32>() as u64)
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

fn of(data: DataId, first: u32, count: u32, each: u64) -> Range {
    Range { data, start: u64::from(first) * each, bytes: u64::from(count) * each }
}

/// What a kernel of the port is refused with outside of a simulation.
fn refused() -> Failure {
    Failure::new("the port's declarations are for simulations: run streamcluster with its own")
}

/// `SIMSTREAM-COORD-INIT` and `POINT-COORD-INIT` of a block, or of all: they declare what they make.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    port: Port,
    block: Option<Block>,
}

impl Load {
    pub(super) const fn new(port: Port, block: Option<Block>) -> Self {
        Self { port, block }
    }
}

impl Kernel for Load {
    const NAME: &'static str = "port: load points";

    fn declare(&self, footprint: &mut Footprint) {
        let Self { port, block } = *self;
        match block {
            Some(block) => {
                footprint.output(port.coordinates(block.first, block.points.into()));
                footprint.output(port.points(block));
            }
            None => {
                footprint.output(port.coordinates(0, port.all)).output(port.all_points());
            }
        }
    }

    fn run(&self, _: &Mem<'_>) -> Result<(), Failure> {
        Err(refused())
    }
}

/// Sums that a task leaves.
#[derive(Clone, Copy, Debug)]
struct Left(DataId, u32, u16);

impl Left {
    fn new(part: Part<f64>) -> Self {
        let [first, len] = [part.first(), part.len()];
        Self(
            part.range().data,
            u32::try_from(first).unwrap_or(u32::MAX),
            u16::try_from(len).unwrap_or(u16::MAX),
        )
    }

    fn range(self) -> Range {
        of(self.0, self.1, self.2.into(), size_of::<f64>() as u64)
    }
}

/// `PSPEEDY-FIRST-CENTER` and `PSPEEDY-OPEN-CENTERS`: each declares its points.
#[derive(Clone, Copy, Debug)]
pub(super) struct Speedy {
    port: Port,
    block: Block,
    x: u32,
    left: Left,
}

impl Speedy {
    pub(super) fn new(port: Port, block: Block, x: u32, left: Part<f64>) -> Self {
        Self { port, block, x, left: Left::new(left) }
    }
}

impl Kernel for Speedy {
    const NAME: &'static str = "port: take points";

    fn declare(&self, footprint: &mut Footprint) {
        let Self { port, block, x, left } = *self;
        footprint.inout(port.points(block)).output(left.range());
        port.distances(block, x, footprint);
    }

    fn run(&self, _: &Mem<'_>) -> Result<(), Failure> {
        Err(refused())
    }
}

/// `PGAIN-UPDT-COSTS`: it declares all points, and of its own block the flags alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gain {
    port: Port,
    block: Block,
    x: u32,
    left: Left,
}

impl Gain {
    pub(super) fn new(port: Port, block: Block, x: u32, left: Part<f64>) -> Self {
        Self { port, block, x, left: Left::new(left) }
    }
}

impl Kernel for Gain {
    const NAME: &'static str = "port: gain";

    fn declare(&self, footprint: &mut Footprint) {
        let Self { port, block, x, left } = *self;
        // `concurrent`: tasks that say the same of a range run at once. Of all points it touches its own.
        footprint.input(port.all_points()).passes(0.0);
        footprint.inout(port.flags(block));
        footprint.output(left.range());
        footprint.touched(port.points(block), Mode::InOut);
        port.distances(block, x, footprint);
    }

    fn run(&self, _: &Mem<'_>) -> Result<(), Failure> {
        Err(refused())
    }
}

/// `PGAIN-SAVE-MONEY`: it declares its points and flags.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    port: Port,
    block: Block,
    x: u32,
    closed: DataId,
    slots: u16,
}

impl Open {
    pub(super) fn new(port: Port, block: Block, x: u32, closed: Part<u32>) -> Self {
        let slots = u16::try_from(closed.len()).unwrap_or(u16::MAX);
        Self { port, block, x, closed: closed.range().data, slots }
    }
}

impl Kernel for Open {
    const NAME: &'static str = "port: open centre";

    fn declare(&self, footprint: &mut Footprint) {
        let Self { port, block, x, closed, slots } = *self;
        footprint.inout(port.points(block));
        footprint.input(port.flags(block));
        footprint.input(of(closed, 0, slots.into(), size_of::<u32>() as u64));
        // Our own task counts no operations either.
        port.reach(block.first, block.points.into(), footprint);
        port.reach(x, 1, footprint);
    }

    fn run(&self, _: &Mem<'_>) -> Result<(), Failure> {
        Err(refused())
    }
}

/// Sums up the points of each slot: serial in the port, so the points are all that is declared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Join {
    port: Port,
    block: Block,
    sums: Left,
}

impl Join {
    pub(super) fn new(port: Port, block: Block, sums: Part<f64>) -> Self {
        Self { port, block, sums: Left::new(sums) }
    }
}

impl Kernel for Join {
    const NAME: &'static str = "port: join points";

    fn declare(&self, footprint: &mut Footprint) {
        let Self { port, block, sums } = *self;
        footprint.input(port.points(block)).output(sums.range());
        port.reach(block.first, block.points.into(), footprint);
    }

    fn run(&self, _: &Mem<'_>) -> Result<(), Failure> {
        Err(refused())
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
