//! The arrays that streamcluster's passes go through, and the part of each that is a block's.

use isochrone_tasks::{Data, Footprint, Part};

use super::points::Point;

/// Centres that may be open at once. The search stays near `k_max`; the quick start that draws centres by
/// chance may pass it by some factor.
pub(super) const SLOTS_MAX: usize = 1024;
/// Values that a task leaves: its sum, then one for each slot.
pub(super) const LEFT: usize = 1 + SLOTS_MAX;

/// Slots whose points are joined; a search ends with at most a few more than `k_max`.
pub(super) const SUMMED_SLOTS: usize = 64;

/// What every pass uses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrays {
    pub(super) coordinates: Data<f32>,
    pub(super) points: Data<Point>,
    pub(super) left: Data<f64>,
}

impl Arrays {
    pub(super) fn dimensions(self) -> usize {
        self.coordinates.len() / self.points.len()
    }

    pub(super) fn candidate(self, x: u32) -> Part<f32> {
        let dimensions = self.dimensions();
        self.coordinates.part(x as usize * dimensions, dimensions)
    }

    pub(super) fn block(self, block: Block) -> Part<f32> {
        block.coordinates(self.coordinates, self.dimensions())
    }

    pub(super) const fn left(self, block: Block, slots: usize) -> Part<f64> {
        self.left.part(block.number as usize * LEFT, 1 + slots)
    }

    /// What the passes that leave sums have in common. The candidate may lie inside of the block.
    pub(super) fn declare(self, block: Block, x: u32, slots: usize, footprint: &mut Footprint) {
        footprint.input(self.block(block)).input(self.candidate(x));
        footprint.inout(block.points(self.points)).output(self.left(block, slots));
        footprint.flops(FLOPS * f64::from(block.points) * self.dimensions() as f64);
    }
}

/// A difference, a product and a sum for each coordinate.
pub(super) const FLOPS: f64 = 3.0;

/// Points that one task passes over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) first: u32,
    pub(super) points: u16,
    pub(super) number: u16,
}

impl Block {
    pub(super) const fn points(self, points: Data<Point>) -> Part<Point> {
        points.part(self.first as usize, self.points as usize)
    }

    pub(super) const fn coordinates(self, coordinates: Data<f32>, dimensions: usize) -> Part<f32> {
        coordinates.part(self.first as usize * dimensions, self.points as usize * dimensions)
    }

    pub(super) const fn sums(self, sums: Data<f64>, slots: u16, dimensions: usize) -> Part<f64> {
        let each = 1 + dimensions;
        sums.part(self.number as usize * SUMMED_SLOTS * each, slots as usize * each)
    }
}
