//! `isochrone bench flags`: how far apart lines are for a pair of cores, and what that does to a broadcast and
//! a barrier.
//!
//! A team of two threads hands every candidate to and fro and takes the nearest, those in the middle or the
//! farthest, or those that the atlas calls nearest. Then calls are timed in windows, as `verify model` does.
//! Every block makes a new team.

#[cfg(test)]
mod tests;

use isochrone_report::json::Format;
use std::cell::RefCell;
use std::fmt::Write as _;
use std::sync::Arc;

use anyhow::{Result, ensure};
use isochrone_cla::live::{Nearness, late_ns};
use isochrone_console::turns::{Costs, Ratio};
use isochrone_console::written::scratch;
use isochrone_os::clock::Clock;
use isochrone_report::fmt;
use isochrone_report::table::{Cell, Table};
use isochrone_stats::{derive_seed, mean, median, quantile, rng, shuffle, spearman};
use isochrone_units::{CoreId, Reading};
use serde::Serialize;

use super::Setting;
use super::findings::Findings;
use super::known_lines::{Distances, KnownLines};
use super::locked::{self, Locked};
use crate::args::FlagsArgs;
use crate::verify::live::{Block, Lines, What, block};

/// Blocks unless told otherwise.
const BLOCKS: u32 = 15;
/// Seed of bootstraps.
const SEED: u64 = 13;
/// What is timed on the lines.
const CALLS: [What; 2] = [What::Broadcast, What::Barrier];

/// The arms: the middle stands for lines that nobody chose, and is there twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum Arm {
    Nearest,
    Middle,
    MiddleAgain,
    Farthest,
    /// Those that the atlas calls nearest.
    Atlas,
}

impl Arm {
    const ALL: [Self; ARMS] =
        [Self::Nearest, Self::Middle, Self::MiddleAgain, Self::Farthest, Self::Atlas];

    const fn nearness(self) -> Option<Nearness> {
        match self {
            Self::Nearest => Some(Nearness::Nearest),
            Self::Middle | Self::MiddleAgain => Some(Nearness::Middle),
            Self::Farthest => Some(Nearness::Farthest),
            Self::Atlas => None,
        }
    }
}

/// How many arms there are.
const ARMS: usize = 5;
/// Lines that count as those which a choice takes first: about as many as a broadcast uses.
const TAKEN: usize = 32;

/// What each block measured, by arm: nothing where the atlas had no answer.
type Blocks = [Vec<Option<f64>>; ARMS];

/// Round trips over all candidates, ns: the medians over blocks.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Collective {
    collective: &'static str,
    nearest_ns: Option<f64>,
    /// On the lines that the atlas calls nearest; none where it had no answer.
    atlas_ns: Option<f64>,
    middle_ns: Option<f64>,
    farthest_ns: Option<f64>,
    /// How many times faster on the nearest lines than on those in the middle.
    gain: Option<Ratio>,
    /// The same for the lines that the atlas calls nearest.
    atlas_gain: Option<Ratio>,
    /// How many times faster on the nearest than on the farthest.
    nearest_over_farthest: Option<Ratio>,
    /// The middle against the middle.
    aa_control: Option<Ratio>,
    /// Medians of blocks, by arm.
    blocks_ns: Blocks,
}

/// What the atlas says of the lines, against what measuring says.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ByAtlas {
    /// Blocks in which the atlas had an answer, and all in which it was asked.
    answered: usize,
    asked: usize,
    /// The share of candidates whose pages were decoded, the median over blocks.
    decoded: Option<f64>,
    /// Rank correlation over lines between the measured round trip and the sum of the cores' latencies in the
    /// last-level cache, and in memory: medians over blocks.
    rank_correlation_llc: Option<f64>,
    rank_correlation_dram: Option<f64>,
    /// Why there is none, where the atlas had an answer.
    rank_correlation_note: Option<&'static str>,
    /// Mean round trip of the 32 lines that the atlas calls nearest, of the 32 that measuring finds nearest, and
    /// of all lines, ns: medians over blocks.
    atlas_ns: Option<f64>,
    nearest_ns: Option<f64>,
    all_ns: Option<f64>,
    /// Why it had no answer, where it never had.
    note: Option<String>,
}

