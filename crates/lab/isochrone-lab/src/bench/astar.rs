//! `isochrone bench astar`: the paper's application, in both published shapes, on one core and on
//! two, with nodes for the LLC and for DRAM.
//!
//! Every core searches a board of its own, as in the paper, up to the same number of nodes in
//! every arm; the checksums say that these were the same nodes. Beside the pools stand allocators
//! under the same program, our library with `isochrone run`'s defaults among them.

use isochrone_report::json::Format;
use std::path::Path;

use anyhow::Result;
use isochrone_alloc::Mode;
use isochrone_console::turns::{Ratio, Verdict};
use isochrone_malloc::Pin;
use isochrone_report::fmt;
use isochrone_report::table::{Cell as Text, Table};
use isochrone_units::LINE_BYTES;
use serde::Serialize;

use super::Setting;
use super::contest::{Contest, learning_ms};
use super::field::{Field, Outcome};
use super::findings::Findings;
use super::rounds::{Cell, rounds};
use super::workers::ArmSpec;
use crate::args::AstarArgs;
use crate::workload::request::{AstarShape, Request};
use isochrone_console::output::WrongUsage;
use isochrone_console::run::atlas::Found;
use isochrone_console::run::{library, setup};
use isochrone_console::written::scratch;

/// Blocks unless told otherwise.
const BLOCKS: u32 = 15;
/// Korf's instances by difficulty, the easiest ones left out: these hold more nodes than any
/// budget here.
const INSTANCES: [u8; 16] = [88, 82, 60, 66, 59, 3, 14, 49, 53, 33, 15, 17, 92, 56, 91, 72];
/// The linear shape looks through its lists for every board: more nodes take minutes.
const LINEAR_NODES_MAX: usize = 8192;
/// Our library under the same program, as `isochrone run` sets it up.
const OURS: &str = "isochrone run";

/// One shape, one number of cores, one budget.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Figure {
    shape: AstarShape,
    cores: Vec<u16>,
    instances: Vec<u8>,
    /// Nodes that a search may hold, and their size.
    budget: usize,
    mib: f64,
    searches: u32,
    /// Nodes expanded in a second by a core with the oblivious pool.
    nodes_per_s: Option<f64>,
    #[serde(flatten)]
    outcome: Outcome,
}

/// All of them.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Figures {
    runs: Vec<Figure>,
    /// What the paper says of its 60 in-order cores, to stand beside.
    published: Published,
}

/// Figure 4a of the paper (section 5.2).
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Published {
    least_gain: f64,
    most_gain: f64,
}

impl Default for Published {
    fn default() -> Self {
        Self { least_gain: 1.17, most_gain: 1.28 }
    }
}

pub(super) fn measure(args: &AstarArgs, setting: &mut Setting<'_>) -> Result<Figures> {
    let scratch = scratch()?;
    let mut found = setting.atlas(scratch.path())?;
    let cores = setting.cores(2)?;
    setting.refresh(&mut found, &cores, scratch.path())?;
    let instances =
        if args.instances.is_empty() { INSTANCES.to_vec() } else { args.instances.clone() };
    if instances.len() < cores.len() {
        return Err(WrongUsage::error(format!(
            "--instances: {} are named for {} cores; name one for each",
            instances.len(),
            cores.len()
        )));
    }
    let extra = others(args, &found, scratch.path(), setting)?;
    let mut counts = vec![1, cores.len()];
    counts.dedup();
    let mut cells: Vec<Plan> = Vec::new();
    for shape in [AstarShape::Hashed, AstarShape::Linear] {
        for budget in budgets(args, shape, setting) {
            for count in &counts {
                let seed = setting.seed();
                let mut field =
                    Field::new(&args.placement, found.path.clone(), &cores[..*count], seed);
                extra.iter().cloned().for_each(|arm| field.add(arm));
                let instances = instances[..*count].to_vec();
                let contest = Contest::new(setting);
                cells.push(Plan { shape, budget, instances, field, searches: None, contest });
            }
        }
    }
    let mut all: Vec<&mut dyn Cell<()>> =
        cells.iter_mut().map(|cell| cell as &mut dyn Cell<()>).collect();
    rounds(&mut all, args.common.blocks.unwrap_or(BLOCKS), &mut (), setting);
    let mut figures = Figures::default();
    figures.runs.extend(cells.into_iter().filter_map(|cell| cell.figure(setting)));
    Ok(figures)
}

