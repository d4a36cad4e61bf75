//! Takes turns: which arm runs when, and what came out, run by run, in the order of time.
//!
//! A block holds every arm twice, in random order and then in the same order backwards: whatever
//! grows evenly over a block (a warming clock, a filling disk) then weighs the same on each arm.
//! It does not know what an arm does.

use anyhow::Result;
use isochrone_stats::{derive_seed, rng, shuffle};
use serde::Serialize;

use isochrone_host::{Disturbance, Meter};

/// Runs of each arm in a block.
const RUNS_PER_BLOCK: usize = 2;

/// One run of one arm.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Run {
    /// Which arm, by its place in the list of arms.
    pub(crate) arm: usize,
    /// What it cost: seconds, or nanoseconds a load. Less is better.
    pub(crate) cost: f64,
}

/// Every arm twice.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Block {
    /// In the order of time.
    pub(crate) runs: Vec<Run>,
    /// How much others took of the processors meanwhile.
    pub(crate) disturbance: Disturbance,
}

/// The raw series of one comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Series {
    /// Names of the arms.
    pub(crate) arms: Vec<String>,
    /// What a cost is: `"ns per load"`.
    pub(crate) cost: String,
    /// In the order of time; only whole blocks are kept.
    pub(crate) blocks: Vec<Block>,
}

/// The order of a block: a random one, then the same backwards.
fn order(arms: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..arms).collect();
    shuffle(&mut order, &mut rng(seed));
    let back: Vec<usize> = order.iter().rev().copied().collect();
    order.extend(back);
    order
}

/// How many blocks, in which order, what stops them.
pub(crate) struct Turns<'a> {
    /// Blocks wanted.
    pub(crate) blocks: u32,
    /// Seed of the orders.
    pub(crate) seed: u64,
    /// Called before every run with words for the user; `false` ends the series.
    pub(crate) before: &'a mut dyn FnMut(&str) -> bool,
}

impl Series {
    /// Lets the arms take turns. What `measure` returns is a cost, or `None` where it was
    /// interrupted; its error ends everything.
    pub(crate) fn take(
        arms: &[String],
        cost: &str,
        turns: Turns<'_>,
        measure: &mut dyn FnMut(usize) -> Result<Option<f64>>,
    ) -> Result<Self> {
        let mut series = Self { arms: arms.to_vec(), cost: cost.to_owned(), blocks: Vec::new() };
        for number in 0..turns.blocks {
            let meter = Meter::start();
            let mut runs = Vec::with_capacity(arms.len() * RUNS_PER_BLOCK);
            for arm in order(arms.len(), derive_seed(turns.seed, u64::from(number))) {
                let words = format!("block {} of {}: {}", number + 1, turns.blocks, arms[arm]);
                if !(turns.before)(&words) {
                    return Ok(series);
                }
                let Some(cost) = measure(arm)? else { return Ok(series) };
                runs.push(Run { arm, cost });
            }
            series.blocks.push(Block { runs, disturbance: Meter::since(meter.as_ref()) });
        }
        Ok(series)
    }

    /// The same runs with another quantity as their cost, given for every run in the order of
    /// time. `None` if it is not known of each of them. Runs of a block that was not ended count
    /// for nothing, here as there.
    pub(crate) fn with_costs(&self, values: &[(usize, Option<u64>)], cost: &str) -> Option<Self> {
        let mut left = values.iter();
        let mut other = Self { cost: cost.to_owned(), ..self.clone() };
        for run in other.blocks.iter_mut().flat_map(|block| &mut block.runs) {
            let (arm, value) = left.next()?;
            if *arm != run.arm {
                return None;
            }
            run.cost = (*value)? as f64;
        }
        Some(other)
    }

    /// Where an arm stands in the list.
    pub(crate) fn arm(&self, name: &str) -> Option<usize> {
        self.arms.iter().position(|arm| arm == name)
    }

    /// The mean cost of an arm in each block.
    pub(crate) fn block_means(&self, arm: usize) -> Vec<f64> {
        let mean = |block: &Block| {
            let costs: Vec<f64> =
                block.runs.iter().filter(|run| run.arm == arm).map(|run| run.cost).collect();
            costs.iter().sum::<f64>() / costs.len() as f64
        };
        self.blocks.iter().map(mean).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arms() -> Vec<String> {
        ["a", "b", "c"].map(String::from).to_vec()
    }

    #[test]
    fn a_block_is_balanced_and_mirrored() {
        let order = order(5, 3);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
        let back: Vec<usize> = order.iter().rev().copied().collect();
        assert_eq!(order, back);
    }

    #[test]
    fn orders_differ_from_block_to_block_and_repeat_with_the_seed() {
        let take = |seed| {
            let mut seen = Vec::new();
            let turns = Turns { blocks: 20, seed, before: &mut |_| true };
            let mut measure = |arm| {
                seen.push(arm);
                Ok(Some(1.0))
            };
            Series::take(&arms(), "s", turns, &mut measure).unwrap();
            seen
        };
        let seen = take(9);
        let firsts: Vec<usize> = seen.iter().step_by(6).copied().collect();
        assert!((0..3).all(|arm| firsts.contains(&arm)), "{firsts:?}");
        assert_eq!(seen, take(9));
        assert_ne!(seen, take(10));
    }

    #[test]
    fn what_grows_evenly_weighs_the_same_on_each_arm() {
        let mut clock = 0.0;
        let turns = Turns { blocks: 4, seed: 1, before: &mut |_| true };
        let mut drifting = |_| {
            clock += 1.0;
            Ok(Some(clock))
        };
        let series = Series::take(&arms(), "s", turns, &mut drifting).unwrap();
        let means: Vec<Vec<f64>> = (0..3).map(|arm| series.block_means(arm)).collect();
        assert_eq!(means[0], means[1]);
        assert_eq!(means[1], means[2]);
    }

    #[test]
    fn an_interrupted_block_is_left_out() {
        let mut left = 14;
        let mut before = |_: &str| {
            left -= 1;
            left >= 0
        };
        let turns = Turns { blocks: 5, seed: 1, before: &mut before };
        let series = Series::take(&arms(), "s", turns, &mut |_| Ok(Some(1.0))).unwrap();
        assert_eq!(series.blocks.len(), 2);
    }

    #[test]
    fn a_second_quantity_goes_with_the_same_runs() {
        let mut seen = Vec::new();
        let turns = Turns { blocks: 2, seed: 4, before: &mut |_| true };
        let mut measure = |arm: usize| {
            seen.push((arm, Some(100 + arm as u64)));
            Ok(Some(1.0))
        };
        let series = Series::take(&arms(), "s", turns, &mut measure).unwrap();
        let bytes = series.with_costs(&seen, "bytes").unwrap();
        assert_eq!(bytes.block_means(2), [102.0, 102.0]);
        seen[3].1 = None;
        assert_eq!(series.with_costs(&seen, "bytes"), None, "not known of each");
        seen.swap(0, 1);
        assert_eq!(series.with_costs(&seen, "bytes"), None, "of other arms");
    }

    #[test]
    fn an_arm_that_fails_ends_the_series_with_its_words() {
        let turns = Turns { blocks: 5, seed: 1, before: &mut |_| true };
        let failed = Series::take(&arms(), "s", turns, &mut |_| anyhow::bail!("no memory"));
        assert_eq!(failed.unwrap_err().to_string(), "no memory");
    }
}
