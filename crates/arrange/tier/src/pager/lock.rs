//! The lock of a shard. Its holder never waits for anything while it holds it. One that is killed with it
//! leaves lists that nobody can trust, so who takes the lock over makes the shard's lists anew.

use core::sync::atomic::{AtomicU32, Ordering};

use super::{LINE_WORDS, Pager};
use crate::directory::State;
use crate::names::{Actor, Group};
use crate::pages::{Event, Pages};
use crate::policy::Shard;

/// Somebody sleeps until the lock is free.
const WAITERS: u32 = 1 << 31;
/// Looks at a held lock before sleeping: holders need far less than a sleep and a wake.
const SPINS: u32 = 100;

impl<'a> Pager<'a> {
    fn lock_word(&self, shard: Shard) -> &'a AtomicU32 {
        &self.locks[shard.0 as usize * LINE_WORDS]
    }

    /// Locks a shard.
    pub(super) async fn lock<P: Pages>(&self, pages: &P, shard: Shard, me: Actor) {
        pages.list(shard).await;
        let word = self.lock_word(shard);
        let mine = u32::from(me.0) + 1;
        for _ in 0..SPINS {
            if word.compare_exchange(0, mine, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                return;
            }
            isochrone_os::pause::pause();
        }
        loop {
            let seen = word.load(Ordering::Relaxed);
            let (next, holder) = match seen & !WAITERS {
                // Who slept cannot know whether others do.
                0 => (mine | WAITERS, None),
                holder => (seen | WAITERS, Some(holder - 1)),
            };
            if word.compare_exchange(seen, next, Ordering::Acquire, Ordering::Relaxed).is_err() {
                continue;
            }
            let Some(holder) = holder else { return };
            pages.wait(word, next).await;
            let dead = u16::try_from(holder).is_ok_and(|holder| pages.is_dead(Actor(holder)));
            let stolen = |word: &AtomicU32| {
                let mine = mine | WAITERS;
                word.compare_exchange(next, mine, Ordering::Acquire, Ordering::Relaxed).is_ok()
            };
            if dead && stolen(word) {
                pages.count(Event::Rescued, 1);
                return self.rebuild(shard);
            }
        }
    }

    /// Unlocks a shard.
    pub(super) fn unlock<P: Pages>(&self, pages: &P, shard: Shard) {
        let word = self.lock_word(shard);
        if word.swap(0, Ordering::Release) & WAITERS != 0 {
            pages.wake(word);
        }
    }

    /// Puts every group of the shard that is in memory on the shard's lists again.
    fn rebuild(&self, shard: Shard) {
        let mine = || {
            let all = (0..self.shape.groups).map(Group);
            all.filter(|group| self.directory.home(*group) == shard.0)
        };
        self.policy.reset(shard, mine());
        for group in mine() {
            if matches!(
                self.directory.look(group).state(),
                State::Resident | State::Mapping | State::Writing
            ) {
                self.policy.insert(shard, group, self.directory.count(group));
            }
        }
    }
}
