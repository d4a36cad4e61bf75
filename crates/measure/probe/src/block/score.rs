//! How good a map is, judged only by pages that were not used to learn it.
//!
//! A held-out page's code is decoded exactly as the memory pass decodes pages, from its few probe
//! lines; then a second, full pass times every line of it. The prediction is scored on that pass
//! alone. What noise of the second pass hides is stated as a ceiling, never taken off the score.

use isochrone_stats::{mean, median, pearson, quantile};

use super::far::group_means;
use super::keys::SAME_KEY;
use super::learn::{Learnt, spread};
use super::rounds::Stretch;

/// Scores of one core and level.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Score {
    /// Share of the variance of lines on one node explained, in the second pass.
    pub r2_heldout: f64,
    /// The best share that could be explained, given the noise of the second pass.
    pub r2_ceiling: f64,
    /// Share of pages with the right code, or one that correlates with it at 0.98.
    pub key_accuracy: f64,
    /// See `Quality::near_regret`.
    pub near_regret: Option<f64>,
    /// 90th over 10th percentile of line latency.
    pub spread_p90_p10: f64,
    /// Mean latency, cycles.
    pub mean_cycles: f64,
    /// Mean latency of the quarter of the lines that the map calls nearest, cycles.
    pub near_quarter_cycles: f64,
}

/// Scores `decoded` codes of the held-out pages (or 16 KiB blocks) against their full pass.
/// `patterns` are those of the core that timed the pass.
#[must_use]
pub fn score(full: &Stretch, learnt: &Learnt, patterns: &[Vec<f64>], decoded: &[u16]) -> Score {
    let known = Learnt { patterns: patterns.to_vec(), ..learnt.clone() };
    let measured = full.deviations();
    let predicted: Vec<f64> = decoded
        .iter()
        .flat_map(|code| (0..known.period).map(|i| known.expected(*code, i)))
        .collect();
    let halves = [full.half(0), full.half(1)];
    let half_r = pearson(&finite(&halves[0]), &finite(&halves[1])).unwrap_or(0.0);
    let latencies: Vec<f64> =
        measured.iter().filter(|v| v.is_finite()).map(|v| v + full.level()).collect();
    let near = near_quarter(&predicted, &halves);
    let mut sorted = latencies.clone();
    sorted.sort_by(f64::total_cmp);
    let at = |q| quantile(&sorted, q).unwrap_or(f64::NAN);
    Score {
        r2_heldout: r2(full, &measured, &predicted),
        r2_ceiling: (2.0 * half_r / (1.0 + half_r)).max(0.0),
        key_accuracy: accuracy(&measured, &known, decoded),
        near_regret: near.regret,
        spread_p90_p10: at(0.9) / at(0.1),
        mean_cycles: full.level(),
        near_quarter_cycles: full.level() + near.decoded,
    }
}

fn finite_of(values: &[f64]) -> Vec<f64> {
    values.iter().copied().filter(|v| v.is_finite()).collect()
}

fn finite(values: &[f64]) -> Vec<f64> {
    values.iter().map(|v| if v.is_finite() { *v } else { 0.0 }).collect()
}

/// Share of variance explained, a common offset between the passes allowed for (the clock rate
/// drifts by more than a pattern is high). What nodes differ by is not counted as explained, but a page
/// put on a wrong one counts as an error.
fn r2(full: &Stretch, measured: &[f64], predicted: &[f64]) -> f64 {
    let means: Vec<f64> = measured
        .chunks_exact(64)
        .map(|page| full.level() + mean(&finite_of(page)).unwrap_or(0.0))
        .collect();
    let nodes = group_means(&means);
    let centre = |line: usize| nodes[line / 64] - full.level();
    let known = measured.iter().enumerate().filter(|(_, m)| m.is_finite());
    let total: f64 = known.map(|(line, m)| (m - centre(line)).powi(2)).sum();
    let pairs: Vec<(f64, f64)> = measured
        .iter()
        .zip(predicted)
        .filter(|(m, _)| m.is_finite())
        .map(|(m, p)| (*m, *p))
        .collect();
    let n = pairs.len().max(1) as f64;
    let (m0, p0) =
        (pairs.iter().map(|p| p.0).sum::<f64>() / n, pairs.iter().map(|p| p.1).sum::<f64>() / n);
    let residual: f64 = pairs.iter().map(|(m, p)| ((m - m0) - (p - p0)).powi(2)).sum();
    if total > 0.0 { 1.0 - residual / total } else { 0.0 }
}

