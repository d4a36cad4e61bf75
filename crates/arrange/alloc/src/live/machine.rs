//! This machine: the lines of an arena, or of other memory, put where they are to be timed by the
//! instructions that the CPU has, and timed.
//!
//! It pins no thread. Lines reach the last-level cache by `cldemote`, or by a sweep that pushes
//! them out of the nearer caches; a sweep takes longer than a slice of work may, so it can be put
//! aside in the middle.

use super::arena::Arena;
use super::timing::Timing;
use isochrone_os::cache::Features;
use isochrone_os::frames::Pagemap;
use isochrone_os::mapping::Mapping;
use isochrone_os::reserve::Tail;
use isochrone_os::rseq::CoreWord;
use isochrone_os::timed::Memory;
use isochrone_os::{OsError, clock, timed};
use isochrone_units::{CoreId, Cycles, Level, LineAddr, PageAddr};

/// Lines flushed or demoted together before they are timed: few, so that nothing happens to the
/// first while the last is being moved.
const MOVED_TOGETHER: usize = 16;
/// Lines that share a sweep.
const EVICTED_TOGETHER: usize = 8192;
/// Lines loaded between two looks at the clock.
const TOUCHED: usize = 64;
/// Bytes swept between two looks at the clock: 256 lines in no order, less than a microsecond where they come from the
/// last-level cache, some 10 from memory.
const SWEPT_BYTES: usize = 16 << 10;
/// Bytes of the memory to sweep through that are made present between two looks at the clock.
const MADE_BYTES: usize = 16 << 10;
/// Length of the memory to sweep through, in halves of a second-level cache: a host that backs a guest's memory
/// with 4 KiB pages gives it random page colours, and with less some colours keep their lines. It is
/// resident in whatever program learns, so it is no longer than needed.
const SWEEP_OF_HALF_L2: usize = 3;
/// Times that a sweep goes through it. On an EPYC 9005 guest a chase through 512 lines takes 9 cycles of the counter a
/// line from the second-level cache and 31 from the last-level one; after one time 16 to 25, after two 29 to 31, after
/// three 31. Once through twice as much leaves it at 30, and puts some lines out of the last-level cache as well.
const SWEEPS: usize = 3;

/// The clock as the atlas has measured it.
#[derive(Clone, Copy, Debug)]
struct Clock {
    overhead_cycles: f32,
    tick_cycles: u32,
}

/// This machine.
#[derive(Debug)]
pub struct Machine<M> {
    memory: M,
    evictor: Option<Mapping>,
    sweep_bytes: usize,
    demote: bool,
    /// Whether the page map shows frames. It is opened for each look: a program that counts its
    /// descriptors, or closes those that it does not know, must not find one of ours; and one that
    /// was opened before a `fork` would show the parent's frames.
    shows_frames: bool,
    word: CoreWord,
    clock: Clock,
    touched: usize,
    /// Bytes swept, of all times together.
    swept: usize,
    /// Bytes of the evictor that are there.
    made: usize,
    /// Loads timed so far.
    loads: u64,
    bound: Bound,
}

/// The load from which on it is so much later.
#[derive(Clone, Copy, Debug)]
struct Bound {
    load: u64,
    late_ns: u64,
}

impl<'a> Machine<Tail<'a>> {
    /// The machine that runs this, over the pages of an arena from `first` on, which are counted
    /// from there. `l2_bytes` is one core's second-level cache; the clock's cost and step are those
    /// of the atlas ([`isochrone_atlas::Atlas::clock_tick_cycles`]): a cost that is a little off is
    /// common to all samples, and is taken off as such.
    #[must_use]
    pub fn new(
        arena: &'a Arena,
        first: PageAddr,
        l2_bytes: usize,
        overhead_cycles: f32,
        tick_cycles: u32,
    ) -> Self {
        Self::over(arena.memory().tail(first), l2_bytes, overhead_cycles, tick_cycles)
    }
}

impl<M: Memory> Machine<M> {
    /// The same over memory of any kind, whose lines and pages are counted from its first.
    #[must_use]
    pub fn over(memory: M, l2_bytes: usize, overhead_cycles: f32, tick_cycles: u32) -> Self {
        Self {
            memory,
            evictor: None,
            sweep_bytes: l2_bytes.max(1 << 18) / 2 * SWEEP_OF_HALF_L2,
            demote: Features::detect().cldemote,
            shows_frames: false,
            word: CoreWord::find(),
            clock: Clock { overhead_cycles, tick_cycles },
            touched: 0,
            swept: 0,
            made: 0,
            loads: 0,
            bound: Bound { load: u64::MAX, late_ns: 0 },
        }
    }

