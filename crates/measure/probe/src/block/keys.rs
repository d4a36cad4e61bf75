//! Keys that cannot be told apart.

use super::shapes::Shapes;

/// Correlation at which two keys' patterns are one.
pub(super) const SAME_KEY: f64 = 0.98;

/// For each key the smallest key of its class. Classes are cosets of a subgroup of XOR keys: the keys
/// that leave all bases as they are (at [`SAME_KEY`], their own noise allowed for).
pub(super) fn equivalent_keys(shapes: &Shapes, period: usize) -> Vec<u8> {
    let members = |shape: usize| shapes.of.iter().filter(|of| **of == shape).count() as f64;
    // Energy of the bases, less what is noise of their own: one unit a line, over the pages behind it.
    let energy = |base: &[f64], pages: f64| {
        let all: f64 = base.iter().map(|b| b * b).sum();
        (all - base.len() as f64 / pages.max(1.0)).max(0.5 * all)
    };
    let weighted = |of: &dyn Fn(&[f64], f64) -> f64| -> f64 {
        let each = shapes.bases.iter().enumerate();
        each.map(|(shape, base)| members(shape) * of(base, members(shape))).sum()
    };
    let total = weighted(&energy);
    let correlation = |key: usize| -> f64 {
        let product = |base: &[f64], _: f64| -> f64 {
            base.iter().enumerate().map(|(i, b)| b * base[i ^ key]).sum()
        };
        weighted(&product) / total.max(f64::MIN_POSITIVE)
    };
    let correlations: Vec<f64> = (0..period).map(correlation).collect();
    let same: Vec<bool> = (0..period).map(|k| k == 0 || correlations[k] >= SAME_KEY).collect();
    let mut by_strength: Vec<usize> = (1..period).filter(|k| same[*k]).collect();
    by_strength.sort_by(|a, b| correlations[*b].total_cmp(&correlations[*a]));
    let mut group: Vec<usize> = vec![0];
    for key in by_strength {
        if group.contains(&key) {
            continue;
        }
        let coset: Vec<usize> = group.iter().map(|g| g ^ key).collect();
        if coset.iter().all(|k| same[*k]) {
            group.extend(coset);
        }
    }
    (0..period).map(|k| group.iter().map(|g| g ^ k).min().unwrap_or(k).to_le_bytes()[0]).collect()
}

/// The base averaged over keys that are one: less noise, and exactly equal where it is equal.
pub(super) fn symmetrised(base: &[f64], canonical: &[u8]) -> Vec<f64> {
    let group: Vec<usize> = (0..base.len()).filter(|k| canonical[*k] == 0).collect();
    (0..base.len())
        .map(|i| group.iter().map(|g| base[i ^ g]).sum::<f64>() / group.len() as f64)
        .collect()
}
