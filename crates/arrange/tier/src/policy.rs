//! Which group goes when room is needed. Pure decisions over lists in shared words: a policy never waits,
//! never reads a clock, and claims nothing; it offers candidates and is told which were taken.
//!
//! A policy is cut into shards, each under a lock of its own. What the kernel does not tell, no policy
//! knows: there is no accessed bit for user space, and taking a mapping away to see whether it comes back
//! costs a flush. What is free is the order of faults and the number of tables that map a group.

mod cmcp;
mod core_fifo;
mod fifo;
mod lists;
mod order;
mod sieve;

use core::sync::atomic::AtomicU32;

use crate::names::Group;

use cmcp::Cmcp;
use core_fifo::CoreFifo;
use fifo::Fifo;
use lists::{List, Lists};
use order::Order;
pub use order::{Shard, View};
use sieve::Sieve;

/// The choice of policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PolicyKind {
    /// First in, first out over all: the paper's.
    Fifo,
    /// A queue for each worker, which evicts what it alone maps before anything else.
    #[default]
    CoreFifo,
    /// Core-map count: groups that many tables map stay longer (Gerofi et al., HPDC 2014).
    Cmcp,
    /// One queue with a hand and a bit for what was mapped again (Zhang et al., NSDI 2024).
    Sieve,
}

impl PolicyKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Fifo, Self::CoreFifo, Self::Cmcp, Self::Sieve];

    /// The name in figures.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::CoreFifo => "core-fifo",
            Self::Cmcp => "cmcp",
            Self::Sieve => "sieve",
        }
    }
}

/// A policy over its words.
#[derive(Clone, Copy, Debug)]
pub struct Policy<'a> {
    kind: PolicyKind,
    lists: Lists<'a>,
    /// Words behind the lists, which some policies need for themselves.
    own: &'a [AtomicU32],
    workers: u32,
}

impl<'a> Policy<'a> {
    /// Words that a policy needs.
    #[must_use]
    pub const fn words(kind: PolicyKind, groups: u32, workers: u32) -> usize {
        Lists::words(groups, Self::lists_of(kind, workers)) + Self::own_words(kind, groups)
    }

    const fn lists_of(kind: PolicyKind, workers: u32) -> u32 {
        match kind {
            PolicyKind::Fifo | PolicyKind::Sieve => 1,
            PolicyKind::CoreFifo => CoreFifo::lists(workers),
            PolicyKind::Cmcp => Cmcp::LISTS,
        }
    }

    const fn own_words(kind: PolicyKind, groups: u32) -> usize {
        match kind {
            PolicyKind::Fifo | PolicyKind::CoreFifo => 0,
            PolicyKind::Cmcp => Cmcp::OWN_WORDS,
            PolicyKind::Sieve => Sieve::own_words(groups),
        }
    }

    /// A policy over words that [`Self::format`] was called on once.
    ///
    /// # Panics
    /// If there are fewer words than [`Self::words`] says.
    #[must_use]
    pub fn new(kind: PolicyKind, words: &'a [AtomicU32], groups: u32, workers: u32) -> Self {
        assert!(words.len() >= Self::words(kind, groups, workers), "a policy needs more words");
        let (lists, own) = words.split_at(Lists::words(groups, Self::lists_of(kind, workers)));
        Self { kind, lists: Lists::new(lists, groups), own, workers }
    }

    /// Empties everything.
    pub fn format(&self) {
        self.lists.format(Self::lists_of(self.kind, self.workers));
        for shard in (0..self.shards()).map(Shard) {
            self.clear(shard);
        }
    }

    /// Which policy it is.
    #[must_use]
    pub const fn kind(&self) -> PolicyKind {
        self.kind
    }

    /// How many shards there are.
    #[must_use]
    pub const fn shards(&self) -> u32 {
        match self.kind {
            PolicyKind::CoreFifo => self.workers,
            PolicyKind::Fifo | PolicyKind::Cmcp | PolicyKind::Sieve => 1,
        }
    }

    /// The shard for groups that come for a worker.
    #[must_use]
    pub const fn home(&self, worker: u32) -> Shard {
        Shard(if self.shards() == 1 { 0 } else { worker % self.workers })
    }

    /// The shards in which a worker looks for victims, its own first.
    pub fn order(&self, worker: u32) -> impl Iterator<Item = Shard> {
        let (first, shards) = (self.home(worker).0, self.shards());
        (0..shards).map(move |step| Shard((first + step) % shards))
    }

    fn with<T>(&self, act: impl FnOnce(&dyn Order) -> T) -> T {
        match self.kind {
            PolicyKind::Fifo => act(&Fifo(self.lists)),
            PolicyKind::CoreFifo => act(&CoreFifo(self.lists)),
            PolicyKind::Cmcp => act(&Cmcp::new(self.lists, self.own)),
            PolicyKind::Sieve => act(&Sieve::new(self.lists, self.own)),
        }
    }

    /// A group came; `count` tables map it. One that stands on a list already stays.
    pub fn insert(&self, shard: Shard, group: Group, count: u32) {
        if self.lists.list_of(group).is_none() {
            self.with(|order| order.insert(shard, group, count));
        }
    }

    /// A group leaves that no policy chose.
    pub fn remove(&self, group: Group) {
        if self.kind == PolicyKind::Sieve {
            Sieve::new(self.lists, self.own).pass(group);
        }
        self.lists.unlink(group);
    }

    /// One more table maps a group that stands in the shard.
    pub fn mapped(&self, shard: Shard, group: Group, count: u32) {
        if self.lists.list_of(group).is_some() {
            self.with(|order| order.mapped(shard, group, count));
        }
    }

    /// Whether a mapping by one more table means anything to this policy; if not, [`Self::mapped`] and
    /// its lock can be left out.
    #[must_use]
    pub const fn heeds_mappings(&self) -> bool {
        matches!(self.kind, PolicyKind::Cmcp | PolicyKind::Sieve)
    }

    /// How many groups stand in a shard. With its lock held.
    #[must_use]
    pub fn len(&self, shard: Shard) -> u32 {
        let lists = match self.kind {
            PolicyKind::CoreFifo => 2 * shard.0..2 * shard.0 + 2,
            kind => 0..Self::lists_of(kind, self.workers),
        };
        lists.map(|list| self.lists.len(List(list))).sum()
    }

    /// Offers victims of a shard until `want` were taken; returns how many were.
    pub fn evict(&self, shard: Shard, want: u32, view: &mut dyn View) -> u32 {
        self.with(|order| order.evict(shard, want, view))
    }

    /// Shows those that will probably leave next to `view`, at most `most`; they stay on their lists.
    pub fn peek(&self, shard: Shard, most: u32, view: &mut dyn View) {
        let mut next = self.lists.oldest(self.with(|order| order.front(shard)));
        for _ in 0..most {
            let Some(group) = next else { return };
            view.take(group);
            next = self.lists.younger(group);
        }
    }

    /// Empties a shard whose lists nobody can trust any more, because who changed them was killed.
    /// `mine` says which groups stand in it; each is inserted anew by the caller.
    pub fn reset(&self, shard: Shard, mine: impl Iterator<Item = Group>) {
        self.clear(shard);
        mine.for_each(|group| self.lists.forget(group));
    }

    fn clear(&self, shard: Shard) {
        self.with(|order| order.clear(shard));
    }
}

#[cfg(test)]
mod tests;
