//! A block of points and the passes over it: what one task computes.

use bytemuck::{Pod, Zeroable};

/// What is known of a point besides where it lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Point {
    /// How many points it stands for.
    pub weight: f32,
    /// What it costs now: weight times the squared distance to its centre.
    pub cost: f32,
    /// Which slot its centre has.
    pub slot: u32,
    /// Whether the last [`gain`] found it nearer to the candidate.
    pub nearer: u32,
}

/// The squared distance of two points.
#[must_use]
pub fn distance(a: &[f32], b: &[f32]) -> f32 {
    // Eight sums side by side, so that the compiler may use vectors: float additions are not reordered.
    let mut sums = [0.0_f32; 8];
    let (a8, a_rest) = a.as_chunks::<8>();
    let (b8, b_rest) = b.as_chunks::<8>();
    for (a, b) in a8.iter().zip(b8) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += (a - b) * (a - b);
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| (a - b) * (a - b)).sum();
    sums.iter().sum::<f32>() + rest
}

/// Makes `candidate`, in `slot`, the centre of every point of the block. Gives the block's cost.
pub fn first(points: &mut [Point], coordinates: &[f32], candidate: &[f32], slot: u32) -> f64 {
    let mut cost = 0.0;
    for (point, at) in points.iter_mut().zip(coordinates.chunks_exact(candidate.len())) {
        point.cost = distance(at, candidate) * point.weight;
        point.slot = slot;
        cost += f64::from(point.cost);
    }
    cost
}

/// Points that are nearer to `candidate` than to their centre go over to it. Gives the change of cost.
pub fn take(points: &mut [Point], coordinates: &[f32], candidate: &[f32], slot: u32) -> f64 {
    let mut change = 0.0;
    for (point, at) in points.iter_mut().zip(coordinates.chunks_exact(candidate.len())) {
        let cost = distance(at, candidate) * point.weight;
        if cost < point.cost {
            change += f64::from(cost - point.cost);
            (point.cost, point.slot) = (cost, slot);
        }
    }
    change
}

/// What opening `candidate` would change in this block: what is saved by points nearer to it, and for
/// each centre what the others would pay more if that centre were closed (added to `closing[slot]`).
/// Marks the nearer points.
pub fn gain(
    points: &mut [Point],
    coordinates: &[f32],
    candidate: &[f32],
    closing: &mut [f64],
) -> f64 {
    let mut saved = 0.0;
    for (point, at) in points.iter_mut().zip(coordinates.chunks_exact(candidate.len())) {
        let cost = distance(at, candidate) * point.weight;
        point.nearer = u32::from(cost < point.cost);
        let change = f64::from(cost - point.cost);
        if point.nearer == 1 {
            saved += change;
        } else {
            closing[point.slot as usize] += change;
        }
    }
    saved
}

/// Opens `candidate` in `slot`: takes the points that the last [`gain`] marked and those of the slots
/// that are closed.
pub fn open(
    points: &mut [Point],
    coordinates: &[f32],
    candidate: &[f32],
    slot: u32,
    closed: impl Fn(u32) -> bool,
) {
    for (point, at) in points.iter_mut().zip(coordinates.chunks_exact(candidate.len())) {
        if point.nearer == 1 || closed(point.slot) {
            point.cost = distance(at, candidate) * point.weight;
            point.slot = slot;
        }
    }
}

/// The sum of the points' costs.
#[must_use]
pub fn cost(points: &[Point]) -> f64 {
    points.iter().map(|point| f64::from(point.cost)).sum()
}
