//! What the library costs a real program: paired blocks of runs by turns, plainly, again plainly as a control, with the
//! library stepped aside, and with placing forced.
//!
//! A block is all arms forward and backward, so that what drifts weighs on all alike; of a block each arm has the mean
//! of its two runs. Ratios are made within blocks.

use anyhow::{Context, Result};
use isochrone_stats::bootstrap_median_ci;
use serde::Serialize;

use super::run::{Arm, Ran};

const RESAMPLES: usize = 2000;
const LEVEL: f64 = 0.95;
const SEED: u64 = 1;
/// Blocks from which on an interval is told.
const BLOCKS_LEAST: usize = 3;

/// A ratio over blocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Ratio {
    pub(super) median: f64,
    /// Of 95 %; nothing with fewer than three blocks.
    pub(super) lo: Option<f64>,
    pub(super) hi: Option<f64>,
}

/// One run: how much it did in a second (its own rate, or one in its time), and its peak memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Once {
    arm: &'static str,
    per_s: f64,
    peak_rss_bytes: Option<u64>,
}

/// An arm beside the plain program.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Against {
    /// Above 1 it does more in a second.
    pub(super) throughput: Option<Ratio>,
    /// Peak resident memory of its largest process, above 1 it takes more.
    pub(super) rss: Option<Ratio>,
}

/// What the blocks gave.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Timed {
    pub(super) control: Against,
    pub(super) aside: Against,
    pub(super) forced: Against,
    /// In the order of time, by blocks.
    pub(super) blocks: Vec<Vec<Once>>,
}

/// Runs so many blocks; the first failure ends them.
pub(super) fn measure(blocks: usize, once: &mut dyn FnMut(Arm) -> Result<Ran>) -> Result<Timed> {
    let mut made = Vec::new();
    for number in 0..blocks {
        let mut order = Arm::ALL;
        order.rotate_left(number % Arm::ALL.len());
        let there_and_back = order.into_iter().chain(order.into_iter().rev());
        let runs = there_and_back.map(|arm| {
            let ran = once(arm)?;
            let seconds = ran.usage.context("nobody measured the run")?;
            let per_s = ran.rate.unwrap_or(1.0 / seconds.seconds);
            Ok(Once { arm: arm.name(), per_s, peak_rss_bytes: seconds.peak_rss_bytes })
        });
        made.push(runs.collect::<Result<Vec<Once>>>()?);
    }
    Ok(Timed {
        control: against(&made, Arm::Again),
        aside: against(&made, Arm::Aside),
        forced: against(&made, Arm::Forced),
        blocks: made,
    })
}

fn against(blocks: &[Vec<Once>], arm: Arm) -> Against {
    let rss = |once: &Once| once.peak_rss_bytes.map(|bytes| bytes as f64);
    Against {
        throughput: ratio(blocks, arm, |once| Some(once.per_s)),
        rss: ratio(blocks, arm, rss),
    }
}

fn ratio(blocks: &[Vec<Once>], arm: Arm, of: impl Fn(&Once) -> Option<f64>) -> Option<Ratio> {
    let mean = |block: &[Once], arm: Arm| {
        let all: Option<Vec<f64>> =
            block.iter().filter(|once| once.arm == arm.name()).map(&of).collect();
        let all = all.filter(|all| !all.is_empty())?;
        Some(all.iter().sum::<f64>() / all.len() as f64)
    };
    let ratios: Option<Vec<f64>> =
        blocks.iter().map(|block| Some(mean(block, arm)? / mean(block, Arm::Plain)?)).collect();
    let ratios = ratios?;
    let found = bootstrap_median_ci(&ratios, RESAMPLES, LEVEL, SEED)?;
    let told = ratios.len() >= BLOCKS_LEAST;
    Some(Ratio { median: found.median, lo: told.then_some(found.lo), hi: told.then_some(found.hi) })
}

/// The table's head.
pub(super) const HEAD: &str = "program                 calls/s  placed   aside: throughput           RSS   \
                               forced: throughput          RSS   control";

/// One line of the table.
pub(super) fn line(name: &str, calls: Option<f64>, placed: Option<f64>, timed: &Timed) -> String {
    let calls = calls.map_or_else(|| "-".to_owned(), |calls| format!("{calls:.2e}"));
    let placed = placed.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", 100.0 * share));
    format!(
        "{name:<22} {calls:>8}  {placed:>7}  {:<22} {:>6}  {:<22} {:>6}  {}",
        words(timed.aside.throughput),
        median(timed.aside.rss),
        words(timed.forced.throughput),
        median(timed.forced.rss),
        words(timed.control.throughput),
    )
}

fn median(ratio: Option<Ratio>) -> String {
    ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{:.3}", ratio.median))
}

fn words(ratio: Option<Ratio>) -> String {
    let Some(Ratio { median, lo, hi }) = ratio else { return "-".to_owned() };
    match lo.zip(hi) {
        Some((lo, hi)) => format!("{median:.3} [{lo:.3}, {hi:.3}]"),
        None => format!("{median:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::safety::run::Usage;

    #[test]
    fn ratios_are_of_blocks_and_follow_what_the_program_says() {
        let mut number = 0.0;
        let timed = measure(3, &mut |arm| {
            number += 1.0;
            // Everything drifts, and the forced arm does nine tenths of it.
            let share = if arm == Arm::Forced { 0.9 } else { 1.0 };
            let rss = if arm == Arm::Aside { 110 } else { 100 };
            Ok(Ran {
                rate: Some(share * (1000.0 - number)),
                usage: Some(Usage { seconds: 1.0, peak_rss_bytes: Some(rss) }),
                ..Ran::default()
            })
        })
        .expect("no run failed");
        let close = |ratio: Option<Ratio>, to: f64| {
            let ratio = ratio.expect("a ratio");
            assert!(
                (ratio.median - to).abs() < 2e-3 && ratio.lo.is_some(),
                "{ratio:?} is not {to}"
            );
        };
        close(timed.forced.throughput, 0.9);
        close(timed.aside.throughput, 1.0);
        close(timed.control.throughput, 1.0);
        close(timed.aside.rss, 1.1);
        assert_eq!(timed.blocks.iter().map(Vec::len).sum::<usize>(), 3 * 2 * Arm::ALL.len());
        let line = line("perl", Some(1.5e6), Some(0.99), &timed);
        assert!(line.contains("1.50e6") && line.contains("0.900 ["), "{line}");
    }

    #[test]
    fn a_run_that_failed_ends_the_blocks() {
        assert!(measure(2, &mut |_| anyhow::bail!("no")).is_err());
    }
}
