//! What `bench taskbench` writes and prints.

use isochrone_report::json::Format;
use std::collections::BTreeMap;

use isochrone_console::turns::{Costs, Ratio};
use isochrone_report::fmt;
use isochrone_report::table::{Cell, Table};
use isochrone_stats::bootstrap_median_ci;
use serde::Serialize;

use super::system::{AGAIN, OURS, Ranges};
use crate::args::TaskbenchArgs;
use crate::bench::beside_peers::{BesidePeer, Ours, Sense};
use crate::bench::findings::Findings;

/// METG in microseconds of each block, by pattern and width.
pub(super) type Sizes = BTreeMap<&'static str, BTreeMap<u32, Vec<f64>>>;

/// Fewest steps that graphs were measured with, by pattern and width.
pub(super) type Steps = BTreeMap<&'static str, BTreeMap<u32, u32>>;

/// What an empty task cost in one block.
#[derive(Clone, Copy, Debug)]
pub(super) struct EmptyCost {
    /// Nanoseconds a task.
    pub(super) ns: f64,
    /// Share of the tasks that another thread than the registering one ran.
    pub(super) others: f64,
    /// Tasks in a run.
    pub(super) tasks: u64,
}

/// All that one system answered.
pub(super) struct Answers {
    pub(super) name: String,
    pub(super) cost: Cost,
    pub(super) sizes: Sizes,
    pub(super) steps: Steps,
}

/// Ours among the systems.
const BOTH: Ours = Ours { first: OURS, again: AGAIN };
/// Resamples of every interval.
const RESAMPLES: usize = 4000;
/// Confidence of every interval.
const LEVEL: f64 = 0.95;

/// A median over blocks with its interval.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Median {
    median: f64,
    lo: f64,
    hi: f64,
    blocks: usize,
}

impl Median {
    fn of(values: &[f64], seed: u64) -> Option<Self> {
        let found = bootstrap_median_ci(values, RESAMPLES, LEVEL, seed)?;
        Some(Self { median: found.median, lo: found.lo, hi: found.hi, blocks: values.len() })
    }
}

/// What an empty task costs.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Cost {
    ns_per_task_nodep: Option<f64>,
    ns_per_task_3dep: Option<f64>,
    /// With three ranges that overlap others in part: the slower path. `null` for systems that know none.
    ns_per_task_overlap: Option<f64>,
    /// Inside of tasks, each of which waits for two. `null` for systems that know none.
    ns_per_task_nested: Option<f64>,
    /// With intervals.
    nodep: Option<Median>,
    three_dep: Option<Median>,
    nested: Option<Median>,
    /// Share of the tasks that another thread than the registering one ran.
    share_of_others_nodep: Option<f64>,
    share_of_others_3dep: Option<f64>,
    /// Fewest tasks in a run: slow systems get fewer.
    tasks_nodep: Option<u64>,
    tasks_3dep: Option<u64>,
    /// Of each block.
    blocks_nodep: Vec<f64>,
    blocks_3dep: Vec<f64>,
    blocks_nested: Vec<f64>,
}

impl Cost {
    pub(super) fn of(
        all: &BTreeMap<(String, Ranges), Vec<EmptyCost>>,
        name: &str,
        seed: u64,
    ) -> Self {
        let of = |kind: Ranges| all.get(&(name.to_owned(), kind)).cloned().unwrap_or_default();
        let ns = |kind| of(kind).iter().map(|run| run.ns).collect::<Vec<f64>>();
        let others = |kind| {
            isochrone_stats::median(&of(kind).iter().map(|run| run.others).collect::<Vec<f64>>())
        };
        let tasks = |kind| of(kind).iter().map(|run| run.tasks).min();
        let (blocks_nodep, blocks_3dep) = (ns(Ranges::None), ns(Ranges::Three));
        let blocks_nested = ns(Ranges::Nested);
        Self {
            ns_per_task_nodep: isochrone_stats::median(&blocks_nodep),
            ns_per_task_3dep: isochrone_stats::median(&blocks_3dep),
            ns_per_task_overlap: isochrone_stats::median(&ns(Ranges::Overlapping)),
            ns_per_task_nested: isochrone_stats::median(&blocks_nested),
            nodep: Median::of(&blocks_nodep, seed),
            three_dep: Median::of(&blocks_3dep, seed),
            nested: Median::of(&blocks_nested, seed),
            share_of_others_nodep: others(Ranges::None),
            share_of_others_3dep: others(Ranges::Three),
            tasks_nodep: tasks(Ranges::None),
            tasks_3dep: tasks(Ranges::Three),
            blocks_nodep,
            blocks_3dep,
            blocks_nested,
        }
    }
}

/// A graph of tasks that do nothing, with more workers than cores.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Crowded {
    workers: usize,
    /// Points of a step.
    width: u32,
    /// By system.
    ns_per_task: BTreeMap<String, Option<Median>>,
    ns_per_task_blocks: BTreeMap<String, Vec<f64>>,
    /// Fewest tasks in a run: slow systems get fewer.
    tasks: BTreeMap<String, u64>,
    over_peer: Vec<BesidePeer>,
}

