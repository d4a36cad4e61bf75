//! The two stages of a trial, over runs that somebody else makes: all levers by turns with the plain program and its
//! control, and then the best of them again on fresh blocks. It knows neither programs nor clocks.
//!
//! A stage ends when intervals are narrow, when there are as many blocks as say anything, or when its time is over.
//! None of that looks at which side of 1 an interval lies: stopping as soon as something looks good would find gains
//! where there are none.

use anyhow::{Result, bail};
use isochrone_console::turns::{BLOCKS_LEAST, Ratio, Series, blocks_for};
use serde::Serialize;

/// The chance of calling anything a gain or a loss where no lever does anything.
pub(super) const ALPHA: f64 = 0.05;
/// The plain program.
pub(super) const PLAIN: &str = "plain";
/// The plain program again: how far it is from itself.
pub(super) const CONTROL: &str = "plain again";
/// An interval is narrow enough that is so wide, as a part of its median.
const WIDTH: f64 = 0.02;
/// Blocks of all levers of which one is chosen: more would choose little better.
pub(super) const SCREENED: Blocks = Blocks { least: BLOCKS_LEAST, most: 30 };
/// Fresh blocks at most, however short the program is.
const FRESH_MOST: usize = 300;

/// How many blocks a stage has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blocks {
    /// Before that it does not end, but for want of time.
    pub(super) least: usize,
    pub(super) most: usize,
}

/// What came of one run.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Turn {
    /// It took so many seconds.
    Took(f64),
    /// The lever is no good for this program, and why.
    Fails(String),
    /// The time is over, or the user wants an end.
    Over,
}

/// Who makes the runs.
pub(super) trait Runs {
    /// Runs the program under the lever of this name; [`PLAIN`] and [`CONTROL`] are none.
    fn run(&mut self, lever: &str) -> Result<Turn>;

    /// Whether the stage has time for something that takes so many seconds.
    fn has_time_for(&mut self, seconds: f64) -> bool;

    /// Told before each run, in words.
    fn begins(&mut self, words: &str);
}

/// Why a stage ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum End {
    /// All intervals are narrow.
    Narrow,
    /// There are as many blocks as say anything.
    Enough,
    /// Its time was over.
    Time,
}

/// What a stage found.
#[derive(Clone, Debug)]
pub(super) struct Stage {
    pub(super) series: Series,
    /// Levers that were left out, and why.
    pub(super) out: Vec<(String, String)>,
    pub(super) end: End,
}

/// Runs all levers by turns.
///
/// # Errors
/// Where a run cannot be made, or the plain program does not do any more what it did.
pub(super) fn stage(
    levers: &[String],
    blocks: Blocks,
    seed: u64,
    runs: &mut dyn Runs,
) -> Result<Stage> {
    let names: Vec<String> =
        [PLAIN, CONTROL].into_iter().map(str::to_owned).chain(levers.iter().cloned()).collect();
    let mut series = Series::new(&names, "s");
    let mut out = Vec::new();
    loop {
        if series.arms.len() <= 2 && !levers.is_empty() {
            // Nobody is left to be compared.
            return Ok(Stage { series, out, end: End::Enough });
        }
        let made = series.blocks.len();
        if made >= blocks.least && is_narrow(&series, seed) {
            return Ok(Stage { series, out, end: End::Narrow });
        }
        if made >= blocks.most {
            return Ok(Stage { series, out, end: End::Enough });
        }
        if !runs.has_time_for(block_s(&series)) {
            return Ok(Stage { series, out, end: End::Time });
        }
        match block(&mut series, seed, runs)? {
            Block::Whole => {}
            Block::Over => return Ok(Stage { series, out, end: End::Time }),
            Block::Fails { lever, why } => {
                if lever == PLAIN || lever == CONTROL {
                    bail!("the program by itself, without any lever: {why}");
                }
                if let Some(arm) = series.arm(&lever) {
                    series = series.without(arm);
                }
                out.push((lever, why));
            }
        }
    }
}

/// The blocks of a stage whose result is to be corrected for so many levers: at least as many as can say anything.
pub(super) fn fresh_blocks(levers: usize) -> Blocks {
    let least = blocks_for(levers, ALPHA).max(BLOCKS_LEAST);
    Blocks { least, most: FRESH_MOST.max(least) }
}

/// What came of a block.
enum Block {
    Whole,
    Over,
    Fails { lever: String, why: String },
}

fn block(series: &mut Series, seed: u64, runs: &mut dyn Runs) -> Result<Block> {
    let names = series.arms.clone();
    let number = series.blocks.len() + 1;
    let mut fails = None;
    let whole = series.add(seed, &mut |_| true, &mut |arm| {
        runs.begins(&format!("block {number}: {}", names[arm]));
        Ok(match runs.run(&names[arm])? {
            Turn::Took(seconds) => Some(seconds),
            Turn::Over => None,
            Turn::Fails(why) => {
                fails = Some(Block::Fails { lever: names[arm].clone(), why });
                None
            }
        })
    })?;
    Ok(match fails {
        Some(fails) => fails,
        None if whole => Block::Whole,
        None => Block::Over,
    })
}

/// Seconds that another block takes; none where there was none yet.
fn block_s(series: &Series) -> f64 {
    series.blocks.last().map_or(0.0, |block| block.runs.iter().map(|run| run.cost).sum())
}

/// Whether every interval of an arm against the plain program is narrow, the control's too.
fn is_narrow(series: &Series, seed: u64) -> bool {
    series.arms.iter().filter(|arm| *arm != PLAIN).all(|arm| {
        let ratio = Ratio::of(series, arm, PLAIN, seed);
        ratio.is_some_and(|ratio| {
            ratio.has_interval() && ratio.hi - ratio.lo <= WIDTH * ratio.median
        })
    })
}
