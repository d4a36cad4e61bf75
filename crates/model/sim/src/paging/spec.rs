//! What a processor is made of. Costs are in cycles of its clock.

/// Hardware threads of a core that are told apart.
pub const THREADS_MOST: usize = 4;

/// A processor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spec {
    /// What one thread, two, three or four of a core do together, of what one does alone.
    pub throughput: [f64; THREADS_MOST],
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
    /// An engine's time for a transfer, beside its pages: the descriptor.
    pub setup: f64,
    /// An engine's time for one page.
    pub transfer: f64,
    /// What a transfer takes beside, without the engine: the way over the bus, the answer.
    pub latency: f64,
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
        self.throughput[busy.min(THREADS_MOST) - 1] / crate::number::float(busy)
    }
}
