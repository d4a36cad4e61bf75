//! Loads to be timed together, which can be put aside at any look at the clock and gone on with later.
//!
//! It knows nothing of what the loads are for. A batch belongs to one core: once the thread is found
//! elsewhere, nothing of it can be used. The tables are the caller's.

use crate::loads::Loads;
use isochrone_units::{CoreId, Cycles, Level, LineAddr};

/// How long lines stay where they were put while their program does something else. After that
/// the cache may have lost them, and they are prepared again.
const FRESH_NS: u64 = 2_000_000;
/// Preparations in a row of which most lines went stale before they were timed. The next would end the
/// same way: each takes longer than a program gives at a time, and the level cannot be decoded here.
const STALE_MOST: u32 = 4;

/// How far a batch came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Every load is timed.
    Done,
    /// The time was up.
    Paused,
    /// The thread is on another core: nothing of it can be used.
    Elsewhere,
    /// What is prepared goes stale before it is timed, again and again: the level cannot be decoded
    /// in slices as short and as seldom as these.
    Stale,
}

/// Lines, and their samples as far as they are there; the lines and samples are in tables of the caller.
#[derive(Clone, Copy, Debug)]
pub struct Batch {
    length: usize,
    level: Level,
    core: CoreId,
    ready: usize,
    timed: usize,
    /// Where the last preparation began.
    from: usize,
    ready_ns: u64,
    stale: u32,
    /// Loads between two looks at the clock.
    piece: usize,
}

impl Batch {
    /// An empty one, with `piece` loads between two looks at the clock.
    #[must_use]
    pub const fn new(level: Level, piece: usize) -> Self {
        Self {
            length: 0,
            level,
            core: CoreId(u16::MAX),
            ready: 0,
            timed: 0,
            from: 0,
            ready_ns: 0,
            stale: 0,
            piece,
        }
    }

    /// Empties it, for loads from `core`.
    pub const fn begin(&mut self, core: CoreId, level: Level) {
        self.length = 0;
        self.level = level;
        self.restart(core);
    }

    /// The same lines once more, from `core`.
    pub const fn restart(&mut self, core: CoreId) {
        (self.core, self.ready, self.timed, self.from) = (core, 0, 0, 0);
    }

    /// Adds a line; false if the table is full.
    pub fn push(&mut self, lines: &mut [LineAddr], line: LineAddr) -> bool {
        let Some(slot) = lines.get_mut(self.length) else { return false };
        *slot = line;
        self.length += 1;
        true
    }

    /// Loads in it.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Whether nothing is in it.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Where its lines are put.
    #[must_use]
    pub const fn level(&self) -> Level {
        self.level
    }

    /// The core from which it is timed.
    #[must_use]
    pub const fn core(&self) -> CoreId {
        self.core
    }

    /// How many samples are there.
    #[must_use]
    pub const fn timed(&self) -> usize {
        self.timed
    }

    /// Times what is left, until it is done or the time is up.
    ///
    /// # Errors
    /// What the machine refuses.
    pub fn run<L: Loads + ?Sized>(
        &mut self,
        loads: &mut L,
        lines: &[LineAddr],
        raw: &mut [Cycles],
        until_ns: u64,
    ) -> Result<Progress, L::Error> {
        let length = self.length.min(lines.len()).min(raw.len());
        while self.timed < length {
            if loads.core() != self.core {
                return Ok(Progress::Elsewhere);
            }
            let now = loads.now_ns();
            let stale = self.ready > self.timed && now.saturating_sub(self.ready_ns) > FRESH_NS;
            if stale && self.note_stale() {
                return Ok(Progress::Stale);
            }
            if stale || self.ready <= self.timed {
                let end = length.min(self.timed.saturating_add(loads.together(self.level).max(1)));
                // Until it is ready there is nothing that could go stale.
                self.ready = self.timed;
                if !loads.prepare(self.level, &lines[self.timed..end], until_ns)? {
                    return Ok(Progress::Paused);
                }
                (self.ready, self.from, self.ready_ns) = (end, self.timed, loads.now_ns());
            }
            let end = self.ready.min(self.timed.saturating_add(self.piece));
            let piece = self.timed..end;
            loads.time(self.level, &lines[piece.clone()], &mut raw[piece])?;
            if loads.core() != self.core {
                return Ok(Progress::Elsewhere);
            }
            self.timed = end;
            if self.timed == self.ready {
                self.stale = 0;
            }
            if self.timed < length && loads.now_ns() >= until_ns {
                return Ok(Progress::Paused);
            }
        }
        Ok(Progress::Done)
    }