/// Why there is no rank correlation: only values without an order have none.
const ALL_EQUAL: &str = "all lines are equally far";

/// All figures.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Figures {
    metric: &'static str,
    round_trip: Trips,
    by_atlas: ByAtlas,
    /// How flags are placed unless something else is asked for, given these figures.
    better: &'static str,
    collectives: Vec<Collective>,
    /// Flags by a locked instruction against flags by stores.
    locked: Vec<Locked>,
    late_windows: usize,
    /// From when on after its moment a rank was late, ns: measured at the start.
    late_ns: f64,
}

/// Runs all blocks.
pub(super) fn measure(args: &FlagsArgs, setting: &mut Setting<'_>) -> Result<Figures> {
    let cores: [CoreId; 2] = setting.cores(2)?.try_into().map_err(|cores: Vec<CoreId>| {
        anyhow::anyhow!("a line goes between 2 cores, and this process has {}", cores.len())
    })?;
    let clock = Clock::calibrate();
    let seed = setting.seed();
    let scratch = scratch()?;
    let known = Arc::new(known_lines(setting, scratch.path(), &cores, &clock));
    let mut times: Vec<Blocks> = vec![Blocks::default(); CALLS.len()];
    let (mut trips, mut against) = (Vec::new(), Against::default());
    let mut locked = locked::Blocks::default();
    let mut late = 0;
    let blocks = args.common.blocks.unwrap_or(BLOCKS);
    let mut made = 0;
    let stop = setting.stop();
    'blocks: while made < blocks {
        let number = made;
        setting.step(&format!("block {}", number + 1));
        let mut order: Vec<(usize, usize)> =
            (0..CALLS.len()).flat_map(|c| (0..ARMS).map(move |arm| (c, arm))).collect();
        shuffle(&mut order, &mut rng(derive_seed(seed, u64::from(number))));
        for (call, arm) in order {
            if stop.is_set() {
                break 'blocks;
            }
            let asked = Arm::ALL[arm].nearness();
            let (known, windows) = (Arc::clone(&known), args.windows);
            let one = stop.apart(move || one(CALLS[call], cores, windows, asked, &known, &clock));
            let (found, distances) = match one {
                Err(_) if stop.is_set() => break 'blocks,
                one => one?,
            };
            ensure!(
                !found.trips_ns.is_empty(),
                "the two ranks have no cores of their own; give --cores two that this process may use"
            );
            late += found.late;
            let ns: Vec<f64> = found.samples.iter().map(|sample| sample.ns).collect();
            let answered = asked.is_some() || !found.distances.is_empty();
            times[call][arm].push(median(&ns).filter(|_| answered));
            if asked.is_none() {
                against.add(&found, &distances);
            }
            trips.push(found.trips_ns);
        }
        if !locked.add(cores, &clock, derive_seed(seed, u64::from(number)), &stop)? {
            break;
        }
        made += 1;
    }
    setting.made("all calls on all lines", made as usize, blocks);
    ensure!(!trips.is_empty(), "no call was timed");
    let collectives: Vec<Collective> =
        CALLS.into_iter().zip(times).map(|(what, blocks)| Collective::of(what, blocks)).collect();
    let atlas_is_better =
        |one: &Collective| one.atlas_ns.zip(one.nearest_ns).is_some_and(|(a, n)| a < n);
    let better =
        if collectives.iter().all(atlas_is_better) { "atlas" } else { Reading::Measured.as_str() };
    Ok(Figures {
        metric: "ns; a round trip is a flag to the other core and one back on the same line; a call is timed from \
                 when the later rank began to when the later one was done",
        round_trip: Trips::of(&trips),
        by_atlas: against.figures(),
        better,
        collectives,
        locked: locked.figures(),
        late_windows: late,
        late_ns: late_ns(&clock),
    })
}

