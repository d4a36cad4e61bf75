//! Programs with other patterns than a sweep, with half of their data in fast memory: a sparse product on a
//! power-law graph, whose reuse is skewed, and the tile Cholesky factorisation, which reuses a panel.

use anyhow::Result;
use isochrone_console::turns::{Ratio, Series};
use serde::Serialize;

use super::arm::{Extent, Runner};
use super::arms::Arms;
use super::curves::Controlled;
use crate::bench::rounds::Cell;
use crate::bench::setting::Setting;
use crate::tier::request::{Answer, Policy, Program, Request, Tables};

/// Entries of a row of the sparse matrix, in the mean.
const ENTRIES: usize = 16;
const PRODUCTS: u32 = 8;
/// Rows of a tile: 128 KiB of it.
const WIDTH: usize = 128;

/// The arm that is compared with, and the same once more.
const IN_MEMORY: &str = "in memory";
const AGAIN: &str = "again";

/// One way of running it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Way {
    pub(super) name: &'static str,
    pub(super) tables: Tables,
    pub(super) policy: Policy,
    pub(super) movers: bool,
    /// Time over all data in memory.
    pub(super) over_memory: Option<Controlled>,
    /// Pages that workers fetched, in the mean of the runs.
    pub(super) missing: f64,
    /// Pages that a mover brought.
    pub(super) prefetched: f64,
}

/// One program.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Other {
    pub(super) workload: &'static str,
    pub(super) workers: u16,
    pub(super) bytes: usize,
    pub(super) ways: Vec<Way>,
    pub(super) series: Series,
}

const WAYS: [(&str, Tables, Policy, bool); 6] = [
    ("threads, fifo", Tables::Shared, Policy::Fifo, false),
    ("processes, fifo", Tables::Separated, Policy::Fifo, false),
    ("processes, core-fifo", Tables::Separated, Policy::CoreFifo, false),
    ("processes, cmcp", Tables::Separated, Policy::Cmcp, false),
    ("processes, sieve", Tables::Separated, Policy::Sieve, false),
    ("processes, core-fifo, movers", Tables::Separated, Policy::CoreFifo, true),
];

fn program(workload: &str, bytes: usize, seed: u64) -> Program {
    if workload == "spmv" {
        let row = 4 * ENTRIES + 3 * 8;
        return Program::Spmv { rows: bytes / row, entries: ENTRIES, iterations: PRODUCTS, seed };
    }
    let tile = WIDTH * WIDTH * 8;
    let tiles = (1..).take_while(|n| n * (n + 3) / 2 * tile <= bytes).count().max(4);
    Program::Cholesky { tiles, width: WIDTH, seed }
}

/// One program, under way.
pub(super) struct Workload {
    name: &'static str,
    workers: u16,
    bytes: usize,
    arms: Arms,
}

impl Workload {
    pub(super) fn new(
        runner: &Runner,
        name: &'static str,
        workers: u16,
        extent: Extent,
        setting: &mut Setting<'_>,
    ) -> Self {
        let seed = setting.seed();
        let program = program(name, extent.pages * 4096, seed);
        let bytes = program.tiered().map_or(0, |program| program.bytes(4096));
        let memory = runner.request(program.clone(), workers, 1.0);
        let half = runner.request(program, workers, 0.5);
        let of = |(name, tables, policy, movers): (&str, Tables, Policy, bool)| {
            // What is only read of a matrix need not be written back.
            let request = Request { tables, policy, clean: true, ..half.clone() };
            let request = if movers { runner.with_movers(request) } else { request };
            (name.to_owned(), request)
        };
        let in_memory = [IN_MEMORY, AGAIN].map(|name| (name.to_owned(), memory.clone()));
        let named = in_memory.into_iter().chain(WAYS.map(of)).collect();
        Self { name, workers, bytes, arms: Arms::new(named, setting) }
    }

    /// What came out; nothing without a block.
    pub(super) fn other(self, setting: &mut Setting<'_>) -> Option<Other> {
        let Self { name, workers, bytes, arms } = self;
        let Arms { requests, answers, series, .. } = arms;
        if series.blocks.is_empty() {
            return None;
        }
        let seed = setting.seed();
        let control = Ratio::of(&series, IN_MEMORY, AGAIN, seed);
        let ways = WAYS.iter().zip(requests.iter().zip(&answers).skip(2));
        let ways = ways.map(|(way, (arm, answers))| {
            let (name, tables, policy, movers) = *way;
            let oversubscribed = arm.oversubscribed;
            let over = Ratio::of(&series, IN_MEMORY, name, seed);
            let mean = |of: fn(&Answer) -> u64| {
                answers.iter().map(of).sum::<u64>() as f64 / answers.len().max(1) as f64
            };
            Way {
                name,
                tables,
                policy,
                movers,
                over_memory: over.map(|ratio| Controlled { ratio, control, oversubscribed }),
                missing: mean(|answer| answer.missing),
                prefetched: mean(|answer| answer.prefetched),
            }
        });
        let ways = ways.collect();
        Some(Other { workload: name, workers, bytes, ways, series })
    }
}

impl Cell<Runner> for Workload {
    fn what(&self) -> String {
        format!("{} on {} workers", self.name, self.workers)
    }

    fn blocks(&self) -> usize {
        self.arms.series.blocks.len()
    }

    fn block(&mut self, runner: &mut Runner, setting: &mut Setting<'_>) -> Result<()> {
        let what = self.what();
        self.arms.block(&what, runner, setting)
    }
}
