//! The offset that references and pages have in common, by likelihood.
//!
//! Clock rates drift by more than a pattern is high, so what a base says holds up to an offset.
//! It cannot be taken from means: samples of DRAM have a long tail on one side, and where the tail
//! is longer than it was while learning (another tenant is busy) the mean moves by more than a
//! third of the distance of two classes, while the bulk that decides about pages stays where it
//! was. So the offset is the one under which references look most like the density of residuals
//! that pages are judged by.

use isochrone_atlas::{PENALTY_ENTRIES, Penalties};

use super::decode::OFFSET_MEMORY;
use super::number::entry;

/// Cycles that residuals may lie from the first offset and still be told apart.
const REACH: f64 = 256.0;
/// Cells of a cycle each.
const CELLS: usize = 512;
/// Searches of the first rounds: reach to either side and step, cycles, each around the last's best.
const WIDE: [(f64, f64); 2] = [(48.0, 2.0), (2.0, 0.25)];
/// The search of later rounds: it follows a drift of a cycle a round.
const NARROW: [(f64, f64); 1] = [(1.0, 0.25)];
/// Rounds that search wide.
const WIDE_ROUNDS: u32 = 4;

/// Residuals of the references, older ones fading, and the offset that explains them best.
#[derive(Clone, Debug, Default)]
pub(super) struct Alignment {
    /// Middle of the histogram, cycles; none before the first round.
    origin: Option<f64>,
    cells: Vec<f64>,
    /// From the origin, cycles.
    best: f64,
    rounds: u32,
}

impl Alignment {
    /// The offset, cycles; 0 before the first round.
    pub(super) fn cycles(&self) -> f64 {
        self.origin.unwrap_or(0.0) + self.best
    }

    /// Takes a round of `(expected, seen)` values.
    pub(super) fn add(&mut self, pairs: &[(f64, f64)], penalties: &Penalties) {
        let mut residuals: Vec<f64> =
            pairs.iter().map(|(expected, seen)| seen - expected).collect();
        if residuals.is_empty() {
            return;
        }
        residuals.sort_by(f64::total_cmp);
        let origin = *self.origin.get_or_insert(residuals[residuals.len() / 2]);
        self.cells.resize(CELLS, 0.0);
        for cell in &mut self.cells {
            *cell *= OFFSET_MEMORY;
        }
        for residual in residuals {
            self.cells[entry(residual - origin + REACH, CELLS)] += 1.0;
        }
        self.rounds += 1;
        self.best = self.search(penalties);
    }

    fn search(&self, penalties: &Penalties) -> f64 {
        let searches: &[(f64, f64)] = if self.rounds <= WIDE_ROUNDS { &WIDE } else { &NARROW };
        let mut best = self.best;
        for (reach, step) in searches.iter().copied() {
            let middle = best;
            let tried = (0..).map(|i| middle - reach + step * f64::from(i));
            let costs = tried
                .take_while(|offset| *offset <= middle + reach)
                .map(|offset| (self.cost(offset, penalties), offset));
            best = costs.min_by(|a, b| a.0.total_cmp(&b.0)).map_or(middle, |(_, offset)| offset);
        }
        best
    }

    /// What the residuals cost, in nats, if this were the offset from the origin.
    fn cost(&self, offset: f64, penalties: &Penalties) -> f64 {
        let cells = self.cells.iter().enumerate().filter(|(_, n)| **n > 0.0);
        cells.map(|(i, n)| n * nats(i as f64 - REACH - offset, penalties)).sum()
    }
}

fn nats(residual: f64, penalties: &Penalties) -> f64 {
    let middle = (PENALTY_ENTRIES / 2) as f64;
    let place = residual / f64::from(penalties.step_cycles) + middle;
    f64::from(penalties.nats[entry(place, PENALTY_ENTRIES)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::residuals::penalties;
    use isochrone_stats::{rng, uniform};

    /// A sharp edge, an exponential tail of 30 cycles, and a share of far longer ones.
    fn latency(rng: &mut rand_xoshiro::Xoshiro256PlusPlus, long: f64) -> f64 {
        let tail = if uniform(rng) < long { 120.0 } else { 30.0 };
        -tail * uniform(rng).max(1e-9).ln()
    }

    #[test]
    fn a_longer_tail_moves_the_mean_but_not_the_offset() {
        let mut rng = rng(3);
        let learnt: Vec<f64> = (0..60_000).map(|_| latency(&mut rng, 0.0)).collect();
        let centre = isochrone_stats::mean(&learnt).unwrap();
        let residuals: Vec<f32> =
            learnt.iter().map(|v| super::super::number::f32_of(v - centre)).collect();
        let table = penalties(&residuals, 30.0, 1);
        let mut align = Alignment::default();
        let mut sum = 0.0;
        for _ in 0..40 {
            let expected = 300.0 + 12.0 * uniform(&mut rng);
            let round: Vec<(f64, f64)> = (0..256)
                .map(|_| (expected, expected + 7.0 - centre + latency(&mut rng, 0.15)))
                .collect();
            sum += round.iter().map(|(e, v)| v - e).sum::<f64>() / 256.0 / 40.0;
            align.add(&round, &table);
        }
        assert!(sum > 7.0 + 8.0, "the mean is misled: {sum}");
        assert!((align.cycles() - 7.0).abs() < 1.5, "{}", align.cycles());
    }
}
