//! Single calls under each allocator: what the slowest of ten thousand takes is what a program with deadlines waits
//! for, and the learning of ours is done within calls.

mod worker;

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use isochrone_console::turns::{Ratio, Series};
use isochrone_report::fmt;
use isochrone_report::table::{Cell as Text, Table};
use isochrone_stats::Spread;
use serde::Serialize;

use super::arms::{AGAIN, BASE};
use super::field::Field;
use super::programs::{Cost, Program};
use crate::bench::rounds::Cell;
use crate::bench::setting::Setting;
use worker::Calls;
pub(crate) use worker::run as malloc_calls;

/// Its name among programs.
pub(super) const NAME: &str = "calls";

/// This program itself: what it is preloaded with is timed.
const PROGRAM: Program = Program {
    name: NAME,
    file: "",
    arguments: &["malloc-calls"],
    input: None,
    beside: &[],
    script: None,
    cost: Cost::Elapsed,
};

/// One arm: nanoseconds of a call, of `malloc` and `free` together.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Arm {
    p50_ns: Option<Spread>,
    p99_ns: Option<Spread>,
    /// The slowest of ten thousand.
    p9999_ns: Option<Spread>,
    most_ns: Option<Spread>,
    /// The slowest of ten thousand over that of glibc.
    p9999_over_glibc: Option<Ratio>,
}

/// All arms.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct CallFigures {
    arms: BTreeMap<String, Arm>,
    series: Series,
}

/// Single calls, under way.
pub(super) struct OfCalls {
    file: PathBuf,
    seed: u64,
    series: Series,
    answers: Vec<Vec<Calls>>,
}

impl OfCalls {
    pub(super) fn new(field: &Field, setting: &mut Setting<'_>) -> Result<Self> {
        let file = std::env::current_exe().context("finding this program")?;
        let names: Vec<String> = field.arms.iter().map(|arm| arm.name.clone()).collect();
        let series = Series::new(&names, "ns, the slowest of ten thousand calls");
        Ok(Self { file, seed: setting.seed(), series, answers: vec![Vec::new(); names.len()] })
    }

    /// What came out; nothing without a block.
    pub(super) fn figures(self, field: &Field, setting: &mut Setting<'_>) -> Option<CallFigures> {
        let Self { series, answers, .. } = self;
        if series.blocks.is_empty() {
            return None;
        }
        let seed = setting.seed();
        let of = |arm: usize, of: fn(&Calls) -> f64| Spread::of(answers[arm].iter().map(of));
        let arms = field.arms.iter().enumerate().map(|(at, arm)| {
            let figures = Arm {
                p50_ns: of(at, |calls| calls.p50_ns),
                p99_ns: of(at, |calls| calls.p99_ns),
                p9999_ns: of(at, |calls| calls.p9999_ns),
                most_ns: of(at, |calls| calls.most_ns),
                // What is compared is a cost: the other way round than a speed.
                p9999_over_glibc: Ratio::of(&series, BASE, &arm.name, seed)
                    .filter(|_| arm.name != BASE),
            };
            (arm.name.clone(), figures)
        });
        let arms = arms.collect();
        Some(CallFigures { arms, series })
    }
}

impl Cell<Field> for OfCalls {
    fn what(&self) -> String {
        NAME.to_owned()
    }

    fn blocks(&self) -> usize {
        self.series.blocks.len()
    }

    fn block(&mut self, field: &mut Field, setting: &mut Setting<'_>) -> Result<()> {
        let (file, answers) = (&self.file, &mut self.answers);
        setting.block(&mut self.series, self.seed, NAME, &mut |arm| {
            let outcome = field.once(&PROGRAM, file, &field.arms[arm])?;
            let calls: Calls = serde_json::from_str(&outcome.output)
                .with_context(|| format!("calls under {} gave none", field.arms[arm].name))?;
            answers[arm].push(calls);
            Ok(calls.p9999_ns)
        })?;
        Ok(())
    }
}

impl CallFigures {
    /// The table for a terminal.
    pub(super) fn text(&self, width: u16) -> String {
        let mut table = Table::new(
            ["ns a call", "median", "p99", "p99.99", "over glibc's", "slowest"].map(String::from),
        );
        for (name, arm) in self.arms.iter().filter(|(name, _)| *name != AGAIN) {
            let number = |spread: &Option<Spread>| Text::maybe(spread.map(|s| s.median), fmt::ns);
            table.row(vec![
                Text::text(name.clone()),
                number(&arm.p50_ns),
                number(&arm.p99_ns),
                number(&arm.p9999_ns),
                Text::maybe(arm.p9999_over_glibc.map(|ratio| ratio.median), fmt::ratio),
                number(&arm.most_ns),
            ]);
        }
        table.to_terminal(width)
    }
}
