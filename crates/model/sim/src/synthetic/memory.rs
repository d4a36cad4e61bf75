//! The running memory: page table, moving cores and virtual time, and the timed load.
//!
//! Lines are numbered within the arena. Every load advances virtual time by what it took and by
//! what putting the line into its level cost, so that microseconds a page and repair times are
//! defined. The same spec and the same calls give the same samples, bit for bit.

mod transfers;

use isochrone_units::{CoreId, Cycles, LINES_PER_PAGE, Level, LineAddr, PageAddr};

use crate::number::wide;
use crate::random::{Random, Stream};
use crate::synthetic::drift::Schedule;
use crate::synthetic::neighbours::Timetable;
use crate::synthetic::pages::PageTable;
use crate::synthetic::{Applied, Event, SpecError, SyntheticSpec, Timer};

/// Memory whose every latency is known.
#[derive(Clone, Debug)]
pub struct SyntheticMemory {
    pub(super) spec: SyntheticSpec,
    pub(super) table: PageTable,
    /// Physical core that each logical one wears now.
    pub(super) wears: Vec<u16>,
    pub(super) random: Random,
    schedule: Schedule,
    neighbours: Timetable,
    applied: Vec<Applied>,
    /// Where the thread was moved during the batch under way.
    moved_to: Option<CoreId>,
    now_cycles: f64,
    samples: u64,
}

/// Why there is no sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SampleError {
    /// The thread did not stay where it was; nothing of the batch may be used.
    #[error(
        "the measuring thread was moved from {asked} to {found} during the batch; \
         pin it and sample again"
    )]
    Moved {
        /// The core that was asked for.
        asked: CoreId,
        /// The core found at the end.
        found: CoreId,
    },
    /// The machine has no last-level cache.
    #[error("this machine has no last-level cache that cores share; sample DRAM instead")]
    NoLlc,
    /// No such core.
    #[error("there is no {core} among {cores} logical cores; ask a smaller one")]
    NoSuchCore {
        /// The core asked for.
        core: CoreId,
        /// Logical cores.
        cores: usize,
    },
    /// The line is outside the arena.
    #[error("line {} is outside an arena of {lines} lines; ask a smaller one", line.0)]
    OutsideArena {
        /// The line.
        line: LineAddr,
        /// Lines in the arena.
        lines: u64,
    },
    /// A core does not transfer lines to itself.
    #[error("{core} cannot be owner and asker of a line at once; name two cores")]
    SameCore {
        /// The core.
        core: CoreId,
    },
    /// `lines` and `out` differ in length.
    #[error("{lines} lines need as many places for their samples, not {out}")]
    Lengths {
        /// Lines asked for.
        lines: usize,
        /// Places given.
        out: usize,
    },
}

impl SyntheticMemory {
    /// Sets up the memory of a spec at virtual time 0.
    ///
    /// # Errors
    /// [`SpecError`] when parts of the spec contradict one another.
    pub fn new(spec: SyntheticSpec) -> Result<Self, SpecError> {
        spec.validate()?;
        Ok(Self {
            table: PageTable::new(&spec.arena, spec.regions.len(), spec.seed),
            wears: spec.wears.clone(),
            random: Random::new(spec.seed, Stream::Noise),
            schedule: Schedule::new(&spec.schedule),
            neighbours: Timetable::new(&spec.neighbours, spec.wears.len(), spec.seed),
            applied: Vec::new(),
            moved_to: None,
            now_cycles: 0.0,
            samples: 0,
            spec,
        })
    }

    /// What it was made from.
    #[must_use]
    pub fn spec(&self) -> &SyntheticSpec {
        &self.spec
    }

    /// The clock.
    #[must_use]
    pub fn timer(&self) -> &Timer {
        &self.spec.timer
    }

    /// Number of logical cores, numbered from 0.
    #[must_use]
    pub fn cores(&self) -> usize {
        self.wears.len()
    }

