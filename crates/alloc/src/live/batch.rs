//! Loads to be timed together, which can be put aside at any moment and gone on with later.
//!
//! It knows nothing of what the loads are for. Samples of a batch are of one core: if the thread
//! is found elsewhere, the batch begins anew there.

use super::timing::Timing;
use isochrone_os::OsError;
use isochrone_os::table::Table;
use isochrone_units::{CoreId, Cycles, Level, LineAddr};

/// Loads between two looks at the clock: some 5 microseconds of them.
const PIECE: usize = 32;
/// How long lines stay where they were put while their program does something else. After that
/// the cache may have lost them, and they are prepared again.
const FRESH_NS: u64 = 2_000_000;

/// How far a batch came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Every load is timed.
    Done,
    /// The time was up.
    Paused,
    /// The thread is on another core: nothing of it can be used.
    Elsewhere,
}

/// Lines, and their samples as far as they are there.
#[derive(Debug)]
pub(super) struct Batch {
    lines: Table<LineAddr>,
    raw: Table<Cycles>,
    length: usize,
    level: Level,
    core: CoreId,
    ready: usize,
    timed: usize,
    ready_ns: u64,
}

impl Batch {
    pub(super) fn new(capacity: usize, level: Level) -> Result<Self, OsError> {
        Ok(Self {
            lines: Table::zeroed(capacity)?,
            raw: Table::zeroed(capacity)?,
            length: 0,
            level,
            core: CoreId(u16::MAX),
            ready: 0,
            timed: 0,
            ready_ns: 0,
        })
    }

    /// Empties it, for loads from `core`.
    pub(super) fn begin(&mut self, core: CoreId, level: Level) {
        self.length = 0;
        self.level = level;
        self.restart(core);
    }

    /// The same lines once more, from `core`.
    pub(super) fn restart(&mut self, core: CoreId) {
        (self.core, self.ready, self.timed) = (core, 0, 0);
    }

    /// Adds a line; false if it is full.
    pub(super) fn push(&mut self, line: LineAddr) -> bool {
        let Some(slot) = self.lines.get_mut(self.length) else { return false };
        *slot = line;
        self.length += 1;
        true
    }

    /// Loads in it.
    pub(super) const fn len(&self) -> usize {
        self.length
    }

    /// The core from which it is timed.
    pub(super) const fn core(&self) -> CoreId {
        self.core
    }

    /// The samples, once it is done.
    pub(super) fn samples(&self) -> &[Cycles] {
        &self.raw[..self.timed]
    }

    /// Times what is left, until it is done or the time is up.
    pub(super) fn run(
        &mut self,
        timing: &mut impl Timing,
        until_ns: u64,
    ) -> Result<Progress, OsError> {
        while self.timed < self.length {
            if timing.core() != self.core {
                return Ok(Progress::Elsewhere);
            }
            let now = timing.now_ns();
            if self.ready == self.timed || now.saturating_sub(self.ready_ns) > FRESH_NS {
                let end = self.length.min(self.timed + timing.together(self.level).max(1));
                if !timing.prepare(self.level, &self.lines[self.timed..end], until_ns)? {
                    return Ok(Progress::Paused);
                }
                (self.ready, self.ready_ns) = (end, timing.now_ns());
            }
            let piece = self.timed..self.ready.min(self.timed + PIECE);
            let lines = &self.lines[piece.clone()];
            timing.time(self.level, lines, &mut self.raw[piece.clone()])?;
            if timing.core() != self.core {
                return Ok(Progress::Elsewhere);
            }
            self.timed = piece.end;
            if self.timed < self.length && timing.now_ns() >= until_ns {
                return Ok(Progress::Paused);
            }
        }
        Ok(Progress::Done)
    }
}
