//! The serial reference: one thread passes over the blocks in order.

use std::convert::Infallible;

use super::points::{self, Point};
use super::search::Passes;
use super::stream::{Centre, Chunk, add_to_sums, centres_of, coordinate};

/// Points in ordinary memory.
#[derive(Clone, Debug)]
pub struct Serial {
    seed: u64,
    dimensions: usize,
    block: usize,
    coordinates: Vec<f32>,
    points: Vec<Point>,
}

impl Serial {
    /// No points yet; `block` is how many are summed up before sums are added, as tasks do.
    #[must_use]
    pub const fn new(dimensions: usize, block: usize, seed: u64) -> Self {
        Self { seed, dimensions, block, coordinates: Vec::new(), points: Vec::new() }
    }

    /// What is known of each point.
    #[must_use]
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Where a point lies.
    #[must_use]
    pub fn coordinates(&self, x: usize) -> &[f32] {
        &self.coordinates[x * self.dimensions..][..self.dimensions]
    }

    /// Does `pass` for each block with the coordinates of `x`, and adds up what it gives, in order.
    fn sum(&mut self, x: usize, mut pass: impl FnMut(&mut [Point], &[f32], &[f32]) -> f64) -> f64 {
        let candidate = self.coordinates(x).to_vec();
        let blocks = self.points.chunks_mut(self.block);
        let coordinates = self.coordinates.chunks(self.block * self.dimensions);
        blocks.zip(coordinates).map(|(p, c)| pass(p, c, &candidate)).sum()
    }
}

impl Passes for Serial {
    type Error = Infallible;

    fn points(&self) -> usize {
        self.points.len()
    }

    fn first(&mut self, x: usize, slot: u32) -> Result<f64, Infallible> {
        Ok(self.sum(x, |p, c, candidate| points::first(p, c, candidate, slot)))
    }

    fn take(&mut self, x: usize, slot: u32) -> Result<f64, Infallible> {
        Ok(self.sum(x, |p, c, candidate| points::take(p, c, candidate, slot)))
    }

    fn gain(&mut self, x: usize, closing: &mut [f64]) -> Result<f64, Infallible> {
        let saved = self.sum(x, |p, c, candidate| {
            let mut own = vec![0.0; closing.len()];
            let saved = points::gain(p, c, candidate, &mut own);
            for (sum, own) in closing.iter_mut().zip(&own) {
                *sum += own;
            }
            saved
        });
        Ok(saved)
    }

    fn open(&mut self, x: usize, slot: u32, closed: &[bool]) -> Result<(), Infallible> {
        self.sum(x, |p, c, candidate| {
            points::open(p, c, candidate, slot, |slot| closed[slot as usize]);
            0.0
        });
        Ok(())
    }

    fn point(&mut self, x: usize) -> Result<(f64, f64), Infallible> {
        Ok((f64::from(self.points[x].cost), f64::from(self.points[x].weight)))
    }
}

impl Chunk for Serial {
    fn load(&mut self, first: usize, count: usize) -> Result<(), Infallible> {
        self.points = vec![Point { weight: 1.0, ..Point::default() }; count];
        let at = |i| coordinate(self.seed, first + i / self.dimensions, i % self.dimensions);
        self.coordinates = (0..count * self.dimensions).map(at).collect();
        Ok(())
    }

    fn load_centres(&mut self, centres: &[Centre]) -> Result<(), Infallible> {
        self.points =
            centres.iter().map(|c| Point { weight: c.weight, ..Point::default() }).collect();
        self.coordinates = centres.iter().flat_map(|c| c.at.iter().copied()).collect();
        Ok(())
    }

    fn join(&mut self, slots: usize) -> Result<Vec<Option<Centre>>, Infallible> {
        let mut sums = vec![0.0; slots * (1 + self.dimensions)];
        let blocks = self.points.chunks(self.block);
        for (p, c) in blocks.zip(self.coordinates.chunks(self.block * self.dimensions)) {
            let mut own = vec![0.0; sums.len()];
            add_to_sums(p, c, self.dimensions, &mut own);
            for (sum, own) in sums.iter_mut().zip(&own) {
                *sum += own;
            }
        }
        Ok(centres_of(&sums, self.dimensions))
    }
}