/// Some windows of one call on lines that are measured to be so near, or that the atlas calls nearest, and what that
/// said of them.
fn one(
    what: What,
    cores: [CoreId; 2],
    windows: u64,
    asked: Option<Nearness>,
    known: &Result<KnownLines, String>,
    clock: &Clock,
) -> Result<(Block, Result<Distances, String>)> {
    let latest = RefCell::new(Ok(Distances::default()));
    let by_atlas = |team: &isochrone_cla::live::Team| -> Result<Vec<f64>> {
        let found = known.as_ref().map_err(Clone::clone);
        let found = found.and_then(|known| known.of(team).map_err(|error| format!("{error:#}")));
        let llc = found.as_ref().map(|found| found.llc.clone()).unwrap_or_default();
        *latest.borrow_mut() = found;
        Ok(llc)
    };
    let lines = asked.map_or(Lines::Known(&by_atlas), Lines::Measured);
    let found = block(what, &cores, windows, lines, None, clock)?;
    Ok((found, latest.into_inner()))
}

/// The atlas, or why none can be used.
fn known_lines(
    setting: &mut Setting<'_>,
    scratch: &std::path::Path,
    cores: &[CoreId],
    clock: &Clock,
) -> Result<KnownLines, String> {
    let found = setting.atlas(scratch).map_err(|error| format!("{error:#}"))?;
    let l2 = found.contents.machine.caches.iter().find(|cache| cache.level == 2);
    let l2_bytes = l2.and_then(|cache| cache.bytes);
    KnownLines::new(found.atlas, cores, l2_bytes, clock).map_err(|error| format!("{error:#}"))
}

/// What the atlas said in each block, and what was measured on the same lines.
#[derive(Debug, Default)]
struct Against {
    asked: usize,
    decoded: Vec<f64>,
    correlations: [Vec<f64>; 2],
    /// By the atlas's nearest lines, the nearest by measuring, all.
    trips_ns: [Vec<f64>; 3],
    why: Option<String>,
}

impl Against {
    fn add(&mut self, block: &Block, found: &Result<Distances, String>) {
        self.asked += 1;
        let found = match found {
            Ok(found) if !found.llc.is_empty() => found,
            Ok(_) => {
                self.why = Some("the cores wear none of the atlas's bases".to_owned());
                return;
            }
            Err(why) => {
                self.why = Some(why.clone());
                return;
            }
        };
        self.decoded.push(found.decoded);
        let trips = &block.trips_ns;
        let all = [&found.llc, &found.dram];
        for (correlations, distances) in self.correlations.iter_mut().zip(all) {
            correlations.extend(spearman(distances, trips));
        }
        let by = [first(&found.llc, trips), first(trips, trips), mean(trips)];
        for (ns, found) in self.trips_ns.iter_mut().zip(by) {
            ns.extend(found);
        }
    }

    fn figures(self) -> ByAtlas {
        let [llc, dram] = &self.correlations;
        let [atlas, nearest, all] = &self.trips_ns;
        let one_is_missing = !self.decoded.is_empty() && (llc.is_empty() || dram.is_empty());
        ByAtlas {
            answered: self.decoded.len(),
            asked: self.asked,
            decoded: median(&self.decoded),
            rank_correlation_llc: median(llc),
            rank_correlation_dram: median(dram),
            rank_correlation_note: one_is_missing.then_some(ALL_EQUAL),
            atlas_ns: median(atlas),
            nearest_ns: median(nearest),
            all_ns: median(all),
            note: self.why.filter(|_| self.decoded.is_empty()),
        }
    }
}

