//! EM3D (Culler et al., "Parallel Programming in Split-C", SC 1993; in the Olden suite):
//! electric and magnetic nodes in a bipartite graph, each computed from some of the other kind.
//!
//! One core builds the graph and, if asked, another takes it over: near lines are near for one
//! core, so the receiver copies every node to a line of its own, "as it would be required for
//! the EM3D application" (Euro-Par paper, section 6).

use isochrone_stats::{Xoshiro256PlusPlus, below, rng, shuffle, uniform};

use super::{Outcome, PtrOf, Size, Structure};
use crate::nodes::{Nodes, Shape, is_one_line};
use crate::number::{Fold, index, narrow, single, wide};

/// Nodes that each node depends on: as many as fit a line with their coefficients.
const DEGREE: usize = 4;

/// The shape of [`Em3dNode`].
#[derive(Clone, Copy, Debug)]
pub struct Em3dShape;

/// One electric or magnetic node.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Em3dNode<P> {
    value: f32,
    /// Its place in its list.
    place: u32,
    from: [Option<P>; DEGREE],
    coefficients: [f32; DEGREE],
}

impl Shape for Em3dShape {
    type Node<P: Copy + Eq> = Em3dNode<P>;
}

/// The graph: electric nodes, then magnetic ones, each list in random order of allocation.
#[derive(Clone, Debug)]
pub struct Em3d<P> {
    sides: [Vec<P>; 2],
    /// The node that is computed next: side and place.
    next: (usize, usize),
}

impl<P: Copy + Eq> Em3d<P> {
    /// Copies every node to a line that `nodes` hands out now, to whoever calls, and gives the
    /// old lines back. The graph stays the same. `None` when memory is refused; then nothing was
    /// given back and the graph is gone.
    pub fn hand_over<N: Nodes<Em3dShape, Ptr = P>>(self, nodes: &mut N) -> Option<Self> {
        let mut moved: [Vec<P>; 2] = [Vec::new(), Vec::new()];
        for (old, new) in self.sides.iter().zip(&mut moved) {
            for at in old {
                let node = nodes.read(*at, |node| *node);
                new.push(nodes.new(node)?);
            }
        }
        for (side, all) in moved.iter().enumerate() {
            for at in all {
                let old = nodes.read(*at, |node| node.from);
                let place = |at: P| nodes.read(at, |node| node.place);
                let from = old.map(|at| moved[1 - side].get(place(at?) as usize).copied());
                nodes.write(*at, |node| node.from = from);
            }
        }
        self.sides.iter().flatten().for_each(|at| nodes.free(*at));
        Some(Self { sides: moved, next: self.next })
    }

    /// Computes one node from those it depends on.
    fn compute<N: Nodes<Em3dShape, Ptr = P>>(nodes: &mut N, at: P) -> f32 {
        let (mut value, from, coefficients) =
            nodes.read(at, |node| (node.value, node.from, node.coefficients));
        for (from, coefficient) in from.into_iter().zip(coefficients) {
            if let Some(from) = from {
                value -= coefficient * nodes.read(from, |node| node.value);
            }
        }
        nodes.write(at, |node| node.value = value);
        value
    }
}

impl<N: Nodes<Em3dShape>> Structure<N> for Em3d<PtrOf<N, Em3dShape>> {
    const NAME: &'static str = "em3d";

