//! Ratios of two arms with their intervals, and when a difference is one.
//!
//! A ratio is taken within each block, where both arms saw the same machine; its median and 95 %
//! bootstrap interval are over blocks. Above 1 the arm is better than what it is compared with. A ratio lies within
//! one reading, or names both wherever it is shown.

use isochrone_stats::{bootstrap_paired_ratio_ci, wilcoxon_signed_rank};
use isochrone_units::{Reading, Readings};
use serde::{Serialize, Serializer};

use super::series::Series;

/// Blocks that an interval of 95 % takes: of fewer even the least and the most, which is what resampling gives
/// then, hold the median less often (of five in 94 of 100 cases, of three in 75).
pub const BLOCKS_LEAST: usize = 5;
/// Resamples: enough for the ends of an interval to stand still in the third digit.
const RESAMPLES: usize = 4000;
/// Confidence of every interval.
const LEVEL: f64 = 0.95;

/// How many times one is better than the other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ratio {
    /// Median over blocks.
    pub median: f64,
    /// Lower end of the 95 % interval.
    pub lo: f64,
    /// Upper end.
    pub hi: f64,
    /// Blocks that it is of; with fewer than [`BLOCKS_LEAST`] the ends are the least and the most, and no interval.
    pub blocks: usize,
    /// Where both numbers were read. JSON has it where they differ, and has `reading` of the whole report else.
    #[serde(rename = "reading", skip_serializing_if = "is_one", serialize_with = "words")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub readings: Readings,
}

/// Costs of an arm by block, and where they were read.
#[derive(Clone, Copy, Debug)]
pub struct Costs<'a> {
    by_block: &'a [f64],
    reading: Reading,
}

impl<'a> Costs<'a> {
    /// Timed on this machine.
    pub const fn measured(by_block: &'a [f64]) -> Self {
        Self { by_block, reading: Reading::Measured }
    }

    /// Worked out from other numbers.
    pub const fn predicted(by_block: &'a [f64]) -> Self {
        Self { by_block, reading: Reading::Predicted }
    }
}

/// What a ratio says beside its control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The whole interval lies above 1 and above the control.
    Gain,
    /// The whole interval lies below 1 and below the control.
    Loss,
    /// Neither of these two.
    NoDifference,
    /// Of so few blocks nothing can be said.
    TooFew,
}

impl Ratio {
    /// How many times cheaper `arm` was than `base`. `None` without blocks, or where a cost is
    /// not a positive number.
    pub fn of(series: &Series, arm: &str, base: &str, seed: u64) -> Option<Self> {
        Self::of_at(series, arm, base, seed, LEVEL)
    }

    /// The same with an interval of another confidence than 0.95: one of several that are to hold together.
    pub fn of_at(series: &Series, arm: &str, base: &str, seed: u64, level: f64) -> Option<Self> {
        let of = |name: &str| series.arm(name).map(|arm| series.block_means(arm));
        Self::paired_at(Costs::measured(&of(base)?), Costs::measured(&of(arm)?), seed, level)
    }

    /// `above[i] / under[i]`, one pair a block.
    pub fn paired(above: Costs<'_>, under: Costs<'_>, seed: u64) -> Option<Self> {
        Self::paired_at(above, under, seed, LEVEL)
    }

    fn paired_at(above: Costs<'_>, under: Costs<'_>, seed: u64, level: f64) -> Option<Self> {
        let (over, base) = (above.by_block, under.by_block);
        let found = bootstrap_paired_ratio_ci(over, base, RESAMPLES, level, seed)?;
        let readings = Readings::of(above.reading, under.reading);
        let blocks = over.len();
        Some(Self { median: found.median, lo: found.lo, hi: found.hi, blocks, readings })
    }

    /// Whether there are enough blocks for an interval.
    pub const fn has_interval(&self) -> bool {
        self.blocks >= BLOCKS_LEAST
    }

    /// `1.214 [1.208, 1.221]`, or `1.214 (2 blocks)` where these are too few for an interval. Where the numbers were
    /// read in two ways, somebody else has to say so.
    pub fn interval(&self) -> String {
        if self.has_interval() {
            return format!("{:.3} [{:.3}, {:.3}]", self.median, self.lo, self.hi);
        }
        let many = if self.blocks == 1 { "block" } else { "blocks" };
        format!("{:.3} ({} {many})", self.median, self.blocks)
    }

