//! SIEVE (Zhang, Yang, Yue, Vigfusson, Rashmi, NSDI 2024): one queue, a bit for each member that was
//! visited, and a hand that goes from old to young, clears bits, and evicts the first without one. Members
//! never move.
//!
//! A visit is what this pager sees of one: another table mapped the group, or a write needed permission.

use core::sync::atomic::{AtomicU32, Ordering};

use super::lists::{List, Lists};
use super::order::{Order, Shard, View};
use crate::names::Group;

const QUEUE: List = List(0);
/// The hand is at the oldest.
const AT_OLDEST: u32 = u32::MAX;

pub(super) struct Sieve<'a> {
    lists: Lists<'a>,
    hand: &'a AtomicU32,
    visited: &'a [AtomicU32],
}

impl<'a> Sieve<'a> {
    pub(super) const fn own_words(groups: u32) -> usize {
        1 + (groups as usize).div_ceil(32)
    }

    pub(super) fn new(lists: Lists<'a>, own: &'a [AtomicU32]) -> Self {
        Self { lists, hand: &own[0], visited: &own[1..] }
    }

    fn visit(&self, group: Group, visited: bool) {
        let word = &self.visited[group.index() / 32];
        let bit = 1 << (group.0 % 32);
        let bits = word.load(Ordering::Relaxed);
        word.store(if visited { bits | bit } else { bits & !bit }, Ordering::Relaxed);
    }

    fn is_visited(&self, group: Group) -> bool {
        self.visited[group.index() / 32].load(Ordering::Relaxed) >> (group.0 % 32) & 1 == 1
    }

    /// Moves the hand on if it is at a group that leaves.
    pub(super) fn pass(&self, group: Group) {
        if self.hand.load(Ordering::Relaxed) == group.0 {
            let next = self.lists.younger(group).map_or(AT_OLDEST, |next| next.0);
            self.hand.store(next, Ordering::Relaxed);
        }
    }

    fn at_hand(&self) -> Option<Group> {
        match self.hand.load(Ordering::Relaxed) {
            AT_OLDEST => self.lists.oldest(QUEUE),
            group => Some(Group(group)),
        }
    }
}

impl Order for Sieve<'_> {
    fn insert(&self, _: Shard, group: Group, _: u32) {
        self.visit(group, false);
        self.lists.push(QUEUE, group);
    }

    fn mapped(&self, _: Shard, group: Group, _: u32) {
        self.visit(group, true);
    }

    fn evict(&self, _: Shard, want: u32, view: &mut dyn View) -> u32 {
        let mut taken = 0;
        // Twice around clears every bit and offers every member.
        for _ in 0..2 * self.lists.len(QUEUE) {
            let Some(group) = self.at_hand().filter(|_| taken < want) else { break };
            let next = self.lists.younger(group);
            if self.is_visited(group) {
                self.visit(group, false);
            } else if view.take(group) {
                self.lists.unlink(group);
                taken += 1;
            }
            self.hand.store(next.map_or(AT_OLDEST, |next| next.0), Ordering::Relaxed);
        }
        taken
    }

    fn clear(&self, _: Shard) {
        self.lists.clear(QUEUE);
        self.hand.store(AT_OLDEST, Ordering::Relaxed);
    }
    fn front(&self, _: Shard) -> List {
        QUEUE
    }
}
