//! `isochrone bench chase` and `isochrone bench structures`: one structure of one size after
//! another, every arm on the same cores.

use anyhow::{Context, Result};
use isochrone_console::turns::{Ratio, Verdict};
use isochrone_report::fmt;
use isochrone_report::json::Format;
use isochrone_report::table::{Cell as Text, Table};
use isochrone_units::{CoreId, LINE_BYTES};
use serde::Serialize;

use super::Setting;
use super::contest::{Contest, learning_ms};
use super::field::{Caches, Field, GLIBC, Outcome, Plateau, Plateaus, Team};
use super::findings::Findings;
use super::rounds::{Cell, rounds};
use crate::args::{ChaseArgs, CommonArgs, PlacementArgs, StructuresArgs};
use crate::workload::request::{Request, StructureName};
use isochrone_console::run::atlas::Found;
use isochrone_console::written::scratch;

/// Blocks unless told otherwise.
const BLOCKS: u32 = 15;
/// Finding the plateaus has the time of one cell of so many.
const PLATEAU_PART: usize = 10;
/// The structures of `bench structures`, in the order of its table.
const STRUCTURES: [StructureName; 6] = [
    StructureName::Lru,
    StructureName::Tree,
    StructureName::SkipList,
    StructureName::Em3d,
    StructureName::BarnesHut,
    StructureName::Mcts,
];

/// One structure of one size.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Figure {
    name: StructureName,
    mib: f64,
    lines: usize,
    /// Where a chase over as many lines lies.
    level: Option<Plateau>,
    /// What a load of such a chase costs, nanoseconds.
    chase_ns: Option<f64>,
    /// The gain that the atlas predicts for a chase over the aware arm's lines.
    predicted_over_oblivious: Option<f64>,
    operations: u64,
    #[serde(flatten)]
    outcome: Outcome,
}

/// All of them.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Figures {
    plateaus: Option<Plateaus>,
    sizes: Vec<Figure>,
}

pub(super) fn chase(args: &ChaseArgs, setting: &mut Setting<'_>) -> Result<Figures> {
    let mut ground = Ground::new(&args.common, &args.placement, setting)?;
    let caches = Caches::of(setting.machine(), ground.core);
    let sizes = if args.sizes.is_empty() {
        // From half of the L2, over a share of the LLC that a tenant may hope for, to DRAM.
        let (l2, llc) = (mib(caches.l2), mib(caches.llc));
        vec![l2 / 2.0, l2, 1.5 * l2, 2.0 * l2, 3.0 * l2, 4.0 * l2, 6.0 * l2, llc]
    } else {
        args.sizes.clone()
    };
    let all: Vec<_> = sizes.into_iter().map(|size| (StructureName::Chase, size)).collect();
    ground.measure(&all, setting)
}

