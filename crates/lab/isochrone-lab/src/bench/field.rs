//! One comparison of arms that do the same work on nodes: which arms there are, how much work a
//! run is, and what came out.
//!
//! The arms: pools in each mode, the oblivious one twice (the control), and allocators under the
//! same program. Speeds are over the oblivious pool, which differs from the aware one in nothing
//! but which lines it takes; memory is over glibc.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use isochrone_atlas_store::contents::Contents;
use isochrone_console::turns::{Ratio, Series, Verdict};
use isochrone_machine::Machine;
use isochrone_units::{CoreId, LINE_BYTES, Level};
use serde::Serialize;

use super::Setting;
use super::budget::Stop;
use super::workers::{ArmSpec, Common, Worker};
use crate::args::PlacementArgs;
use crate::workload::NodesFrom;
use crate::workload::request::{Account, PoolAccount, Request, StructureName};

/// The arm that all speeds are over.
pub(crate) const BASE: &str = "oblivious";
/// The same once more.
pub(crate) const AGAIN: &str = "oblivious again";
/// The arm that memory is over.
pub(crate) const GLIBC: &str = "glibc";

/// The shortest run, seconds: a thousand times what a thread switch takes.
const RUN_S: f64 = 0.02;
/// Operations with which the search for a run's length begins, and the most that it ends with.
const OPERATIONS: std::ops::RangeInclusive<u64> = 64..=1 << 32;

/// Which memory nodes lie in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum Plateau {
    L2,
    Llc,
    Dram,
}

/// Between which costs of a load the plateaus lie.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Plateaus {
    /// A chase through half of the L2, measured.
    pub(crate) l2_ns: f64,
    /// Of the atlas: one load from each level.
    pub(crate) llc_ns: Option<f64>,
    pub(crate) dram_ns: Option<f64>,
    /// Of the atlas: the part of the LLC that is this machine's.
    pub(crate) llc_share_bytes: Option<u64>,
}

impl Plateaus {
    /// The plateau that a chase at this cost lies on: the nearest, as ratios go. `None` where the
    /// atlas lacks a level.
    pub(crate) fn of(&self, ns: f64) -> Option<Plateau> {
        let (llc, dram) = (self.llc_ns?, self.dram_ns?);
        let between = |a: f64, b: f64| (a * b).sqrt();
        Some(if ns > between(llc, dram) {
            Plateau::Dram
        } else if ns > between(self.l2_ns.min(llc), llc) {
            Plateau::Llc
        } else {
            Plateau::L2
        })
    }
}

/// What an arm's memory and start cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ArmCost {
    /// What the nodes made resident, over what they did under glibc.
    pub(crate) rss_ratio: Option<f64>,
    pub(crate) rss_bytes: Option<u64>,
    /// Of its pools, the slowest of them; `null` for allocators, whose start is in the run.
    pub(crate) startup_us: Option<f64>,
    pub(crate) classification_us: Option<f64>,
    /// The part of its pools' memory that was learnt, the least of them: 1 but where the time for that was over.
    pub(crate) learnt_share: Option<f64>,
    pub(crate) arena_bytes: Option<u64>,
    /// What the atlas says of its lines, and of all lines of its pools: nanoseconds.
    pub(crate) nodes_ns: BTreeMap<&'static str, f64>,
    pub(crate) pool_ns: BTreeMap<&'static str, f64>,
    /// The same in the LLC, by timing lines of the pools: nanoseconds.
    pub(crate) nodes_measured_ns: Option<f64>,
    pub(crate) pool_measured_ns: Option<f64>,
}

/// What came out.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Outcome {
    pub(crate) aware_over_oblivious: Option<Ratio>,
    pub(crate) oracle_over_oblivious: Option<Ratio>,
    pub(crate) adversarial_over_oblivious: Option<Ratio>,
    pub(crate) aa_control: Option<Ratio>,
    /// The other arms, by name.
    pub(crate) over_oblivious: BTreeMap<String, Option<Ratio>>,
    /// `(aware - 1) / (oracle - 1)`; `null` where the oracle gains nothing beyond the control.
    pub(crate) share_of_oracle: Option<f64>,
    /// Median cost of the oblivious arm.
    pub(crate) oblivious_ns: Option<f64>,
    /// Whether all arms found the same in each run.
    pub(crate) same_work: bool,
    pub(crate) arms: BTreeMap<String, ArmCost>,
    pub(crate) series: Series,
}

/// The arms of a comparison and what they share.
pub(crate) struct Field {
    pub(crate) common: Common,
    arms: Vec<ArmSpec>,
}

