//! What is needed of a machine to learn its memory: who runs this, how late it is, and how long
//! loads take. A machine of its own or a model of one; nothing above can tell.

use isochrone_decode::Loads;
use isochrone_os::OsError;
use isochrone_units::{CoreId, Cycles, Level, LineAddr, PageAddr};

/// A machine whose arena can be timed. Lines and pages are counted from the arena's first.
pub trait Timing {
    /// The core that runs this thread now.
    fn core(&self) -> CoreId;

    /// Nanoseconds since some moment.
    fn now_ns(&self) -> u64;

    /// Cycles that timing nothing takes; samples include it.
    fn overhead_cycles(&self) -> f32;

    /// Cycles of the smallest step of the clock behind the samples.
    fn tick_cycles(&self) -> u32;

    /// Lines that are best put into a level together.
    fn together(&self, level: Level) -> usize;

    /// Puts `lines` into `level` and into no nearer one. False if that was not done by
    /// `until_ns`: the same call goes on with it, another begins anew.
    ///
    /// # Errors
    /// [`OsError`] where the level cannot be reached on this machine.
    fn prepare(&mut self, level: Level, lines: &[LineAddr], until_ns: u64)
    -> Result<bool, OsError>;

    /// Forgets a preparation that was put aside.
    fn abandon(&mut self);

    /// Times one load of each of `lines`, in order, overhead included. They were prepared before.
    ///
    /// # Errors
    /// [`OsError`] where single loads cannot be timed on this machine.
    fn time(&mut self, level: Level, lines: &[LineAddr], out: &mut [Cycles])
    -> Result<(), OsError>;

    /// The frames behind the pages from `first` on; `None` where it may not be known.
    fn frames(&self, first: PageAddr, out: &mut [Option<u64>]);
}

/// A machine as the decoder times its lines.
#[derive(Debug)]
pub(super) struct Timed<'t, T>(pub(super) &'t mut T);

impl<T: Timing> Loads for Timed<'_, T> {
    type Error = OsError;

    fn core(&self) -> CoreId {
        self.0.core()
    }

    fn now_ns(&self) -> u64 {
        self.0.now_ns()
    }

    fn overhead_cycles(&self) -> f64 {
        f64::from(self.0.overhead_cycles())
    }

    fn tick_cycles(&self) -> u32 {
        self.0.tick_cycles()
    }

    fn together(&self, level: Level) -> usize {
        self.0.together(level)
    }

    fn prepare(
        &mut self,
        level: Level,
        lines: &[LineAddr],
        until_ns: u64,
    ) -> Result<bool, OsError> {
        self.0.prepare(level, lines, until_ns)
    }

    fn abandon(&mut self) {
        self.0.abandon();
    }

    fn time(
        &mut self,
        level: Level,
        lines: &[LineAddr],
        out: &mut [Cycles],
    ) -> Result<(), OsError> {
        self.0.time(level, lines, out)
    }
}
