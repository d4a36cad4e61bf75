//! What is needed of a machine to time its lines: who runs this, how late it is, and how long loads
//! take. A machine of its own or a model of one; nothing above can tell.

use isochrone_units::{CoreId, Cycles, Level, LineAddr};

/// A machine whose lines can be timed. Lines are counted from the first of some memory.
pub trait Loads {
    /// What the machine refuses with.
    type Error;

    /// The core that runs this thread now.
    fn core(&self) -> CoreId;

    /// Nanoseconds since some moment.
    fn now_ns(&self) -> u64;

    /// Cycles that timing nothing takes; samples include it.
    fn overhead_cycles(&self) -> f64;

    /// Cycles of the smallest step of the clock behind the samples.
    fn tick_cycles(&self) -> u32;

    /// Lines that are best put into a level together.
    fn together(&self, level: Level) -> usize;

    /// Puts `lines` into `level` and into no nearer one. False if that was not done by
    /// `until_ns`: the same call goes on with it, another begins anew.
    ///
    /// # Errors
    /// Where the level cannot be reached on this machine.
    fn prepare(
        &mut self,
        level: Level,
        lines: &[LineAddr],
        until_ns: u64,
    ) -> Result<bool, Self::Error>;

    /// Forgets a preparation that was put aside.
    fn abandon(&mut self);

    /// Times one load of each of `lines`, in order, overhead included. They were prepared before.
    ///
    /// # Errors
    /// Where single loads cannot be timed on this machine.
    fn time(
        &mut self,
        level: Level,
        lines: &[LineAddr],
        out: &mut [Cycles],
    ) -> Result<(), Self::Error>;
}
