//! Barnes and Hut's N-body method ("A hierarchical O(N log N) force-calculation algorithm",
//! Nature 324, 1986): an octree whose cells and leaves are lines, walked once for each body.
//!
//! Eight child pointers alone would fill a line, so a cell knows its first child and each child
//! the next one (as in SPLASH-2's threaded trees and in GADGET). Velocities and forces are the
//! program's own arrays.

use isochrone_stats::{Xoshiro256PlusPlus, normal, rng};

use super::{Outcome, PtrOf, Size, Structure};
use crate::nodes::{Nodes, Shape, is_one_line};
use crate::number::{Fold, single};

/// A cell is taken as one body when its width over its distance is below this.
const OPENING: f32 = 0.7;
/// Squared softening length: bodies that nearly meet do not diverge.
const SOFTENING: f32 = 1e-3;
/// Length of a step.
const STEP: f32 = 1e-3;
/// Cells are not divided further; bodies this near share a leaf's cell as siblings.
const DEEPEST: u32 = 40;
/// Of the lines, the share that are bodies; the others are cells.
const BODIES_OF_LINES: f64 = 0.62;

type Vector = [f32; 3];

/// The shape of [`BarnesHutNode`].
#[derive(Clone, Copy, Debug)]
pub struct BarnesHutShape;

/// One cell or one body.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct BarnesHutNode<P> {
    /// Centre of mass.
    centre: Vector,
    mass: f32,
    /// Middle of the cell.
    middle: Vector,
    /// Half of the cell's width; 0 for a body.
    half: f32,
    child: Option<P>,
    sibling: Option<P>,
    /// Which eighth of its parent it lies in.
    octant: u8,
}

impl Shape for BarnesHutShape {
    type Node<P: Copy + Eq> = BarnesHutNode<P>;
}

/// Bodies, and the tree over them.
#[derive(Clone, Debug)]
pub struct BarnesHut<P> {
    root: Option<P>,
    places: Vec<Vector>,
    speeds: Vec<Vector>,
    forces: Vec<Vector>,
    next: usize,
}

impl<P> BarnesHutNode<P> {
    fn body(place: Vector, mass: f32) -> Self {
        let (middle, child, sibling) = ([0.0; 3], None, None);
        Self { centre: place, mass, middle, half: 0.0, child, sibling, octant: 0 }
    }

    fn cell(middle: Vector, half: f32) -> Self {
        let (child, sibling) = (None, None);
        Self { centre: [0.0; 3], mass: 0.0, middle, half, child, sibling, octant: 0 }
    }
}

fn octant(middle: Vector, place: Vector) -> u8 {
    (0..3).fold(0, |octant, axis| octant | (u8::from(place[axis] >= middle[axis]) << axis))
}

fn middle_of(middle: Vector, half: f32, octant: u8) -> Vector {
    core::array::from_fn(|axis| {
        let quarter = 0.5 * half;
        middle[axis] + if octant >> axis & 1 == 1 { quarter } else { -quarter }
    })
}

impl<P: Copy + Eq> BarnesHut<P> {
    fn mass(&self) -> f32 {
        single(1.0 / crate::number::real(self.places.len() as u64))
    }

    /// Builds the tree over the bodies as they lie now.
    fn plant<N: Nodes<BarnesHutShape, Ptr = P>>(&mut self, nodes: &mut N) -> Option<()> {
        let reach = self.places.iter().flatten().fold(0.0_f32, |most, x| most.max(x.abs()));
        let root = nodes.new(BarnesHutNode::cell([0.0; 3], reach + 1e-6))?;
        self.root = Some(root);
        let mass = self.mass();
        for place in &self.places {
            let body = nodes.new(BarnesHutNode::body(*place, mass))?;
            Self::insert(nodes, root, body, *place)?;
        }
        Self::weigh(nodes, root);
        Some(())
    }

    /// The child of `cell` in `octant`, and whether it is a body.
    fn child_in<N: Nodes<BarnesHutShape, Ptr = P>>(
        nodes: &N,
        cell: P,
        octant: u8,
    ) -> Option<(P, bool)> {
        let mut at = nodes.read(cell, |node| node.child);
        while let Some(ptr) = at {
            let (of, half, sibling) =
                nodes.read(ptr, |node| (node.octant, node.half, node.sibling));
            if of == octant {
                return Some((ptr, half == 0.0));
            }
            at = sibling;
        }
        None
    }

    fn adopt<N: Nodes<BarnesHutShape, Ptr = P>>(nodes: &mut N, cell: P, child: P, octant: u8) {
        let first = nodes.write(cell, |node| node.child.replace(child));
        nodes.write(child, |node| (node.sibling, node.octant) = (first, octant));
    }

