//! `isochrone bench astar`: the paper's application, in both published shapes, on one core and on
//! two, with nodes for the LLC and for DRAM.
//!
//! Every core searches a board of its own, as in the paper, up to the same number of nodes in
//! every arm; the checksums say that these were the same nodes. Beside the pools stand allocators
//! under the same program, our library with `isochrone run`'s defaults among them.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use isochrone_alloc::Mode;
use isochrone_malloc::Pin;
use isochrone_report::fmt;
use isochrone_report::table::{Cell, Table};
use isochrone_units::LINE_BYTES;
use serde::Serialize;

use super::Findings;
use super::Setting;
use super::field::{Field, Outcome};
use super::peers::PEERS;
use super::ratio::{Ratio, Verdict};
use super::workers::ArmSpec;
use crate::args::AstarArgs;
use crate::run::atlas::Found;
use crate::run::{library, setup};
use crate::workload::request::{AstarShape, Request};

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
pub(super) struct Figures {
    runs: Vec<Figure>,
    /// What the paper says of its 60 in-order cores, to stand beside.
    published: Published,
}

/// Figure 4a of the paper (section 5.2).
#[derive(Clone, Copy, Debug, Serialize)]
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
    let scratch = tempfile::tempdir().context("there is no place for temporary files")?;
    let mut found = setting.atlas(scratch.path())?;
    let cores = setting.cores(2)?;
    setting.refresh(&mut found, &cores, scratch.path())?;
    let instances =
        if args.instances.is_empty() { INSTANCES.to_vec() } else { args.instances.clone() };
    ensure!(
        instances.len() >= cores.len(),
        "--instances: {} are named for {} cores; name one for each",
        instances.len(),
        cores.len()
    );
    let extra = others(args, &found, scratch.path(), setting)?;
    let mut figures = Figures::default();
    let mut counts = vec![1, cores.len()];
    counts.dedup();
    for shape in [AstarShape::Hashed, AstarShape::Linear] {
        for budget in budgets(args, shape, setting) {
            for count in &counts {
                if !setting.keep_going() {
                    return Ok(figures);
                }
                let placement = &args.placement;
                let seed = setting.seed();
                let mut field = Field::new(placement, found.path.clone(), &cores[..*count], seed);
                extra.iter().cloned().for_each(|arm| field.add(arm));
                let plan = Plan { shape, budget, instances: instances[..*count].to_vec() };
                let blocks = args.common.blocks.unwrap_or(BLOCKS);
                match plan.run(&field, blocks, setting) {
                    Ok(found) => figures.runs.extend(found),
                    Err(_) if !setting.keep_going() => {}
                    Err(error) => setting.miss(&format!("{}: {error:#}", plan.words())),
                }
            }
        }
    }
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
    for peer in PEERS {
        match peer.find() {
            Some(path) => arms.push(ArmSpec::malloc(peer.name, Some(path), None)),
            None => setting.miss(&peer.advice()),
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

/// What all arms do.
struct Plan {
    shape: AstarShape,
    budget: usize,
    instances: Vec<u8>,
}

impl Plan {
    fn words(&self) -> String {
        let shape = match self.shape {
            AstarShape::Hashed => "hashed",
            AstarShape::Linear => "linear",
        };
        let cores = self.instances.len();
        format!("{shape}, {} nodes, {cores} core{}", self.budget, if cores == 1 { "" } else { "s" })
    }

    fn request(&self, epoch: u64, searches: u32) -> Request {
        Request::Astar {
            shape: self.shape,
            epoch,
            budget: self.budget,
            instances: self.instances.clone(),
            searches,
        }
    }

    fn run(&self, field: &Field, blocks: u32, setting: &mut Setting<'_>) -> Result<Option<Figure>> {
        let what = self.words();
        setting.step(&format!("{what}: starting the arms"));
        let mut team = field.start(setting)?;
        let searches = team.searches(&|searches| self.request(u64::MAX, searches))?;
        let outcome =
            team.compete(setting, blocks, &what, &|epoch| self.request(epoch, searches))?;
        if outcome.series.blocks.is_empty() {
            return Ok(None);
        }
        if !outcome.same_work {
            bail!("the arms did not expand the same nodes");
        }
        Ok(Some(Figure {
            shape: self.shape,
            cores: field.common.cores.clone(),
            instances: self.instances.clone(),
            budget: self.budget,
            mib: (self.budget * LINE_BYTES) as f64 / f64::from(1 << 20),
            searches,
            nodes_per_s: outcome.oblivious_ns.map(|ns| 1e9 / ns),
            outcome,
        }))
    }
}

impl Findings for Figures {
    fn text(&self, width: u16) -> String {
        let mut text = String::from("speed over the oblivious pool; memory over glibc\n");
        let mut table = Table::new([
            "shape", "cores", "MiB", "nodes/s", "aware", "oracle", "far", "A/A", "memory",
        ]);
        let mut others = Table::new(["shape", "cores", "MiB", "allocator", "speed", "memory"]);
        for figure in &self.runs {
            table.row(figure.row());
            for (name, ratio) in &figure.outcome.over_oblivious {
                let mut row = figure.head();
                row.push(Cell::text(name.clone()));
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

fn ratio_cell(ratio: Option<Ratio>) -> Cell {
    Cell::maybe(ratio.map(|r| r.median), |r| format!("{r:.3}"))
}

impl Figure {
    fn head(&self) -> Vec<Cell> {
        vec![
            Cell::text(self.shape_word()),
            Cell::number(self.cores.len() as f64, self.cores.len().to_string()),
            Cell::number(self.mib, fmt::significant(self.mib, 3)),
        ]
    }

    fn memory(&self, arm: &str) -> Cell {
        Cell::maybe(self.outcome.arms.get(arm).and_then(|arm| arm.rss_ratio), fmt::ratio)
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

    fn row(&self) -> Vec<Cell> {
        let outcome = &self.outcome;
        let mut row = self.head();
        row.push(Cell::maybe(self.nodes_per_s, |n| fmt::significant(n, 3)));
        row.push(ratio_cell(outcome.aware_over_oblivious));
        row.push(ratio_cell(outcome.oracle_over_oblivious));
        row.push(ratio_cell(outcome.adversarial_over_oblivious));
        row.push(ratio_cell(outcome.aa_control));
        row.push(self.memory("aware"));
        row
    }
}
