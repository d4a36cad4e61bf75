//! One comparison of arms that work on nodes, block by block. Each block has workers of its own and new memory, so
//! that others can be made between two of them.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use isochrone_console::turns::Series;
use isochrone_report::fmt::percent;

use super::field::{ArmCost, Outcome, Team, cost_ns};
use super::setting::Setting;
use super::workers::Findings;
use crate::workload::request::{Account, Request};

/// The part of the time for a block in which pools learn their memory.
const LEARNING: f64 = 0.6;
/// Pools that learn for a block: each mode's, the oblivious one's again, and one by which the length of a run is
/// found.
const POOLS: u32 = 6;
/// The part of its memory that a pool knows that is said to have learnt it.
const LEARNT: f64 = 0.9;

/// One comparison under way.
pub(crate) struct Contest {
    pub(crate) series: Series,
    seed: u64,
    findings: Findings,
    costs: BTreeMap<String, ArmCost>,
}

impl Contest {
    pub(crate) fn new(setting: &mut Setting<'_>) -> Self {
        let series = Series::new(&[], "nanoseconds an operation");
        let (findings, costs) = (Findings::default(), BTreeMap::new());
        Self { series, seed: setting.seed(), findings, costs }
    }

    /// Lets the arms take turns at a request that is made for each epoch, for one block.
    pub(crate) fn block(
        &mut self,
        mut team: Team,
        setting: &mut Setting<'_>,
        what: &str,
        request: &dyn Fn(u64) -> Request,
    ) -> Result<()> {
        if self.series.blocks.is_empty() {
            self.series.arms.clone_from(&team.names);
        }
        let (epoch, names) = (self.series.blocks.len() as u64, team.names.clone());
        let (workers, findings) = (&mut team.workers, &mut self.findings);
        setting.block(&mut self.series, self.seed, what, &mut |arm| {
            let played = workers[arm].work(&request(epoch))?;
            let cost = cost_ns(&played.seconds, &played.operations)
                .with_context(|| format!("{} did nothing", names[arm]))?;
            findings.note(arm, played.checksums);
            Ok(cost)
        })?;
        if self.series.blocks.len() as u64 > epoch {
            let accounts: Vec<Option<Account>> =
                team.workers.iter_mut().map(|worker| worker.account().ok()).collect();
            // Who was ended says nothing, and what was said before holds.
            if self.costs.is_empty() || accounts.iter().all(Option::is_some) {
                self.costs = team.costs(&accounts);
            }
        }
        Ok(())
    }

    /// What came out; where something is to be said of it, that is noted.
    pub(crate) fn outcome(self, what: &str, setting: &mut Setting<'_>) -> Outcome {
        let (same, seed) = (self.findings.agree(), setting.seed());
        if let Some(share) = self.unlearnt().filter(|_| setting.share().is_some()) {
            let known = percent(share);
            setting.miss(&format!(
                "{what}: a pool knew {known} of its memory when its time to learn was over; more with --budget TIME"
            ));
        }
        Outcome::of(self.series, self.costs, same, seed)
    }

    /// The least part of an arm's memory that was learnt, where that was not nearly all.
    fn unlearnt(&self) -> Option<f64> {
        let least = self.costs.values().filter_map(|cost| cost.learnt_share);
        least.min_by(f64::total_cmp).filter(|least| *least < LEARNT)
    }
}

/// How long the pools of a comparison may learn new memory, each of them, given the time for one block of it:
/// milliseconds.
pub(crate) fn learning_ms(share: Option<Duration>) -> Option<u64> {
    let each = share?.mul_f64(LEARNING) / POOLS;
    Some(u64::try_from(each.as_millis()).unwrap_or(u64::MAX))
}
