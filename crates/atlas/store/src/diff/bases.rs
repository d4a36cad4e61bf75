//! Compares the bases that cores wear.
//!
//! A base is known up to a key: turning it and all codes by the same key predicts the same
//! latencies. So patterns are compared under every key, and a turned base is no change. Where classes
//! of pages have patterns of their own, each may be turned by another key and have another number. Where keys
//! are equivalent, what differs between their lines is noise, and it is averaged away first; of a
//! flat level only the mean is compared.

use crate::contents::{Base, Contents, Form, LevelMap};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Patterns that correlate at this or more are one class (the same bound as for keys).
const SAME_CORRELATION: f64 = 0.98;

/// A shift of a whole base beyond this share of its mean is a change, though its shape is the same.
const SAME_MEAN: f64 = 0.05;

/// What became of the base of a core.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BaseChange {
    /// The level.
    pub level: String,
    /// The core.
    pub core: u16,
    /// Correlation of its new base with its old one, at the best key; none if one has no base.
    pub correlation: Option<f64>,
    /// Mean latency of the new base minus that of the old one, cycles.
    pub mean_change_cycles: Option<f64>,
    /// The core that wore the new base before, if the old atlas knows it.
    pub worn_before_by: Option<u16>,
}

impl fmt::Display for BaseChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: core {} ", self.level, self.core)?;
        let (Some(correlation), Some(mean)) = (self.correlation, self.mean_change_cycles) else {
            return f.write_str("has a base in only one of the two");
        };
        if correlation >= SAME_CORRELATION {
            write!(f, "sees the same pattern {mean:+.1} cycles away")?;
        } else {
            write!(f, "wears another base (correlation {correlation:.2}, mean {mean:+.1} cycles)")?;
        }
        match self.worn_before_by {
            Some(core) if core == self.core => f.write_str(": one that it wore before"),
            Some(core) => write!(f, ": the one learnt on core {core}: it moved there"),
            None => Ok(()),
        }
    }
}

/// How alike two bases are, at the key under which they are most so.
#[derive(Clone, Copy)]
struct Likeness {
    key: usize,
    correlation: f64,
    mean_change: f64,
    same: bool,
}

/// What became of the bases of a level.
#[derive(Default)]
pub(super) struct Bases {
    pub(super) changes: Vec<BaseChange>,
    /// What is worth knowing and no change.
    pub(super) notes: Vec<String>,
}

pub(super) fn compare(
    old: &Contents,
    old_level: &LevelMap,
    new: &Contents,
    new_level: &LevelMap,
) -> Bases {
    let mut found = Bases::default();
    for (place, core) in old.machine.cores.iter().enumerate() {
        let Some(other) = new.machine.cores.iter().position(|c| c.id == core.id) else {
            continue;
        };
        let change = |correlation, mean_change_cycles, worn_before_by| BaseChange {
            level: old_level.level.clone(),
            core: core.id,
            correlation,
            mean_change_cycles,
            worn_before_by,
        };
        let worn = |level: &LevelMap, place: usize| -> Option<usize> {
            level.core_base.get(place).copied().flatten().map(usize::from)
        };
        let before = worn(old_level, place).and_then(|base| old_level.bases.get(base));
        let after = worn(new_level, other).and_then(|base| new_level.bases.get(base));
        let (before, after) = match (before, after) {
            (Some(before), Some(after)) => (before, after),
            (None, None) => continue,
            _ => {
                found.changes.push(change(None, None, None));
                continue;
            }
        };
        let Some(alike) = likeness(before, after, old_level, new_level) else { continue };
        if alike.same {
            found.notes.extend(noted(core.id, &old_level.level, alike));
            continue;
        }
        let known = old_level.bases.iter().filter(|base| !std::ptr::eq(*base, before));
        let worn_before_by = known
            .filter_map(|base| Some((base.core, likeness(base, after, old_level, new_level)?)))
            .filter(|(_, alike)| alike.correlation >= SAME_CORRELATION)
            .max_by(|a, b| a.1.correlation.total_cmp(&b.1.correlation))
            .map(|(core, _)| core);
        let (correlation, mean) = (Some(alike.correlation), Some(alike.mean_change));
        found.changes.push(change(correlation, mean, worn_before_by));
    }
    found
}

fn noted(core: u16, level: &str, alike: Likeness) -> impl Iterator<Item = String> {
    let Likeness { key, mean_change, .. } = alike;
    let turned = (key != 0).then(|| format!("{level}: core {core}'s base is turned by key {key}"));
    let away = (mean_change.abs() >= 1.0)
        .then(|| format!("{level}: core {core}'s base is {mean_change:+.1} cycles away"));
    turned.into_iter().chain(away)
}

