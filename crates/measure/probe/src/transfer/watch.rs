//! Notices that the machine under an experiment changed: the same reference is measured again and
//! again, line by line, and a vector that is too far from the first ones is a jump.
//!
//! The whole vector is compared, not its mean: a virtual CPU that the host moves sees the same
//! lines in another order of nearness, often with the same mean. Pure; measures nothing itself.

use isochrone_stats::{MAD_TO_SD, mad, mean, median};

/// Measurements that say what is normal before anything is judged.
pub const LEARN: usize = 6;

/// Distances remembered, so that a slow drift of the noise itself is followed.
const REMEMBERED: usize = 64;

/// A distance this many standard deviations above its usual value is a jump.
pub const JUMP_SIGMAS: f64 = 5.0;

/// The standard deviation of a distance is not believed to be below this share of its usual
/// value: the root mean square of 32 or more independent lines has a relative standard deviation
/// of 1 / sqrt(2 * 32) = 1/8 or less, and lines are not wholly independent.
const SIGMA_SHARE_MIN: f64 = 0.25;

/// All lines together may shift by this share of their mean without being a jump: the core's own
/// clock wanders by a few percent. A move between cores shifts them by far more, or not alike.
const SHIFT_SHARE: f64 = 0.05;

/// What a new measurement of the reference says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// Nothing moved.
    Steady,
    /// It is this many standard deviations from what was usual.
    Jumped {
        /// Standard deviations.
        sigmas: f64,
    },
}

/// What is usual for the reference.
#[derive(Clone, Debug)]
pub struct Watch {
    usual: Vec<f64>,
    distances: Vec<f64>,
}

impl Watch {
    /// Learns from [`LEARN`] or more measurements of the same lines.
    ///
    /// `None` if there are fewer than 3, or they differ in length.
    #[must_use]
    pub fn learn(measurements: &[Vec<f64>]) -> Option<Self> {
        let lines = measurements.first()?.len();
        if measurements.len() < 3 || measurements.iter().any(|m| m.len() != lines) {
            return None;
        }
        let usual = (0..lines)
            .map(|line| median(&measurements.iter().map(|m| m[line]).collect::<Vec<_>>()))
            .collect::<Option<Vec<_>>>()?;
        let distances = measurements.iter().map(|m| distance(m, &usual)).collect();
        Some(Self { usual, distances })
    }

    /// Judges a measurement, and remembers it if it is usual.
    pub fn judge(&mut self, measurement: &[f64]) -> Verdict {
        let found = distance(measurement, &self.usual);
        let (Some(centre), Some(spread)) = (median(&self.distances), mad(&self.distances)) else {
            return Verdict::Steady;
        };
        let sigma = (spread * MAD_TO_SD).max(centre * SIGMA_SHARE_MIN);
        let sigmas = (found - centre) / sigma.max(f64::MIN_POSITIVE);
        if sigmas > JUMP_SIGMAS {
            return Verdict::Jumped { sigmas };
        }
        if self.distances.len() == REMEMBERED {
            self.distances.remove(0);
        }
        self.distances.push(found);
        Verdict::Steady
    }
}

/// How far two measurements are apart: the root mean square difference of their lines, of which
/// a common shift counts only beyond [`SHIFT_SHARE`]. Infinite for vectors of different lengths.
fn distance(a: &[f64], b: &[f64]) -> f64 {
    let (Some(mean_a), Some(mean_b)) = (mean(a), mean(b)) else { return f64::INFINITY };
    if a.len() != b.len() {
        return f64::INFINITY;
    }
    let shift = mean_a - mean_b;
    let squares: Vec<f64> =
        a.iter().zip(b).map(|(x, y)| (x - y - shift) * (x - y - shift)).collect();
    let beyond = (shift.abs() - SHIFT_SHARE * mean_b.abs()).max(0.0);
    (mean(&squares).unwrap_or(f64::INFINITY) + beyond * beyond).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use isochrone_stats::{normal, rng, shuffle};

    fn noisy(truth: &[f64], seed: u64) -> Vec<f64> {
        let mut rng = rng(seed);
        truth.iter().map(|t| t + 0.7 * normal(&mut rng)).collect()
    }

    fn truth() -> Vec<f64> {
        (0..64_u32).map(|i| 120.0 + f64::from(i * 37 % 64) / 4.0).collect()
    }

    #[test]
    fn noise_alone_is_steady() {
        let first: Vec<_> = (0..6).map(|seed| noisy(&truth(), seed)).collect();
        let mut watch = Watch::learn(&first).unwrap();
        for seed in 100..1100 {
            assert_eq!(watch.judge(&noisy(&truth(), seed)), Verdict::Steady, "seed {seed}");
        }
    }

    #[test]
    fn the_same_values_in_another_order_are_a_jump() {
        let first: Vec<_> = (0..6).map(|seed| noisy(&truth(), seed)).collect();
        let mut watch = Watch::learn(&first).unwrap();
        let mut moved = truth();
        shuffle(&mut moved, &mut rng(3));
        let verdict = watch.judge(&noisy(&moved, 9));
        assert!(matches!(verdict, Verdict::Jumped { sigmas } if sigmas > JUMP_SIGMAS));
        assert_eq!(watch.judge(&noisy(&truth(), 10)), Verdict::Steady, "and back again");
    }

    #[test]
    fn a_small_shift_of_all_lines_is_no_jump_and_a_large_one_is() {
        let first: Vec<_> = (0..6).map(|seed| noisy(&truth(), seed)).collect();
        let mut watch = Watch::learn(&first).unwrap();
        let scaled = |factor: f64| truth().iter().map(|t| t * factor).collect::<Vec<_>>();
        assert_eq!(watch.judge(&noisy(&scaled(1.03), 7)), Verdict::Steady);
        assert_ne!(watch.judge(&noisy(&scaled(1.15), 7)), Verdict::Steady);
    }

    #[test]
    fn too_little_teaches_nothing() {
        assert!(Watch::learn(&[vec![1.0], vec![1.0]]).is_none());
        assert!(Watch::learn(&[vec![1.0], vec![1.0], vec![]]).is_none());
    }
}
