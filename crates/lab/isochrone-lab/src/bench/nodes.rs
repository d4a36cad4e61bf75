//! `isochrone bench chase` and `isochrone bench structures`: one structure of one size after
//! another, every arm on the same cores.

use anyhow::{Context, Result};
use isochrone_report::fmt;
use isochrone_report::table::{Cell, Table};
use isochrone_units::{CoreId, LINE_BYTES};
use serde::Serialize;

use super::Findings;
use super::Setting;
use super::field::{Caches, Field, GLIBC, Outcome, Plateau, Plateaus};
use super::ratio::{Ratio, Verdict};
use crate::args::{ChaseArgs, CommonArgs, PlacementArgs, StructuresArgs};
use crate::run::atlas::Found;
use crate::workload::request::{Request, StructureName};

/// Blocks unless told otherwise.
const BLOCKS: u32 = 15;
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
    /// Keeps an atlas that is kept nowhere else.
    scratch: tempfile::TempDir,
}

impl Ground {
    fn new(
        common: &CommonArgs,
        placement: &PlacementArgs,
        setting: &mut Setting<'_>,
    ) -> Result<Self> {
        let scratch = tempfile::tempdir().context("there is no place for temporary files")?;
        let mut found = setting.atlas(scratch.path())?;
        let cores = setting.cores(1)?;
        let core = *cores.first().context("--cores names none")?;
        setting.refresh(&mut found, &cores, scratch.path())?;
        let field = Field::new(placement, found.path.clone(), &cores, setting.seed());
        let blocks = common.blocks.unwrap_or(BLOCKS);
        Ok(Self { field, found, core, blocks, scratch })
    }

    fn measure(
        &mut self,
        all: &[(StructureName, f64)],
        setting: &mut Setting<'_>,
    ) -> Result<Figures> {
        setting.step("starting the arms");
        let mut figures = Figures::default();
        let caches = Caches::of(setting.machine(), self.core);
        let mut team = self.field.start_base()?;
        let plateaus = self.field.plateaus(&mut team, caches, &self.found.contents)?;
        drop(team);
        figures.plateaus = Some(plateaus);
        for (name, size) in all {
            if !setting.keep_going() {
                break;
            }
            self.refresh(setting)?;
            match self.one(*name, *size, plateaus, setting) {
                Ok(Some(figure)) => figures.sizes.push(figure),
                Ok(None) => {}
                Err(_) if !setting.keep_going() => {}
                Err(error) => setting.miss(&format!("{} of {size} MiB: {error:#}", word(*name))),
            }
        }
        Ok(figures)
    }

    /// A host may have moved the core since the last size.
    fn refresh(&mut self, setting: &mut Setting<'_>) -> Result<()> {
        setting.refresh(&mut self.found, &[self.core], self.scratch.path())?;
        self.field.common.atlas = self.found.path.clone();
        Ok(())
    }

    fn one(
        &self,
        name: StructureName,
        size: f64,
        plateaus: Plateaus,
        setting: &mut Setting<'_>,
    ) -> Result<Option<Figure>> {
        let lines = lines_of(size);
        let what = format!("{} of {size} MiB", word(name));
        setting.step(&format!("{what}: starting the arms"));
        // Workers of this size alone: their memory is then that of this size.
        let mut team = self.field.start(setting)?;
        let chase_ns = team.chase_ns(lines)?;
        let seed = setting.seed();
        let request = |epoch, warm, operations| Request::Structure {
            name,
            lines,
            seed,
            epoch,
            warm,
            operations,
        };
        let (least, lap) = match name {
            StructureName::Chase => (lines as u64, lines as u64),
            _ => (0, 0),
        };
        setting.step(&format!("{what}: how much is a run"));
        let operations = team.operations(least, &request)?;
        let outcome = team.compete(setting, self.blocks, &what, &|epoch| {
            request(epoch, lap.max(operations / 2), operations)
        })?;
        if outcome.series.blocks.is_empty() {
            return Ok(None);
        }
        if !outcome.same_work {
            setting
                .miss(&format!("{what}: the arms did not find the same; do not use its figures"));
        }
        // Other guests may take the cache between a first chase and the series.
        let measured = outcome.oblivious_ns.filter(|_| name == StructureName::Chase);
        let level = plateaus.of(measured.unwrap_or(chase_ns));
        Ok(Some(Figure {
            name,
            mib: size,
            lines,
            level,
            chase_ns: Some(chase_ns),
            predicted_over_oblivious: outcome.predicted(level),
            operations,
            outcome,
        }))
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
    fn text(&self, width: u16) -> String {
        let chase = self.sizes.iter().all(|figure| figure.name == StructureName::Chase);
        let names = ["MiB", "level", "ns/op", "aware", "oracle", "far", "A/A", "atlas", "memory"];
        let mut table = Table::new((!chase).then_some("structure").into_iter().chain(names));
        for figure in &self.sizes {
            let name = (!chase).then(|| Cell::text(word(figure.name)));
            table.row(name.into_iter().chain(figure.row()));
        }
        let mut text = String::from(
            "Speed over the oblivious pool: near lines (aware), measured ones (oracle), far ones; \
             A/A is the\noblivious pool once more, atlas what the atlas predicts for a chase; \
             memory is over glibc.\n",
        );
        text.push_str(&table.to_terminal(width));
        text.extend(self.sizes.iter().map(Figure::verdict));
        text
    }
}

impl Figure {
    fn row(&self) -> Vec<Cell> {
        let outcome = &self.outcome;
        let level = match self.level {
            Some(Plateau::L2) => "l2",
            Some(Plateau::Llc) => "llc",
            Some(Plateau::Dram) => "dram",
            None => "?",
        };
        let ratio = |ratio: Option<Ratio>| Cell::maybe(ratio.map(|r| r.median), three);
        let memory = outcome.arms.get("aware").and_then(|arm| arm.rss_ratio);
        vec![
            Cell::number(self.mib, fmt::significant(self.mib, 3)),
            Cell::text(level),
            Cell::maybe(outcome.oblivious_ns, |ns| fmt::significant(ns, 3)),
            ratio(outcome.aware_over_oblivious),
            ratio(outcome.oracle_over_oblivious),
            ratio(outcome.adversarial_over_oblivious),
            ratio(outcome.aa_control),
            Cell::maybe(self.predicted_over_oblivious, three),
            Cell::maybe(memory, fmt::ratio),
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