    /// What it says, given how far an arm may be from itself.
    pub fn verdict(self, control: Option<Self>) -> Verdict {
        let (low, high) = control.map_or((1.0, 1.0), |c| (c.lo.min(1.0), c.hi.max(1.0)));
        if !self.has_interval() {
            Verdict::TooFew
        } else if self.lo > high {
            Verdict::Gain
        } else if self.hi < low {
            Verdict::Loss
        } else {
            Verdict::NoDifference
        }
    }
}

impl std::fmt::Display for Ratio {
    /// Its [interval](Ratio::interval), and `measured over predicted` behind it where the numbers were read in two
    /// ways.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.interval())?;
        if is_one(&self.readings) { Ok(()) } else { write!(f, " {}", self.readings) }
    }
}

/// Whether both numbers were read in one way.
const fn is_one(readings: &Readings) -> bool {
    matches!(readings, Readings::One(_))
}

fn words<S: Serializer>(readings: &Readings, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(readings)
}

/// How surprising it would be that `arm` and `base` differ as much as they do if nothing set them apart: two-sided, of
/// the logarithms of their costs by block (Wilcoxon's signed ranks). `None` without blocks, or where a cost is not a
/// positive number.
pub fn p_value(series: &Series, arm: &str, base: &str) -> Option<f64> {
    let of = |name: &str| -> Option<Vec<f64>> {
        Some(series.block_means(series.arm(name)?).into_iter().map(f64::ln).collect())
    };
    Some(wilcoxon_signed_rank(&of(base)?, &of(arm)?)?.p)
}

/// The least blocks of which [`p_value`], corrected for so many comparisons, can be as small as `alpha`: of `n` blocks
/// that all agree it is 2 / 2^n.
pub fn blocks_for(comparisons: usize, alpha: f64) -> usize {
    let least = (2.0 * comparisons.max(1) as f64 / alpha).log2().ceil();
    (1_usize..64).find(|blocks| *blocks as f64 >= least).unwrap_or(64)
}

