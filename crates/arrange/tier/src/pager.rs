//! The pager: the directory, a policy, the free frames and their locks, and the drivers over them. Each
//! driver is written once, as an `async fn` over [`crate::pages::Pages`]: [`Pager::fault`], [`Pager::evict`],
//! [`Pager::prefetch`], [`Pager::write_back`].
//!
//! All of its state is words that every actor shares; the value itself is a view of them and its
//! parameters. It never allocates: it runs in a signal handler.

mod advise;
mod batch;
mod departures;
mod evict;
mod fault;
mod frames;
mod lend;
mod lock;
mod mover;
mod rescue;
mod room;

use core::sync::atomic::AtomicU32;

use crate::directory::Directory;
use crate::names::{Actor, Space};
use crate::policy::{Policy, PolicyKind};

pub use advise::Advice;
pub use batch::BATCH_MOST;
use departures::Departures;
pub use fault::Outcome;
use frames::Frames;
pub use mover::{Habit, Mover, Orders};

/// Words of a cache line.
const LINE_WORDS: usize = 16;

/// How large everything is. All actors must have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Groups of the area.
    pub groups: u32,
    /// Groups that fit the fast tier.
    pub frames: u32,
    /// Sets of page tables.
    pub spaces: u16,
    /// How many workers.
    pub workers: u16,
    /// Which group goes.
    pub policy: PolicyKind,
}

impl Shape {
    /// Words of shared memory that a pager of this shape needs.
    #[must_use]
    pub fn words(&self) -> usize {
        let locks = Self::shards(self) as usize * LINE_WORDS;
        let policy = Policy::words(self.policy, self.groups, u32::from(self.workers));
        let departures = (self.groups as usize).next_multiple_of(LINE_WORDS);
        let policy = policy.next_multiple_of(LINE_WORDS);
        LINE_WORDS + locks + self.directory_words() + departures + policy
    }

    fn directory_words(&self) -> usize {
        Directory::words(self.groups, self.spaces)
    }

    fn shards(&self) -> u32 {
        match self.policy {
            PolicyKind::CoreFifo => u32::from(self.workers),
            PolicyKind::Fifo | PolicyKind::Cmcp | PolicyKind::Sieve => 1,
        }
    }
}

/// How the drivers go about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Groups that a worker without a free frame evicts at once: 1 to [`BATCH_MOST`].
    pub batch: u32,
    /// The same of a mover.
    pub mover_batch: u32,
    /// Groups that a worker fetches at a fault: those that follow the one it needs come by the same call, up to
    /// the first that is not absent. 1 fetches that one alone.
    pub cluster: u32,
    /// Groups that are fetched by one call ahead of who needs them: 1 to [`BATCH_MOST`]. Few, so that a worker
    /// does not wait long for the first of them; many where the far tier is slow to begin.
    pub chunk: u32,
    /// Map what is only read without permission to write, so that it need not be copied when it leaves.
    pub clean: bool,
    /// Take write permission away before a group is copied. Only the negative control of the tests does
    /// not, and loses updates.
    pub protect: bool,
}

impl Default for Plan {
    fn default() -> Self {
        Self { batch: 32, mover_batch: 32, cluster: 1, chunk: 16, clean: false, protect: true }
    }
}

/// Who acts, for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Who owns the entries that are claimed.
    pub actor: Actor,
    /// Whose tables a group is mapped into.
    pub space: Space,
    /// For which worker: whose list a group joins, and whose groups go first.
    pub worker: u32,
}

/// A view of the shared words.
#[derive(Clone, Copy, Debug)]
pub struct Pager<'a> {
    directory: Directory<'a>,
    policy: Policy<'a>,
    frames: Frames<'a>,
    departures: Departures<'a>,
    locks: &'a [AtomicU32],
    shape: Shape,
    plan: Plan,
}

impl<'a> Pager<'a> {
    /// A view of words that [`Self::format`] was called on once, by whoever made them.
    ///
    /// # Panics
    /// If there are fewer words than the shape needs, or the batch is out of bounds.
    #[must_use]
    pub fn new(words: &'a [AtomicU32], shape: Shape, plan: Plan) -> Self {
        for groups in [plan.batch, plan.mover_batch, plan.cluster, plan.chunk] {
            assert!((1..=BATCH_MOST).contains(&groups), "1 to {BATCH_MOST} groups by one call");
        }
        let (frames, rest) = words.split_at(LINE_WORDS);
        let (locks, rest) = rest.split_at(shape.shards() as usize * LINE_WORDS);
        let (directory, rest) = rest.split_at(shape.directory_words());
        let (left, rest) = rest.split_at((shape.groups as usize).next_multiple_of(LINE_WORDS));
        let workers = u32::from(shape.workers);
        Self {
            directory: Directory::new(directory, shape.groups, shape.spaces),
            policy: Policy::new(shape.policy, rest, shape.groups, workers),
            frames: Frames(&frames[0]),
            departures: Departures { count: &frames[1], left },
            locks,
            shape,
            plan,
        }
    }

    /// Makes zeroed words an empty pager: all groups absent, all frames free.
    pub fn format(&self) {
        self.policy.format();
        self.frames.format(self.shape.frames);
    }

    /// Who has what.
    #[must_use]
    pub const fn directory(&self) -> Directory<'a> {
        self.directory
    }

    /// How large everything is.
    #[must_use]
    pub const fn shape(&self) -> Shape {
        self.shape
    }

    /// How the drivers go about it.
    #[must_use]
    pub const fn plan(&self) -> Plan {
        self.plan
    }

    /// Frames that nobody uses now.
    #[must_use]
    pub fn free(&self) -> u32 {
        self.frames.free()
    }

    /// Groups that an actor evicts at once.
    const fn batch_of(&self, actor: Actor) -> u32 {
        if self.is_worker(actor) { self.plan.batch } else { self.plan.mover_batch }
    }

    /// Whether an actor is a worker, and not a mover.
    const fn is_worker(&self, actor: Actor) -> bool {
        actor.0 < self.shape.workers
    }
}

#[cfg(test)]
mod tests;