impl Field {
    /// Pools in every mode beside glibc.
    pub(crate) fn new(
        placement: &PlacementArgs,
        atlas: std::path::PathBuf,
        cores: &[CoreId],
        seed: u64,
    ) -> Self {
        let common = Common {
            atlas,
            cores: cores.iter().map(|core| core.0).collect(),
            near: placement.near.0,
            waste: placement.waste_of_pools().0,
            slack: placement.slack,
            llc: placement.llc,
            arena_limit: placement.arena_limit,
        };
        let arms = vec![
            ArmSpec::pool(BASE, NodesFrom::Oblivious, seed),
            ArmSpec::pool(AGAIN, NodesFrom::Oblivious, seed ^ 1),
            ArmSpec::pool("aware", NodesFrom::Aware, seed),
            ArmSpec::pool("oracle", NodesFrom::Oracle, seed),
            ArmSpec::pool("adversarial", NodesFrom::Adversarial, seed),
            ArmSpec::malloc(GLIBC, None, None),
        ];
        Self { common, arms }
    }

    /// One more arm.
    pub(crate) fn add(&mut self, arm: ArmSpec) {
        self.arms.push(arm);
    }

    /// Starts one worker, of the arm that all are compared with.
    pub(crate) fn start_base(&self, stop: &Stop) -> Result<Team> {
        let arm = self.arms.first().context("no arm")?;
        let mut team = Team::default();
        let mut worker = Worker::start(arm, &self.common, stop)?;
        let empty = worker.account()?;
        team.add(&arm.name, worker, empty);
        Ok(team)
    }

    /// Starts the workers of a block. At the first one an arm that cannot start is named and left out, unless
    /// everything is compared with it; later on the arms are those that there were then, `names`.
    pub(crate) fn start(&self, names: &[String], setting: &mut Setting<'_>) -> Result<Team> {
        let mut team = Team::default();
        let stop = setting.stop();
        let begins = names.is_empty();
        let known = |arm: &&ArmSpec| begins || names.contains(&arm.name);
        for arm in self.arms.iter().filter(known) {
            let started = Worker::start(arm, &self.common, &stop);
            match started.and_then(|mut w| Ok((w.account()?, w))) {
                Ok((empty, worker)) => team.add(&arm.name, worker, empty),
                Err(error) if arm.name == BASE || !begins || stop.is_set() => return Err(error),
                Err(error) => setting.miss(&format!("{}: {error:#}", arm.name)),
            }
        }
        Ok(team)
    }

    /// Where costs of a load lie on this machine.
    pub(crate) fn plateaus(
        &self,
        team: &mut Team,
        caches: Caches,
        contents: &Contents,
        learning_ms: Option<u64>,
    ) -> Result<Plateaus> {
        let core = *self.common.cores.first().context("no core")?;
        let place = contents.machine.cores.iter().position(|c| c.id == core);
        let mean = |level: Level| {
            let map = contents.levels.iter().find(|map| map.level == level.as_str())?;
            map.quality.get(place?)?.mean_ns
        };
        Ok(Plateaus {
            l2_ns: team.chase_ns(lines_in(caches.l2 / 2), learning_ms)?,
            llc_ns: mean(Level::Llc),
            dram_ns: mean(Level::Dram),
            llc_share_bytes: contents
                .llc_shares
                .iter()
                .find(|share| share.core == core)
                .and_then(|share| share.bytes),
        })
    }
}

/// A core's caches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caches {
    pub(crate) l2: u64,
    pub(crate) llc: u64,
}

impl Caches {
    /// As the machine shows them.
    pub(crate) fn of(machine: &Machine, core: CoreId) -> Self {
        let l2 = machine.cache(core, 2).and_then(|cache| cache.bytes);
        let llc = machine.last_level_cache(core).and_then(|cache| cache.bytes);
        Self { l2: l2.unwrap_or(1 << 20), llc: llc.unwrap_or(32 << 20) }
    }
}

/// Lines in so many bytes.
pub(crate) fn lines_in(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX) / LINE_BYTES
}

/// Workers that were started.
#[derive(Default)]
pub(crate) struct Team {
    pub(super) names: Vec<String>,
    pub(super) workers: Vec<Worker>,
    empty: Vec<Account>,
}

impl Team {
    fn add(&mut self, name: &str, worker: Worker, empty: Account) {
        self.names.push(name.to_owned());
        self.workers.push(worker);
        self.empty.push(empty);
    }

