//! From raw samples to one number a line, and from lines to a cell.
//!
//! Single samples are multiples of the clock's step, so a line's value is a mean, not a median
//! (see `isochrone_stats::tick_mean`). What was timed too much is taken off here and nowhere else.

use std::sync::Arc;

use isochrone_atlas_store::contents::Cell;
use isochrone_stats::{Summary, median, student_t, tick_mean};
use isochrone_units::{CoreId, LineAddr};

use super::scene::Samples;
use crate::target::TargetClock;

/// A repeat that takes this many times the quickest of its scene ...
const LONG: f64 = 2.0;
/// ... and so many seconds more was interrupted.
const LONGER_S: f64 = 50e-6;
/// Repeats of a scene without an interruption, at least, for a round to count.
pub const REPEATS_MIN: usize = 4;

/// Why something has no number although it was tried.
pub const INTERRUPTED: &str =
    "somebody else had one of the cores nearly all the time; stop what else runs";

/// Everything measured of one ordered pair.
#[derive(Clone, Debug, PartialEq)]
pub struct PairSeries {
    /// Holds the line.
    pub owner: CoreId,
    /// Asks for it.
    pub asker: CoreId,
    /// The lines, which all pairs of a lane have.
    pub lines: Arc<[LineAddr]>,
    /// `[sweep][line]`, mean nanoseconds.
    pub sweeps_ns: Vec<Vec<f64>>,
    /// For each sweep how often the reference had changed for good before it.
    pub epochs: Vec<u32>,
}

impl PairSeries {
    /// Keeps one more sweep.
    pub fn push(&mut self, epoch: u32, line_ns: Vec<f64>) {
        self.sweeps_ns.push(line_ns);
        self.epochs.push(epoch);
    }

    /// The sweeps of the epoch that has most of them (the latest of several): values from before
    /// and after a core moved are two truths, and their middle is neither.
    pub fn settled(&self) -> impl Iterator<Item = &Vec<f64>> {
        let sweeps = |epoch: u32| self.epochs.iter().filter(move |e| **e == epoch).count();
        let most = self.epochs.iter().copied().max_by_key(|&epoch| (sweeps(epoch), epoch));
        let of_most = move |(_, epoch): &(&Vec<f64>, &u32)| Some(**epoch) == most;
        self.sweeps_ns.iter().zip(&self.epochs).filter(of_most).map(|(sweep, _)| sweep)
    }

    /// One value a line: the median over the settled sweeps. Empty before the first sweep.
    #[must_use]
    pub fn line_ns(&self) -> Vec<f64> {
        let settled: Vec<&Vec<f64>> = self.settled().collect();
        let mut values = Vec::with_capacity(settled.len());
        let of = |line: usize| {
            values.clear();
            values.extend(settled.iter().filter_map(|sweep| sweep.get(line).copied()));
            median(&values)
        };
        (0..self.lines.len()).filter_map(of).collect()
    }

    /// Half of the 95 % interval of the mean over settled sweeps of the median over lines, as a
    /// share of it; `None` before the third.
    #[must_use]
    pub fn half_width(&self) -> Option<f64> {
        let medians: Vec<f64> = self.settled().filter_map(|sweep| median(sweep)).collect();
        relative_half_width(&medians)
    }
}

/// Half of the 95 % interval of the mean of `values`, as a share of the mean; `None` for fewer
/// than three values or a mean that is not positive.
#[must_use]
pub fn relative_half_width(values: &[f64]) -> Option<f64> {
    let summary = Summary::of(values).filter(|s| s.n >= 3 && s.mean > 0.0)?;
    let count: f64 = values.iter().map(|_| 1.0).sum();
    Some(student_t(summary.n - 1) * summary.sd / count.sqrt() / summary.mean)
}

/// Mean nanoseconds of each timed thing, the first `warm` repeats left out and the timer's cost
/// taken off. `divisor` is how many of the wanted quantity one sample holds.
///
/// `None` if nothing is left.
#[must_use]
pub fn means_ns(
    samples: &Samples,
    clock: &TargetClock,
    warm: usize,
    divisor: f64,
) -> Option<Vec<f64>> {
    let overhead = samples.overhead.unwrap_or(clock.overhead);
    let one = |index: usize| {
        let raw: Vec<f64> = samples.of(index).skip(warm).map(|c| f64::from(c.0)).collect();
        let mean = tick_mean(&raw, f64::from(clock.tick))?.mean;
        Some((mean - overhead) / divisor * 1e9 / clock.hz)
    };
    (0..samples.per_repeat).map(one).collect()
}

/// Seconds of the quickest repeat of scenes that are alike; infinite of none.
pub fn quickest_s<'s>(alike: impl IntoIterator<Item = &'s Samples>) -> f64 {
    alike.into_iter().flat_map(|of| &of.took_s).copied().fold(f64::INFINITY, f64::min)
}