/// Allocators under the same program: our library first.
fn others(
    args: &AstarArgs,
    found: &Found,
    scratch: &Path,
    setting: &mut Setting<'_>,
) -> Result<Vec<ArmSpec>> {
    let mut arms = Vec::new();
    match library::find(None) {
        Ok(ours) => {
            let placement = &args.placement;
            let policy = setup::policy(Mode::Aware, placement, &found.contents);
            let mut config =
                setup::config(policy, placement, &found.contents, &found.path, scratch)?;
            // The program pins its own threads.
            config.pin = Pin::None;
            config.force = true;
            let place = scratch.join("config");
            std::fs::write(&place, config.to_bytes())?;
            arms.push(ArmSpec::malloc(OURS, Some(ours), Some(&place)));
        }
        Err(error) => setting.miss(&format!("{OURS}: {error:#}")),
    }
    for peer in library::allocators() {
        match library::allocator(peer) {
            Ok(path) => arms.push(ArmSpec::malloc(peer, Some(path), None)),
            Err(error) => setting.miss(&format!("no figures of {error:#}")),
        }
    }
    Ok(arms)
}

/// Nodes for a quarter of the LLC, and for twice of it; fewer for the linear shape.
fn budgets(args: &AstarArgs, shape: AstarShape, setting: &Setting<'_>) -> Vec<usize> {
    let llc = setting.machine().caches.iter().filter(|c| c.level >= 3).find_map(|c| c.bytes);
    let llc = usize::try_from(llc.unwrap_or(32 << 20)).unwrap_or(32 << 20);
    let mut budgets = match &args.budgets[..] {
        [] => vec![llc / 8 / LINE_BYTES, 2 * llc / LINE_BYTES],
        named => named.to_vec(),
    };
    if shape == AstarShape::Linear {
        budgets.iter_mut().for_each(|budget| *budget = (*budget).min(LINEAR_NODES_MAX));
        budgets.dedup();
    }
    budgets
}

/// What all arms do, and what came of it so far.
struct Plan {
    shape: AstarShape,
    budget: usize,
    instances: Vec<u8>,
    field: Field,
    /// Of one run, once that is known.
    searches: Option<u32>,
    contest: Contest,
}

impl Plan {
    fn figure(self, setting: &mut Setting<'_>) -> Option<Figure> {
        let what = self.what();
        if self.contest.series.blocks.is_empty() {
            return None;
        }
        let outcome = self.contest.outcome(&what, setting);
        if !outcome.same_work {
            setting.miss(&format!("{what}: the arms did not expand the same nodes"));
            return None;
        }
        Some(Figure {
            shape: self.shape,
            cores: self.field.common.cores.clone(),
            instances: self.instances,
            budget: self.budget,
            mib: (self.budget * LINE_BYTES) as f64 / f64::from(1 << 20),
            searches: self.searches.unwrap_or(0),
            nodes_per_s: outcome.oblivious_ns.map(|ns| 1e9 / ns),
            outcome,
        })
    }
}

impl Cell<()> for Plan {
    fn what(&self) -> String {
        let shape = match self.shape {
            AstarShape::Hashed => "hashed",
            AstarShape::Linear => "linear",
        };
        let cores = self.instances.len();
        let many = if cores == 1 { "" } else { "s" };
        format!("{shape} of {} nodes on {cores} core{many}", self.budget)
    }

    fn blocks(&self) -> usize {
        self.contest.series.blocks.len()
    }

    fn block(&mut self, (): &mut (), setting: &mut Setting<'_>) -> Result<()> {
        let what = self.what();
        setting.step(&format!("{what}: starting the arms"));
        let learning_ms = learning_ms(setting.share());
        let mut team = self.field.start(&self.contest.series.arms, setting)?;
        let (shape, budget, instances) = (self.shape, self.budget, &self.instances);
        let request = |epoch, searches| Request::Astar {
            shape,
            epoch,
            budget,
            instances: instances.clone(),
            searches,
            learning_ms,
        };
        let searches = match self.searches {
            Some(searches) => searches,
            None => team.searches(&|searches| request(u64::MAX, searches))?,
        };
        self.searches = Some(searches);
        self.contest.block(team, setting, &what, &|epoch| request(epoch, searches))
    }
}