    /// What a load costs in a chase over so many lines, in the arm that all are compared with:
    /// the cheapest of some runs. Pools learn new memory for so many milliseconds at most.
    pub(crate) fn chase_ns(&mut self, lines: usize, learning_ms: Option<u64>) -> Result<f64> {
        let operations = (lines as u64).max(1 << 18);
        let mut least = f64::INFINITY;
        for warm in [operations, 0, 0] {
            let request = Request::Structure {
                name: StructureName::Chase,
                lines,
                seed: 1,
                epoch: u64::MAX,
                warm,
                operations,
                learning_ms,
            };
            let played = self.workers[0].work(&request)?;
            let ns = cost_ns(&played.seconds, &played.operations).context("nothing was done")?;
            least = least.min(ns);
        }
        Ok(least)
    }

    /// How many operations take [`RUN_S`] in the arm that all are compared with, or `least` if
    /// that is more.
    pub(crate) fn operations(
        &mut self,
        least: u64,
        request: &dyn Fn(u64, u64, u64) -> Request,
    ) -> Result<u64> {
        let mut operations = least.max(*OPERATIONS.start());
        // An epoch that no series uses.
        while operations < *OPERATIONS.end() {
            let played = self.workers[0].work(&request(u64::MAX, operations / 4, operations))?;
            let seconds = played.seconds.iter().copied().fold(f64::INFINITY, f64::min);
            if seconds >= RUN_S {
                return Ok(operations);
            }
            operations *= if seconds < RUN_S / 16.0 { 8 } else { 2 };
        }
        bail!("the work takes no time: there is nothing to compare")
    }

    /// How many searches take [`RUN_S`] in the arm that all are compared with.
    pub(crate) fn searches(&mut self, request: &dyn Fn(u32) -> Request) -> Result<u32> {
        let mut searches = 1;
        while searches < 1 << 20 {
            let played = self.workers[0].work(&request(searches))?;
            let seconds = played.seconds.iter().copied().fold(f64::INFINITY, f64::min);
            if seconds >= RUN_S {
                break;
            }
            searches *= 2;
        }
        Ok(searches)
    }

    /// What each arm cost, given what its worker holds now.
    pub(super) fn costs(&self, accounts: &[Option<Account>]) -> BTreeMap<String, ArmCost> {
        let grown = |place: usize| {
            let (now, empty) = (accounts.get(place)?.as_ref()?, self.empty.get(place)?);
            now.peak_rss_bytes?.checked_sub(empty.rss_bytes?)
        };
        let glibc = self.names.iter().position(|name| name == GLIBC).and_then(grown);
        let all = self.names.iter().enumerate().map(|(place, name)| {
            let rss = grown(place);
            let pools = accounts[place].as_ref().map_or(&[][..], |account| &account.pools);
            let most = |of: fn(&PoolAccount) -> f64| pools.iter().map(of).max_by(f64::total_cmp);
            let cost = ArmCost {
                rss_ratio: rss.zip(glibc).filter(|(_, g)| *g > 0).map(|(a, g)| a as f64 / g as f64),
                rss_bytes: rss,
                startup_us: most(|pool| pool.startup_us),
                classification_us: most(|pool| pool.classification_us),
                learnt_share: pools.iter().map(|p| p.learnt_share).min_by(f64::total_cmp),
                arena_bytes: (!pools.is_empty()).then(|| pools.iter().map(|p| p.arena_bytes).sum()),
                nodes_ns: by_level(pools, |pool| pool.nodes_ns),
                pool_ns: by_level(pools, |pool| pool.pool_ns),
                nodes_measured_ns: measured(pools, 0),
                pool_measured_ns: measured(pools, 1),
            };
            (name.clone(), cost)
        });
        all.collect()
    }
}

/// Means over pools, by level; levels that are not known of every pool are left out.
fn by_level(
    pools: &[PoolAccount],
    of: fn(&PoolAccount) -> [Option<f64>; 2],
) -> BTreeMap<&'static str, f64> {
    let mean = |place: usize| -> Option<f64> {
        let known: Option<Vec<f64>> = pools.iter().map(|pool| of(pool)[place]).collect();
        let known = known.filter(|all| !all.is_empty())?;
        Some(known.iter().sum::<f64>() / known.len() as f64)
    };
    let levels = Level::ALL.into_iter().enumerate();
    levels.filter_map(|(place, level)| Some((level.as_str(), mean(place)?))).collect()
}

/// Means over pools of what was timed, of their nodes or of all lines.
fn measured(pools: &[PoolAccount], which: usize) -> Option<f64> {
    let known: Option<Vec<f64>> = pools.iter().map(|pool| Some(pool.measured_ns?[which])).collect();
    let known = known.filter(|all| !all.is_empty())?;
    Some(known.iter().sum::<f64>() / known.len() as f64)
}

