//! Which base of the dictionary a core wears now: the question that a moved vCPU raises.
//!
//! The codes of some pages are known; a few loads from those pages show which base predicts them.
//! The latencies may be shifted as a whole (another clock rate, another timer cost), so each base
//! is compared with an offset of its own. Of bases with one pattern (cores of two regions may see memory alike, a
//! constant apart) the one that needs least of it is likeliest. It only compares: whether to learn a new base is the
//! caller's decision, from the correlation.

use crate::model::{Code, PatternTable, narrow};
use crate::penalties::Noise;

/// One timed load of a line whose page's code is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CodedSample {
    /// Code of the line's page.
    pub code: Code,
    /// The line's number modulo 256.
    pub line: u8,
    /// Latency, the timer's own cost taken off.
    pub cycles: f32,
}

/// The base that fits a set of samples best.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BaseMatch {
    /// Its place in the dictionary.
    pub index: usize,
    /// Posterior probability that another base of the dictionary fits better.
    pub error: f32,
    /// Correlation between its predictions and the samples. `None` where it predicts the same
    /// latency for every sample. Far below what the noise allows, no base of the dictionary fits.
    pub correlation: Option<f32>,
    /// Samples minus predictions, robust mean, cycles.
    pub offset_cycles: f32,
    /// Samples that the base has a prediction for.
    pub samples: u32,
}

/// Rounds of reweighting of the offset; it settles to a tenth of its own error in three.
const OFFSET_ROUNDS: usize = 3;

/// What latencies are usually shifted by, as a share of a base's mean. Offsets have a Cauchy density of that width.
/// Where patterns differ they decide nothing, since its tails give any offset for a few nats; between bases of one
/// pattern they decide all.
const USUAL_SHIFT: f64 = 0.05;

/// Compares the samples with each base of a dictionary. `None` without bases or samples.
/// Costs about ten operations a sample and base.
#[must_use]
pub fn identify_base<'t>(
    bases: impl IntoIterator<Item = &'t PatternTable>,
    samples: &[CodedSample],
    noise: Noise,
) -> Option<BaseMatch> {
    let mut contest = BaseContest::new();
    for base in bases {
        contest.add(base, samples, noise);
    }
    contest.best()
}

/// The same, base by base: for a caller who may not compare all of them at once.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BaseContest {
    best: Option<(BaseMatch, f64)>,
    /// Sum of the likelihoods of the other bases, relative to the best one's.
    others: f64,
    compared: usize,
}

impl BaseContest {
    /// No base was compared yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { best: None, others: 0.0, compared: 0 }
    }

    /// Compares the samples, which are to be the same each time, with the next base.
    pub fn add(&mut self, base: &PatternTable, samples: &[CodedSample], noise: Noise) {
        let index = self.compared;
        self.compared += 1;
        let Some((mut found, penalty)) = compare(base, samples, noise) else { return };
        found.index = index;
        match &self.best {
            Some((_, least)) if penalty >= *least => self.others += libm::exp(least - penalty),
            Some((_, least)) => {
                self.others = (self.others + 1.0) * libm::exp(penalty - least);
                self.best = Some((found, penalty));
            }
            None => self.best = Some((found, penalty)),
        }
    }

    /// Bases that were compared.
    #[must_use]
    pub const fn compared(&self) -> usize {
        self.compared
    }

    /// The base that fits best of those compared.
    #[must_use]
    pub fn best(&self) -> Option<BaseMatch> {
        let (found, _) = self.best?;
        Some(BaseMatch { error: narrow(self.others / (1.0 + self.others)), ..found })
    }
}

/// Fits the offset of one base and returns its total penalty in nats.
fn compare(base: &PatternTable, samples: &[CodedSample], noise: Noise) -> Option<(BaseMatch, f64)> {
    let sd = f64::from(noise.sd_cycles);
    let (huber, cap) = (f64::from(noise.huber), f64::from(noise.cap));
    let pairs = || {
        samples.iter().filter_map(|sample| {
            let predicted = base.latency_cycles(sample.code, sample.line);
            let known = predicted.is_finite() && sample.cycles.is_finite();
            known.then_some((f64::from(predicted), f64::from(sample.cycles)))
        })
    };
    let count = pairs().count();
    if count == 0 {
        return None;
    }
    let mut offset = starting_offset(pairs());
    for _ in 0..OFFSET_ROUNDS {
        let (mut weights, mut sum) = (0.0, 0.0);
        for (predicted, cycles) in pairs() {
            let residual = cycles - predicted - offset;
            let distance = (residual / sd).abs();
            let weight = if distance <= huber { 1.0 } else { huber / distance };
            weights += weight;
            sum += weight * residual;
        }
        offset += sum / weights;
    }
    let misfit: f64 = pairs()
        .map(|(predicted, cycles)| {
            let distance = ((cycles - predicted - offset) / sd).abs();
            let inner = distance.min(huber);
            (inner * (distance - 0.5 * inner)).min(cap)
        })
        .sum();
    let found = BaseMatch {
        index: 0,
        error: 0.0,
        correlation: correlation(pairs(), offset, sd * 4.0),
        offset_cycles: narrow(offset),
        samples: u32::try_from(count).unwrap_or(u32::MAX),
    };
    let mean = pairs().map(|(predicted, _)| predicted).sum::<f64>() / f64::from(found.samples);
    Some((found, misfit + shift_nats(offset, mean)))
}