    fn insert<N: Nodes<BarnesHutShape, Ptr = P>>(
        nodes: &mut N,
        root: P,
        body: P,
        place: Vector,
    ) -> Option<()> {
        let mut cell = root;
        for _ in 0..DEEPEST {
            let (middle, half) = nodes.read(cell, |node| (node.middle, node.half));
            let side = octant(middle, place);
            match Self::child_in(nodes, cell, side) {
                None => {
                    Self::adopt(nodes, cell, body, side);
                    return Some(());
                }
                Some((child, false)) => cell = child,
                Some((other, true)) => {
                    // The octant holds a body: a cell takes its place and the body moves down.
                    let mut inner = BarnesHutNode::cell(middle_of(middle, half, side), 0.5 * half);
                    let (sibling, there) = nodes.read(other, |node| (node.sibling, node.centre));
                    (inner.sibling, inner.octant, inner.child) = (sibling, side, Some(other));
                    let down = octant(inner.middle, there);
                    let inner = nodes.new(inner)?;
                    Self::replace(nodes, cell, other, inner);
                    nodes.write(other, |node| (node.sibling, node.octant) = (None, down));
                    cell = inner;
                }
            }
        }
        let middle = nodes.read(cell, |node| node.middle);
        Self::adopt(nodes, cell, body, octant(middle, place));
        Some(())
    }

    /// Puts `new` where `old` is in the list of `cell`'s children.
    fn replace<N: Nodes<BarnesHutShape, Ptr = P>>(nodes: &mut N, cell: P, old: P, new: P) {
        let mut at = nodes.read(cell, |node| node.child);
        if at == Some(old) {
            nodes.write(cell, |node| node.child = Some(new));
            return;
        }
        while let Some(ptr) = at {
            at = nodes.read(ptr, |node| node.sibling);
            if at == Some(old) {
                nodes.write(ptr, |node| node.sibling = Some(new));
                return;
            }
        }
    }

    /// Masses and centres of mass, from the leaves up.
    fn weigh<N: Nodes<BarnesHutShape, Ptr = P>>(nodes: &mut N, cell: P) -> (f32, Vector) {
        let (child, half, centre, mass) =
            nodes.read(cell, |node| (node.child, node.half, node.centre, node.mass));
        if half == 0.0 {
            return (mass, centre);
        }
        let (mut sum, mut moment) = (0.0, [0.0; 3]);
        let mut at = child;
        while let Some(ptr) = at {
            let (mass, centre) = Self::weigh(nodes, ptr);
            sum += mass;
            (0..3).for_each(|axis| moment[axis] += mass * centre[axis]);
            at = nodes.read(ptr, |node| node.sibling);
        }
        let centre = moment.map(|m| m / sum);
        nodes.write(cell, |node| (node.mass, node.centre) = (sum, centre));
        (sum, centre)
    }

    /// The force on a unit mass at `place`, and how many nodes were looked at.
    fn force<N: Nodes<BarnesHutShape, Ptr = P>>(
        &self,
        nodes: &N,
        place: Vector,
        left: &mut Vec<P>,
    ) -> (Vector, u64) {
        let (mut force, mut seen) = ([0.0; 3], 0);
        left.clear();
        left.extend(self.root);
        while let Some(at) = left.pop() {
            let mut at = Some(at);
            while let Some(ptr) = at {
                let (centre, mass, half, child, sibling) = nodes.read(ptr, |node| {
                    (node.centre, node.mass, node.half, node.child, node.sibling)
                });
                seen += 1;
                let away: Vector = core::array::from_fn(|axis| centre[axis] - place[axis]);
                let squared = away.iter().map(|x| x * x).sum::<f32>() + SOFTENING;
                let far = 4.0 * half * half < OPENING * OPENING * squared;
                match child {
                    Some(child) if !far => left.push(child),
                    _ => {
                        let pull = mass / (squared * squared.sqrt());
                        (0..3).for_each(|axis| force[axis] += pull * away[axis]);
                    }
                }
                at = sibling;
            }
        }
        (force, seen)
    }

    /// Moves all bodies by the forces on them.
    fn advance(&mut self) {
        let bodies = self.places.iter_mut().zip(&mut self.speeds).zip(&self.forces);
        for ((place, speed), force) in bodies {
            for axis in 0..3 {
                speed[axis] += STEP * force[axis];
                place[axis] += STEP * speed[axis];
            }
        }
    }

    fn fell<N: Nodes<BarnesHutShape, Ptr = P>>(&mut self, nodes: &mut N) {
        let mut left: Vec<P> = self.root.take().into_iter().collect();
        while let Some(at) = left.pop() {
            left.extend(nodes.read(at, |node| [node.child, node.sibling]).into_iter().flatten());
            nodes.free(at);
        }
    }
}

