//! A skip list (Pugh, "Skip Lists: A Probabilistic Alternative to Balanced Trees", CACM 33(6),
//! 1990) whose towers fit the node's line: six levels, one node in eight a level higher.

use isochrone_stats::{Rng, Xoshiro256PlusPlus, below, rng};

use super::{Outcome, PtrOf, Size, Structure};
use crate::nodes::{Nodes, Shape, is_one_line};
use crate::number::{Fold, mixed, wide};

/// Levels of a tower: with the key and the level they fill a line.
const LEVELS: usize = 6;

/// The shape of [`SkipListNode`].
#[derive(Clone, Copy, Debug)]
pub struct SkipListShape;

/// One key and its tower.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct SkipListNode<P> {
    key: u64,
    next: [Option<P>; LEVELS],
    value: u32,
}

impl Shape for SkipListShape {
    type Node<P: Copy + Eq> = SkipListNode<P>;
}

/// The list. One operation in ten takes a key out and puts another in; the rest look one up.
#[derive(Clone, Debug)]
pub struct SkipList<P> {
    head: [Option<P>; LEVELS],
    /// Keys that are in the list: mixtures of `first..first + held`.
    first: u64,
    held: u64,
    seed: u64,
    random: Xoshiro256PlusPlus,
}

/// Where a search came down: the last node before the key at each level, `None` for the head.
type Path<P> = [Option<P>; LEVELS];

impl<P: Copy + Eq> SkipList<P> {
    fn key(&self, of: u64) -> u64 {
        mixed(of ^ mixed(self.seed))
    }

    fn search<N: Nodes<SkipListShape, Ptr = P>>(
        &self,
        nodes: &N,
        key: u64,
    ) -> (Path<P>, Option<P>) {
        let mut path = [None; LEVELS];
        let mut before: Option<P> = None;
        let mut tower = self.head;
        // A node that was too far one level up need not be read again.
        let mut too_far = None;
        let mut found = None;
        for level in (0..LEVELS).rev() {
            while let Some(at) = tower[level] {
                if too_far == Some(at) {
                    break;
                }
                let (smaller, equal, next) =
                    nodes.read(at, |node| (node.key < key, node.key == key, node.next));
                if !smaller {
                    too_far = Some(at);
                    if equal {
                        found = Some(at);
                    }
                    break;
                }
                (before, tower) = (Some(at), next);
            }
            path[level] = before;
        }
        (path, found)
    }

    fn link<N: Nodes<SkipListShape, Ptr = P>>(
        &mut self,
        nodes: &mut N,
        before: Option<P>,
        level: usize,
        to: Option<P>,
    ) {
        match before {
            Some(before) => nodes.write(before, |node| node.next[level] = to),
            None => self.head[level] = to,
        }
    }

    fn following<N: Nodes<SkipListShape, Ptr = P>>(
        &self,
        nodes: &N,
        before: Option<P>,
    ) -> [Option<P>; LEVELS] {
        before.map_or(self.head, |before| nodes.read(before, |node| node.next))
    }

    fn insert<N: Nodes<SkipListShape, Ptr = P>>(&mut self, nodes: &mut N, key: u64) -> Option<()> {
        let eighths = self.random.next_u64().trailing_zeros() / 3;
        let height = (eighths as usize + 1).min(LEVELS);
        let (path, _) = self.search(nodes, key);
        let mut next = [None; LEVELS];
        for level in 0..height {
            next[level] = self.following(nodes, path[level])[level];
        }
        let value = u32::from(key.to_le_bytes()[0]);
        let new = nodes.new(SkipListNode { key, next, value })?;
        for (level, before) in path.iter().enumerate().take(height) {
            self.link(nodes, *before, level, Some(new));
        }
        Some(())
    }

    fn remove<N: Nodes<SkipListShape, Ptr = P>>(&mut self, nodes: &mut N, key: u64) -> bool {
        let (path, found) = self.search(nodes, key);
        let Some(gone) = found else { return false };
        let next = nodes.read(gone, |node| node.next);
        for level in 0..LEVELS {
            if self.following(nodes, path[level])[level] == Some(gone) {
                self.link(nodes, path[level], level, next[level]);
            }
        }
        nodes.free(gone);
        true
    }
}

impl<N: Nodes<SkipListShape>> Structure<N> for SkipList<PtrOf<N, SkipListShape>> {
    const NAME: &'static str = "skip-list";

    fn build(nodes: &mut N, size: Size) -> Option<Self> {
        const { assert!(is_one_line::<SkipListNode<N::Ptr>>()) };
        let held = wide(size.lines);
        let mut list =
            Self { head: [None; LEVELS], first: 0, held, seed: size.seed, random: rng(size.seed) };
        (0..held).try_for_each(|of| list.insert(nodes, list.key(of)))?;
        Some(list)
    }

    fn run(&mut self, nodes: &mut N, operations: u64) -> Option<Outcome> {
        let mut fold = Fold::default();
        for _ in 0..operations {
            if below(&mut self.random, 10) == 0 {
                let gone = self.remove(nodes, self.key(self.first));
                self.insert(nodes, self.key(self.first + self.held))?;
                self.first += 1;
                fold.take(u64::from(gone));
            } else {
                let of = self.first + below(&mut self.random, self.held);
                let key = self.key(of);
                let (_, found) = self.search(nodes, key);
                let value = found.map_or(0, |at| nodes.read(at, |node| node.value));
                fold.take(key ^ u64::from(value));
            }
        }
        Some(Outcome { operations, checksum: fold.sum() })
    }

    fn clear(self, nodes: &mut N) {
        let mut at = self.head[0];
        while let Some(ptr) = at {
            at = nodes.read(ptr, |node| node.next[0]);
            nodes.free(ptr);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::nodes::{Slab, SlabPtr};

    fn keys(list: &SkipList<SlabPtr>, slab: &Slab<SkipListShape>, level: usize) -> Vec<u64> {
        let mut at = list.head[level];
        let mut keys = Vec::new();
        while let Some(ptr) = at {
            keys.push(slab.read(ptr, |node| node.key));
            at = slab.read(ptr, |node| node.next[level]);
        }
        keys
    }

    #[test]
    fn it_holds_what_a_set_holds_in_order_on_every_level() {
        let mut slab = Slab::<SkipListShape>::new(3000);
        let mut list = SkipList::build(&mut slab, Size { lines: 3000, seed: 9 }).unwrap();
        let mut reference: BTreeSet<u64> = (0..3000).map(|of| list.key(of)).collect();
        for of in 0..1500 {
            assert!(list.remove(&mut slab, list.key(of)) && reference.remove(&list.key(of)));
            assert!(!list.remove(&mut slab, list.key(of)), "it is gone");
            if of % 2 == 0 {
                list.insert(&mut slab, list.key(5000 + of)).unwrap();
                reference.insert(list.key(5000 + of));
            }
        }
        assert_eq!(keys(&list, &slab, 0), reference.iter().copied().collect::<Vec<_>>());
        assert_eq!(slab.live(), reference.len());
        for level in 1..LEVELS {
            let keys = keys(&list, &slab, level);
            assert!(keys.is_sorted() && keys.iter().all(|key| reference.contains(key)));
        }
        let second = keys(&list, &slab, 1).len();
        assert!((180..390).contains(&second), "one in eight of 2250: {second}");
        assert!(reference.iter().all(|key| list.search(&slab, *key).1.is_some()));
    }
}