/// Nanoseconds an operation: the mean over cores, each in its own time.
pub(super) fn cost_ns(seconds: &[f64], operations: &[u64]) -> Option<f64> {
    let costs: Vec<f64> = seconds
        .iter()
        .zip(operations)
        .filter(|(_, operations)| **operations > 0)
        .map(|(seconds, operations)| 1e9 * seconds / *operations as f64)
        .collect();
    let all = costs.len() == seconds.len() && !costs.is_empty();
    all.then(|| costs.iter().sum::<f64>() / costs.len() as f64)
}

impl Outcome {
    pub(super) fn of(
        series: Series,
        arms: BTreeMap<String, ArmCost>,
        same_work: bool,
        seed: u64,
    ) -> Self {
        let over = |arm: &str| Ratio::of(&series, arm, BASE, seed);
        let (aware, oracle, control) = (over("aware"), over("oracle"), over(AGAIN));
        let named = [BASE, AGAIN, "aware", "oracle", "adversarial"];
        let others = series.arms.iter().filter(|name| !named.contains(&name.as_str()));
        let base = series.arm(BASE).map(|arm| series.block_means(arm));
        Self {
            aware_over_oblivious: aware,
            oracle_over_oblivious: oracle,
            adversarial_over_oblivious: over("adversarial"),
            aa_control: control,
            over_oblivious: others.map(|name| (name.clone(), over(name))).collect(),
            share_of_oracle: share_of_oracle(aware, oracle, control),
            oblivious_ns: base.and_then(|means| isochrone_stats::median(&means)),
            same_work,
            arms,
            series,
        }
    }

    /// What the atlas predicts at a level: the cost of lines at random over that of the aware
    /// arm's lines, were nothing else done. Nothing is predicted of what does not fit the last-level cache
    /// (`docs/method/allocator.md`, "Beyond the last-level cache").
    pub(crate) fn predicted(&self, level: Option<Plateau>) -> Option<f64> {
        let level = match level? {
            Plateau::L2 | Plateau::Dram => return None,
            Plateau::Llc => Level::Llc.as_str(),
        };
        let aware = self.arms.get("aware")?;
        Some(aware.pool_ns.get(level)? / aware.nodes_ns.get(level)?)
    }
}

fn share_of_oracle(
    aware: Option<Ratio>,
    oracle: Option<Ratio>,
    control: Option<Ratio>,
) -> Option<f64> {
    let (aware, oracle) = (aware?, oracle?);
    let gains = oracle.verdict(control) == Verdict::Gain;
    gains.then(|| (aware.median - 1.0) / (oracle.median - 1.0))
}

#[cfg(test)]
mod tests {
    use isochrone_units::{Reading, Readings};

    use super::*;

    #[test]
    fn a_cost_lies_on_the_nearest_plateau() {
        let found = Plateaus {
            l2_ns: 5.0,
            llc_ns: Some(15.0),
            dram_ns: Some(135.0),
            llc_share_bytes: None,
        };
        assert_eq!(found.of(5.5), Some(Plateau::L2));
        assert_eq!(found.of(20.0), Some(Plateau::Llc));
        assert_eq!(found.of(44.0), Some(Plateau::Llc));
        assert_eq!(found.of(46.0), Some(Plateau::Dram));
        assert_eq!(Plateaus { llc_ns: None, ..found }.of(20.0), None);
    }

    #[test]
    fn cores_count_alike_however_much_each_did() {
        assert_eq!(cost_ns(&[1e-6, 4e-6], &[10, 20]), Some(150.0));
        assert_eq!(cost_ns(&[1e-6, 4e-6], &[10, 0]), None);
        assert_eq!(cost_ns(&[], &[]), None);
    }

    #[test]
    fn the_oracles_share_needs_an_oracle_that_gains() {
        let readings = Readings::One(Reading::Measured);
        let ratio = |median: f64| {
            Some(Ratio { median, lo: median - 0.01, hi: median + 0.01, blocks: 9, readings })
        };
        let share = share_of_oracle(ratio(1.09), ratio(1.10), ratio(1.0));
        assert!(share.is_some_and(|share| (share - 0.9).abs() < 1e-9));
        assert_eq!(share_of_oracle(ratio(1.09), ratio(1.005), ratio(1.0)), None);
        assert_eq!(share_of_oracle(None, ratio(1.1), None), None);
    }
}