/// The same as [`means_ns`], of repeats that nobody interrupted: a core that is taken away between two steps loses the
/// lines that it was to hand over, and what is timed then is memory. Such a repeat takes much longer than the quickest
/// one needs. `None` if fewer than [`REPEATS_MIN`] are left.
#[must_use]
pub fn whole_means_ns(samples: &Samples, clock: &TargetClock, quickest_s: f64) -> Option<Vec<f64>> {
    let kept = samples.within((LONG * quickest_s).max(quickest_s + LONGER_S));
    let enough = kept.took_s.len() >= REPEATS_MIN.min(samples.took_s.len());
    enough.then(|| means_ns(&kept, clock, 0, 1.0)).flatten()
}

/// A cell over values; `None` if there are none.
#[must_use]
pub fn cell(values: &[f64]) -> Option<Cell> {
    let s = Summary::of(values)?;
    let n = u32::try_from(s.n).unwrap_or(u32::MAX);
    Some(Cell { median: s.median, lo: s.lo, hi: s.hi, p5: s.p5, p95: s.p95, n })
}

#[cfg(test)]
mod tests {
    use super::*;
    use isochrone_units::Cycles;

    const CLOCK: TargetClock = TargetClock { hz: 2e9, tick: 26, overhead: 60.0 };

    #[test]
    fn the_mean_sees_below_the_tick_and_leaves_warm_up_and_outliers_out() {
        // 104 and 130 in equal parts: 117 cycles, 57 without the timer, 28.5 ns.
        let mut raw = vec![Cycles(5000), Cycles(900)];
        raw.extend((0..100).map(|i| Cycles(if i % 2 == 0 { 104 } else { 130 })));
        raw.push(Cycles(90_000));
        let samples = Samples { per_repeat: 1, raw, ..Samples::default() };
        let means = means_ns(&samples, &CLOCK, 2, 1.0).unwrap();
        assert!((means[0] - 28.5).abs() < 1e-9, "{means:?}");
        let halves = means_ns(&samples, &CLOCK, 2, 2.0).unwrap();
        assert!((halves[0] - 14.25).abs() < 1e-9);
        assert_eq!(means_ns(&samples, &CLOCK, 200, 1.0), None);
        let measured = Samples { overhead: Some(77.0), ..samples };
        let less = means_ns(&measured, &CLOCK, 2, 1.0).unwrap();
        assert!((less[0] - 20.0).abs() < 1e-9, "the overhead measured meanwhile counts");
    }

    #[test]
    fn repeats_that_were_interrupted_are_left_out_if_enough_are_left() {
        // Eight repeats of two things; the last four waited for a core, and their lines came from memory.
        let raw = |at: u32| Cycles(if at < 8 { 260 } else { 600 });
        let took_s = |at: u32| if at < 4 { 9e-6 } else { 2e-3 };
        let samples = Samples {
            per_repeat: 2,
            raw: (0..16).map(raw).collect(),
            overhead: None,
            took_s: (0..8).map(took_s).collect(),
        };
        let means = whole_means_ns(&samples, &CLOCK, quickest_s([&samples])).unwrap();
        assert_eq!(means, [100.0, 100.0]);
        assert_eq!(whole_means_ns(&samples.after(1), &CLOCK, 9e-6), None, "three are too few");
        assert!(whole_means_ns(&samples.after(6), &CLOCK, 2e-3).is_some(), "all there are");
    }

    #[test]
    fn the_interval_shrinks_with_the_sweeps() {
        let of = |n: usize| (0..n).map(|i| if i % 2 == 0 { 99.0 } else { 101.0 }).collect();
        let (few, many): (Vec<f64>, Vec<f64>) = (of(4), of(40));
        assert!(relative_half_width(&few).unwrap() > 3.0 * relative_half_width(&many).unwrap());
        assert_eq!(relative_half_width(&[1.0, 1.0]), None);
    }

    fn series(sweeps: &[(u32, [f64; 2])]) -> PairSeries {
        let mut series = PairSeries {
            owner: CoreId(0),
            asker: CoreId(1),
            lines: Arc::new([LineAddr(0), LineAddr(1)]),
            sweeps_ns: Vec::new(),
            epochs: Vec::new(),
        };
        sweeps.iter().for_each(|(epoch, lines)| series.push(*epoch, lines.to_vec()));
        series
    }

    #[test]
    fn a_line_is_the_median_over_sweeps() {
        let three = series(&[(0, [10.0, 20.0]), (0, [11.0, 90.0]), (0, [12.0, 21.0])]);
        assert_eq!(three.line_ns(), [11.0, 21.0]);
        assert!(series(&[]).line_ns().is_empty());
    }

    #[test]
    fn what_was_measured_before_a_move_is_not_mixed_with_what_came_after() {
        let moved = series(&[(0, [30.0, 31.0]), (1, [130.0, 131.0]), (1, [132.0, 133.0])]);
        assert_eq!(moved.line_ns(), [131.0, 132.0]);
        let tied = series(&[(0, [30.0, 31.0]), (1, [130.0, 131.0])]);
        assert_eq!(tied.line_ns(), [130.0, 131.0], "the latest");
    }
}