/// The geometric mean of ratios; `None` of none.
pub fn geometric_mean(ratios: &[f64]) -> Option<f64> {
    let positive = ratios.iter().all(|r| r.is_finite() && *r > 0.0);
    let sum: f64 = ratios.iter().map(|r| r.ln()).sum();
    (positive && !ratios.is_empty()).then(|| (sum / ratios.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use anyhow::Result;
    use isochrone_stats::{normal, rng};

    use super::*;

    /// Arms of known cost on a machine that wanders by a third and is noisy by 2 %.
    fn fake(costs: &[(&str, f64)], blocks: u32, seed: u64) -> Series {
        let names: Vec<String> = costs.iter().map(|(name, _)| (*name).to_owned()).collect();
        let mut noise = rng(seed);
        let mut at = 0.0_f64;
        let mut measure = |arm: usize| -> Result<Option<f64>> {
            at += 1.0;
            let wander = 1.0 + 0.3 * (at / 40.0).sin();
            Ok(Some(costs[arm].1 * wander * (1.0 + 0.02 * normal(&mut noise))))
        };
        let mut series = Series::new(&names, "s");
        for _ in 0..blocks {
            series.add(seed, &mut |_| true, &mut measure).unwrap();
        }
        series
    }

    #[test]
    fn known_ratios_are_found_and_the_control_is_one() {
        let arms = [("base", 120.0), ("again", 120.0), ("near", 100.0), ("far", 150.0)];
        let mut misses = 0;
        for seed in 0..40 {
            let series = fake(&arms, 20, seed);
            let of = |arm| Ratio::of(&series, arm, "base", 1).unwrap();
            for (arm, truth) in [("near", 1.2), ("far", 0.8), ("again", 1.0)] {
                let found = of(arm);
                assert!((found.median - truth).abs() < 0.05, "{arm} {found}");
                misses += u32::from(!(found.lo..=found.hi).contains(&truth));
            }
            assert_eq!(of("near").verdict(Some(of("again"))), Verdict::Gain);
            assert_eq!(of("far").verdict(Some(of("again"))), Verdict::Loss);
        }
        // 120 intervals of 95 %: 6 misses are expected, 16 are four standard errors more.
        assert!(misses <= 16, "{misses} of 120 intervals miss the truth");
    }

    #[test]
    fn an_arm_does_not_differ_from_itself_more_often_than_stated() {
        let arms = [("base", 80.0), ("again", 80.0), ("twin", 80.0)];
        let wrong = (0..60)
            .filter(|seed| {
                let series = fake(&arms, 15, *seed);
                let of = |arm| Ratio::of(&series, arm, "base", 1);
                of("twin").unwrap().verdict(of("again")) != Verdict::NoDifference
            })
            .count();
        assert!(wrong <= 6, "{wrong} of 60 twins differ");
    }

    #[test]
    fn a_control_hides_what_is_smaller_than_itself() {
        let readings = Readings::One(Reading::Measured);
        let small = Ratio { median: 1.02, lo: 1.01, hi: 1.03, blocks: 9, readings };
        let control = Ratio { median: 1.0, lo: 0.96, hi: 1.04, blocks: 9, readings };
        assert_eq!(small.verdict(None), Verdict::Gain);
        assert_eq!(small.verdict(Some(control)), Verdict::NoDifference);
    }

    #[test]
    fn of_few_blocks_there_is_no_interval_and_no_verdict() {
        let series = fake(&[("base", 2.0), ("twice", 1.0)], 2, 3);
        let found = Ratio::of(&series, "twice", "base", 1).unwrap();
        assert_eq!((found.blocks, found.verdict(None)), (2, Verdict::TooFew));
        assert!(found.to_string().ends_with(" (2 blocks)"), "{found}");
        let series = fake(&[("base", 2.0), ("twice", 1.0)], 5, 3);
        let found = Ratio::of(&series, "twice", "base", 1).unwrap();
        assert_eq!(found.verdict(None), Verdict::Gain);
        assert!(found.to_string().ends_with(']'), "{found}");
    }

    #[test]
    fn a_ratio_across_readings_names_both_and_one_within_does_not() {
        let (times, bounds) = ([3.0; 6], [2.0; 6]);
        let within = Ratio::paired(Costs::measured(&times), Costs::measured(&bounds), 1).unwrap();
        assert_eq!(within.to_string(), "1.500 [1.500, 1.500]");
        let json = serde_json::to_value(within).unwrap();
        assert_eq!(json, serde_json::json!({ "median": 1.5, "lo": 1.5, "hi": 1.5, "blocks": 6 }));
        let across = Ratio::paired(Costs::measured(&times), Costs::predicted(&bounds), 1).unwrap();
        assert_eq!(across.to_string(), "1.500 [1.500, 1.500] measured over predicted");
        let json = serde_json::to_value(across).unwrap();
        assert_eq!(
            (&json["median"], &json["reading"]),
            (&1.5.into(), &"measured over predicted".into())
        );
    }

    #[test]
    fn blocks_that_all_agree_are_as_surprising_as_counted() {
        let series = fake(&[("base", 2.0), ("half", 1.0)], 7, 3);
        let p = p_value(&series, "half", "base").unwrap();
        assert!((p - 2.0 / 128.0).abs() < 1e-12, "{p}");
        assert_eq!(p_value(&series, "base", "base"), Some(1.0));
        assert_eq!(p_value(&series, "absent", "base"), None);
        for (comparisons, blocks) in [(1, 6), (4, 8), (6, 8), (7, 9)] {
            assert_eq!(blocks_for(comparisons, 0.05), blocks, "{comparisons}");
            let least = 2.0 / f64::from(1 << blocks) * comparisons as f64;
            assert!(least <= 0.05 && 2.0 * least > 0.05, "{comparisons}");
        }
    }

    #[test]
    fn an_interval_of_more_confidence_is_wider() {
        let series = fake(&[("base", 120.0), ("near", 100.0)], 20, 5);
        let of = |level| Ratio::of_at(&series, "near", "base", 1, level).unwrap();
        let (usual, sure) = (of(0.95), of(0.99));
        assert_eq!(Some(usual), Ratio::of(&series, "near", "base", 1));
        assert!(sure.lo < usual.lo && sure.hi > usual.hi, "{sure} {usual}");
    }

    #[test]
    fn no_ratio_where_there_is_nothing_to_compare() {
        let series = fake(&[("base", 1.0)], 0, 1);
        assert_eq!(Ratio::of(&series, "base", "base", 1), None);
        let series = fake(&[("base", 1.0), ("free", 0.0)], 3, 1);
        assert_eq!(Ratio::of(&series, "free", "base", 1), None);
        assert_eq!(Ratio::of(&series, "absent", "base", 1), None);
        assert_eq!(geometric_mean(&[]), None);
        assert_eq!(geometric_mean(&[1.0, 0.0]), None);
        assert!((geometric_mean(&[0.5, 2.0]).unwrap() - 1.0).abs() < 1e-12);
    }
}