impl Crowded {
    /// Of nanoseconds and tasks in each block.
    pub(super) fn new(
        workers: usize,
        width: u32,
        found: &BTreeMap<String, Vec<(f64, u64)>>,
        seed: u64,
    ) -> Self {
        // A block in which not every system was asked has no partner.
        let made = found.values().map(Vec::len).min().unwrap_or(0);
        let whole = || found.iter().map(move |(name, blocks)| (name, &blocks[..made]));
        let ns = |blocks: &[(f64, u64)]| blocks.iter().map(|block| block.0).collect::<Vec<f64>>();
        let by_name: BTreeMap<&str, Vec<f64>> =
            whole().map(|(name, blocks)| (name.as_str(), ns(blocks))).collect();
        let fewest = whole().filter_map(|(name, blocks)| {
            Some((name.clone(), blocks.iter().map(|block| block.1).min()?))
        });
        let median =
            |(name, blocks): (&&str, &Vec<f64>)| ((*name).to_owned(), Median::of(blocks, seed));
        Self {
            workers,
            width,
            ns_per_task: by_name.iter().map(median).collect(),
            tasks: fewest.collect(),
            over_peer: BesidePeer::all(&by_name, BOTH, Sense::OursOverPeer, seed),
            ns_per_task_blocks: whole().map(|(name, b)| (name.clone(), ns(b))).collect(),
        }
    }

    fn text(&self, width: u16) -> String {
        let mut costs = Table::new(["system", "a task"]);
        for (name, found) in &self.ns_per_task {
            let ns = found.as_ref().map(|found| found.median);
            let ns = Cell::maybe(ns, |ns| format!("{} ns", fmt::significant(ns, 3)));
            costs.row([Cell::text(name), ns]);
        }
        let ratios = BesidePeer::table(&self.over_peer, "a task");
        format!(
            "A graph of empty tasks, {} points, {} workers, which are more than cores:\n{}\n{}",
            self.width,
            self.workers,
            costs.to_terminal(width),
            ratios.to_terminal(width)
        )
    }
}

/// The best peer's METG over ours: above 1 ours is smaller.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Against {
    pattern: &'static str,
    width: u32,
    best_peer: String,
    #[serde(flatten)]
    ratio: Ratio,
    /// Ours over itself.
    control: Option<Ratio>,
}

/// The file.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(in crate::bench) struct Figures {
    /// Every graph of every run ended with the serial number; a run that does not is an error.
    verified: bool,
    /// Largest difference of a result from the serial one; results are whole numbers.
    residual: f64,
    workers: usize,
    steps: u32,
    tasks: u64,
    #[serde(flatten)]
    ours: Cost,
    peers: BTreeMap<String, Cost>,
    /// By system, pattern and width.
    metg_us: BTreeMap<String, BTreeMap<&'static str, BTreeMap<u32, Option<Median>>>>,
    /// Of each block.
    metg_us_blocks: BTreeMap<String, Sizes>,
    /// Fewest steps of each, where a system is too slow for all of them.
    metg_steps: BTreeMap<String, Steps>,
    over_best_peer: Vec<Against>,
    nested_over_peer: Vec<BesidePeer>,
    oversubscribed: Crowded,
}

impl Figures {
    pub(super) fn new(
        workers: usize,
        args: &TaskbenchArgs,
        answers: Vec<Answers>,
        oversubscribed: Crowded,
        seed: u64,
    ) -> Self {
        let mut costs: BTreeMap<String, Cost> = BTreeMap::new();
        let mut blocks: BTreeMap<String, Sizes> = BTreeMap::new();
        let mut metg_steps = BTreeMap::new();
        for Answers { name, cost, sizes, steps } in answers {
            costs.insert(name.clone(), cost);
            metg_steps.insert(name.clone(), steps);
            blocks.insert(name, sizes);
        }
        let ours = costs.remove(OURS).unwrap_or_default();
        let metg_us = blocks.iter().map(|(name, sizes)| {
            let by_pattern = sizes.iter().map(|(pattern, widths)| {
                let by_width = widths.iter().map(|(w, values)| (*w, Median::of(values, seed)));
                (*pattern, by_width.collect())
            });
            (name.clone(), by_pattern.collect())
        });
        let nested = costs.iter().map(|(name, cost)| (name.as_str(), cost.blocks_nested.clone()));
        let nested = nested.chain([(OURS, ours.blocks_nested.clone())]).collect();
        Self {
            verified: true,
            residual: 0.0,
            workers,
            steps: args.steps,
            tasks: args.tasks,
            nested_over_peer: BesidePeer::all(&nested, BOTH, Sense::OursOverPeer, seed),
            oversubscribed,
            ours,
            metg_us: metg_us.collect(),
            over_best_peer: against(&blocks, seed),
            peers: costs,
            metg_us_blocks: blocks,
            metg_steps,
        }
    }
}

impl Findings for Figures {
    const FORMAT: Format = Format::BenchTaskbench;

