//! What the model says of the calls that are sampled, and whether it is right.

use std::collections::BTreeSet;

use anyhow::Result;
use isochrone_cla::predicted::{Band, PredictError, Rules, Start, predict};
use isochrone_cla::program::{Operation, Rank, Recorded};
use isochrone_cla::simulated::{Model, simulate};
use isochrone_machine::{ClassCost, LineCosts, PairClass};
use isochrone_stats as stats;

use super::live::{Block, Sample, What};
use crate::calls::{Call, ring};

/// A live sample must be inside the band so often.
pub(super) const SHARE_LEAST: f64 = 0.9;
/// `T_max` is at most so many `T_min`: a wider band says little.
pub(super) const RATIO_MOST: f64 = 2.0;
/// The simulated median is at most so far from the live one.
pub(super) const MEDIAN_OFF_MOST: f64 = 0.2;

/// One call of a ring: it may have to acknowledge, or to wait for acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Phase {
    pub(super) band: Band,
    pub(super) simulated_ns: f64,
}

/// What a call costs beside its operations, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Beside {
    /// Of a team of one rank, which waits for nobody.
    pub(super) least_ns: f64,
    /// Of a rank that comes when all that it waits for has been written, without the transfers of that: its waits end
    /// at once, but it has them, and its own lines are being looked at.
    pub(super) most_ns: f64,
}

/// A transfer of the lines that one call uses, and how far apart polls are, ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Transfers {
    /// The cheapest line that rank 0 hands to rank 1, and the cheapest that rank 1 hands to rank 0. Where ranks
    /// hand each other a line both must cross, so the cheaper of the two says nothing.
    pub(super) least_ns: [f64; 2],
    pub(super) mean_ns: f64,
    /// The dearest line, whoever hands it: a rank may have to take its own back.
    pub(super) most_ns: f64,
    /// From one poll to the next where ranks pause, the mean and the most; 0 where they do not.
    pub(super) polls_ns: [f64; 2],
}

impl Transfers {
    /// The same for all lines.
    #[cfg(test)]
    pub(super) const fn all(ns: f64) -> Self {
        Self { least_ns: [ns; 2], mean_ns: ns, most_ns: ns, polls_ns: [0.0; 2] }
    }

    /// Those of the lines that `now` hands from one rank to the other, measured before its block and after.
    /// A line is handed by whoever writes it.
    pub(super) fn of(now: &Recorded, block: &Block) -> Self {
        let lines = &block.lines;
        let handed = |rank: usize| -> Vec<f64> {
            let operations = now.ranks.get(rank).map(|record| record.operations.as_slice());
            let written: BTreeSet<u32> =
                operations.unwrap_or_default().iter().flat_map(written).collect();
            let at = |line: u32| usize::try_from(line).unwrap_or(usize::MAX);
            let times = |line: u32| {
                lines.iter().filter_map(move |times| times.from[rank].get(at(line)).copied())
            };
            written.into_iter().flat_map(times).collect()
        };
        let by = [handed(0), handed(1)];
        let end = |all: &[f64], pick: fn(f64, f64) -> f64| all.iter().copied().reduce(pick);
        let all = by.concat();
        let least = end(&all, f64::min).unwrap_or(f64::NAN);
        Self {
            least_ns: [0, 1].map(|rank: usize| end(&by[rank], f64::min).unwrap_or(least)),
            mean_ns: stats::mean(&all).unwrap_or(f64::NAN),
            most_ns: end(&all, f64::max).unwrap_or(f64::NAN),
            polls_ns: [
                stats::mean(&block.polls_ns).unwrap_or(0.0),
                end(&block.polls_ns, f64::max).unwrap_or(0.0),
            ],
        }
    }

    /// `costs` of two cores with such transfers: at their cheapest, on average, at their dearest.
    fn tables(self, costs: &LineCosts) -> [LineCosts; 3] {
        let all = |ns: f64, poll_ns: f64| {
            let mut table = between(costs, [ns; 2]);
            table.added.poll_ns = poll_ns;
            table
        };
        let [poll, late_poll] = self.polls_ns;
        [between(costs, self.least_ns), all(self.mean_ns, poll), all(self.most_ns, late_poll)]
    }
}

/// `costs` of the first two cores with a transfer for each direction. Half of a transfer is the request, half the
/// answer.
fn between(costs: &LineCosts, [there, back]: [f64; 2]) -> LineCosts {
    let class = |transfer_ns: f64| ClassCost { transfer_ns, ..costs.pair(0, 1).clone() };
    // The cheapest class comes first.
    let swapped = back < there;
    let classes = if swapped { [back, there] } else { [there, back] };
    let way = |from: usize, to: usize| PairClass(u8::from((from > to) != swapped));
    let mut table = LineCosts::new(2, classes.map(class).to_vec(), costs.local_ns, way);
    table.added = costs.added.clone();
    table.added.request_ns = there.min(back) / 2.0;
    table
}

