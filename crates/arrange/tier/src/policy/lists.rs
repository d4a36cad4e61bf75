//! Lists of groups in words of shared memory: doubly linked through the groups' numbers, with lengths, so
//! that any member leaves in one step. Policies are made of them.
//!
//! The words are atomic because processes share them, not because they are used at once: each shard of a
//! policy has a lock, and nobody touches a shard's lists without it.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::names::Group;

/// Not linked; also the length word of a group, which has none. Words hold the complement of what they say, so that
/// zeroed memory says this: the lists of an area of which little is used take no memory for the rest.
const NONE: u32 = u32::MAX;
/// Words of an entry: next, previous, and the list it is on (of a head: its length).
const ENTRY_WORDS: usize = 3;

/// A list, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct List(pub(crate) u32);

/// All lists of a policy, over entries of all groups followed by the lists' heads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lists<'a> {
    words: &'a [AtomicU32],
    groups: u32,
}

impl<'a> Lists<'a> {
    pub(crate) const fn words(groups: u32, lists: u32) -> usize {
        (groups as usize + lists as usize) * ENTRY_WORDS
    }

    pub(crate) const fn new(words: &'a [AtomicU32], groups: u32) -> Self {
        Self { words, groups }
    }

    /// Makes empty lists of zeroed words: what whoever makes the memory does once.
    pub(crate) fn format(&self, lists: u32) {
        (0..lists).map(List).for_each(|list| self.clear(list));
    }

    /// Empties one list, whose members keep pointing anywhere: only for a rebuild, which links or
    /// [`Self::forget`]s each of them.
    pub(crate) fn clear(&self, list: List) {
        let head = self.head(list);
        self.set(head, head, head, 0);
    }

    /// Makes a group a member of nothing, whatever its words say.
    pub(crate) fn forget(&self, group: Group) {
        self.set(group.0, NONE, NONE, NONE);
    }

    const fn head(&self, list: List) -> u32 {
        self.groups + list.0
    }

    fn word(&self, entry: u32, word: usize) -> &'a AtomicU32 {
        &self.words[entry as usize * ENTRY_WORDS + word]
    }

    fn get(&self, entry: u32, word: usize) -> u32 {
        !self.word(entry, word).load(Ordering::Relaxed)
    }

    fn put(&self, entry: u32, word: usize, value: u32) {
        self.word(entry, word).store(!value, Ordering::Relaxed);
    }

    fn set(&self, entry: u32, next: u32, previous: u32, list: u32) {
        self.put(entry, 0, next);
        self.put(entry, 1, previous);
        self.put(entry, 2, list);
    }

    /// The list that a group is on.
    pub(crate) fn list_of(&self, group: Group) -> Option<List> {
        Some(self.get(group.0, 2)).filter(|list| *list != NONE).map(List)
    }

    pub(crate) fn len(&self, list: List) -> u32 {
        self.get(self.head(list), 2)
    }

    fn member(&self, entry: u32) -> Option<Group> {
        (entry < self.groups).then_some(Group(entry))
    }

    /// The oldest member.
    pub(crate) fn oldest(&self, list: List) -> Option<Group> {
        self.member(self.get(self.head(list), 0))
    }

    /// The next younger member of the same list.
    pub(crate) fn younger(&self, group: Group) -> Option<Group> {
        self.member(self.get(group.0, 0))
    }

    /// Puts a group on a list as its youngest member, from wherever it was.
    pub(crate) fn push(&self, list: List, group: Group) {
        self.unlink(group);
        let head = self.head(list);
        let last = self.get(head, 1);
        self.set(group.0, head, last, list.0);
        self.put(last, 0, group.0);
        self.put(head, 1, group.0);
        self.put(head, 2, self.get(head, 2) + 1);
    }

    /// Takes a group off its list, if it is on one.
    pub(crate) fn unlink(&self, group: Group) {
        let Some(list) = self.list_of(group) else { return };
        let (next, previous) = (self.get(group.0, 0), self.get(group.0, 1));
        self.put(previous, 0, next);
        self.put(next, 1, previous);
        let head = self.head(list);
        self.put(head, 2, self.get(head, 2) - 1);
        self.forget(group);
    }

    /// Offers the members of a list, oldest first, each at most once, until `want` were taken. Who is
    /// refused becomes the youngest, so that a pinned one is not asked again and again. Returns how many
    /// were taken.
    pub(crate) fn offer(&self, list: List, want: u32, take: &mut dyn FnMut(Group) -> bool) -> u32 {
        let mut taken = 0;
        for _ in 0..self.len(list) {
            let Some(group) = self.oldest(list).filter(|_| taken < want) else { break };
            if take(group) {
                self.unlink(group);
                taken += 1;
            } else {
                self.push(list, group);
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    const GROUPS: u32 = 12;
    const LISTS: u32 = 3;

    proptest! {
        /// Whatever is pushed and unlinked, the lists are those that queues would be.
        #[test]
        fn lists_are_queues(steps in prop::collection::vec((0..LISTS, 0..GROUPS, any::<bool>()), 0..200)) {
            let words: Vec<_> = (0..Lists::words(GROUPS, LISTS)).map(|_| AtomicU32::new(0)).collect();
            let lists = Lists::new(&words, GROUPS);
            lists.format(LISTS);
            let mut model = vec![VecDeque::new(); LISTS as usize];
            for (list, group, push) in steps {
                model.iter_mut().for_each(|queue| queue.retain(|member| *member != group));
                if push {
                    lists.push(List(list), Group(group));
                    model[list as usize].push_back(group);
                } else {
                    lists.unlink(Group(group));
                }
                for (number, queue) in (0..).zip(&model) {
                    prop_assert_eq!(lists.len(List(number)) as usize, queue.len());
                    let mut at = lists.oldest(List(number));
                    for member in queue {
                        prop_assert_eq!(at, Some(Group(*member)));
                        at = lists.younger(Group(*member));
                    }
                    prop_assert_eq!(at, None);
                }
            }
        }
    }

    #[test]
    fn who_is_refused_is_asked_once_and_becomes_the_youngest() {
        let words: Vec<_> = (0..Lists::words(4, 1)).map(|_| AtomicU32::new(0)).collect();
        let lists = Lists::new(&words, 4);
        lists.format(1);
        (0..4).for_each(|group| lists.push(List(0), Group(group)));
        let mut asked = Vec::new();
        let taken = lists.offer(List(0), 2, &mut |group| {
            asked.push(group.0);
            group.0 % 2 == 1
        });
        assert_eq!((taken, asked), (2, vec![0, 1, 2, 3]));
        assert_eq!((lists.oldest(List(0)), lists.len(List(0))), (Some(Group(0)), 2));
        assert_eq!(lists.offer(List(0), 5, &mut |_| false), 0);
    }
}
