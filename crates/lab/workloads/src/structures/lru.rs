//! A cache with least-recently-used replacement: hash chains to find an entry, a list to move it
//! to the front of, and a node allocated for every miss.

use isochrone_stats::{Xoshiro256PlusPlus, below, rng};

use super::{Outcome, PtrOf, Size, Structure};
use crate::nodes::{Nodes, Shape, is_one_line};
use crate::number::{Fold, index, mixed, wide};

/// The shape of [`LruNode`].
#[derive(Clone, Copy, Debug)]
pub struct LruShape;

/// One entry.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct LruNode<P> {
    key: u64,
    value: u64,
    chain: Option<P>,
    newer: Option<P>,
    older: Option<P>,
}

impl Shape for LruShape {
    type Node<P: Copy + Eq> = LruNode<P>;
}

/// The cache. Keys are asked for evenly from five quarters of its capacity, so four in five
/// requests hit.
#[derive(Clone, Debug)]
pub struct Lru<P> {
    heads: Vec<Option<P>>,
    newest: Option<P>,
    oldest: Option<P>,
    held: usize,
    capacity: usize,
    keys: u64,
    random: Xoshiro256PlusPlus,
}

impl<P: Copy + Eq> Lru<P> {
    fn head(&self, key: u64) -> usize {
        index(mixed(key)) & (self.heads.len() - 1)
    }

    fn find<N: Nodes<LruShape, Ptr = P>>(&self, nodes: &N, key: u64) -> Option<P> {
        let mut at = self.heads[self.head(key)];
        while let Some(ptr) = at {
            let (found, next) = nodes.read(ptr, |node| (node.key == key, node.chain));
            if found {
                break;
            }
            at = next;
        }
        at
    }

    fn detach<N: Nodes<LruShape, Ptr = P>>(&mut self, nodes: &mut N, at: P) {
        let (newer, older) = nodes.read(at, |node| (node.newer, node.older));
        match newer {
            Some(newer) => nodes.write(newer, |node| node.older = older),
            None => self.newest = older,
        }
        match older {
            Some(older) => nodes.write(older, |node| node.newer = newer),
            None => self.oldest = newer,
        }
    }

    fn put_first<N: Nodes<LruShape, Ptr = P>>(&mut self, nodes: &mut N, at: P) {
        let newest = self.newest;
        nodes.write(at, |node| (node.newer, node.older) = (None, newest));
        match newest {
            Some(newest) => nodes.write(newest, |node| node.newer = Some(at)),
            None => self.oldest = Some(at),
        }
        self.newest = Some(at);
    }

    fn drop_oldest<N: Nodes<LruShape, Ptr = P>>(&mut self, nodes: &mut N) {
        let Some(oldest) = self.oldest else { return };
        self.detach(nodes, oldest);
        let (key, rest) = nodes.read(oldest, |node| (node.key, node.chain));
        let head = self.head(key);
        let mut before: Option<P> = None;
        let mut at = self.heads[head];
        while let Some(ptr) = at
            && ptr != oldest
        {
            before = at;
            at = nodes.read(ptr, |node| node.chain);
        }
        match before {
            Some(before) => nodes.write(before, |node| node.chain = rest),
            None => self.heads[head] = rest,
        }
        nodes.free(oldest);
        self.held -= 1;
    }

    /// The value of a key and whether it was there; what was not there is put in.
    fn request<N: Nodes<LruShape, Ptr = P>>(
        &mut self,
        nodes: &mut N,
        key: u64,
    ) -> Option<(u64, bool)> {
        if let Some(at) = self.find(nodes, key) {
            if self.newest != Some(at) {
                self.detach(nodes, at);
                self.put_first(nodes, at);
            }
            let value = nodes.write(at, |node| {
                node.value = node.value.wrapping_add(1);
                node.value
            });
            return Some((value, true));
        }
        if self.held == self.capacity {
            self.drop_oldest(nodes);
        }
        let head = self.head(key);
        let value = mixed(key);
        let chain = self.heads[head];
        let at = nodes.new(LruNode { key, value, chain, newer: None, older: None })?;
        self.heads[head] = Some(at);
        self.put_first(nodes, at);
        self.held += 1;
        Some((value, false))
    }
}

impl<N: Nodes<LruShape>> Structure<N> for Lru<PtrOf<N, LruShape>> {
    const NAME: &'static str = "lru";

    fn build(nodes: &mut N, size: Size) -> Option<Self> {
        const { assert!(is_one_line::<LruNode<N::Ptr>>()) };
        let capacity = size.lines.max(2);
        let mut cache = Self {
            heads: vec![None; capacity.next_power_of_two()],
            newest: None,
            oldest: None,
            held: 0,
            capacity,
            keys: wide(capacity + capacity / 4),
            random: rng(size.seed),
        };
        while cache.held < capacity {
            let key = below(&mut cache.random, cache.keys);
            cache.request(nodes, key)?;
        }
        Some(cache)
    }

    fn run(&mut self, nodes: &mut N, operations: u64) -> Option<Outcome> {
        let mut fold = Fold::default();
        for _ in 0..operations {
            let key = below(&mut self.random, self.keys);
            let (value, hit) = self.request(nodes, key)?;
            fold.take(value ^ u64::from(hit));
        }
        Some(Outcome { operations, checksum: fold.sum() })
    }

    fn clear(mut self, nodes: &mut N) {
        while self.oldest.is_some() {
            self.drop_oldest(nodes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::Slab;

    #[test]
    fn it_holds_what_a_plain_list_would_hold() {
        let mut slab = Slab::<LruShape>::new(64);
        let mut cache = Lru::build(&mut slab, Size { lines: 64, seed: 5 }).unwrap();
        // The reference: keys by recency in a vector, newest last.
        let mut recent = Vec::new();
        let mut at = cache.oldest;
        while let Some(ptr) = at {
            recent.push(slab.read(ptr, |node| node.key));
            at = slab.read(ptr, |node| node.newer);
        }
        assert_eq!(recent.len(), 64);
        let mut random = rng(11);
        let mut hits = 0;
        for _ in 0..4000 {
            let key = below(&mut random, 80);
            let known = recent.iter().position(|k| *k == key);
            let (_, hit) = cache.request(&mut slab, key).unwrap();
            assert_eq!(hit, known.is_some());
            recent.remove(known.unwrap_or(0));
            recent.push(key);
            hits += u32::from(hit);
            let newest = slab.read(cache.newest.unwrap(), |node| node.key);
            let oldest = slab.read(cache.oldest.unwrap(), |node| node.key);
            assert_eq!((Some(&newest), Some(&oldest)), (recent.last(), recent.first()));
        }
        assert!((3000..3400).contains(&hits), "four in five: {hits}");
    }
}
