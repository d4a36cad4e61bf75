//! Core-map count based priority (Gerofi, Shimada, Hori, Masamichi, Ishikawa: "CMCP: a novel page
//! replacement policy for system level hierarchical memory management on many-cores", HPDC 2014): groups
//! that many tables map are kept, ordered by their count; the rest goes first in, first out. The counts
//! are free with separated tables, while the accessed bits that other policies need are not.
//!
//! From the abstract and what is quoted of the text: two sets, a bound on the prioritised one, exchange
//! with the one of least priority, ageing back to the queue. The bound and the speed of ageing were tuned
//! there for each program; here they are constants.

use core::sync::atomic::{AtomicU32, Ordering};

use super::lists::{List, Lists};
use super::order::{Order, Shard, View};
use crate::names::Group;

/// Counts told apart; more tables than this are as good as these.
const COUNTS: u32 = 16;
const QUEUE: List = List(0);
/// Prioritised groups may be one in this many.
const PRIORITISED_PART: u32 = 2;
/// Inserts after which one prioritised group falls back to the queue.
const AGEING: u32 = 8;

pub(super) struct Cmcp<'a> {
    lists: Lists<'a>,
    inserts: &'a AtomicU32,
}

impl<'a> Cmcp<'a> {
    /// The queue, and a list for each count.
    pub(super) const LISTS: u32 = 1 + COUNTS;
    pub(super) const OWN_WORDS: usize = 1;

    pub(super) fn new(lists: Lists<'a>, own: &'a [AtomicU32]) -> Self {
        Self { lists, inserts: &own[0] }
    }

    /// The list of groups that `count` tables map.
    fn of(count: u32) -> List {
        List(count.min(COUNTS))
    }

    fn prioritised(&self) -> u32 {
        (1..=COUNTS).map(|count| self.lists.len(List(count))).sum()
    }

    /// The list of least priority that has a member.
    fn least(&self) -> Option<List> {
        (1..=COUNTS).map(List).find(|list| self.lists.len(*list) > 0)
    }

    fn fall_back(&self, list: List) {
        if let Some(group) = self.lists.oldest(list) {
            self.lists.push(QUEUE, group);
        }
    }

    /// A group that more than one table maps is prioritised, if there is room or it beats another.
    fn place(&self, group: Group, count: u32) {
        if count < 2 {
            return self.lists.push(QUEUE, group);
        }
        self.lists.unlink(group);
        let prioritised = self.prioritised();
        let all = self.lists.len(QUEUE) + prioritised + 1;
        if (prioritised + 1) * PRIORITISED_PART > all {
            match self.least() {
                Some(least) if least.0 < Self::of(count).0 => self.fall_back(least),
                _ => return self.lists.push(QUEUE, group),
            }
        }
        self.lists.push(Self::of(count), group);
    }
}

impl Order for Cmcp<'_> {
    fn insert(&self, _: Shard, group: Group, count: u32) {
        let inserts = self.inserts.load(Ordering::Relaxed).wrapping_add(1);
        self.inserts.store(inserts, Ordering::Relaxed);
        if inserts.is_multiple_of(AGEING)
            && let Some(least) = self.least()
        {
            self.fall_back(least);
        }
        self.place(group, count);
    }

    fn mapped(&self, _: Shard, group: Group, count: u32) {
        if self.lists.list_of(group).is_some_and(|list| list != Self::of(count)) {
            self.place(group, count);
        }
    }

    fn evict(&self, _: Shard, want: u32, view: &mut dyn View) -> u32 {
        let mut taken = self.lists.offer(QUEUE, want, &mut |group| view.take(group));
        for list in (1..=COUNTS).map(List) {
            if taken == want {
                break;
            }
            taken += self.lists.offer(list, want - taken, &mut |group| view.take(group));
        }
        taken
    }

    fn clear(&self, _: Shard) {
        (0..Self::LISTS).map(List).for_each(|list| self.lists.clear(list));
    }
    fn front(&self, _: Shard) -> List {
        QUEUE
    }
}
