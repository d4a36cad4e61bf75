//! Codebooks for decoding: a decoding core's base with the codes that are answers and how likely each is.

use isochrone_atlas::{Codebook, PatternTable, Period, TABLE_ENTRIES};

use super::decoding_core::{DecodePlan, DecodingCore};
use super::learn::{Learnt, join_code, spread};
use super::number::f32_of;
use crate::target::TargetError;

/// Mean square distance of two classes, as a share of the variance of lines on a node, below which they
/// are one: patterns at that distance correlate at 0.98.
pub(super) const SAME_DISTANCE: f64 = 0.04;
/// Most bytes of rows: readings are rounded as finely as leaves room in a second-level cache for the
/// scores of a window.
pub(super) const ROWS_BYTES: usize = 1 << 20;

/// A decoding core's base, ready to be decoded in.
pub(super) fn codebook(
    plan: &DecodePlan<'_>,
    decoding_core: &DecodingCore,
) -> Result<Codebook, TargetError> {
    let learnt = plan.learnt;
    let stored: Vec<Vec<f32>> =
        decoding_core.patterns.iter().map(|p| p.iter().map(|v| f32_of(*v)).collect()).collect();
    let shares = shares(learnt);
    let period = u16::try_from(learnt.period).ok().and_then(Period::from_lines);
    PatternTable::new(period.unwrap_or(Period::Lines64), stored.iter().map(Vec::as_slice))
        .and_then(|table| {
            let canonical = canonical_codes(learnt, plan.tellers);
            Codebook::new(&table, &canonical, &shares, plan.penalties.clone())
        })
        .map_err(|e| TargetError::Unsupported(format!("the learnt form cannot be decoded: {e}")))
}

/// For each code the one that stands for it: keys alike, and classes that none of the decoding cores can
/// tell apart where they run now.
pub(super) fn canonical_codes(learnt: &Learnt, decoding_cores: &[DecodingCore]) -> Vec<u16> {
    if learnt.period != 64 {
        return learnt.canonical_key.iter().map(|key| u16::from(*key)).collect();
    }
    let alike = |a: usize, b: usize| {
        decoding_cores.iter().all(|decoding_core| {
            let pairs = decoding_core.patterns[a].iter().zip(&decoding_core.patterns[b]);
            let square = pairs.map(|(x, y)| (x - y).powi(2)).sum::<f64>() / 64.0;
            square <= SAME_DISTANCE * spread(&decoding_core.patterns)
        })
    };
    (0..learnt.classes())
        .flat_map(|class| {
            let stands = (0..class).find(|other| alike(*other, class)).unwrap_or(class);
            learnt.canonical_key.iter().map(move |key| join_code(stands, *key, 64))
        })
        .collect()
}

/// How often each code is to be expected. Codes that no training page had share the probability
/// that the next page has a new one: (codes seen once + 1) / (pages + 1), Good's estimate (I. J.
/// Good, Biometrika 40, 1953) kept above zero.
fn shares(learnt: &Learnt) -> Vec<f32> {
    let mut counts = vec![0.0_f64; TABLE_ENTRIES];
    let fair = learnt.fair_codes();
    for code in fair {
        counts[usize::from(*code)] += 1.0;
    }
    let pages = fair.len() as f64;
    let codes = learnt.distinct_codes();
    let once = codes.iter().filter(|c| counts[usize::from(**c)] == 1.0).count() as f64;
    let unseen = codes.iter().filter(|c| counts[usize::from(**c)] == 0.0).count() as f64;
    let new = if unseen > 0.0 { (once + 1.0) / (pages + 1.0) } else { 0.0 };
    let mut shares = vec![0.0_f32; TABLE_ENTRIES];
    for code in codes {
        let count = counts[usize::from(code)];
        let share = if count > 0.0 { (1.0 - new) * count / pages } else { new / unseen };
        shares[usize::from(code)] = f32_of(share);
    }
    shares
}
