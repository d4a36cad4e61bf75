//! Where a sample lies and how wide it is, whatever strays: median absolute deviation, and the mean for
//! clocks that tick.
//!
//! It never assumes that samples are normal, and it drops values in two functions only,
//! [`tick_mean`], which counts what it dropped, and [`unlengthened`], which returns what it kept.

use alloc::vec::Vec;

use crate::moments::{mean, variance};
use crate::order::{median, median_in_place};

/// The standard deviation of a normal distribution over its median absolute deviation,
/// `1 / Phi^-1(3/4)`.
pub const MAD_TO_SD: f64 = 1.482_602_218_505_602;

/// Samples of a ticking clock are kept within this many ticks of the median in any case: the
/// true value reads as one of two neighbouring ticks, a noisy one as one or two more.
const KEPT_TICKS: f64 = 3.0;

/// Samples are kept within this many robust standard deviations of the median.
const KEPT_SDS: f64 = 4.0;

/// The median absolute deviation from the median, not scaled (times [`MAD_TO_SD`] it estimates a
/// standard deviation); `None` if there are no values or one is not finite.
#[must_use]
pub fn mad(values: &[f64]) -> Option<f64> {
    let centre = median(values)?;
    let mut deviations: Vec<f64> = values.iter().map(|v| (v - centre).abs()).collect();
    Some(median_in_place(&mut deviations))
}

/// The mean of samples of a ticking clock, outliers left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TickMean {
    /// Mean of the samples kept.
    pub mean: f64,
    /// Standard deviation of one sample kept, the clock's own rounding included; NaN for one.
    /// The standard error of `mean` is `sd / sqrt(n_kept)`.
    pub sd: f64,
    /// Samples kept.
    pub n_kept: usize,
    /// Samples given.
    pub n: usize,
}

/// Locates samples of a clock that advances in steps of `tick` (0 for one that does not).
///
/// A latency of 44 cycles timed with a clock that steps by 26 reads 26 or 52, never 44: it is
/// rounded down or up according to where in the tick it began. If it begins anywhere with equal
/// probability, it reads 52 in 18 cases of 26 and 26 in the other 8, so the MEAN is 44 exactly:
/// the phase is a dither. The median is 52 for every latency from 39 to 65, and tells nothing
/// below one tick. So the mean is taken, after leaving out what is farther from the median than
/// three ticks and four robust standard deviations, whichever is wider: interrupts and misses of
/// a farther level, which would move a mean by far more than a tick.
///
/// `None` if there are no samples, if one is not finite, or if `tick` is negative or not finite.
#[must_use]
pub fn tick_mean(samples: &[f64], tick: f64) -> Option<TickMean> {
    if !(tick >= 0.0 && tick.is_finite()) {
        return None;
    }
    let centre = median(samples)?;
    let window = (KEPT_TICKS * tick).max(KEPT_SDS * MAD_TO_SD * mad(samples)?);
    let kept: Vec<f64> = samples.iter().copied().filter(|v| (v - centre).abs() <= window).collect();
    Some(TickMean {
        // Never empty: half of the samples lie within one MAD.
        mean: mean(&kept)?,
        sd: variance(&kept).map_or(f64::NAN, libm::sqrt),
        n_kept: kept.len(),
        n: samples.len(),
    })
}