impl Findings for Figures {
    const FORMAT: Format = Format::BenchAstar;

    fn text(&self, width: u16) -> String {
        let mut text = String::from("speed over the oblivious pool; memory over glibc\n");
        let mut table = Table::new([
            "shape", "cores", "MiB", "nodes/s", "aware", "oracle", "far", "A/A", "memory",
        ])
        .keyed(3);
        let mut others =
            Table::new(["shape", "cores", "MiB", "allocator", "speed", "memory"]).keyed(4);
        for figure in &self.runs {
            table.row(figure.row());
            for (name, ratio) in &figure.outcome.over_oblivious {
                let mut row = figure.head();
                row.push(Text::text(name.clone()));
                row.push(ratio_cell(*ratio));
                row.push(figure.memory(name));
                others.row(row);
            }
        }
        text.push_str(&table.to_terminal(width));
        if !others.is_empty() {
            text.push_str("\n\nallocators under the same program, over the oblivious pool\n");
            text.push_str(&others.to_terminal(width));
        }
        text.extend(self.runs.iter().map(Figure::verdict));
        let gains = self.runs.iter().filter(|figure| {
            let aware = figure.outcome.aware_over_oblivious;
            aware.is_some_and(|r| r.verdict(figure.outcome.aa_control) == Verdict::Gain)
        });
        text.push_str(&format!(
            "\nnear lines gain beyond the control in {} of {}; the paper's {:.2} to {:.2} is of \
             in-order cores",
            gains.count(),
            self.runs.len(),
            self.published.least_gain,
            self.published.most_gain
        ));
        text
    }
}

fn ratio_cell(ratio: Option<Ratio>) -> Text {
    Text::maybe(ratio.map(|r| r.median), |r| format!("{r:.3}"))
}

impl Figure {
    fn head(&self) -> Vec<Text> {
        vec![
            Text::text(self.shape_word()),
            Text::number(self.cores.len() as f64, self.cores.len().to_string()),
            Text::number(self.mib, fmt::significant(self.mib, 3)),
        ]
    }

    fn memory(&self, arm: &str) -> Text {
        Text::maybe(self.outcome.arms.get(arm).and_then(|arm| arm.rss_ratio), fmt::ratio)
    }

    /// What the ratio says beside its control.
    fn verdict(&self) -> String {
        let outcome = &self.outcome;
        let Some(ratio) = outcome.aware_over_oblivious else { return String::new() };
        let control = outcome.aa_control.map_or_else(String::new, |r| format!(", control {r}"));
        let share = outcome
            .share_of_oracle
            .map_or_else(String::new, |share| format!(", {share:.2} of the oracle's gain"));
        let cores = self.cores.len();
        format!(
            "\n{} on {cores}, {} nodes: {ratio}{control}{share}",
            self.shape_word(),
            self.budget
        )
    }

    fn shape_word(&self) -> &'static str {
        match self.shape {
            AstarShape::Hashed => "hashed",
            AstarShape::Linear => "linear",
        }
    }

    fn row(&self) -> Vec<Text> {
        let outcome = &self.outcome;
        let mut row = self.head();
        row.push(Text::maybe(self.nodes_per_s, |n| fmt::significant(n, 3)));
        row.push(ratio_cell(outcome.aware_over_oblivious));
        row.push(ratio_cell(outcome.oracle_over_oblivious));
        row.push(ratio_cell(outcome.adversarial_over_oblivious));
        row.push(ratio_cell(outcome.aa_control));
        row.push(self.memory("aware"));
        row
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::field::{AGAIN, BASE};
    use super::super::fixtures::{fits, series};
    use super::*;

    #[test]
    fn tables_fit_a_terminal() {
        let arms = [BASE, AGAIN, "aware", "oracle", "adversarial", "glibc", OURS, "mimalloc"];
        let figure = Figure {
            shape: AstarShape::Hashed,
            cores: vec![0, 1],
            instances: vec![88, 82],
            budget: 1 << 20,
            mib: 64.0,
            searches: 1,
            nodes_per_s: Some(1.234e7),
            outcome: Outcome::of(series(&arms, 6), BTreeMap::new(), true, 1),
        };
        fits(&Figures { runs: vec![figure], ..Figures::default() });
    }
}