/// The mean of `values` over the lines whose distances are least.
fn first(distances: &[f64], values: &[f64]) -> Option<f64> {
    let mut order: Vec<usize> = (0..distances.len().min(values.len())).collect();
    order.sort_by(|&a, &b| distances[a].total_cmp(&distances[b]));
    mean(&order.iter().take(TAKEN).map(|&line| values[line]).collect::<Vec<_>>())
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
    fn of(what: What, blocks_ns: Blocks) -> Self {
        let at = |arm: Arm| blocks_ns[arm as usize].as_slice();
        let ns = |arm: Arm| median(&at(arm).iter().flatten().copied().collect::<Vec<_>>());
        // Only blocks in which both were measured.
        let over = |above: Arm, under: Arm| {
            let both = at(above).iter().zip(at(under)).filter_map(|(a, u)| (*a).zip(*u));
            let (above, under): (Vec<f64>, Vec<f64>) = both.unzip();
            Ratio::paired(Costs::measured(&above), Costs::measured(&under), SEED)
        };
        Self {
            collective: what.collective().name(),
            nearest_ns: ns(Arm::Nearest),
            atlas_ns: ns(Arm::Atlas),
            middle_ns: ns(Arm::Middle),
            farthest_ns: ns(Arm::Farthest),
            gain: over(Arm::Middle, Arm::Nearest),
            atlas_gain: over(Arm::Middle, Arm::Atlas),
            nearest_over_farthest: over(Arm::Farthest, Arm::Nearest),
            aa_control: over(Arm::MiddleAgain, Arm::Middle),
            blocks_ns,
        }
    }
}

impl ByAtlas {
    fn text(&self) -> String {
        if let Some(note) = &self.note {
            return format!("by the atlas: no answer, {note}; lines are chosen by measuring\n");
        }
        let ns = |ns: Option<f64>| ns.map_or_else(|| NONE.to_owned(), fmt::ns);
        let r = |r: Option<f64>| {
            r.map_or_else(|| format!("{NONE} ({ALL_EQUAL})"), |r| format!("{r:.2}"))
        };
        format!(
            "by the atlas, in {} of {} blocks: a round trip on the {TAKEN} lines that it calls nearest takes {}, \
             on the {TAKEN} nearest by measuring {}, on all {}; rank correlation over lines with the distance in \
             the last-level cache {}, in memory {}\n",
            self.answered,
            self.asked,
            ns(self.atlas_ns),
            ns(self.nearest_ns),
            ns(self.all_ns),
            r(self.rank_correlation_llc),
            r(self.rank_correlation_dram),
        )
    }
}

/// What stands where there is no figure; the reason stands beside the table.
const NONE: &str = "none";

fn ns(ns: Option<f64>) -> Cell {
    ns.map_or_else(|| Cell::text(NONE), |ns| Cell::number(ns, fmt::ns(ns)))
}

fn ratio(ratio: Option<Ratio>) -> Cell {
    ratio.map_or_else(|| Cell::text(NONE), |ratio| Cell::number(ratio.median, ratio.to_string()))
}

/// Both ways to write a flag.
fn locked_table(locked: &[Locked]) -> Table {
    let mut table =
        Table::new(["flags", "calls", "by stores", "locked", "locked over stores", "control"])
            .keyed(2);
    for one in locked {
        table.row([
            Cell::text(one.collective),
            Cell::text(one.calls),
            ns(one.stores_ns),
            ns(one.locked_ns),
            ratio(one.locked_over_stores),
            ratio(one.aa_control),
        ]);
    }
    table
}

impl Findings for Figures {
    const FORMAT: Format = Format::BenchFlags;

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
        text.push_str(&self.by_atlas.text());
        let mut table = Table::new([
            "collective",
            "nearest",
            "atlas",
            "middle",
            "farthest",
            "gain",
            "by atlas",
            "over farthest",
            "control",
        ]);
        for one in &self.collectives {
            table.row([
                Cell::text(one.collective),
                ns(one.nearest_ns),
                ns(one.atlas_ns),
                ns(one.middle_ns),
                ns(one.farthest_ns),
                ratio(one.gain),
                ratio(one.atlas_gain),
                ratio(one.nearest_over_farthest),
                ratio(one.aa_control),
            ]);
        }
        let _ = writeln!(text, "{}", table.to_terminal(width));
        let _ = writeln!(text, "better here: {}", self.better);
        let _ = writeln!(text, "{}", locked_table(&self.locked).to_terminal(width));
        let _ = writeln!(text, "{} late windows were left out", self.late_windows);
        text
    }
}