impl<N: Nodes<BarnesHutShape>> Structure<N> for BarnesHut<PtrOf<N, BarnesHutShape>> {
    const NAME: &'static str = "barnes-hut";

    fn build(nodes: &mut N, size: Size) -> Option<Self> {
        const { assert!(is_one_line::<BarnesHutNode<N::Ptr>>()) };
        let mut random: Xoshiro256PlusPlus = rng(size.seed);
        let lines = crate::number::real(size.lines as u64);
        let count = (1..size.lines).rev().find(|n| *n as f64 <= BODIES_OF_LINES * lines);
        let mut ball = || [(); 3].map(|()| single(normal(&mut random)));
        let places: Vec<Vector> = (0..count.unwrap_or(1)).map(|_| ball()).collect();
        let still = vec![[0.0; 3]; places.len()];
        let mut bodies = Self { root: None, speeds: still.clone(), forces: still, places, next: 0 };
        bodies.plant(nodes)?;
        Some(bodies)
    }

    fn run(&mut self, nodes: &mut N, operations: u64) -> Option<Outcome> {
        let mut fold = Fold::default();
        let mut left = Vec::new();
        for _ in 0..operations {
            let place = *self.places.get(self.next)?;
            let (force, seen) = self.force(nodes, place, &mut left);
            self.forces[self.next] = force;
            force.iter().for_each(|x| fold.take(u64::from(x.to_bits())));
            fold.take(seen);
            self.next += 1;
            if self.next == self.places.len() {
                self.next = 0;
                self.advance();
                self.fell(nodes);
                self.plant(nodes)?;
            }
        }
        Some(Outcome { operations, checksum: fold.sum() })
    }

    fn clear(mut self, nodes: &mut N) {
        self.fell(nodes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::Slab;

    #[test]
    fn forces_are_those_of_all_pairs_to_a_few_percent() {
        let mut slab = Slab::<BarnesHutShape>::new(4000);
        let bodies = BarnesHut::build(&mut slab, Size { lines: 2000, seed: 3 }).unwrap();
        let mass = bodies.mass();
        let (mut error, mut size, mut seen) = (0.0, 0.0, 0);
        for place in &bodies.places {
            let mut exact = [0.0_f32; 3];
            for other in &bodies.places {
                let away: Vector = core::array::from_fn(|axis| other[axis] - place[axis]);
                let squared = away.iter().map(|x| x * x).sum::<f32>() + SOFTENING;
                let pull = mass / (squared * squared.sqrt());
                (0..3).for_each(|axis| exact[axis] += pull * away[axis]);
            }
            let (force, of) = bodies.force(&slab, *place, &mut Vec::new());
            seen += of;
            (0..3).for_each(|axis| error += (force[axis] - exact[axis]).powi(2));
            (0..3).for_each(|axis| size += exact[axis].powi(2));
        }
        assert!((error / size).sqrt() < 0.03, "{}", (error / size).sqrt());
        let all = (bodies.places.len() as u64).pow(2);
        assert!(seen < all / 2, "{seen} of {all}: far cells are taken as one");
    }

    #[test]
    fn the_tree_holds_every_body_once_and_all_the_mass() {
        let mut slab = Slab::<BarnesHutShape>::new(4000);
        let size = Size { lines: 2000, seed: 3 };
        let bodies = BarnesHut::build(&mut slab, size).unwrap();
        let mass = slab.read(bodies.root.unwrap(), |node| node.mass);
        assert!((mass - 1.0).abs() < 1e-3, "{mass}");
        assert!((1700..2400).contains(&slab.live()), "{} lines for 2000", slab.live());
        let (mut left, mut leaves) = (vec![bodies.root.unwrap()], 0);
        while let Some(at) = left.pop() {
            let node = slab.read(at, |node| *node);
            leaves += usize::from(node.half == 0.0);
            left.extend([node.child, node.sibling].into_iter().flatten());
        }
        assert_eq!(leaves, bodies.places.len());
    }

    #[test]
    fn bodies_in_one_place_share_a_cell() {
        let mut slab = Slab::<BarnesHutShape>::new(400);
        let same = vec![[0.5_f32, 0.5, 0.5]; 3];
        let mut bodies = BarnesHut {
            root: None,
            speeds: same.clone(),
            forces: same.clone(),
            places: same,
            next: 0,
        };
        bodies.plant(&mut slab).unwrap();
        let (force, seen) = bodies.force(&slab, [0.5, 0.5, 0.5], &mut Vec::new());
        assert!(force.iter().all(|x| x.abs() < 1e-3) && seen >= 3, "{force:?} {seen}");
    }
}
