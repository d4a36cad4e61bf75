//! How single timed loads scatter around their line's mean, as the matched filter's penalties.
//!
//! Samples of DRAM have a sharp left edge and a long right tail. With the density that was seen while
//! learning, a decision takes a quarter of the loads that a symmetric bell of the same width would need.
//!
//! A clock that ticks in steps of 26 cycles can read only every 26th value, so residuals around one mean are
//! a comb whose teeth lie where that mean puts them; another base puts them elsewhere. What belongs to the
//! machine, and holds under any base, is how likely each *possible* reading is: the density of residuals
//! over the density of places where a reading could fall, which is the same density folded onto one tick.

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

/// Share of an even spread over the tick below which places where a reading could fall are too rare to
/// judge by; there the density smoothed over a whole tick stands in.
const RARE_PLACES: f64 = 0.05;
/// Width of the kernel over a ticking clock, in ticks: what is wanted cannot be sharper than a tick.
const KERNEL_TICKS: f64 = 0.1;

/// Penalties from residuals in cycles; `noise` is their standard deviation, `tick` the steps of the
/// clock that timed them, cycles.
#[must_use]
pub fn penalties(residuals: &[f32], noise: f64, tick: u32) -> Penalties {
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
    let width = width.max(KERNEL_TICKS * f64::from(tick));
    let seen = smoothed(&counts(&sorted, step), width / step);
    let density = of_possible(seen, &Places::new(&sorted, f64::from(tick), width), step);
    let mut nats = [0.0_f32; PENALTY_ENTRIES];
    let even = 1.0 / PENALTY_ENTRIES as f64;
    for (nat, density) in nats.iter_mut().zip(&density) {
        *nat = f32_of(-((1.0 - BACKGROUND) * density + BACKGROUND * even).ln());
    }
    Penalties { step_cycles: f32_of(step), nats }
}

/// Where readings could fall, within a tick.
struct Places {
    tick: f64,
    /// Density at the cells of a tick, over that of an even spread; smoothed.
    share: Vec<f64>,
}

impl Places {
    /// Cells of a tick.
    const CELLS: usize = 104;

    fn new(residuals: &[f64], tick: f64, width: f64) -> Self {
        let cell = tick / Self::CELLS as f64;
        let mut counts = vec![0.0; Self::CELLS];
        for residual in residuals {
            let place = residual.rem_euclid(tick) / cell;
            counts[entry(place, Self::CELLS + 1) % Self::CELLS] += 1.0;
        }
        // Three turns, so that the middle one has neighbours on both sides.
        let turns = smoothed(&counts.repeat(3), width / cell);
        let even = residuals.len() as f64 / Self::CELLS as f64;
        let share = turns[Self::CELLS..2 * Self::CELLS].iter().map(|n| n / even).collect();
        Self { tick, share }
    }

    fn at(&self, residual: f64) -> f64 {
        let place = residual.rem_euclid(self.tick) / self.tick * Self::CELLS as f64;
        self.share[entry(place, Self::CELLS + 1) % Self::CELLS]
    }
}

/// The density of residuals over that of the places where one could fall.
fn of_possible(seen: Vec<f64>, places: &Places, step: f64) -> Vec<f64> {
    if places.tick <= 2.0 * step {
        return seen;
    }
    let coarse = box_smoothed(&seen, places.tick / step);
    let middle = PENALTY_ENTRIES as f64 / 2.0;
    let of = |(i, (seen, coarse)): (usize, (&f64, &f64))| {
        let share = places.at((i as f64 - middle) * step);
        (seen + RARE_PLACES * coarse) / (share + RARE_PLACES)
    };
    seen.iter().zip(&coarse).enumerate().map(of).collect()
}

/// Means over a window of `width` entries.
fn box_smoothed(values: &[f64], width: f64) -> Vec<f64> {
    let reach = entry(width / 2.0, values.len());
    (0..values.len())
        .map(|i| {
            let (low, high) = (i.saturating_sub(reach), (i + reach).min(values.len() - 1));
            values[low..=high].iter().sum::<f64>() / (2 * reach + 1) as f64
        })
        .collect()
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
        let table = penalties(&residuals, 20.0, 1);
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
        assert_eq!(penalties(&[1.0; 10], 7.0, 26), Noise::heavy_tailed(7.0).into());
    }

    /// What is learnt around few means must hold around others: for each mean, the chances of all
    /// readings that it allows sum to one.
    #[test]
    fn a_coarse_clock_leaves_no_comb() {
        const TICK: f64 = 26.0;
        let mut rng = isochrone_stats::rng(5);
        let mut uniform = || isochrone_stats::uniform(&mut rng);
        let mut reading = |mean: f64| {
            let true_time = mean - 10.0 - 10.0 * uniform().max(1e-9).ln();
            TICK * ((true_time / TICK) + uniform()).floor()
        };
        let learnt: Vec<f32> = (0..60_000_u32)
            .map(|i| {
                let mean = [340.0, 345.0, 352.0][usize::from(i.to_le_bytes()[0]) % 3];
                f32_of(reading(mean) - mean)
            })
            .collect();
        let table = penalties(&learnt, 20.0, 26);
        let chance = |residual: f64| {
            let place = residual / f64::from(table.step_cycles) + PENALTY_ENTRIES as f64 / 2.0;
            f64::from(-table.nats[entry(place, PENALTY_ENTRIES)]).exp()
        };
        let sum = |mean: f64| -> f64 {
            let first = (mean / TICK).floor() - 3.0;
            (0..9).map(|k| chance(TICK * (first + f64::from(k)) - mean)).sum()
        };
        let learnt_sum = sum(345.0);
        for mean in [333.0, 337.0, 349.0, 357.0] {
            let ratio = sum(mean) / learnt_sum;
            assert!((0.8..1.25).contains(&ratio), "around {mean}: {ratio}");
        }
    }
}
