//! Whether a base is the one that was seen: by its pattern, and by how far its lines are.
//!
//! Cores of two regions may see the lines of a page in one pattern, a hundred cycles apart. What is decoded goes by
//! the pattern alone: codes that are right for one of these cores are right for the other. How far a line is goes by
//! both, so a base of which only the pattern fits is not the one.

use isochrone_stats::mean;

use super::far::group_means;
use super::learn::class_means;

/// Share of what is seen that a known base must explain to be the current one.
pub(super) const IS_BASE: f64 = 0.95;
/// How far the means of one base may be apart, as a share: a core that is given the base of another one in one map and
/// in the next is as far as ever to `diff`, which asks for twice as much.
pub(super) const SAME_MEAN: f64 = 0.025;
/// Standard errors that a mean may be farther off than that.
const MEAN_Z: f64 = 3.0;

/// How a base of the dictionary fits what was seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fit {
    /// Share of what was seen that it explains, a common offset allowed for.
    pub(super) likeness: f64,
    /// That offset: by how many cycles all that was seen is farther.
    pub(super) farther: f64,
    /// Mean of the base over the lines that were seen, cycles.
    pub(super) mean: f64,
}

impl Fit {
    /// Of a base to what was seen of some cells, with so much noise in their weighted squares.
    pub(super) fn of(cells: &[Compared], noise: f64) -> Self {
        let mean = Compared::mean(cells, &|cell| cell.base);
        let farther = Compared::mean(cells, &|cell| cell.seen) - mean;
        Self { likeness: explained(cells, noise), farther, mean }
    }

    /// Whether the pattern is the one that was seen.
    pub(super) fn has_pattern(&self) -> bool {
        self.likeness >= IS_BASE
    }

    /// Whether lines are as far as was seen, but for this share of it. `error` is that of the mean of what was seen.
    pub(super) fn is_as_far(&self, share: f64, error: f64) -> bool {
        self.farther.abs() <= share * self.mean.abs() + MEAN_Z * error
    }
}

/// What was seen of a cell of the pattern, and what a base says of it.
pub(super) struct Compared {
    pub(super) seen: f64,
    pub(super) base: f64,
    /// Mean of the base over the classes of the cell's node: what nodes differ by is taken off.
    pub(super) node: f64,
    pub(super) weight: f64,
}

impl Compared {
    /// Mean over cells, by their weights.
    fn mean(cells: &[Self], of: &dyn Fn(&Self) -> f64) -> f64 {
        let total: f64 = cells.iter().map(|cell| cell.weight).sum();
        let sum: f64 = cells.iter().map(|cell| cell.weight * of(cell)).sum();
        sum / total.max(f64::MIN_POSITIVE)
    }
}

/// `1 - |seen - base - offset|^2 / |seen - node - mean|^2`, weighted, `noise` taken off both.
fn explained(cells: &[Compared], noise: f64) -> f64 {
    let total: f64 = cells.iter().map(|c| c.weight).sum();
    let mean = |of: &dyn Fn(&Compared) -> f64| Compared::mean(cells, of);
    let (centre, offset) = (mean(&|c| c.seen - c.node), mean(&|c| c.seen - c.base));
    let energy = total * mean(&|c| (c.seen - c.node - centre).powi(2)) - noise;
    let left = total * mean(&|c| (c.seen - c.base - offset).powi(2)) - noise;
    if energy <= noise * 0.2 { 0.0 } else { 1.0 - left.max(0.0) / energy }
}

/// Share of base `a` that base `b` explains, a common offset allowed for; 1 for flat ones.
#[must_use]
pub(super) fn resemblance(a: &[Vec<f64>], b: &[Vec<f64>]) -> f64 {
    let nodes = group_means(&class_means(a));
    let mut cells = Vec::new();
    for ((a, b), node) in a.iter().zip(b).zip(&nodes) {
        let pairs = a.iter().zip(b);
        cells.extend(pairs.map(|(a, b)| Compared { seen: *a, base: *b, node: *node, weight: 1.0 }));
    }
    let flat = cells.iter().all(|cell| (cell.seen - cell.node).abs() < 1e-4);
    let same = cells.iter().all(|cell| (cell.seen - cell.base).abs() < 0.1 * cell.seen.abs());
    if flat { f64::from(u8::from(same)) } else { explained(&cells, 0.0) }
}

/// Whether two bases are one pattern whose means are at most this share apart.
pub(super) fn is_one(a: &[Vec<f64>], b: &[Vec<f64>], share: f64) -> bool {
    let mean = |base: &[Vec<f64>]| mean(&class_means(base)).unwrap_or(0.0);
    let (a_mean, b_mean) = (mean(a), mean(b));
    resemblance(a, b) >= IS_BASE && (a_mean - b_mean).abs() <= share * b_mean.abs()
}

/// A base with all lines farther by so many cycles.
pub(super) fn farther(base: &[Vec<f64>], by: f64) -> Vec<Vec<f64>> {
    base.iter().map(|pattern| pattern.iter().map(|cycles| cycles + by).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::far::FAR_SHARE;

    fn base(mean: f64) -> Vec<Vec<f64>> {
        vec![(0..64).map(|i| mean + f64::from(i * 29 % 31) - 15.0).collect()]
    }

    #[test]
    fn bases_are_one_if_their_patterns_are_and_they_are_as_far() {
        let (here, there) = (base(186.0), farther(&base(186.0), 90.0));
        assert!((resemblance(&here, &there) - 1.0).abs() < 1e-9);
        assert!(is_one(&here, &farther(&here, 3.0), SAME_MEAN));
        assert!(!is_one(&here, &there, SAME_MEAN) && !is_one(&here, &there, FAR_SHARE));
        assert!(is_one(&there, &base(276.0), 1e-9), "that is what farther means");
        let mut other = here.clone();
        other[0].rotate_left(7);
        assert!(!is_one(&here, &other, FAR_SHARE));
    }
}
