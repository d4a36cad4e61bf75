//! `isochrone bench flags`: how far apart lines are for a pair of cores, and what that does to a broadcast and
//! a barrier.
//!
//! A team of two threads hands every candidate to and fro and takes the nearest, those in the middle or the
//! farthest. Then calls are timed in windows, as `verify model` does. Every block makes a new team.

use std::fmt::Write as _;

use anyhow::{Result, ensure};
use isochrone_cla::live::Nearness;
use isochrone_os::clock::Clock;
use isochrone_report::fmt;
use isochrone_report::table::{Cell, Table};
use isochrone_stats::{derive_seed, median, quantile, rng, shuffle};
use isochrone_units::CoreId;
use serde::Serialize;

use super::Findings;
use super::Setting;
use super::ratio::Ratio;
use crate::args::FlagsArgs;
use crate::verify::live::{What, block};

/// Blocks unless told otherwise.
const BLOCKS: u32 = 15;
/// Seed of bootstraps.
const SEED: u64 = 13;
/// What is timed on the lines.
const CALLS: [What; 2] = [What::Broadcast, What::Barrier];

/// The arms: the middle stands for lines that nobody chose, and is there twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Arm {
    Nearest,
    Middle,
    MiddleAgain,
    Farthest,
}

impl Arm {
    const ALL: [Self; 4] = [Self::Nearest, Self::Middle, Self::MiddleAgain, Self::Farthest];

    const fn nearness(self) -> Nearness {
        match self {
            Self::Nearest => Nearness::Nearest,
            Self::Middle | Self::MiddleAgain => Nearness::Middle,
            Self::Farthest => Nearness::Farthest,
        }
    }
}

/// Round trips over all candidates, ns: the medians over blocks.
#[derive(Clone, Debug, Default, Serialize)]
struct Trips {
    candidates: usize,
    best_ns: f64,
    p5_ns: f64,
    median_ns: f64,
    p95_ns: f64,
    worst_ns: f64,
    /// The median line over the best one.
    median_over_best: f64,
    worst_over_best: f64,
}

/// One collective on the lines of each arm.
#[derive(Clone, Debug, Serialize)]
struct Collective {
    collective: &'static str,
    nearest_ns: Option<f64>,
    middle_ns: Option<f64>,
    farthest_ns: Option<f64>,
    /// How many times faster on the nearest lines than on those in the middle.
    gain: Option<Ratio>,
    /// How many times faster on the nearest than on the farthest.
    nearest_over_farthest: Option<Ratio>,
    /// The middle against the middle.
    aa_control: Option<Ratio>,
    /// Medians of blocks, by arm.
    blocks_ns: [Vec<f64>; 4],
}

/// All figures.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figures {
    metric: &'static str,
    round_trip: Trips,
    collectives: Vec<Collective>,
    late_windows: usize,
}

/// Runs all blocks.
pub(super) fn measure(args: &FlagsArgs, setting: &mut Setting<'_>) -> Result<Figures> {
    let cores: [CoreId; 2] = setting.cores(2)?.try_into().map_err(|cores: Vec<CoreId>| {
        anyhow::anyhow!("a line goes between 2 cores, and this process has {}", cores.len())
    })?;
    let clock = Clock::calibrate();
    let seed = setting.seed();
    let mut times: Vec<[Vec<f64>; 4]> = vec![Default::default(); CALLS.len()];
    let mut trips = Vec::new();
    let mut late = 0;
    for number in 0..args.common.blocks.unwrap_or(BLOCKS) {
        if !setting.keep_going() {
            break;
        }
        setting.step(&format!("block {}", number + 1));
        let mut order: Vec<(usize, usize)> =
            (0..CALLS.len()).flat_map(|c| (0..Arm::ALL.len()).map(move |arm| (c, arm))).collect();
        shuffle(&mut order, &mut rng(derive_seed(seed, u64::from(number))));
        for (call, arm) in order {
            let how = (args.windows, Some(Arm::ALL[arm].nearness()));
            let found = block(CALLS[call], &cores, how, &clock)?;
            ensure!(
                !found.trips_ns.is_empty(),
                "the two ranks have no cores of their own; give --cores two that this process may use"
            );
            late += found.late;
            let ns: Vec<f64> = found.samples.iter().map(|sample| sample.ns).collect();
            times[call][arm].extend(median(&ns));
            trips.push(found.trips_ns);
        }
    }
    let collective = |(what, blocks): (What, [Vec<f64>; 4])| Collective::of(what, blocks);
    Ok(Figures {
        metric: "ns; a round trip is a flag to the other core and one back on the same line; a call is timed from \
                 when the later rank began to when the later one was done",
        round_trip: Trips::of(&trips),
        collectives: CALLS.into_iter().zip(times).map(collective).collect(),
        late_windows: late,
    })
}

