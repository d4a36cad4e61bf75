//! Cancelling from beside: a run is used by one thread, but who wants it to end may be any.

use std::sync::Arc;

use super::env::Shared;

/// Cancels what the program has registered, as [`Runtime::cancel`](super::Runtime::cancel) does, from any thread. After
/// the run it does nothing.
#[derive(Clone, Debug)]
pub struct Canceller(Arc<Shared>);

impl Canceller {
    pub(super) const fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    /// Leaves out all tasks that have not begun.
    pub fn cancel(&self) {
        self.0.scheduler.cancel_all();
    }
}
