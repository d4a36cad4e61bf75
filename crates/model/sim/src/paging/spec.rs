//! What a processor is made of. Costs are in cycles of its clock.

use super::threads::InOrderCore;

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

    /// Engines there are in all; 0 where there are as many as anybody wants.
    #[must_use]
    pub const fn all_engines(&self) -> u32 {
        if self.each_way { 2 * self.engines } else { self.engines }
    }
}
