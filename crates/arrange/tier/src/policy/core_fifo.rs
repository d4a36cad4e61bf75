//! A queue for each worker: it evicts its own groups, those that it alone maps first, so that in most
//! programs an eviction concerns no other core's table at all. The paper's one queue cannot do that.
//!
//! A group that is found to be shared moves to a second queue. That one is served when the first is empty,
//! or when it has grown to more than its part: what was shared once must not stay for ever.

use super::lists::{List, Lists};
use super::order::{Order, Shard, View};
use crate::names::Group;

pub(super) struct CoreFifo<'a>(pub(super) Lists<'a>);

/// Shared groups may be one in this many before they are evicted like others: halos of a band are far
/// fewer, and what used to be shared is bounded.
const SHARED_PART: u32 = 4;

impl CoreFifo<'_> {
    pub(super) const fn lists(workers: u32) -> u32 {
        2 * workers
    }

    const fn own(shard: Shard) -> List {
        List(2 * shard.0)
    }

    const fn shared(shard: Shard) -> List {
        List(2 * shard.0 + 1)
    }

    /// Evicts from the worker's own queue; those that turn out to be shared leave it.
    fn evict_own(&self, shard: Shard, want: u32, view: &mut dyn View) -> u32 {
        let mut taken = 0;
        for _ in 0..self.0.len(Self::own(shard)) {
            let oldest = self.0.oldest(Self::own(shard)).filter(|_| taken < want);
            let Some(group) = oldest else { break };
            if view.count(group) > 1 {
                self.0.push(Self::shared(shard), group);
            } else if view.take(group) {
                self.0.unlink(group);
                taken += 1;
            } else {
                self.0.push(Self::own(shard), group);
            }
        }
        taken
    }
}

impl Order for CoreFifo<'_> {
    fn insert(&self, shard: Shard, group: Group, _: u32) {
        self.0.push(Self::own(shard), group);
    }

    fn mapped(&self, _: Shard, _: Group, _: u32) {}

    fn evict(&self, shard: Shard, want: u32, view: &mut dyn View) -> u32 {
        let (own, shared) = (self.0.len(Self::own(shard)), self.0.len(Self::shared(shard)));
        let mut taken = 0;
        if shared * SHARED_PART > own + shared {
            let share = want.div_ceil(SHARED_PART);
            taken += self.0.offer(Self::shared(shard), share, &mut |group| view.take(group));
        }
        taken += self.evict_own(shard, want - taken, view);
        if taken < want {
            let rest = want - taken;
            taken += self.0.offer(Self::shared(shard), rest, &mut |group| view.take(group));
        }
        taken
    }

    fn clear(&self, shard: Shard) {
        self.0.clear(Self::own(shard));
        self.0.clear(Self::shared(shard));
    }
    fn front(&self, shard: Shard) -> List {
        Self::own(shard)
    }
}