    /// For who works for `budget_ns`: his time is up once so many more loads were timed, whatever the clock says. A
    /// clock cannot tell work from a core that was taken away.
    pub const fn bound(&mut self, loads: u64, budget_ns: u64) {
        self.bound = Bound { load: self.loads.saturating_add(loads), late_ns: budget_ns };
    }

    /// Loads timed so far.
    #[must_use]
    pub const fn loads(&self) -> u64 {
        self.loads
    }

    /// The same, asking the page map for frames where it shows them.
    #[must_use]
    pub fn with_frames(self) -> Self {
        let shows_frames = Pagemap::open().is_ok_and(|pagemap| pagemap.shows_frames());
        Self { shows_frames, ..self }
    }

    /// Whether frames can be known, so that a replaced one is seen without timing.
    #[must_use]
    pub const fn shows_frames(&self) -> bool {
        self.shows_frames
    }

    /// Gives back the memory that sweeps go through (one and a half second-level caches), until one is
    /// needed again.
    pub fn release_sweep(&mut self) {
        (self.evictor, self.made) = (None, 0);
        self.abandon();
    }

    /// Makes the memory to sweep through, loads the lines, then sweeps; each as far as the time allows.
    fn evict(&mut self, lines: &[LineAddr], until_ns: u64) -> Result<bool, OsError> {
        if self.evictor.is_none() {
            self.evictor = Some(Mapping::absent(self.sweep_bytes)?);
        }
        let Some(evictor) = &self.evictor else { return Ok(false) };
        while self.made < self.sweep_bytes {
            let end = self.sweep_bytes.min(self.made + MADE_BYTES);
            evictor.populate_part(self.made..end)?;
            self.made = end;
            if clock::monotonic_ns() >= until_ns {
                return Ok(false);
            }
        }
        while self.touched < lines.len() {
            let end = lines.len().min(self.touched + TOUCHED);
            timed::touch(&self.memory, &lines[self.touched..end])?;
            self.touched = end;
            if clock::monotonic_ns() >= until_ns {
                return Ok(false);
            }
        }
        let all = self.sweep_bytes * SWEEPS;
        while self.swept < all {
            let begin = self.swept % self.sweep_bytes;
            let end = self.sweep_bytes.min(begin + SWEPT_BYTES);
            timed::sweep_part(evictor, begin..end);
            self.swept += end - begin;
            if self.swept < all && clock::monotonic_ns() >= until_ns {
                return Ok(false);
            }
        }
        self.abandon();
        Ok(true)
    }
}

impl<M: Memory> Timing for Machine<M> {
    fn core(&self) -> CoreId {
        self.word.core()
    }

    fn now_ns(&self) -> u64 {
        let now = clock::monotonic_ns();
        if self.loads < self.bound.load { now } else { now.saturating_add(self.bound.late_ns) }
    }

    fn overhead_cycles(&self) -> f32 {
        self.clock.overhead_cycles
    }

    fn tick_cycles(&self) -> u32 {
        self.clock.tick_cycles
    }

    fn together(&self, level: Level) -> usize {
        match level {
            Level::Llc if !self.demote => EVICTED_TOGETHER,
            _ => MOVED_TOGETHER,
        }
    }

    fn prepare(
        &mut self,
        level: Level,
        lines: &[LineAddr],
        until_ns: u64,
    ) -> Result<bool, OsError> {
        match level {
            Level::Dram => timed::flush(&self.memory, lines).map(|()| true),
            Level::Llc if self.demote => timed::demote(&self.memory, lines).map(|()| true),
            Level::Llc => self.evict(lines, until_ns),
        }
    }

    fn abandon(&mut self) {
        (self.touched, self.swept) = (0, 0);
    }

    fn time(&mut self, _: Level, lines: &[LineAddr], out: &mut [Cycles]) -> Result<(), OsError> {
        self.loads += lines.len() as u64;
        timed::time_lines(&self.memory, lines, out)
    }

    fn frames(&self, first: PageAddr, out: &mut [Option<u64>]) {
        out.fill(None);
        if self.shows_frames
            && let Ok(pagemap) = Pagemap::open()
        {
            let first = self.memory.virtual_page(first);
            // A read that fails leaves the rest unknown, which is all that is to be said of it.
            let _ = pagemap.frames(first, out);
        }
    }
}