/// The lines that an operation writes for others.
fn written(operation: &Operation) -> Vec<u32> {
    match *operation {
        Operation::Copy { dst, .. } | Operation::Reduce { dst, .. } => {
            dst.shared_lines().map(|line| line.0).collect()
        }
        Operation::Write { line, .. } | Operation::Add { line, .. } => vec![line.0],
        Operation::Wait { .. } | Operation::Claim { .. } => Vec::new(),
    }
}

/// What a line costs in a block, for each wait of `rank` in a call, ns; nothing if it waits for nobody.
pub(super) fn awaited_ns(call: &Call, rank: Rank, block: &Block) -> Option<f64> {
    let operations = &call.now.ranks.get(rank.index())?.operations;
    let waits = operations.iter().filter(|o| matches!(o, Operation::Wait { .. })).count();
    let waits = f64::from(u32::try_from(waits).unwrap_or(u32::MAX));
    (waits > 0.0).then(|| waits * Transfers::of(&call.now, block).mean_ns)
}

/// Every call of a ring, as the team does it that is sampled.
pub(super) fn calls(what: What) -> Result<Vec<Call>> {
    ring(what.kind(), what.bytes() as usize)
}

/// The band of every call of a ring, in the hot state that the calls before leave, each in its own window.
/// `T_min` takes for each direction the cheapest of the lines that a call hands that way, `T_max` the dearest of all.
///
/// Stores are posted. Of the least that a call costs beside its operations, at least half is on the way: the rest can
/// run beside a transfer, since cores execute out of order. `T_max` has the most, and the simulation the middle of
/// both.
pub(super) fn phases(
    calls: &[Call],
    costs: &LineCosts,
    beside: Beside,
    transfers: impl Fn(&Recorded) -> Transfers,
) -> Result<Vec<Phase>> {
    let band = |Call { now, warm }: &Call| {
        let start = Start::AfterEach(warm);
        let [low, middle, high] = transfers(now).tables(costs);
        let end = |table: &LineCosts| {
            Ok::<_, PredictError>(predict(now, start, table, &[0, 1], Rules::Timed)?.posted_band())
        };
        let band = Band {
            min_ns: end(&low)?.min_ns + beside.least_ns / 2.0,
            max_ns: end(&high)?.max_ns + beside.most_ns,
        };
        let call_ns = f64::midpoint(beside.least_ns, beside.most_ns);
        Ok(Phase { band, simulated_ns: simulated_ns(now, start, &middle)? + call_ns })
    };
    calls.iter().map(band).collect()
}

/// The same for the lines of a block.
pub(super) fn block_phases(
    calls: &[Call],
    costs: &LineCosts,
    beside: Beside,
    block: &Block,
) -> Result<Vec<Phase>> {
    phases(calls, costs, beside, |now| Transfers::of(now, block))
}

/// Simulated runs of each call.
const SEEDS: u64 = 11;

/// The median of what the operations take in simulated runs, stores posted as in the band.
fn simulated_ns(now: &Recorded, start: Start<'_>, costs: &LineCosts) -> Result<f64> {
    let mut totals = Vec::new();
    for seed in 0..SEEDS {
        let run = simulate(now, start, costs, &[0, 1], &Model::default(), seed)?;
        let ends = now.ranks.iter().zip(&run.operations_ns).flat_map(|(rank, ends)| {
            rank.operations.iter().zip(ends).filter(|(o, _)| !posted(o)).map(|(_, end)| *end)
        });
        totals.push(ends.fold(0.0, f64::max));
    }
    Ok(stats::median(&totals).unwrap_or(f64::NAN))
}

/// Whether a rank goes on without waiting for it.
const fn posted(operation: &Operation) -> bool {
    matches!(operation, Operation::Write { .. } | Operation::Claim { .. })
}

/// One collective: what was measured, and what the model says.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    pub(super) what: What,
    pub(super) samples: usize,
    /// Samples inside the bands of their calls.
    pub(super) inside: usize,
    /// Samples below, and above.
    pub(super) outside: [usize; 2],
    /// Over all samples: the median `T_min` and the median `T_max` of their calls.
    pub(super) band: Band,
    /// The median over samples of `T_max / T_min`, and the largest.
    pub(super) ratio: [f64; 2],
    /// Percentiles 5, 50 and 95 of the samples, ns.
    pub(super) live_ns: [f64; 3],
    /// The median over samples of what is simulated for their calls, ns.
    pub(super) simulated_ns: f64,
    /// What a call costs beside its operations.
    pub(super) beside: Beside,
    /// Calls of the ring by themselves.
    pub(super) calls: Vec<OfCall>,
}

