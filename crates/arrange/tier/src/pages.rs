//! What a pager needs of a machine: the seam between the drivers and the readings. The live machine does
//! each operation inside the first poll; a simulated one suspends in virtual time.

use core::sync::atomic::AtomicU32;

use isochrone_os::Errno;

use crate::names::{Access, Actor, Group, Run, Space};
use crate::policy::Shard;

/// Why a page cannot be had. It needs no memory: it is made in a signal handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// There is no room for what has to leave.
    #[error("the far tier is full: give it more room, or free memory of the area")]
    Full,
    /// The far tier failed.
    #[error("the far tier failed ({}): look at its medium; the page may be had later", Errno(*.0))]
    Far(i32),
    /// The far tier holds something else than what was written there.
    #[error(
        "the far tier does not hold what was written to it: something else cut or changed its file, and the page is \
         lost"
    )]
    Altered,
    /// No group may leave.
    #[error("all of the fast tier is pinned: unpin some, or make it larger")]
    Pinned,
    /// A pin was to be taken back that its worker does not have.
    #[error(
        "this worker has no pin of all of it: unpin what the same worker pinned, and once for each pin"
    )]
    NotPinned,
    /// The array was mapped by a process that this one was forked from.
    #[error(
        "this process was forked after the array was mapped, and has none of it: map one of its own"
    )]
    Elsewhere,
    /// The kernel refused something that a pager cannot do without.
    #[error("the kernel refused to {what} ({}): run `isochrone tier check`", Errno(*.errno))]
    Kernel {
        /// What was asked.
        what: &'static str,
        /// Its answer.
        errno: i32,
    },
}

/// How a run is fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// The table to map it into, `None` for none.
    pub into: Option<Space>,
    /// The far tier has a copy; without one the run is zeros.
    pub stored: bool,
    /// Map it without permission to write, so that the first write is seen.
    pub protect: bool,
    /// The caller said with [`Pages::foresee`] that it would fetch it, and owned it ever since: what was read
    /// meanwhile is still true.
    pub foreseen: bool,
}

/// A wish told to the movers: a worker fetched a group, and others will follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    /// The worker that fetched it.
    pub worker: u32,
    /// The group it faulted on.
    pub group: Group,
    /// What it did there.
    pub access: Access,
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// A worker fetched a group that was absent.
    Missing,
    /// A worker mapped a group that was there: another worker's, or a mover's.
    Minor,
    /// A worker got permission to write a group that it had mapped.
    Granted,
    /// A worker waited for a mover that was fetching the very group.
    Late,
    /// A worker waited for another owner of an entry.
    Waited,
    /// A group left.
    Evicted,
    /// Of these, one that needed no copy.
    EvictedClean,
    /// Of these, one that several tables mapped.
    EvictedShared,
    /// A batch of evictions.
    Batch,
    /// A worker evicted, and not a mover.
    EvictedByWorker,
    /// A mover fetched a group, or a worker one beside the one it needed.
    Prefetched,
    /// A mover fetched a group as a marker, left out of every table.
    Marked,
    /// A worker touched a marker.
    MarkerTouched,
    /// A marker left before anybody touched it.
    MarkerWasted,
    /// A mover wrote a group back early.
    WrittenEarly,
    /// An entry or a lock was taken over from a dead owner.
    Rescued,
    /// A worker fetched a group that had just left: fewer groups ago than the fast tier holds.
    Refetched,
    /// A worker fetched the group behind the one that it had fetched last.
    Followed,
}

impl Event {
    /// All events.
    pub const ALL: [Self; 18] = [
        Self::Missing,
        Self::Minor,
        Self::Granted,
        Self::Late,
        Self::Waited,
        Self::Evicted,
        Self::EvictedClean,
        Self::EvictedShared,
        Self::Batch,
        Self::EvictedByWorker,
        Self::Prefetched,
        Self::Marked,
        Self::MarkerTouched,
        Self::MarkerWasted,
        Self::WrittenEarly,
        Self::Rescued,
        Self::Refetched,
        Self::Followed,
    ];

    /// Its place in a table of counters.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// The operations of a pager, as seen by one actor.
#[allow(async_fn_in_trait, reason = "a future is polled by the actor that made it, never sent")]
pub trait Pages {
    /// Takes write permission of a run away from a table. When it is done no core writes there through
    /// it; reads go on. A table whose process is dead has none.
    async fn protect(&self, run: Run, space: Space) -> Result<(), Trouble>;

    /// Freezes a run that is about to leave: when it is done no core writes there through a table until the run is
    /// mapped again. Whether reads go on meanwhile is the machine's to choose; whoever may not go on has a fault.
    async fn freeze(&self, run: Run, space: Space) -> Result<(), Trouble> {
        self.protect(run, space).await
    }

    /// Copies a run to the far tier. Does not return before a reader of the far tier would see it.
    async fn copy_out(&self, run: Run) -> Result<(), Trouble>;

    /// Takes a run out of every table and frees its memory.
    async fn punch(&self, run: Run) -> Result<(), Trouble>;

    /// The caller, who owns a run of which the far tier has a copy, makes room and then fetches it, or the first
    /// groups of it. A machine may read it while it copies out what has to leave.
    fn foresee(&self, _: Run) {}

    /// Puts a run into memory, and into a table. What is in memory already stays as it is and is mapped.
    async fn fill(&self, run: Run, fetch: Fetch) -> Result<(), Trouble>;

    /// Maps a group that is in memory into a table; with `protect` without permission to write. Where it
    /// is mapped already the permission is set.
    async fn map(&self, group: Group, space: Space, protect: bool) -> Result<(), Trouble>;

    /// Sleeps while a word holds a value. May return early, and does after some time, so that an owner
    /// that died is noticed.
    async fn wait(&self, word: &AtomicU32, value: u32);

    /// Wakes everybody who sleeps on a word.
    fn wake(&self, word: &AtomicU32);

    /// Whether an actor will never do anything again.
    fn is_dead(&self, actor: Actor) -> bool;

    /// Whether any actor is dead: it may have had frames in hand.
    fn somebody_died(&self) -> bool;

    /// Tells the movers.
    fn wish(&self, wish: Wish);

    /// What the far tier has of a run will not be read any more.
    fn forget(&self, _: Run) {}

    /// A turn at the lists of a shard begins. A machine that takes time for it takes it here.
    async fn list(&self, _: Shard) {}

    /// Counts that an event happened so often.
    fn count(&self, event: Event, times: u32);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says_is_told_in_words() {
        let far = Trouble::Far(27).to_string();
        assert!(far.starts_with("the far tier failed (file too large): "), "{far}");
        let kernel = Trouble::Kernel { what: "free pages", errno: 12 }.to_string();
        assert!(
            kernel.starts_with("the kernel refused to free pages (out of memory): "),
            "{kernel}"
        );
        assert!(Trouble::Far(4000).to_string().contains("(error 4000)"));
    }
}