    /// Counts a preparation most of which went stale; true when there were too many of them in a row.
    const fn note_stale(&mut self) -> bool {
        let most = 2 * (self.timed - self.from) < self.ready - self.from;
        self.stale = if most { self.stale + 1 } else { 0 };
        let ends = self.stale >= STALE_MOST;
        if ends {
            self.stale = 0;
        }
        ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;
    use std::vec::Vec;

    /// A machine that takes its time to prepare, and whose program comes back only now and then.
    struct Slow {
        now_ns: u64,
        core: CoreId,
    }

    impl Loads for Slow {
        type Error = ();
        fn core(&self) -> CoreId {
            self.core
        }
        fn now_ns(&self) -> u64 {
            self.now_ns
        }
        fn overhead_cycles(&self) -> f64 {
            0.0
        }
        fn tick_cycles(&self) -> u32 {
            1
        }
        fn together(&self, _: Level) -> usize {
            1024
        }
        fn prepare(&mut self, _: Level, _: &[LineAddr], _: u64) -> Result<bool, ()> {
            Ok(true)
        }
        fn abandon(&mut self) {}
        fn time(&mut self, _: Level, lines: &[LineAddr], out: &mut [Cycles]) -> Result<(), ()> {
            self.now_ns += 100 * lines.len() as u64;
            out.fill(Cycles(9));
            Ok(())
        }
    }

    /// How a batch of 2048 loads ends in slices of `slice_ns`, `pause_ns` apart.
    fn ends(slice_ns: u64, pause_ns: u64) -> (Progress, usize) {
        let mut machine = Slow { now_ns: 1, core: CoreId(3) };
        let lines: Vec<LineAddr> = (0..2048).map(LineAddr).collect();
        let (mut table, mut raw) = (vec![LineAddr(0); 2048], vec![Cycles(0); 2048]);
        let mut batch = Batch::new(Level::Llc, 32);
        batch.begin(CoreId(3), Level::Llc);
        assert!(lines.iter().all(|line| batch.push(&mut table, *line)));
        assert!(!batch.push(&mut table, LineAddr(0)), "it is full");
        for slices in 1..1000 {
            let until = machine.now_ns + slice_ns;
            match batch.run(&mut machine, &table, &mut raw, until) {
                Ok(Progress::Paused) => machine.now_ns += pause_ns,
                Ok(end) => return (end, slices),
                Err(()) => panic!("it refuses nothing"),
            }
        }
        panic!("it does not end")
    }

    #[test]
    fn what_cannot_be_kept_fresh_ends_with_a_verdict_and_not_with_retries() {
        assert_eq!(ends(u64::MAX / 2, 0).0, Progress::Done);
        assert_eq!(ends(50_000, 1_000).0, Progress::Done);
        // Slices of 32 loads, three milliseconds apart: each time most of what was prepared is gone.
        let (end, slices) = ends(1, 3_000_000);
        assert_eq!(end, Progress::Stale);
        assert!(slices <= 6, "{slices}");
    }

    #[test]
    fn a_batch_belongs_to_one_core() {
        let mut machine = Slow { now_ns: 1, core: CoreId(3) };
        let (table, mut raw) = ([LineAddr(0); 64], [Cycles(0); 64]);
        let mut lines = table;
        let mut batch = Batch::new(Level::Dram, 32);
        batch.begin(CoreId(3), Level::Dram);
        (0..64).for_each(|line| _ = batch.push(&mut lines, LineAddr(line)));
        assert_eq!(batch.run(&mut machine, &lines, &mut raw, 0), Ok(Progress::Paused));
        machine.core = CoreId(4);
        assert_eq!(batch.run(&mut machine, &lines, &mut raw, 9), Ok(Progress::Elsewhere));
        batch.restart(CoreId(4));
        assert_eq!((batch.timed(), batch.len()), (0, 64));
    }
}
