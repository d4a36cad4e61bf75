//! A thread's seat: where its nodes come from, its ends of the channels, and what it answers.

use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Barrier};

use anyhow::Result;
use isochrone_units::CoreId;

use super::pooled::PoolSource;
use super::request::{PoolAccount, Request};

/// Where nodes come from.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// The program's allocator, whatever is preloaded.
    Malloc,
    /// A pool for each thread.
    Pool(PoolSource),
}

/// What one thread did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    pub(crate) seconds: f64,
    pub(crate) operations: u64,
    pub(crate) checksum: u64,
    pub(crate) pool: Option<PoolAccount>,
}

/// A thread's ends of the channels, and its place among the others.
pub(crate) struct Player {
    pub(crate) core: CoreId,
    /// Its place in lists by core.
    pub(crate) place: usize,
    pub(crate) source: Source,
    pub(crate) requests: Receiver<Request>,
    pub(crate) done: Sender<Result<Done>>,
    pub(crate) together: Arc<Barrier>,
}

impl Player {
    /// Sends what was done and waits for the next request.
    pub(super) fn next(&self, done: Done) -> Option<Request> {
        self.done.send(Ok(done)).ok()?;
        self.requests.recv().ok()
    }
}

/// Says what a node's memory cost and how far it is.
pub(super) type AccountOf<'a, N> = &'a dyn Fn(&N) -> Option<PoolAccount>;
