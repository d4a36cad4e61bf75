//! The memory that an experiment measures: live or synthetic, behind one small trait.
//!
//! Lines are numbered inside the target's arena (`LineAddr(0)` is its first line), so a plan is
//! pure data and the same plan runs on a machine and on a model of one. Samples come in batches,
//! so that dynamic dispatch costs nothing.

use isochrone_os::OsError;
use isochrone_units::{CoreId, Cycles, Level, LineAddr, PageAddr};

/// The clock of a target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TargetClock {
    /// Cycles of the sampled clock in a second.
    pub hz: f64,
    /// Smallest step of the clock, cycles.
    pub tick: u32,
    /// Cycles that timing nothing takes; samples include it.
    pub overhead: f64,
}

/// Memory whose lines can be timed from a core.
pub trait Target {
    /// The cores that can ask, in ascending order.
    fn cores(&self) -> &[CoreId];

    /// Pages in the arena.
    fn pages(&self) -> u64;

    /// The clock behind the samples.
    fn clock(&self) -> TargetClock;

    /// Times one load of each of `lines` from `core`, in order, each line first put into `level`
    /// and into no nearer one. `out[i]` is the raw time of `lines[i]`, overhead included.
    ///
    /// # Errors
    /// [`TargetError::Moved`] when the thread did not stay on `core` for the whole batch (nothing
    /// in `out` may be used then); [`TargetError::Unsupported`] when the level cannot be reached.
    fn sample(
        &mut self,
        core: CoreId,
        level: Level,
        lines: &[LineAddr],
        out: &mut [Cycles],
    ) -> Result<(), TargetError>;

    /// The physical frame of a page of the arena, where it can be known. Used to notice that a
    /// frame was replaced and to key the atlas.
    fn frame(&mut self, page: PageAddr) -> Option<u64>;

    /// The frames of the pages from `first` on, one for each slot of `out`: sooner than one after the other where
    /// there are many.
    fn frames(&mut self, first: PageAddr, out: &mut [Option<u64>]) {
        for (page, slot) in (first.0..).zip(out) {
            *slot = self.frame(PageAddr(page));
        }
    }

    /// Seconds since the target was made (virtual for a synthetic one).
    fn seconds(&mut self) -> f64;

    /// The same memory for another thread, so that several cores sample at the same time; `None` where that
    /// cannot be. Callers let no two threads sample lines of one page.
    fn fork(&self) -> Option<Box<dyn Target + Send + '_>> {
        None
    }
}

/// A target over another one, which changes some of what that does and hands on the rest. It is a [`Target`].
pub trait Over {
    /// The target that it stands over.
    fn under(&self) -> &dyn Target;

    /// The same, to be asked.
    fn under_mut(&mut self) -> &mut dyn Target;

    /// As [`Target::sample`].
    ///
    /// # Errors
    /// As there.
    fn timed(
        &mut self,
        core: CoreId,
        level: Level,
        lines: &[LineAddr],
        out: &mut [Cycles],
    ) -> Result<(), TargetError>;

    /// As [`Target::seconds`].
    fn elapsed_s(&mut self) -> f64 {
        self.under_mut().seconds()
    }

    /// As [`Target::fork`].
    fn forked(&self) -> Option<Box<dyn Target + Send + '_>> {
        None
    }
}

impl<T: Over> Target for T {
    fn cores(&self) -> &[CoreId] {
        self.under().cores()
    }

    fn pages(&self) -> u64 {
        self.under().pages()
    }

    fn clock(&self) -> TargetClock {
        self.under().clock()
    }

    fn sample(
        &mut self,
        core: CoreId,
        level: Level,
        lines: &[LineAddr],
        out: &mut [Cycles],
    ) -> Result<(), TargetError> {
        self.timed(core, level, lines, out)
    }

    fn frame(&mut self, page: PageAddr) -> Option<u64> {
        self.under_mut().frame(page)
    }

    fn frames(&mut self, first: PageAddr, out: &mut [Option<u64>]) {
        self.under_mut().frames(first, out);
    }

    fn seconds(&mut self) -> f64 {
        self.elapsed_s()
    }

    fn fork(&self) -> Option<Box<dyn Target + Send + '_>> {
        self.forked()
    }
}

/// Why a batch gave no usable samples.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The measuring thread was moved from core {asked} to core {found} during a batch
    #[error("the measuring thread was moved from core {asked} to core {found} during a batch")]
    Moved {
        /// Core that was asked for.
        asked: u16,
        /// Core found at the end of the batch.
        found: u16,
    },
    /// The user wants an end, or the time is over
    #[error("stopped before it was done")]
    Stopped,
    /// The level cannot be reached here, with the reason
    #[error("{0}")]
    Unsupported(String),
    /// The system refused something
    #[error("{what}: {why}; {advice}")]
    System {
        /// What was tried.
        what: String,
        /// The system's word.
        why: String,
        /// The way out.
        advice: String,
    },
}

impl TargetError {
    /// What the system refused when this was tried.
    pub(crate) fn refused(what: String, error: OsError) -> Self {
        Self::System {
            what,
            why: error.word().unwrap_or(error.what).to_owned(),
            advice: error.advice.to_owned(),
        }
    }
}