/// `None` where the two have not the same shape.
fn likeness(
    before: &Base,
    after: &Base,
    old_level: &LevelMap,
    new_level: &LevelMap,
) -> Option<Likeness> {
    let period = usize::from(old_level.period);
    let alike: Vec<usize> = (0..period)
        .filter(|&key| key == 0 || (stands_for_0(old_level, key) && stands_for_0(new_level, key)))
        .collect();
    let flat = old_level.form == Form::Flat && new_level.form == Form::Flat;
    let (old_values, new_values) = (settled(before, &alike), settled(after, &alike));
    if old_values.len() != new_values.len() || !old_values.len().is_multiple_of(period) {
        return None;
    }
    let mean_change = mean(&new_values) - mean(&old_values);
    let same_mean = mean_change.abs() <= SAME_MEAN * mean(&old_values).abs();
    let found = |key: usize, turned: &[f64]| {
        let correlation = if flat { 1.0 } else { correlation(&old_values, turned) };
        let same = correlation >= SAME_CORRELATION && same_mean;
        Likeness { key, correlation, mean_change, same }
    };
    let mut best: Option<Likeness> = None;
    for key in 0..period {
        let turned: Vec<f64> = (0..new_values.len()).map(|at| new_values[at ^ key]).collect();
        let found = found(key, &turned);
        // The smallest key wins where it suffices: others may be equivalent.
        if found.correlation >= SAME_CORRELATION {
            return Some(found);
        }
        if best.is_none_or(|best| found.correlation > best.correlation) {
            best = Some(found);
        }
    }
    let one_by_one = found(0, &class_by_class(&old_values, &new_values, period));
    best.filter(|best| best.correlation > one_by_one.correlation).or(Some(one_by_one))
}

/// The new values with the classes in the order of the old ones and each turned by its own key:
/// the nearest class that is left for each old one, in order.
fn class_by_class(old: &[f64], new: &[f64], period: usize) -> Vec<f64> {
    let shift = mean(new) - mean(old);
    let apart = |before: &[f64], after: &[f64], key: usize| -> f64 {
        before.iter().enumerate().map(|(at, v)| (v + shift - after[at ^ key]).powi(2)).sum()
    };
    let mut left: Vec<&[f64]> = new.chunks_exact(period).collect();
    let mut ordered = Vec::with_capacity(new.len());
    for before in old.chunks_exact(period) {
        let tries = left.iter().enumerate().flat_map(|(class, after)| {
            (0..period).map(move |key| (apart(before, after, key), class, key))
        });
        let nearest = tries.min_by(|a, b| a.0.total_cmp(&b.0));
        let Some((_, class, key)) = nearest else { break };
        let after = left.remove(class);
        ordered.extend((0..period).map(|at| after[at ^ key]));
    }
    ordered
}

fn stands_for_0(level: &LevelMap, key: usize) -> bool {
    level.canonical_key.get(key) == Some(&0)
}

/// All patterns of a base, each value averaged over the lines that equivalent keys put in its
/// place.
fn settled(base: &Base, alike: &[usize]) -> Vec<f64> {
    let settle = |pattern: &Vec<f32>| {
        (0..pattern.len())
            .map(|at| {
                let values = alike.iter().filter_map(|key| pattern.get(at ^ key));
                mean(&values.map(|value| f64::from(*value)).collect::<Vec<f64>>())
            })
            .collect::<Vec<f64>>()
    };
    base.patterns.iter().flat_map(settle).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / f64::from(u32::try_from(values.len()).unwrap_or(u32::MAX))
}

/// Pearson correlation. Two patterns without differences correlate, one with and one without not.
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let (mean_a, mean_b) = (mean(a), mean(b));
    let sum = |f: &dyn Fn(f64, f64) -> f64| -> f64 {
        a.iter().zip(b).map(|(a, b)| f(a - mean_a, b - mean_b)).sum()
    };
    let (aa, bb, ab) = (sum(&|a, _| a * a), sum(&|_, b| b * b), sum(&|a, b| a * b));
    // Below this the differences are rounding of the sums.
    let (flat_a, flat_b) = (aa <= 1e-9 * mean_a * mean_a, bb <= 1e-9 * mean_b * mean_b);
    match (flat_a, flat_b) {
        (true, true) => 1.0,
        (false, false) => ab / (aa * bb).sqrt(),
        _ => 0.0,
    }
}