/// One call of the ring over all blocks.
#[derive(Clone, Debug, Default)]
pub(super) struct OfCall {
    pub(super) samples: usize,
    pub(super) outside: [usize; 2],
    pub(super) live_ns: f64,
    /// The median of the samples above the band; NaN where there are none.
    pub(super) above_ns: f64,
    pub(super) simulated_ns: f64,
    pub(super) band: [f64; 2],
}

impl Verdict {
    /// Of samples, each with the phase that is its call's.
    pub(super) fn of(what: What, blocks: &[(Vec<Sample>, Vec<Phase>)], beside: Beside) -> Self {
        let ring = blocks.first().map_or(1, |(_, phases)| phases.len().max(1));
        let mut by_call: Vec<Vec<(f64, Phase)>> = vec![Vec::new(); ring];
        for (samples, phases) in blocks {
            for sample in samples {
                let at = sample.call % u64::try_from(ring).unwrap_or(1);
                let at = usize::try_from(at).unwrap_or(0);
                by_call[at].push((sample.ns, phases[at]));
            }
        }
        let all: Vec<(f64, Phase)> = by_call.iter().flatten().copied().collect();
        let outside = outside(&all);
        let ratio = |(_, phase): &(f64, Phase)| phase.band.max_ns / phase.band.min_ns;
        Self {
            what,
            samples: all.len(),
            inside: all.len() - outside[0] - outside[1],
            outside,
            band: Band {
                min_ns: middle(&all, |(_, p)| p.band.min_ns),
                max_ns: middle(&all, |(_, p)| p.band.max_ns),
            },
            ratio: [middle(&all, ratio), all.iter().map(ratio).fold(0.0, f64::max)],
            live_ns: [0.05, 0.5, 0.95].map(|q| quantile(&all, q)),
            simulated_ns: middle(&all, |(_, p)| p.simulated_ns),
            beside,
            calls: by_call.iter().map(|samples| OfCall::of(samples)).collect(),
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "counts of samples are far below 2^52")]
    pub(super) fn share(&self) -> f64 {
        self.inside as f64 / self.samples.max(1) as f64
    }

    pub(super) fn median_off(&self) -> f64 {
        (self.simulated_ns / self.live_ns[1] - 1.0).abs()
    }

    /// What is wrong with the model, in words; nothing if it holds.
    pub(super) fn faults(&self) -> Vec<String> {
        let name = self.what.collective().name();
        let mut faults = Vec::new();
        if self.share() < SHARE_LEAST {
            let share = 100.0 * self.share();
            let [below, above] = self.outside;
            faults.push(format!(
                "{name}: {share:.1} % of {} live samples are inside the band; {below} are below and {above} above",
                self.samples
            ));
        }
        if self.median_off().is_nan() || self.median_off() > MEDIAN_OFF_MOST {
            let off = 100.0 * self.median_off();
            faults.push(format!("{name}: the simulated median is {off:.0} % off the live one"));
        }
        faults
    }
}

impl OfCall {
    fn of(samples: &[(f64, Phase)]) -> Self {
        Self {
            samples: samples.len(),
            outside: outside(samples),
            live_ns: quantile(samples, 0.5),
            above_ns: {
                let above = |(ns, phase): &&(f64, Phase)| *ns > phase.band.max_ns;
                quantile(&samples.iter().filter(above).copied().collect::<Vec<_>>(), 0.5)
            },
            simulated_ns: middle(samples, |(_, p)| p.simulated_ns),
            band: [
                middle(samples, |(_, p)| p.band.min_ns),
                middle(samples, |(_, p)| p.band.max_ns),
            ],
        }
    }
}

/// How many samples are below their bands, and above.
fn outside(samples: &[(f64, Phase)]) -> [usize; 2] {
    let of = |below: bool| {
        let out = |(ns, phase): &&(f64, Phase)| {
            !phase.band.holds(*ns) && (*ns < phase.band.min_ns) == below
        };
        samples.iter().filter(out).count()
    };
    [of(true), of(false)]
}

fn middle(samples: &[(f64, Phase)], of: impl Fn(&(f64, Phase)) -> f64) -> f64 {
    let all: Vec<f64> = samples.iter().map(of).collect();
    stats::median(&all).unwrap_or(f64::NAN)
}

fn quantile(samples: &[(f64, Phase)], q: f64) -> f64 {
    let mut all: Vec<f64> = samples.iter().map(|(ns, _)| *ns).collect();
    all.sort_by(f64::total_cmp);
    stats::quantile(&all, q).unwrap_or(f64::NAN)
}