    fn text(&self, width: u16) -> String {
        let ns =
            |value: Option<f64>| Cell::maybe(value, |ns| format!("{} ns", fmt::significant(ns, 3)));
        let mut empty = Table::new([
            "system",
            "no ranges",
            "by others",
            "three",
            "by others",
            "overlapping",
            "nested",
        ]);
        let ours = std::iter::once((OURS, &self.ours));
        for (name, cost) in ours.chain(self.peers.iter().map(|(n, c)| (n.as_str(), c))) {
            empty.row([
                Cell::text(name),
                ns(cost.ns_per_task_nodep),
                Cell::maybe(cost.share_of_others_nodep, fmt::percent),
                ns(cost.ns_per_task_3dep),
                Cell::maybe(cost.share_of_others_3dep, fmt::percent),
                ns(cost.ns_per_task_overlap),
                ns(cost.ns_per_task_nested),
            ]);
        }
        let names: Vec<&String> = self.metg_us.keys().filter(|name| *name != AGAIN).collect();
        let head = ["pattern".to_owned(), "points".to_owned()];
        let heads = head.into_iter().chain(names.iter().map(|name| (*name).clone()));
        let ratio = "best peer / ours".to_owned();
        let mut metg = Table::new(heads.chain([ratio]).collect::<Vec<String>>()).keyed(2);
        for against in &self.over_best_peer {
            let (pattern, points) = (against.pattern, against.width);
            let of = |name: &String| self.metg_us.get(name)?.get(pattern)?.get(&points)?.as_ref();
            let us = |name: &&String| {
                let value = of(name).map(|found| found.median);
                Cell::maybe(value, |us| format!("{} us", fmt::significant(us, 3)))
            };
            let mut row =
                vec![Cell::text(pattern), Cell::number(f64::from(points), points.to_string())];
            row.extend(names.iter().map(us));
            row.push(Cell::number(against.ratio.median, against.ratio.to_string()));
            metg.row(row);
        }
        let nested = BesidePeer::table(&self.nested_over_peer, "a nested task");
        format!(
            "An empty task, one thread registers, {} workers:\n{}\nA task inside of a task:\n{}\n{}\nMETG(50 %), {} \
             steps:\n{}",
            self.workers,
            empty.to_terminal(width),
            nested.to_terminal(width),
            self.oversubscribed.text(width),
            self.steps,
            metg.to_terminal(width)
        )
    }
}

/// For each graph the peer with the smallest median, block by block against ours.
fn against(blocks: &BTreeMap<String, Sizes>, seed: u64) -> Vec<Against> {
    let values = |name: &str, pattern: &str, width: u32| -> Option<&Vec<f64>> {
        blocks.get(name)?.get(pattern)?.get(&width)
    };
    let mut out = Vec::new();
    for (pattern, widths) in blocks.get(OURS).into_iter().flatten() {
        for (width, ours) in widths {
            let peers = blocks.keys().filter(|name| ![OURS, AGAIN].contains(&name.as_str()));
            let median = |name: &&String| {
                let found = values(name, pattern, *width).filter(|v| v.len() == ours.len())?;
                isochrone_stats::median(found)
            };
            let best = peers.filter_map(|name| Some((name, median(&name)?)));
            let Some((best, _)) = best.min_by(|a, b| a.1.total_cmp(&b.1)) else { continue };
            let ratio = |name: &str| {
                let theirs = Costs::measured(values(name, pattern, *width)?);
                Ratio::paired(theirs, Costs::measured(ours), seed)
            };
            if let Some(found) = ratio(best) {
                out.push(Against {
                    pattern,
                    width: *width,
                    best_peer: best.clone(),
                    ratio: found,
                    control: ratio(AGAIN),
                });
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{BenchCommand, Cli, Command};
    use crate::bench::fixtures::fits;

    #[test]
    fn tables_fit_a_terminal() {
        let cli = Cli::try_parse_from(["isochrone-lab", "bench", "taskbench"]).unwrap();
        let Command::Bench { command: BenchCommand::Taskbench(args) } = cli.command else {
            panic!("another command")
        };
        let empty = EmptyCost { ns: 1234.5, others: 0.4567, tasks: 1_000_000 };
        let answers = |name: &str| {
            let costs = [Ranges::None, Ranges::Three, Ranges::Overlapping, Ranges::Nested]
                .map(|ranges| ((name.to_owned(), ranges), vec![empty; 6]));
            Answers {
                name: name.to_owned(),
                cost: Cost::of(&costs.into(), name, 1),
                sizes: [("stencil_1d", [(64, vec![12.34; 6])].into())].into(),
                steps: [("stencil_1d", [(64, 1000)].into())].into(),
            }
        };
        let all = [OURS, AGAIN, "libgomp", "libomp", "onetbb", "starpu"].map(answers);
        let names = [OURS, AGAIN, "libgomp", "libomp", "onetbb"];
        let blocks = names.map(|name| (name.to_owned(), vec![(1234.5, 100_000); 6])).into();
        fits(&Figures::new(16, &args, all.into(), Crowded::new(64, 100, &blocks, 1), 1));
    }
}