    fn build(nodes: &mut N, size: Size) -> Option<Self> {
        const { assert!(is_one_line::<Em3dNode<N::Ptr>>()) };
        let mut random: Xoshiro256PlusPlus = rng(size.seed);
        let electric = size.lines / 2;
        let mut sides = [Vec::new(), Vec::new()];
        for (side, count) in [electric, size.lines - electric].into_iter().enumerate() {
            for _ in 0..count {
                let value = single(uniform(&mut random));
                // Small enough that values stay bounded however long it runs.
                let coefficients = [(); DEGREE].map(|()| single(uniform(&mut random) / 64.0));
                let node = Em3dNode { value, place: 0, from: [None; DEGREE], coefficients };
                sides[side].push(nodes.new(node)?);
            }
            shuffle(&mut sides[side], &mut random);
        }
        for side in 0..2 {
            let others = &sides[1 - side];
            for (place, at) in sides[side].iter().enumerate() {
                let mut pick =
                    || others.get(index(below(&mut random, wide(others.len())))).copied();
                let from = [(); DEGREE].map(|()| pick());
                nodes.write(*at, |node| (node.from, node.place) = (from, narrow(place)));
            }
        }
        Some(Self { sides, next: (0, 0) })
    }

    fn run(&mut self, nodes: &mut N, operations: u64) -> Option<Outcome> {
        let mut fold = Fold::default();
        let (mut side, mut place) = self.next;
        for _ in 0..operations {
            let at = *self.sides[side].get(place)?;
            fold.take(u64::from(Self::compute(nodes, at).to_bits()));
            place += 1;
            if place == self.sides[side].len() {
                (side, place) = (1 - side, 0);
            }
        }
        self.next = (side, place);
        Some(Outcome { operations, checksum: fold.sum() })
    }

    fn clear(self, nodes: &mut N) {
        self.sides.into_iter().flatten().for_each(|at| nodes.free(at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::Slab;

    #[test]
    fn it_computes_what_plain_arrays_compute() {
        let mut slab = Slab::<Em3dShape>::new(200);
        let size = Size { lines: 101, seed: 6 };
        let mut graph = Em3d::build(&mut slab, size).unwrap();
        assert_eq!(graph.sides.each_ref().map(Vec::len), [50, 51]);
        let mut values = graph.sides.each_ref().map(|side| {
            side.iter().map(|at| slab.read(*at, |node| node.value)).collect::<Vec<f32>>()
        });
        let links = graph.sides.each_ref().map(|side| {
            let read = |at: &_| slab.read(*at, |node| (node.from, node.coefficients));
            let place = |at| slab.read(at, |node| node.place as usize);
            let resolve =
                |(from, by): ([Option<_>; DEGREE], _)| (from.map(|p| place(p.unwrap())), by);
            side.iter().map(read).map(resolve).collect::<Vec<_>>()
        });
        for round in 0..6 {
            let side = round % 2;
            for at in 0..values[side].len() {
                let (from, by) = &links[side][at];
                for (from, by) in from.iter().zip(by) {
                    values[side][at] -= by * values[1 - side][*from];
                }
            }
        }
        graph.run(&mut slab, 3 * 101).unwrap();
        for (side, all) in graph.sides.iter().enumerate() {
            for (place, at) in all.iter().enumerate() {
                let value = slab.read(*at, |node| node.value);
                assert_eq!(value.to_bits(), values[side][place].to_bits());
            }
        }
    }

    #[test]
    fn a_graph_handed_over_lies_on_other_lines_and_computes_the_same() {
        let size = Size { lines: 300, seed: 2 };
        let mut slab = Slab::<Em3dShape>::new(600);
        let mut kept = Em3d::build(&mut slab, size).unwrap();
        kept.run(&mut slab, 500).unwrap();
        let expected = kept.run(&mut slab, 500);
        kept.clear(&mut slab);
        let mut graph = Em3d::build(&mut slab, size).unwrap();
        graph.run(&mut slab, 500).unwrap();
        let before = graph.sides.clone();
        let mut graph = graph.hand_over(&mut slab).unwrap();
        assert_eq!(slab.live(), 300, "the old lines were given back");
        assert!(before.iter().flatten().all(|at| !graph.sides.iter().flatten().any(|b| b == at)));
        assert_eq!(graph.run(&mut slab, 500), expected);
        graph.clear(&mut slab);
        let mut tight = Slab::<Em3dShape>::new(301);
        assert!(Em3d::build(&mut tight, size).unwrap().hand_over(&mut tight).is_none());
    }
}
