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
use super::number::{entry, f32_of};

/// Cycles that residuals may lie from the first offset and still be told apart.
const REACH: f64 = 256.0;
/// Cells of a cycle each.
const CELLS: usize = 512;
/// Offsets are tried in steps of this part of a cycle.
const PARTS: i32 = 4;
/// Cycles that an offset may wander from the first one.
const ROOM: i32 = 256;
/// Searches of the first rounds: reach to either side and step, parts of a cycle, each around the last's
/// best.
const WIDE: [(i32, i32); 2] = [(48 * PARTS, 2 * PARTS), (2 * PARTS, 1)];
/// The search of later rounds: it follows a drift of a cycle a round.
const NARROW: [(i32, i32); 1] = [(PARTS, 1)];
/// Rounds that search wide.
const WIDE_ROUNDS: u32 = 4;
/// Cells that are summed side by side.
const LANES: usize = 16;

/// What residuals cost, nats, laid out so that the cost of an offset is one sum of products: for each part
/// of a cycle a row by whole cycles.
#[derive(Clone, Debug)]
pub(super) struct Ruler {
    rows: Vec<Vec<f32>>,
}

impl Ruler {
    pub(super) fn new(penalties: &Penalties) -> Self {
        let room = usize::try_from(ROOM).unwrap_or(0);
        let row = |part: i32| {
            let first = -REACH - f64::from(ROOM) - f64::from(part) / f64::from(PARTS);
            (0..CELLS + 2 * room).map(|cell| f32_of(nats(first + cell as f64, penalties))).collect()
        };
        Self { rows: (0..PARTS).map(row).collect() }
    }

    /// What the residuals of these cells cost if this were the offset, in parts of a cycle.
    fn cost(&self, cells: &[f32], offset: i32) -> f32 {
        let (whole, part) = (offset.div_euclid(PARTS), offset.rem_euclid(PARTS));
        let first = usize::try_from(ROOM - whole.clamp(-ROOM, ROOM)).unwrap_or(0);
        let row = &self.rows[usize::try_from(part).unwrap_or(0)][first..];
        let mut sums = [0.0_f32; LANES];
        for (cells, nats) in cells.as_chunks::<LANES>().0.iter().zip(row.as_chunks::<LANES>().0) {
            for lane in 0..LANES {
                sums[lane] += cells[lane] * nats[lane];
            }
        }
        sums.iter().sum()
    }
}

/// Residuals of the references, older ones fading, and the offset that explains them best.
#[derive(Clone, Debug, Default)]
pub(super) struct Alignment {
    /// Middle of the histogram, cycles; none before the first round.
    origin: Option<f64>,
    cells: Vec<f32>,
    /// From the origin, parts of a cycle.
    best: i32,
    rounds: u32,
}

impl Alignment {
    /// The offset, cycles; 0 before the first round.
    pub(super) fn cycles(&self) -> f64 {
        self.origin.unwrap_or(0.0) + f64::from(self.best) / f64::from(PARTS)
    }

    /// Takes a round of `(expected, seen)` values.
    pub(super) fn add(&mut self, pairs: &[(f64, f64)], ruler: &Ruler) {
        let mut residuals: Vec<f64> =
            pairs.iter().map(|(expected, seen)| seen - expected).collect();
        if residuals.is_empty() {
            return;
        }
        let middle = residuals.len() / 2;
        let origin = *self
            .origin
            .get_or_insert_with(|| *residuals.select_nth_unstable_by(middle, f64::total_cmp).1);
        self.cells.resize(CELLS, 0.0);
        for cell in &mut self.cells {
            *cell *= f32_of(OFFSET_MEMORY);
        }
        for residual in residuals {
            self.cells[entry(residual - origin + REACH, CELLS)] += 1.0;
        }
        self.rounds += 1;
        self.best = self.search(ruler);
    }

    fn search(&self, ruler: &Ruler) -> i32 {
        let searches: &[(i32, i32)] = if self.rounds <= WIDE_ROUNDS { &WIDE } else { &NARROW };
        let mut best = self.best;
        for (reach, step) in searches.iter().copied() {
            let tried = (0..=2 * reach / step).map(|i| best - reach + step * i);
            let costs = tried.map(|offset| (ruler.cost(&self.cells, offset), offset));
            best = costs.min_by(|a, b| a.0.total_cmp(&b.0)).map_or(best, |(_, offset)| offset);
        }
        best
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
        let table = Ruler::new(&penalties(&residuals, 30.0, 1));
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
