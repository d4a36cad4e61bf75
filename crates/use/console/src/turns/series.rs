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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Run {
    /// Which arm, by its place in the list of arms.
    pub arm: usize,
    /// What it cost: seconds, or nanoseconds a load. Less is better.
    pub cost: f64,
}

/// Every arm twice.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Block {
    /// In the order of time.
    pub runs: Vec<Run>,
    /// How much others took of the processors meanwhile.
    pub disturbance: Disturbance,
}

/// The raw series of one comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Series {
    /// Names of the arms.
    pub arms: Vec<String>,
    /// What a cost is: `"ns per load"`.
    pub cost: String,
    /// In the order of time; only whole blocks are kept, or half of the first.
    pub blocks: Vec<Block>,
}

/// The order of a block: a random one, then the same backwards.
fn order(arms: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..arms).collect();
    shuffle(&mut order, &mut rng(seed));
    let back: Vec<usize> = order.iter().rev().copied().collect();
    order.extend(back);
    order
}

impl Series {
    /// Without a block.
    pub fn new(arms: &[String], cost: &str) -> Self {
        Self { arms: arms.to_vec(), cost: cost.to_owned(), blocks: Vec::new() }
    }

    /// Adds a block, in which each arm takes its turns in an order that `seed` and the block's number
    /// give. `before` is called before every run with words for the user, and ends the block where it
    /// is `false`. What `measure` returns is a cost, or `None` where it was interrupted. Whether the
    /// block came to its end; one that did not counts for nothing, except that the first block counts
    /// by half where every arm has run once: so there is something to say of what takes all of the
    /// time.
    ///
    /// # Errors
    /// What `measure` fails with.
    pub fn add(
        &mut self,
        seed: u64,
        before: &mut dyn FnMut(&str) -> bool,
        measure: &mut dyn FnMut(usize) -> Result<Option<f64>>,
    ) -> Result<bool> {
        let meter = Meter::start();
        let number = self.blocks.len();
        let mut runs = Vec::with_capacity(self.arms.len() * RUNS_PER_BLOCK);
        let mut ended = true;
        for arm in order(self.arms.len(), derive_seed(seed, number as u64)) {
            if !before(&format!("block {}: {}", number + 1, self.arms[arm])) {
                ended = false;
                break;
            }
            let Some(cost) = measure(arm)? else {
                ended = false;
                break;
            };
            runs.push(Run { arm, cost });
        }
        let half = number == 0 && !runs.is_empty() && runs.len() >= self.arms.len();
        if !ended && half {
            runs.truncate(self.arms.len());
        }
        if ended || half {
            self.blocks.push(Block { runs, disturbance: Meter::since(meter.as_ref()) });
        }
        Ok(ended)
    }

    /// The same runs with another quantity as their cost, given for every run in the order of
    /// time. `None` if it is not known of each of them. What comes after the last run that counts
    /// is left out, here as there.
    pub fn with_costs(&self, values: &[(usize, Option<u64>)], cost: &str) -> Option<Self> {
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

    /// The same without an arm: those behind it move up.
    #[must_use]
    pub fn without(&self, arm: usize) -> Self {
        let mut other = self.clone();
        if arm < other.arms.len() {
            other.arms.remove(arm);
        }
        for block in &mut other.blocks {
            block.runs.retain(|run| run.arm != arm);
            block.runs.iter_mut().filter(|run| run.arm > arm).for_each(|run| run.arm -= 1);
        }
        other
    }

    /// Where an arm stands in the list.
    pub fn arm(&self, name: &str) -> Option<usize> {
        self.arms.iter().position(|arm| arm == name)
    }

    /// The mean cost of an arm in each block.
    pub fn block_means(&self, arm: usize) -> Vec<f64> {
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

    /// So many blocks of three arms.
    fn take(blocks: u32, seed: u64, measure: &mut dyn FnMut(usize) -> f64) -> Series {
        let mut series = Series::new(&arms(), "s");
        for _ in 0..blocks {
            let ended = series.add(seed, &mut |_| true, &mut |arm| Ok(Some(measure(arm))));
            assert!(ended.unwrap());
        }
        series
    }

    /// The blocks of a series in which so many runs are made.
    fn stopped_after(mut runs: i32) -> Series {
        let mut series = Series::new(&arms(), "s");
        let mut before = |_: &str| {
            runs -= 1;
            runs >= 0
        };
        while series.add(1, &mut before, &mut |_| Ok(Some(1.0))).unwrap() {}
        series
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
        let orders = |seed| {
            let mut seen = Vec::new();
            take(20, seed, &mut |arm| {
                seen.push(arm);
                1.0
            });
            seen
        };
        let seen = orders(9);
        let firsts: Vec<usize> = seen.iter().step_by(6).copied().collect();
        assert!((0..3).all(|arm| firsts.contains(&arm)), "{firsts:?}");
        assert_eq!(seen, orders(9));
        assert_ne!(seen, orders(10));
    }

    #[test]
    fn what_grows_evenly_weighs_the_same_on_each_arm() {
        let mut clock = 0.0;
        let series = take(4, 1, &mut |_| {
            clock += 1.0;
            clock
        });
        let means: Vec<Vec<f64>> = (0..3).map(|arm| series.block_means(arm)).collect();
        assert_eq!(means[0], means[1]);
        assert_eq!(means[1], means[2]);
    }

    #[test]
    fn an_interrupted_block_is_left_out() {
        assert_eq!(stopped_after(14).blocks.len(), 2);
    }

    #[test]
    fn half_of_the_first_block_is_better_than_nothing() {
        let series = stopped_after(4);
        assert_eq!((series.blocks.len(), series.blocks[0].runs.len()), (1, 3));
        assert!((0..3).all(|arm| series.block_means(arm) == [1.0]));
        assert!(stopped_after(2).blocks.is_empty(), "one arm has not run");
    }

    #[test]
    fn a_second_quantity_goes_with_the_same_runs() {
        let mut seen = Vec::new();
        let series = take(2, 4, &mut |arm| {
            seen.push((arm, Some(100 + arm as u64)));
            1.0
        });
        let bytes = series.with_costs(&seen, "bytes").unwrap();
        assert_eq!(bytes.block_means(2), [102.0, 102.0]);
        seen[3].1 = None;
        assert_eq!(series.with_costs(&seen, "bytes"), None, "not known of each");
        seen.swap(0, 1);
        assert_eq!(series.with_costs(&seen, "bytes"), None, "of other arms");
    }

    #[test]
    fn an_arm_that_is_taken_out_leaves_the_others_as_they_were() {
        let series = take(3, 8, &mut |arm| 1.0 + arm as f64);
        let fewer = series.without(1);
        assert_eq!(fewer.arms, ["a", "c"]);
        assert_eq!(fewer.block_means(0), series.block_means(0));
        assert_eq!(fewer.block_means(1), series.block_means(2));
        assert_eq!(series.without(7), series);
    }

    #[test]
    fn an_arm_that_fails_ends_the_series_with_its_words() {
        let mut series = Series::new(&arms(), "s");
        let failed = series.add(1, &mut |_| true, &mut |_| anyhow::bail!("no memory"));
        assert_eq!(failed.unwrap_err().to_string(), "no memory");
    }
}