pub(super) fn structures(args: &StructuresArgs, setting: &mut Setting<'_>) -> Result<Figures> {
    let mut ground = Ground::new(&args.common, &args.placement, setting)?;
    let caches = Caches::of(setting.machine(), ground.core);
    let sizes = if args.sizes.is_empty() {
        vec![4.0 * mib(caches.l2), mib(caches.llc)]
    } else {
        args.sizes.clone()
    };
    let names = if args.only.is_empty() { STRUCTURES.to_vec() } else { args.only.clone() };
    let all = names.iter().flat_map(|name| sizes.iter().map(|size| (*name, *size)));
    ground.measure(&all.collect::<Vec<_>>(), setting)
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// What all structures are measured on.
struct Ground {
    field: Field,
    found: Found,
    core: CoreId,
    blocks: u32,
    plateaus: Plateaus,
    /// Keeps an atlas that is kept nowhere else.
    scratch: tempfile::TempDir,
}

impl Ground {
    fn new(
        common: &CommonArgs,
        placement: &PlacementArgs,
        setting: &mut Setting<'_>,
    ) -> Result<Self> {
        let scratch = scratch()?;
        let mut found = setting.atlas(scratch.path())?;
        let cores = setting.cores(1)?;
        let core = *cores.first().context("--cores names none")?;
        setting.refresh(&mut found, &cores, scratch.path())?;
        let field = Field::new(placement, found.path.clone(), &cores, setting.seed());
        let blocks = common.blocks.unwrap_or(BLOCKS);
        setting.step("starting the arms");
        let caches = Caches::of(setting.machine(), core);
        let mut team = field.start_base(&setting.stop())?;
        setting.share_with(PLATEAU_PART);
        let learning = learning_ms(setting.share());
        let plateaus = field.plateaus(&mut team, caches, &found.contents, learning)?;
        Ok(Self { field, found, core, blocks, plateaus, scratch })
    }

    fn measure(
        &mut self,
        all: &[(StructureName, f64)],
        setting: &mut Setting<'_>,
    ) -> Result<Figures> {
        let mut sizes: Vec<Size> =
            all.iter().map(|(name, mib)| Size::new(*name, *mib, setting)).collect();
        let mut cells: Vec<&mut dyn Cell<Self>> =
            sizes.iter_mut().map(|size| size as &mut dyn Cell<Self>).collect();
        rounds(&mut cells, self.blocks, self, setting);
        let figures = sizes.into_iter().filter_map(|size| size.figure(self.plateaus, setting));
        Ok(Figures { sizes: figures.collect(), plateaus: Some(self.plateaus) })
    }

    /// A host may have moved the core since the last size.
    fn refresh(&mut self, setting: &mut Setting<'_>) -> Result<()> {
        setting.refresh(&mut self.found, &[self.core], self.scratch.path())?;
        self.field.common.atlas = self.found.path.clone();
        Ok(())
    }
}

/// One structure of one size, under way.
struct Size {
    name: StructureName,
    mib: f64,
    lines: usize,
    /// Of what it holds.
    seed: u64,
    chase_ns: Option<f64>,
    /// Of one run, once that is known.
    operations: Option<u64>,
    contest: Contest,
}

impl Size {
    fn new(name: StructureName, mib: f64, setting: &mut Setting<'_>) -> Self {
        let seed = setting.seed();
        Self {
            name,
            mib,
            lines: lines_of(mib),
            seed,
            chase_ns: None,
            operations: None,
            contest: Contest::new(setting),
        }
    }

    /// How much is a run, and what a chase over as many lines costs.
    fn begin(
        &mut self,
        team: &mut Team,
        learning_ms: Option<u64>,
        setting: &mut Setting<'_>,
    ) -> Result<u64> {
        if let Some(operations) = self.operations {
            return Ok(operations);
        }
        setting.step(&format!("{}: how much is a run", self.what()));
        let (name, lines, seed) = (self.name, self.lines, self.seed);
        let is_chase = name == StructureName::Chase;
        if !is_chase {
            self.chase_ns = Some(team.chase_ns(lines, learning_ms)?);
        }
        let least = if is_chase { lines as u64 } else { 0 };
        let request = |epoch, warm, operations| Request::Structure {
            name,
            lines,
            seed,
            epoch,
            warm,
            operations,
            learning_ms,
        };
        let operations = team.operations(least, &request)?;
        self.operations = Some(operations);
        Ok(operations)
    }

    fn figure(self, plateaus: Plateaus, setting: &mut Setting<'_>) -> Option<Figure> {
        let what = self.what();
        if self.contest.series.blocks.is_empty() {
            return None;
        }
        let outcome = self.contest.outcome(&what, setting);
        if !outcome.same_work {
            setting
                .miss(&format!("{what}: the arms did not find the same; do not use its figures"));
        }
        // Other guests may take the cache between a first chase and the series: a chase is its own measure.
        let chase_ns = self.chase_ns.or(outcome.oblivious_ns);
        let level = chase_ns.and_then(|ns| plateaus.of(ns));
        Some(Figure {
            name: self.name,
            mib: self.mib,
            lines: self.lines,
            level,
            chase_ns,
            predicted_over_oblivious: outcome.predicted(level),
            operations: self.operations.unwrap_or(0),
            outcome,
        })
    }
}

impl Cell<Ground> for Size {
    fn what(&self) -> String {
        format!("{} of {} MiB", word(self.name), self.mib)
    }

    fn blocks(&self) -> usize {
        self.contest.series.blocks.len()
    }

    fn block(&mut self, ground: &mut Ground, setting: &mut Setting<'_>) -> Result<()> {
        ground.refresh(setting)?;
        let what = self.what();
        setting.step(&format!("{what}: starting the arms"));
        let learning = learning_ms(setting.share());
        // Workers of this size alone: their memory is then that of this size.
        let mut team = ground.field.start(&self.contest.series.arms, setting)?;
        let operations = self.begin(&mut team, learning, setting)?;
        let (name, lines, seed) = (self.name, self.lines, self.seed);
        let lap = if name == StructureName::Chase { lines as u64 } else { 0 };
        self.contest.block(team, setting, &what, &|epoch| Request::Structure {
            name,
            lines,
            seed,
            epoch,
            warm: lap.max(operations / 2),
            operations,
            learning_ms: learning,
        })
    }
}

fn lines_of(mib: f64) -> usize {
    // Sizes are read from the command line: anything beyond memory is refused by the pools.
    let bytes = (mib * f64::from(1 << 20)).clamp(0.0, 1e15);
    let lines = format!("{:.0}", bytes / LINE_BYTES as f64);
    lines.parse().unwrap_or(0).max(2)
}

fn word(name: StructureName) -> String {
    use clap::ValueEnum;
    name.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

impl Findings for Figures {
    const FORMAT: Format = Format::BenchStructures;

    fn text(&self, width: u16) -> String {
        let chase = self.sizes.iter().all(|figure| figure.name == StructureName::Chase);
        let names = ["MiB", "level", "ns/op", "aware", "oracle", "far", "A/A", "atlas", "memory"];
        let keys = if chase { 1 } else { 2 };
        let mut table =
            Table::new((!chase).then_some("structure").into_iter().chain(names)).keyed(keys);
        for figure in &self.sizes {
            let name = (!chase).then(|| Text::text(word(figure.name)));
            table.row(name.into_iter().chain(figure.row()));
        }
        let mut text = String::from(
            "Speed over the oblivious pool: near lines (aware), measured ones (oracle), far ones; \
             A/A is the oblivious pool once more, atlas what the atlas predicts for a chase; \
             memory is over glibc.\n",
        );
        text.push_str(&table.to_terminal(width));
        text.extend(self.sizes.iter().map(Figure::verdict));
        text
    }
}

impl Figure {
    fn row(&self) -> Vec<Text> {
        let outcome = &self.outcome;
        let level = match self.level {
            Some(Plateau::L2) => "l2",
            Some(Plateau::Llc) => "llc",
            Some(Plateau::Dram) => "dram",
            None => "?",
        };
        let ratio = |ratio: Option<Ratio>| Text::maybe(ratio.map(|r| r.median), three);
        let memory = outcome.arms.get("aware").and_then(|arm| arm.rss_ratio);
        vec![
            Text::number(self.mib, fmt::significant(self.mib, 3)),
            Text::text(level),
            Text::maybe(outcome.oblivious_ns, |ns| fmt::significant(ns, 3)),
            ratio(outcome.aware_over_oblivious),
            ratio(outcome.oracle_over_oblivious),
            ratio(outcome.adversarial_over_oblivious),
            ratio(outcome.aa_control),
            Text::maybe(self.predicted_over_oblivious, three),
            Text::maybe(memory, fmt::ratio),
        ]
    }

    /// What the ratio says beside its control.
    fn verdict(&self) -> String {
        let outcome = &self.outcome;
        let Some(ratio) = outcome.aware_over_oblivious else { return String::new() };
        let words = match ratio.verdict(outcome.aa_control) {
            Verdict::Gain => "near lines gain",
            Verdict::Loss => "near lines lose",
            Verdict::NoDifference => "no difference",
            Verdict::TooFew => "too few blocks to tell",
        };
        let control = outcome.aa_control.map_or_else(String::new, |r| format!(", control {r}"));
        let share = outcome
            .share_of_oracle
            .map_or_else(String::new, |share| format!(", {share:.2} of the oracle's gain"));
        let glibc = outcome.over_oblivious.get(GLIBC).copied().flatten();
        let glibc = glibc.map_or_else(String::new, |r| format!(", glibc {:.3}", r.median));
        let name = word(self.name);
        format!("\n{name} {} MiB: {ratio}{control}: {words}{share}{glibc}", self.mib)
    }
}

fn three(ratio: f64) -> String {
    format!("{ratio:.3}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::field::{AGAIN, BASE};
    use super::super::fixtures::{fits, series};
    use super::*;

    #[test]
    fn tables_fit_a_terminal() {
        let figure = |name| {
            let arms = [BASE, AGAIN, "aware", "oracle", "adversarial", GLIBC];
            Figure {
                name,
                mib: 38.5,
                lines: 1 << 20,
                level: Some(Plateau::Dram),
                chase_ns: Some(135.4),
                predicted_over_oblivious: Some(1.0321),
                operations: 1 << 20,
                outcome: Outcome::of(series(&arms, 6), BTreeMap::new(), true, 1),
            }
        };
        for name in [StructureName::Chase, StructureName::BarnesHut] {
            fits(&Figures { plateaus: None, sizes: vec![figure(name)] });
        }
    }
}
