//! Sets of counts by their corners: who covers more of one class without less of the other.

use super::level::Counts;

/// The corners of everything that one of `a` and one of `b` cover together, up to `all`.
pub(super) fn sum(a: &[Counts], b: &[Counts], all: Counts) -> Vec<Counts> {
    let mut sums = Vec::with_capacity(a.len() * b.len());
    for x in a {
        for y in b {
            sums.push([(x[0] + y[0]).min(all[0]), (x[1] + y[1]).min(all[1])]);
        }
    }
    pareto(sums)
}

/// The corners: what no other covers.
pub(super) fn pareto(mut points: Vec<Counts>) -> Vec<Counts> {
    points.sort_unstable_by(|a, b| b.cmp(a));
    let mut corners: Vec<Counts> = Vec::new();
    for point in points {
        if corners.last().is_none_or(|last| point[1] > last[1]) {
            corners.push(point);
        }
    }
    corners
}