/// The full pass names each page's best code; a decoded code counts if it is that one or its
/// pattern (with its class's level) correlates with it at [`SAME_KEY`].
fn accuracy(measured: &[f64], known: &Learnt, decoded: &[u16]) -> f64 {
    let codes = known.distinct_codes();
    let level = common_offset(measured, known, decoded);
    let distance = |row: &[f64], code: u16| -> f64 {
        row.iter()
            .enumerate()
            .filter(|(_, v)| v.is_finite())
            .map(|(i, v)| (v + level - known.expected(code, i)).powi(2))
            .sum()
    };
    let right = measured
        .chunks_exact(known.period)
        .zip(decoded)
        .filter(|(row, code)| {
            let best = codes
                .iter()
                .copied()
                .min_by(|a, b| distance(row, *a).total_cmp(&distance(row, *b)))
                .unwrap_or(0);
            best == **code || alike(known, best, **code)
        })
        .count();
    right as f64 / decoded.len().max(1) as f64
}

/// What the full pass and the predictions differ by in common: the median page's. Pages of rare classes must
/// not move it, nor the few that were decoded wrongly.
fn common_offset(measured: &[f64], known: &Learnt, decoded: &[u16]) -> f64 {
    let page = |(row, code): (&[f64], &u16)| -> Option<f64> {
        let lines = row.iter().enumerate().filter(|(_, value)| value.is_finite());
        mean(&lines.map(|(i, value)| known.expected(*code, i) - value).collect::<Vec<f64>>())
    };
    let pages: Vec<f64> =
        measured.chunks_exact(known.period).zip(decoded).filter_map(page).collect();
    median(&pages).unwrap_or(0.0)
}

/// Two patterns at a distance d correlate at 1 - d^2 / 2 var; classes of flat pages have no
/// correlation of their own, so the variance is that of all lines of all classes on one node.
fn alike(known: &Learnt, a: u16, b: u16) -> bool {
    let spread = spread(&known.patterns);
    let square = |i| (known.expected(a, i) - known.expected(b, i)).powi(2);
    let distance = (0..known.period).map(square).sum::<f64>() / known.period as f64;
    1.0 - distance / (2.0 * spread.max(f64::MIN_POSITIVE)) >= SAME_KEY
}

struct Near {
    regret: Option<f64>,
    /// Deviation of the predicted nearest quarter from the mean, cycles.
    decoded: f64,
}

/// The true nearest quarter is chosen on one half of the rounds and timed on the other, in both
/// ways: choosing and timing on the same noise would flatter it.
fn near_quarter(predicted: &[f64], halves: &[Vec<f64>; 2]) -> Near {
    let mut truth = 0.0;
    let mut decoded = 0.0;
    for (choose, judge) in [(0, 1), (1, 0)] {
        let judged = finite(&halves[judge]);
        truth += mean_of_lowest_quarter(&finite(&halves[choose]), &judged) / 2.0;
        decoded += mean_of_lowest_quarter(predicted, &judged) / 2.0;
    }
    let regret = (truth < 0.0).then(|| (decoded - truth) / -truth);
    Near { regret, decoded }
}

fn mean_of_lowest_quarter(rank_by: &[f64], values: &[f64]) -> f64 {
    let mut order: Vec<usize> = (0..rank_by.len().min(values.len())).collect();
    order.sort_by(|a, b| rank_by[*a].total_cmp(&rank_by[*b]));
    let quarter = (order.len() / 4).max(1);
    order.iter().take(quarter).map(|i| values[*i]).sum::<f64>() / quarter as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page in a hundred of a class that is 120 cycles farther: the mean over classes is not the mean over
    /// pages, and the right codes must count as right all the same.
    #[test]
    fn a_rare_far_class_misjudges_no_page() {
        let near: Vec<f64> = (0..64).map(|i| 80.0 + f64::from(i * 29 % 31)).collect();
        let patterns = vec![
            near.clone(),
            near.iter().map(|v| v + 40.0).collect(),
            near.iter().map(|v| v + 120.0).collect(),
        ];
        let keyed = (0..64).collect();
        let known = Learnt {
            patterns,
            keyed: true,
            canonical_key: keyed,
            shapes: vec![0; 3],
            ..Learnt::nothing()
        };
        let decoded: Vec<u16> =
            (0..100).map(|page| if page == 7 { 128 } else { page % 64 }).collect();
        let lines = decoded.iter().flat_map(|code| (0..64).map(|i| known.expected(*code, i)));
        let measured: Vec<f64> = lines.map(|cycles| cycles - 87.0).collect();
        assert!((accuracy(&measured, &known, &decoded) - 1.0).abs() < 1e-9);
        let wrong: Vec<u16> = decoded.iter().map(|code| code ^ 17).collect();
        assert!(accuracy(&measured, &known, &wrong) < 0.1);
    }
}
