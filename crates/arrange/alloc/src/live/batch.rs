//! Loads to be timed together, with tables of their own: see [`isochrone_decode::Batch`].

use super::timing::{Timed, Timing};
pub(super) use isochrone_decode::Progress;
use isochrone_os::OsError;
use isochrone_os::table::Table;
use isochrone_units::{CoreId, Cycles, Level, LineAddr};

/// Loads between two looks at the clock: some 5 microseconds of them.
const PIECE: usize = 32;

/// Lines, and their samples as far as they are there.
#[derive(Debug)]
pub(super) struct Batch {
    lines: Table<LineAddr>,
    raw: Table<Cycles>,
    course: isochrone_decode::Batch,
}

impl Batch {
    pub(super) fn new(capacity: usize, level: Level) -> Result<Self, OsError> {
        Ok(Self {
            lines: Table::zeroed(capacity)?,
            raw: Table::zeroed(capacity)?,
            course: isochrone_decode::Batch::new(level, PIECE),
        })
    }

    /// Empties it, for loads from `core`.
    pub(super) const fn begin(&mut self, core: CoreId, level: Level) {
        self.course.begin(core, level);
    }

    /// The same lines once more, from `core`.
    pub(super) const fn restart(&mut self, core: CoreId) {
        self.course.restart(core);
    }

    /// Adds a line; false if it is full.
    pub(super) fn push(&mut self, line: LineAddr) -> bool {
        self.course.push(&mut self.lines, line)
    }

    /// Loads in it.
    pub(super) const fn len(&self) -> usize {
        self.course.len()
    }

    /// Where its lines are put.
    pub(super) const fn level(&self) -> Level {
        self.course.level()
    }

    /// The core from which it is timed.
    pub(super) const fn core(&self) -> CoreId {
        self.course.core()
    }

    /// The samples, once it is done.
    pub(super) fn samples(&self) -> &[Cycles] {
        &self.raw[..self.course.timed()]
    }

    /// Times what is left, until it is done or the time is up.
    pub(super) fn run(
        &mut self,
        timing: &mut impl Timing,
        until_ns: u64,
    ) -> Result<Progress, OsError> {
        self.course.run(&mut Timed(timing), &self.lines, &mut self.raw, until_ns)
    }
}