/// The values that nothing lengthened: sorted, the first run of at least `least` values of which each lies within
/// the share `gap` of the one before.
///
/// What takes a core away lengthens a duration by much more than its own scatter, and it may do so most of the time:
/// then no estimator with a breakdown point of one half finds the duration, but the undisturbed ones still lie
/// together at the lower end. Fewer than `least` may lie below them: what is too short is as wrong as what is too
/// long. Empty if no run is so long.
#[must_use]
pub fn unlengthened(values: &[f64], least: usize, gap: f64) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let mut runs = sorted.chunk_by(|a, b| b - a <= gap * a.abs());
    runs.find(|run| run.len() >= least.max(1)).map(<[f64]>::to_vec).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{normal, rng, uniform};
    use proptest::prelude::*;

    /// What a clock of step `tick` reads for `latency` begun at a random phase.
    fn ticked(latency: f64, tick: f64, n: usize, seed: u64) -> Vec<f64> {
        let mut rng = rng(seed);
        (0..n).map(|_| tick * libm::floor(uniform(&mut rng) + latency / tick)).collect()
    }

    #[test]
    fn what_is_lengthened_is_left_out_however_often_it_is() {
        let mut rng = rng(3);
        for share in [0.0, 0.3, 0.8] {
            let value = |_| {
                let held =
                    if uniform(&mut rng) < share { 300.0 * (1.0 + uniform(&mut rng)) } else { 0.0 };
                100.0 + normal(&mut rng) + held
            };
            let values: Vec<f64> = (0..200).map(value).collect();
            let kept = unlengthened(&values, 10, 0.03);
            assert!(kept.iter().all(|v| (90.0..110.0).contains(v)), "{kept:?}");
            assert!((mean(&kept).unwrap() - 100.0).abs() < 0.6, "nothing of the rest is lost");
        }
        assert!(unlengthened(&[1.0, 2.0, 4.0], 2, 0.03).is_empty());
        assert_eq!(unlengthened(&[50.0, 100.0, 101.0, 300.0], 2, 0.03), [100.0, 101.0]);
        assert!(unlengthened(&[], 0, 0.03).is_empty());
    }

    #[test]
    fn mad_agrees_with_scipy() {
        // scipy 1.17.1: stats.median_abs_deviation.
        let s = [86.0, 91.5, 88.0, 102.75, 95.25, 89.5, 300.0, 87.0, 90.0, 93.0, 94.5];
        assert_eq!(mad(&s), Some(3.5));
        assert_eq!(mad(&[]), None);
    }

    #[test]
    fn the_mean_sees_below_a_tick_where_the_median_does_not() {
        let near = ticked(42.0, 26.0, 20_000, 1);
        let far = ticked(46.0, 26.0, 20_000, 2);
        assert_eq!(median(&near), median(&far));
        let (near, far) = (tick_mean(&near, 26.0).unwrap(), tick_mean(&far, 26.0).unwrap());
        // Standard error of each: 26 * sqrt(p(1-p)) / sqrt(20000) < 0.1.
        assert!((near.mean - 42.0).abs() < 0.4 && (far.mean - 46.0).abs() < 0.4);
        assert_eq!((near.n_kept, near.n), (20_000, 20_000));
    }

    #[test]
    fn interrupts_are_left_out_and_counted() {
        let mut samples = ticked(360.0, 26.0, 5000, 3);
        samples.extend([5200.0, 9022.0, 41_600.0]);
        let found = tick_mean(&samples, 26.0).unwrap();
        assert_eq!((found.n_kept, found.n), (5000, 5003));
        assert!((found.mean - 360.0).abs() < 0.8);
    }

    #[test]
    fn no_answer_for_a_clock_that_cannot_be() {
        assert_eq!(tick_mean(&[1.0], -1.0), None);
        assert_eq!(tick_mean(&[1.0], f64::NAN), None);
        assert_eq!(tick_mean(&[], 1.0), None);
        assert!(tick_mean(&[7.0], 0.0).unwrap().sd.is_nan());
    }

    proptest! {
        #[test]
        fn shifting_the_samples_shifts_the_answer(
            samples in prop::collection::vec(0u16..2000, 1..100),
            shift in 0u16..2000,
            tick in 1u8..40,
        ) {
            let at = |shift: f64| {
                let moved: Vec<f64> = samples.iter().map(|s| f64::from(*s) + shift).collect();
                tick_mean(&moved, f64::from(tick)).unwrap()
            };
            let (a, b) = (at(0.0), at(f64::from(shift)));
            prop_assert_eq!(a.n_kept, b.n_kept);
            prop_assert!((b.mean - a.mean - f64::from(shift)).abs() < 1e-9);
            prop_assert!(2 * a.n_kept >= a.n);
        }

        #[test]
        fn variance_grows_with_the_square(
            values in prop::collection::vec(-1e3..1e3f64, 2..100),
            scale in 0.1..10.0f64,
        ) {
            let scaled: Vec<f64> = values.iter().map(|v| v * scale).collect();
            let (a, b) = (variance(&values).unwrap(), variance(&scaled).unwrap());
            prop_assert!((b - a * scale * scale).abs() <= 1e-9 * (b.abs() + 1e-9));
            prop_assert!((mad(&scaled).unwrap() - mad(&values).unwrap() * scale).abs() < 1e-8);
        }
    }
}
