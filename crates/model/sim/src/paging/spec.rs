//! What a processor is made of. Costs are in cycles of its clock.

use super::threads::InOrderCore;

/// How a lock's line comes to who has the next turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandOff {
    /// By a transfer for each cache that has the line of those who spin: a write to a line of `n` owners costs `n R_R`
    /// (CLa, section 2.3).
    Owners,
    /// By half of them in the mean: who is next reads its turn among the others, in no order.
    HalfOwners,
    /// By one: each spins on a line of its own.
    OneLine,
}

/// A processor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spec {
    /// What threads of a core do together.
    pub core: InOrderCore,
    /// Siblings share issue slots; without it every thread has a core of its own.
    pub siblings: bool,
    /// Who waits in the kernel polls, and takes issue slots from its siblings; without it, it takes none.
    pub polls: bool,
    /// Writing one interrupt request: there is no multicast, so one for each target.
    pub send: f64,
    /// From the last request to the first instruction of the handler there.
    pub deliver: f64,
    /// What a target loses: handler in and out, the entry thrown away, the answer.
    pub service: f64,
    /// Engines that copy pages; with 0 there are as many as anybody wants.
    pub engines: u32,
    /// So many for each direction; without it they serve both.
    pub each_way: bool,
    /// An engine's time for a transfer, beside its pages: the descriptor.
    pub setup: f64,
    /// An engine's time for one page.
    pub transfer: f64,
    /// What a transfer takes beside, without the engine: the way over the bus, the answer.
    pub latency: f64,
    /// Moving a line that another core's cache has, as that of a lock is moved.
    pub line: f64,
    /// How a lock is handed on.
    pub hand_off: HandOff,
    /// Entries of a core's translation buffer.
    pub translations: u32,
}

impl Spec {
    /// How fast each of so many busy threads of a core is, of one alone.
    #[must_use]
    pub fn speed(&self, busy: usize) -> f64 {
        if !self.siblings || busy <= 1 {
            return 1.0;
        }
        self.core.together(busy) / crate::number::float(busy)
    }

    /// Cycles from the end of a lock's turn to the next one, while threads of so many cores spin.
    #[must_use]
    pub fn hand_off(&self, cores: usize) -> f64 {
        let lines = match self.hand_off {
            HandOff::Owners => crate::number::float(cores),
            HandOff::HalfOwners => (crate::number::float(cores) / 2.0).max(1.0),
            HandOff::OneLine => 1.0,
        };
        self.line * lines
    }

    /// Engines there are in all; 0 where there are as many as anybody wants.
    #[must_use]
    pub const fn all_engines(&self) -> u32 {
        if self.each_way { 2 * self.engines } else { self.engines }
    }
}
