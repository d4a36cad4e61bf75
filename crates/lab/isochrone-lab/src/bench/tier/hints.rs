//! What a program gains that tells the pager which pages it will need: a random walk that a second worker is ahead of.
//! The outlook of the paper on partially separated page tables asks it.

use anyhow::Result;
use isochrone_console::turns::{Ratio, Series};
use isochrone_stats::Spread;
use serde::Serialize;

use super::arm::{Extent, Runner};
use super::arms::Arms;
use super::curves::Controlled;
use crate::bench::rounds::Cell;
use crate::bench::setting::Setting;
use crate::tier::request::{Announced, FarTier, Program, Request, Tables};

/// Words that the walk writes.
const STEPS: u32 = 10_000;
/// Steps that pages are told ahead.
const AHEAD: u32 = 64;
/// The arms: nothing is told, the same once more, pages are told.
const UNTOLD: &str = "untold";
const AGAIN: &str = "again";
const TOLD: &str = "told";

/// The walk over one far tier.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Hints {
    pub(super) far: &'static str,
    /// Whether both workers have one set of page tables, or each its own.
    pub(super) tables: Tables,
    /// Steps that pages are told ahead.
    pub(super) ahead: u32,
    pub(super) untold_ms: Option<Spread>,
    pub(super) told_ms: Option<Spread>,
    /// Faults of the walk that fetched something.
    pub(super) untold_faults: f64,
    pub(super) told_faults: f64,
    /// How many times faster it is where pages are told.
    pub(super) faster: Option<Controlled>,
    pub(super) series: Series,
}

/// One far tier, under way.
pub(super) struct OfHints {
    far: FarTier,
    tables: Tables,
    arms: Arms,
}

impl OfHints {
    /// Every far tier with either kind of page tables, where there is a core for who tells.
    pub(super) fn all(
        runner: &Runner,
        extent: Extent,
        far: &[FarTier],
        setting: &mut Setting<'_>,
    ) -> Vec<Self> {
        if runner.cores().len() < 2 {
            setting.miss("a walk that is told ahead: a second core");
            return Vec::new();
        }
        let mut cell = |far: &FarTier, tables: Tables| {
            let of = |name: &str, ahead| {
                let asked = Announced { pages: extent.pages, steps: STEPS, ahead };
                let half = runner.request(Program::Announced(asked), 2, 0.5);
                (name.to_owned(), Request { tables, far: far.clone(), ..half })
            };
            let named = vec![of(UNTOLD, 0), of(AGAIN, 0), of(TOLD, AHEAD)];
            Self { far: far.clone(), tables, arms: Arms::new(named, setting) }
        };
        let both = [Tables::Shared, Tables::Separated];
        far.iter().flat_map(|far| both.map(|tables| cell(far, tables))).collect()
    }

    /// What came out; nothing without a block.
    pub(super) fn hints(self, setting: &mut Setting<'_>) -> Option<Hints> {
        let Self { far, tables, arms } = self;
        if arms.series.blocks.is_empty() {
            return None;
        }
        let seed = setting.seed();
        let control = Ratio::of(&arms.series, AGAIN, UNTOLD, seed);
        let ratio = Ratio::of(&arms.series, TOLD, UNTOLD, seed);
        let ms = |arm| arms.spread(arm, |answer| answer.ns as f64 / 1e6);
        Some(Hints {
            far: far.as_str(),
            tables,
            ahead: AHEAD,
            untold_ms: ms(0),
            told_ms: ms(2),
            untold_faults: arms.faults(0),
            told_faults: arms.faults(2),
            faster: ratio.map(|ratio| Controlled { ratio, control, oversubscribed: false }),
            series: arms.series,
        })
    }
}

impl Cell<Runner> for OfHints {
    fn what(&self) -> String {
        let tables = if self.tables == Tables::Shared { "one set of" } else { "separate" };
        format!("a walk that is told ahead over {}, {tables} tables", self.far.as_str())
    }

    fn blocks(&self) -> usize {
        self.arms.series.blocks.len()
    }

    fn block(&mut self, runner: &mut Runner, setting: &mut Setting<'_>) -> Result<()> {
        let what = self.what();
        self.arms.block(&what, runner, setting)
    }
}