    /// Pages in the arena.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.spec.arena.pages
    }

    /// The frame of a page, where the spec lets programs read it.
    #[must_use]
    pub fn frame(&self, page: PageAddr) -> Option<u64> {
        if self.spec.arena.frames_readable { self.table.frame(page) } else { None }
    }

    /// Virtual seconds since the start.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.now_cycles / self.spec.timer.hz
    }

    /// Loads timed so far, on all cores.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Events that have happened, in order.
    #[must_use]
    pub fn applied(&self) -> &[Applied] {
        &self.applied
    }

    /// Lets virtual time pass without a load, as computing between batches does.
    pub fn pass(&mut self, seconds: f64) {
        self.advance(seconds.max(0.0) * self.spec.timer.hz);
    }

    /// Makes an event happen now, as a test does that moves the thread behind its back.
    ///
    /// # Errors
    /// [`SpecError::Event`] when it concerns something that is not there.
    pub fn inject(&mut self, event: Event) -> Result<(), SpecError> {
        self.spec.validate_event(event)?;
        self.apply(event);
        Ok(())
    }

    /// Times one load of each line from `core`, in order, each first put into `level`. `out[i]`
    /// is the raw reading for `lines[i]`, timer overhead included.
    ///
    /// # Errors
    /// [`SampleError::Moved`] once for each move of the thread, at the end of the batch in which
    /// it happened; the others when the question makes no sense here, before any load.
    pub fn sample(
        &mut self,
        core: CoreId,
        level: Level,
        lines: &[LineAddr],
        out: &mut [Cycles],
    ) -> Result<(), SampleError> {
        if lines.len() != out.len() {
            return Err(SampleError::Lengths { lines: lines.len(), out: out.len() });
        }
        self.check(core, level, lines)?;
        self.advance(self.spec.costs.batch_cycles);
        let extra = self.prepare_cycles(level) + self.spec.costs.sample_cycles;
        let evictions = self.evictions(core);
        for (at, (line, out)) in lines.iter().zip(out).enumerate() {
            self.apply_due();
            let level = if self.evictions(core) == evictions { level } else { Level::Dram };
            let cycles = self.load(core, level, *line, self.disturbers(lines, at));
            let cycles = self.held_up(core, cycles);
            *out = self.spec.timer.reading(cycles, &mut self.random);
            self.advance(cycles + self.spec.timer.overhead_cycles + extra);
            self.samples += 1;
        }
        self.end_of_batch(core)
    }

    /// Chases once through `lines` in order, each first put into `level`: the sum of the loads'
    /// latencies in cycles, with their noise, timed as one region (one overhead, one tick).
    ///
    /// # Errors
    /// As for [`Self::sample`].
    pub fn chase(
        &mut self,
        core: CoreId,
        level: Level,
        lines: &[LineAddr],
    ) -> Result<u64, SampleError> {
        self.check(core, level, lines)?;
        let prepare = self.prepare_cycles(level) * crate::number::float(lines.len());
        self.advance(self.spec.costs.batch_cycles + prepare);
        let mut sum = 0.0;
        for line in lines {
            self.apply_due();
            let cycles = self.load(core, level, *line, false);
            let cycles = self.held_up(core, cycles);
            self.advance(cycles);
            self.samples += 1;
            sum += cycles;
        }
        self.advance(self.spec.timer.overhead_cycles);
        self.end_of_batch(core)?;
        Ok(self.spec.timer.long_reading(sum, &mut self.random))
    }

    /// How long one load takes this time.
    fn load(&mut self, core: CoreId, level: Level, line: LineAddr, near_another: bool) -> f64 {
        let noise = &self.spec.noise;
        if near_another
            && let Some(disturbance) = &noise.disturbance
            && self.random.chance(disturbance.probability)
        {
            return disturbance.found_at_cycles;
        }
        let missed = level == Level::Llc && self.random.chance(noise.llc_miss_probability);
        let level = if missed { Level::Dram } else { level };
        let truth = self.latency_at(self.wears[usize::from(core.0)], level, line);
        self.disturbed(truth.unwrap_or(0.0), self.spec.noise.sd_cycles(level))
    }

    /// What something on `core` that takes `cycles` takes where the core is taken away meanwhile.
    pub(super) fn held_up(&mut self, core: CoreId, cycles: f64) -> f64 {
        let hz = self.spec.timer.hz;
        cycles + self.held_up_s(core, self.now_cycles / hz, cycles / hz) * hz
    }

    /// Seconds for which something on `core` that begins at `begin_s` and would take `seconds` is held up. What
    /// is asked of one core must begin no earlier than what was asked of it before.
    pub fn held_up_s(&mut self, core: CoreId, begin_s: f64, seconds: f64) -> f64 {
        self.neighbours.hold_up(core, begin_s, seconds)
    }

    /// How often somebody else's work has pushed the lines of `core` out of its caches. Lines that were put
    /// there before the count rose are in memory.
    #[must_use]
    pub fn evictions(&mut self, core: CoreId) -> u64 {
        let now_s = self.seconds();
        self.neighbours.evictions(core, now_s)
    }

    /// Lets virtual time pass until `core` is not taken away by somebody else.
    pub fn wait_for(&mut self, core: CoreId) {
        let cycles = self.held_up(core, 0.0);
        self.advance(cycles);
    }

    /// How long something takes this time that truly takes `cycles`.
    pub(super) fn disturbed(&mut self, cycles: f64, sd: f64) -> f64 {
        let seconds = self.seconds();
        self.spec.noise.disturb(cycles, sd, seconds, &mut self.random)
    }

    /// Whether a line of the same page was timed shortly before `lines[at]`.
    fn disturbers(&self, lines: &[LineAddr], at: usize) -> bool {
        let Some(disturbance) = &self.spec.noise.disturbance else { return false };
        let first = at.saturating_sub(disturbance.window);
        lines[first..at].iter().any(|earlier| earlier.page() == lines[at].page())
    }

    fn prepare_cycles(&self, level: Level) -> f64 {
        match level {
            Level::Llc => self.spec.costs.llc_prepare_cycles,
            Level::Dram => self.spec.costs.dram_prepare_cycles,
        }
    }

    pub(super) fn advance(&mut self, cycles: f64) {
        self.now_cycles += cycles;
    }

    pub(super) fn apply_due(&mut self) {
        while let Some(event) = self.schedule.due(self.seconds(), self.samples) {
            self.apply(event);
        }
    }

    fn apply(&mut self, event: Event) {
        match event {
            Event::CoreMoves { core, to } => self.wears[usize::from(core.0)] = to,
            Event::PageMigrates { page } => {
                self.table.migrate(page);
            }
            Event::ThreadMoves { found } => self.moved_to = Some(found),
        }
        let (at_s, at_sample) = (self.seconds(), self.samples);
        self.applied.push(Applied { at_s, at_sample, event });
    }

    /// The check that a measuring thread makes after each batch: am I still where I was?
    pub(super) fn end_of_batch(&mut self, asked: CoreId) -> Result<(), SampleError> {
        match self.moved_to.take() {
            Some(found) => Err(SampleError::Moved { asked, found }),
            None => Ok(()),
        }
    }

    pub(super) fn check(
        &self,
        core: CoreId,
        level: Level,
        lines: &[LineAddr],
    ) -> Result<(), SampleError> {
        self.check_core(core)?;
        if level == Level::Llc && self.spec.machine.llc_base_cycles.is_none() {
            return Err(SampleError::NoLlc);
        }
        lines.iter().try_for_each(|line| self.check_line(*line))
    }

    pub(super) fn check_core(&self, core: CoreId) -> Result<(), SampleError> {
        let cores = self.cores();
        if usize::from(core.0) < cores {
            Ok(())
        } else {
            Err(SampleError::NoSuchCore { core, cores })
        }
    }

    pub(super) fn check_line(&self, line: LineAddr) -> Result<(), SampleError> {
        let lines = self.pages() * wide(LINES_PER_PAGE);
        if line.0 < lines { Ok(()) } else { Err(SampleError::OutsideArena { line, lines }) }
    }
}

#[cfg(test)]
mod tests;
