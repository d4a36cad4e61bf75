//! Intervals of groups that ran a few times only. Pure.
//!
//! The range of five runs or fewer does not cover their median in 95 of 100 cases, and that of one run has no width.
//! How much a run is off is taken to be the same share of the bandwidth in all groups: what all groups that ran more
//! than once say of it together has more degrees of freedom than any of them, and holds for those that ran once.

use std::f64::consts::FRAC_PI_2;

use isochrone_atlas_store::contents::Cell;
use isochrone_stats::{mean, student_t};

use crate::transfer::series::cell;

/// From so many runs on their order gives an interval that covers ([`isochrone_stats::Summary`]).
const ORDERED_MIN: usize = 6;

/// How much runs of one group differ, as a share of their mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    variance: f64,
    degrees: usize,
}

impl Spread {
    /// Of runs by group; `None` where no group ran twice.
    pub(super) fn of<'r>(all: impl Iterator<Item = &'r Vec<f64>>) -> Option<Self> {
        let (mut squares, mut degrees) = (0.0, 0);
        for runs in all.filter(|runs| runs.len() > 1) {
            let centre = mean(runs)?;
            squares += runs.iter().map(|run| (run / centre - 1.0).powi(2)).sum::<f64>();
            degrees += runs.len() - 1;
        }
        (degrees > 0).then(|| Self { variance: squares / degrees as f64, degrees })
    }

    /// The cell of a group, with an interval that covers.
    pub(super) fn cell(this: Option<Self>, runs: &[f64]) -> Option<Cell> {
        let ordered = cell(runs)?;
        let Some(spread) = this.filter(|_| runs.len() < ORDERED_MIN) else { return Some(ordered) };
        // A median of many normal values has pi / 2 times the variance of their mean, one of few has less.
        let deviation = (spread.variance * FRAC_PI_2 / runs.len() as f64).sqrt();
        let half = student_t(spread.degrees) * deviation * ordered.median;
        let lo = (ordered.median - half).max(0.0).min(ordered.lo);
        Some(Cell { lo, hi: (ordered.median + half).max(ordered.hi), ..ordered })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_has_the_interval_that_follows_from_other_groups() {
        let all = [vec![10.0], vec![20.0, 22.0], vec![5.0; 3]];
        let spread = Spread::of(all.iter()).unwrap();
        assert_eq!(spread.degrees, 3);
        let one = Spread::cell(Some(spread), &all[0]).unwrap();
        assert!(one.lo < 9.0 && one.hi > 11.0 && one.n == 1, "{one:?}");
        assert_eq!(Spread::of(all[..1].iter()), None);
        assert_eq!(Spread::cell(None, &all[0]), cell(&all[0]), "nothing is known");
        assert_eq!(Spread::cell(Some(spread), &[]), None);
        let many: Vec<f64> = (0..7).map(f64::from).collect();
        assert_eq!(Spread::cell(Some(spread), &many), cell(&many), "their order says it");
    }

    #[test]
    fn what_ran_lies_in_the_interval() {
        let wild = [1.0, 3.0];
        let steady = vec![8.0; 20];
        let spread = Spread::of([&steady].into_iter());
        let found = Spread::cell(spread, &wild).unwrap();
        assert_eq!((found.lo, found.hi), (1.0, 3.0));
    }
}
