//! The search against brute force over the same points.

use super::points::{self, Point};
use super::search::{Passes, search};
use super::serial::Serial;
use super::stream::{Chunk, cluster};
use super::*;

const SMALL: Parameters = Parameters {
    k_min: 4,
    k_max: 8,
    dimensions: 12,
    points: 900,
    chunk: 300,
    centres: 100,
    block: 64,
};

#[test]
fn the_cost_is_that_of_the_centres_named() {
    let mut points = Serial::new(SMALL.dimensions, SMALL.block, 7);
    let Ok(()) = points.load(0, 400);
    let Ok(found) = search(&mut points, SMALL.k_min, SMALL.k_max, 3);
    let centres = found.centres.iter().flatten().count();
    assert!((SMALL.k_min..=SMALL.k_max).contains(&centres), "{centres} centres");
    let mut cost = 0.0;
    for (x, point) in points.points().iter().enumerate() {
        let centre = found.centres[point.slot as usize].expect("a point hangs on a closed centre");
        let distance = points::distance(points.coordinates(x), points.coordinates(centre));
        assert!((distance - point.cost).abs() < 1e-4);
        cost += f64::from(point.cost);
    }
    assert!((cost - found.cost).abs() < 1e-6 * cost, "kept {} but is {cost}", found.cost);
}

#[test]
fn opening_a_candidate_changes_the_cost_by_what_gain_said() {
    let mut points = Serial::new(3, 5, 1);
    let Ok(()) = points.load(0, 40);
    let Ok(mut cost) = points.first(0, 0);
    for (slot, x) in [(1, 9), (2, 30), (3, 17)] {
        let mut closing = vec![0.0; slot as usize];
        let Ok(saved) = points.gain(x, &mut closing);
        let mut closed = vec![false; slot as usize + 1];
        closed[slot as usize - 1] = true;
        let Ok(()) = points.open(x, slot, &closed);
        cost += saved + closing[slot as usize - 1];
        let is: f64 = points.points().iter().map(|p| f64::from(p.cost)).sum();
        assert!((cost - is).abs() < 1e-5, "{cost} {is}");
        assert!(points.points().iter().all(|p| p.slot != slot - 1));
    }
}

#[test]
fn clusters_far_apart_are_found() {
    let mut points = Serial::new(2, 8, 0);
    let at = |i: usize| super::stream::Centre {
        weight: 1.0,
        at: vec![100.0 * f32::from(u8::try_from(i % 5).unwrap()), i as f32 * 0.01],
    };
    let Ok(()) = points.load_centres(&(0..100).map(at).collect::<Vec<_>>());
    let Ok(found) = search(&mut points, 5, 5, 11);
    assert_eq!(found.centres.iter().flatten().count(), 5);
    let slots: Vec<u32> = points.points().iter().map(|p: &Point| p.slot).collect();
    for i in 5..100 {
        assert_eq!(slots[i], slots[i % 5], "point {i}");
    }
}

#[test]
fn the_stream_comes_to_few_centres_that_stand_for_all_points() {
    let mut points = Serial::new(SMALL.dimensions, SMALL.block, 7);
    let Ok(found) = cluster(&mut points, &SMALL, 5);
    assert!((SMALL.k_min..=SMALL.k_max).contains(&found.centres.len()));
    let weight: f32 = found.centres.iter().map(|c| c.weight).sum();
    assert!((weight - 900.0).abs() < 0.5);
    assert_eq!(found.costs.len(), 4);
}

/// Points of which nothing is computed: what a simulation assumes of their sums.
struct Assumed(usize);

impl Passes for Assumed {
    type Error = core::convert::Infallible;

    fn points(&self) -> usize {
        self.0
    }

    fn first(&mut self, _: usize, _: u32) -> Result<f64, Self::Error> {
        Ok(self.0 as f64)
    }

    fn take(&mut self, _: usize, _: u32) -> Result<f64, Self::Error> {
        Ok(0.0)
    }

    fn gain(&mut self, _: usize, closing: &mut [f64]) -> Result<f64, Self::Error> {
        closing.fill(f64::INFINITY);
        Ok(0.0)
    }

    fn open(&mut self, _: usize, _: u32, _: &[bool]) -> Result<(), Self::Error> {
        Ok(())
    }

    fn point(&mut self, _: usize) -> Result<(f64, f64), Self::Error> {
        Ok((1.0, 1.0))
    }
}

#[test]
fn a_seed_that_draws_too_many_centres_goes_through_all_prices_where_sums_are_assumed() {
    let Parameters { k_min, k_max, .. } = Parameters::PAPER;
    let found = |seed: u64| {
        let Ok(found) = search(&mut Assumed(20_000), k_min, k_max, seed);
        (found.centres.iter().flatten().count(), found.passes)
    };
    let (most, few): (Vec<_>, Vec<_>) = (0..60).map(found).partition(|(k, _)| *k > k_max);
    // Nobody closes a centre, so halving the price does not help until the prices are equal.
    let longest = few.iter().map(|(_, passes)| *passes).max().expect("most seeds are so");
    assert!(!most.is_empty() && most.len() < few.len(), "{most:?}");
    assert!(most.iter().all(|(_, passes)| *passes > 4 * longest), "{most:?} {longest}");
}
