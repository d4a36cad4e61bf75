//! How single timed loads scatter around their line's mean, as the matched filter's penalties.
//!
//! Samples of DRAM have a sharp left edge and a long right tail, and a clock that ticks in steps
//! of 26 cycles adds its own shape. With the density that was seen while learning, a decision
//! takes a quarter of the loads that a symmetric bell of the same width would need.

use isochrone_atlas::{Noise, PENALTY_ENTRIES, Penalties};
use isochrone_stats::quantile;

use super::number::{entry, f32_of};

/// Residuals fewer than this say too little; then the heavy-tailed default is used.
const ENOUGH: usize = 4096;
/// Residuals are never taken to be known better than to a few cycles: bases have errors too.
const LEAST_CYCLES: f64 = 4.0;
/// Share of the density that is spread evenly: what was never seen is rare, not impossible.
const BACKGROUND: f64 = 0.03;
/// The background is what bounds a penalty; its reach in multiples of the 1st..99th percentile.
const REACH: f64 = 1.25;

/// Penalties from residuals in cycles; `noise` is their standard deviation.
#[must_use]
pub fn penalties(residuals: &[f32], noise: f64) -> Penalties {
    if residuals.len() < ENOUGH {
        return Noise::heavy_tailed(f32_of(noise.max(1e-3))).into();
    }
    let mut sorted: Vec<f64> = residuals.iter().map(|r| f64::from(*r)).collect();
    sorted.sort_by(f64::total_cmp);
    let at = |q| quantile(&sorted, q).unwrap_or(0.0);
    let reach = REACH * at(0.99).max(-at(0.01)).max(LEAST_CYCLES);
    let step = reach / (PENALTY_ENTRIES as f64 / 2.0);
    let robust = ((at(0.75) - at(0.25)) / 1.349).max(step);
    // Silverman's rule for the width of the kernel (Density Estimation, 1986, eq. 3.31).
    let width = (0.9 * robust * (sorted.len() as f64).powf(-0.2)).max(LEAST_CYCLES / 8.0);
    let density = smoothed(&counts(&sorted, step), width / step);
    let mut nats = [0.0_f32; PENALTY_ENTRIES];
    let even = 1.0 / PENALTY_ENTRIES as f64;
    for (nat, density) in nats.iter_mut().zip(&density) {
        *nat = f32_of(-((1.0 - BACKGROUND) * density + BACKGROUND * even).ln());
    }
    Penalties { step_cycles: f32_of(step), nats }
}

/// Shares by entry; the ends take all that lies beyond.
fn counts(sorted: &[f64], step: f64) -> Vec<f64> {
    let mut counts = vec![0.0; PENALTY_ENTRIES];
    let middle = PENALTY_ENTRIES as f64 / 2.0;
    for residual in sorted {
        counts[entry(residual / step + middle, PENALTY_ENTRIES)] += 1.0 / sorted.len() as f64;
    }
    counts
}

/// Convolution with a Gaussian of `width` entries, cut at four widths.
fn smoothed(counts: &[f64], width: f64) -> Vec<f64> {
    let reach = entry(4.0 * width, PENALTY_ENTRIES).max(1);
    let kernel: Vec<f64> =
        (0..=reach).map(|d| (-0.5 * (d as f64 / width.max(0.5)).powi(2)).exp()).collect();
    let total: f64 = 2.0 * kernel.iter().sum::<f64>() - 1.0;
    (0..counts.len())
        .map(|i| {
            let low = i.saturating_sub(reach);
            let high = (i + reach).min(counts.len() - 1);
            (low..=high).map(|j| counts[j] * kernel[i.abs_diff(j)]).sum::<f64>() / total
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sharp_edge_costs_more_on_its_steep_side() {
        let mut rng = isochrone_stats::rng(3);
        // Exponential residuals, mean 20: nothing lies more than 20 below the mean.
        let residuals: Vec<f32> = (0..20_000)
            .map(|_| f32_of(-20.0 * (1.0 - isochrone_stats::uniform(&mut rng)).ln() - 20.0))
            .collect();
        let table = penalties(&residuals, 20.0);
        let at = |cycles: f64| {
            let place = cycles / f64::from(table.step_cycles) + PENALTY_ENTRIES as f64 / 2.0;
            table.nats[entry(place, PENALTY_ENTRIES)]
        };
        assert!(at(-35.0) > at(35.0) + 1.0, "{} {}", at(-35.0), at(35.0));
        assert!(at(-15.0) < at(30.0));
        assert!(table.nats.iter().all(|n| n.is_finite()));
    }

    #[test]
    fn few_residuals_fall_back() {
        assert_eq!(penalties(&[1.0; 10], 7.0), Noise::heavy_tailed(7.0).into());
    }
}