/// What an offset costs beside none, for a base of this mean.
fn shift_nats(offset: f64, mean: f64) -> f64 {
    let usual = USUAL_SHIFT * mean;
    if usual > 0.0 { libm::log1p((offset / usual) * (offset / usual)) } else { 0.0 }
}

/// Mean residual: where the reweighting starts.
fn starting_offset(pairs: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for (predicted, cycles) in pairs {
        sum += cycles - predicted;
        count += 1.0;
    }
    sum / count
}

/// Pearson correlation, residuals clipped at `clip` so that one outlier cannot hide the rest.
fn correlation(pairs: impl Iterator<Item = (f64, f64)>, offset: f64, clip: f64) -> Option<f32> {
    let (mut n, mut x, mut y, mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
    for (predicted, cycles) in pairs {
        let seen = predicted + (cycles - predicted - offset).clamp(-clip, clip);
        n += 1.0;
        x += predicted;
        y += seen;
        xx += predicted * predicted;
        yy += seen * seen;
        xy += predicted * seen;
    }
    let (var_x, var_y) = (xx / n - (x / n) * (x / n), yy / n - (y / n) * (y / n));
    if var_x <= 1e-9 * xx / n || var_y <= 1e-9 * yy / n {
        return None;
    }
    Some(narrow((xy / n - (x / n) * (y / n)) / libm::sqrt(var_x * var_y)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Period;
    use std::vec::Vec;

    fn base(step: usize) -> PatternTable {
        let pattern: Vec<f32> =
            (0..64).map(|i| 60.0 + f32::from(u8::try_from(i * step % 64).unwrap())).collect();
        PatternTable::new(Period::Lines64, [pattern.as_slice()]).unwrap()
    }

    /// Samples of `truth`, shifted, with a deterministic jitter of up to +-`jitter` and one load in
    /// ten far out.
    fn samples(truth: &PatternTable, count: u8, shift: f32, jitter: f32) -> Vec<CodedSample> {
        (0..count)
            .map(|i| {
                let (code, line) = (Code(u16::from(i % 64)), i.wrapping_mul(29));
                let wobble = f32::from(i.wrapping_mul(97)) / 127.5 - 1.0;
                let tail = if i % 10 == 9 { 500.0 } else { 0.0 };
                let cycles = truth.latency_cycles(code, line) + shift + jitter * wobble + tail;
                CodedSample { code, line, cycles }
            })
            .collect()
    }

    #[test]
    fn the_base_that_is_worn_is_found_whatever_the_offset() {
        let bases = [base(37), base(11), base(23)];
        for (truth, base) in bases.iter().enumerate() {
            for shift in [0.0, -13.0, 40.0] {
                let samples = samples(base, 60, shift, 10.0);
                let found = identify_base(&bases, &samples, Noise::heavy_tailed(8.0)).unwrap();
                assert_eq!(found.index, truth);
                assert!(found.error < 1e-3, "{found:?}");
                assert!(found.correlation.unwrap() > 0.8, "{found:?}");
                assert!((found.offset_cycles - shift).abs() < 6.0, "{found:?}");
                assert_eq!(found.samples, 60);
            }
        }
    }

    #[test]
    fn a_strange_base_correlates_with_none() {
        let samples = samples(&base(13), 60, 0.0, 10.0);
        let bases = [base(37), base(11)];
        let found = identify_base(&bases, &samples, Noise::heavy_tailed(8.0)).unwrap();
        assert!(found.correlation.unwrap() < 0.6, "{found:?}");
    }

    #[test]
    fn two_equal_bases_cannot_be_told_apart() {
        let bases = [base(37), base(37)];
        let samples = samples(&bases[0], 60, 0.0, 5.0);
        let found = identify_base(&bases, &samples, Noise::heavy_tailed(8.0)).unwrap();
        assert!((found.error - 0.5).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn of_one_pattern_at_two_distances_the_nearer_one_is_worn() {
        let near = base(37);
        let values: Vec<f32> = near.values()[..64].iter().map(|cycles| cycles + 45.0).collect();
        let far = PatternTable::new(Period::Lines64, [values.as_slice()]).unwrap();
        let bases = [base(11), near, far];
        for (truth, shift) in [(1, 0.0), (1, -4.0), (2, 3.0), (2, 8.0)] {
            let samples = samples(&bases[truth], 60, shift, 10.0);
            let found = identify_base(&bases, &samples, Noise::heavy_tailed(8.0)).unwrap();
            assert_eq!(found.index, truth, "{found:?}");
            assert!(found.error < 0.2, "{found:?}");
        }
    }

    #[test]
    fn nothing_gives_nothing() {
        assert_eq!(identify_base(&[base(3)], &[], Noise::heavy_tailed(1.0)), None);
        let samples = samples(&base(3), 10, 0.0, 0.0);
        assert_eq!(identify_base(&[], &samples, Noise::heavy_tailed(1.0)), None);
        let flat = PatternTable::new(Period::Lines64, [[9.0_f32; 64].as_slice()]).unwrap();
        let found = identify_base(&[flat], &samples, Noise::heavy_tailed(9.0)).unwrap();
        assert_eq!(found.correlation, None);
    }
}