impl Trips {
    /// Each block measured all candidates anew; a core may lie elsewhere in each.
    fn of(blocks: &[Vec<f64>]) -> Self {
        let sorted: Vec<Vec<f64>> = blocks
            .iter()
            .map(|block| {
                let mut block = block.clone();
                block.sort_by(f64::total_cmp);
                block
            })
            .collect();
        let at = |q: f64| {
            let each: Vec<f64> = sorted.iter().filter_map(|block| quantile(block, q)).collect();
            median(&each).unwrap_or(f64::NAN)
        };
        let over = |q: f64| {
            let each: Vec<f64> = sorted
                .iter()
                .filter_map(|block| Some(quantile(block, q)? / quantile(block, 0.0)?))
                .collect();
            median(&each).unwrap_or(f64::NAN)
        };
        Self {
            candidates: sorted.first().map_or(0, Vec::len),
            best_ns: at(0.0),
            p5_ns: at(0.05),
            median_ns: at(0.5),
            p95_ns: at(0.95),
            worst_ns: at(1.0),
            median_over_best: over(0.5),
            worst_over_best: over(1.0),
        }
    }
}

impl Collective {
    fn of(what: What, blocks_ns: [Vec<f64>; 4]) -> Self {
        let [nearest, middle, again, farthest] = &blocks_ns;
        Self {
            collective: what.collective().name(),
            nearest_ns: median(nearest),
            middle_ns: median(middle),
            farthest_ns: median(farthest),
            gain: Ratio::paired(middle, nearest, SEED),
            nearest_over_farthest: Ratio::paired(farthest, nearest, SEED),
            aa_control: Ratio::paired(again, middle, SEED),
            blocks_ns,
        }
    }
}

impl Findings for Figures {
    fn text(&self, width: u16) -> String {
        let trips = &self.round_trip;
        let mut text = format!(
            "round trips on {} lines: best {}, median {}, worst {}; the median takes {:.2} times as long as the best\n",
            trips.candidates,
            fmt::ns(trips.best_ns),
            fmt::ns(trips.median_ns),
            fmt::ns(trips.worst_ns),
            trips.median_over_best
        );
        let mut table = Table::new([
            "collective",
            "nearest",
            "middle",
            "farthest",
            "gain",
            "over farthest",
            "control",
        ]);
        let ns = |ns: Option<f64>| {
            ns.map_or_else(|| Cell::text("?"), |ns| Cell::number(ns, fmt::ns(ns)))
        };
        let ratio = |ratio: Option<Ratio>| {
            Cell::text(ratio.map_or_else(|| "?".to_owned(), |ratio| ratio.to_string()))
        };
        for one in &self.collectives {
            table.row([
                Cell::text(one.collective),
                ns(one.nearest_ns),
                ns(one.middle_ns),
                ns(one.farthest_ns),
                ratio(one.gain),
                ratio(one.nearest_over_farthest),
                ratio(one.aa_control),
            ]);
        }
        let _ = writeln!(text, "{}", table.to_terminal(width));
        let _ = writeln!(text, "{} late windows were left out", self.late_windows);
        text
    }
}
