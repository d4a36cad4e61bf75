//! What the model says of the calls that are sampled, and whether it is right.

use anyhow::Result;
use isochrone_cla::collectives::{Options, Plan};
use isochrone_cla::live::{Choose, Usual};
use isochrone_cla::predicted::{Band, Rules, Start, predict};
use isochrone_cla::program::{Operation, Rank, Recorded};
use isochrone_cla::simulated::{Model, simulate};
use isochrone_machine::LineCosts;
use isochrone_stats as stats;

use super::live::{Sample, What};

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

/// The band of every call of a ring, in the hot state that the calls before leave, each in its own window.
///
/// Stores are posted. Of what a call costs beside its operations, at least half is on the way: the rest can
/// run beside a transfer, since cores execute out of order.
pub(super) fn phases(what: What, costs: &LineCosts) -> Result<Vec<Phase>> {
    let call_ns = costs.added.call_ns;
    let (collective, bytes) = (what.collective(), what.bytes());
    // What the team does that is sampled.
    let options: Options = Usual.options(collective, 2, Rank(0), bytes);
    let ring = u64::from(options.ring);
    let plan = Plan::new(collective, 2, Rank(0), bytes, options)?;
    (0..ring)
        .map(|phase| {
            let call = 2 * ring + phase;
            let warm: Vec<_> = (0..call).map(|n| plan.record(n, n + 1)).collect();
            let now = plan.record(call, call + 1);
            let start = Start::AfterEach(&warm);
            let bare = predict(&now, start, costs, &[0, 1], Rules::Timed)?.posted_band();
            let band = Band { min_ns: bare.min_ns + call_ns / 2.0, max_ns: bare.max_ns + call_ns };
            let simulated_ns = simulated_ns(&now, start, costs)?;
            Ok(Phase { band, simulated_ns })
        })
        .collect()
}

/// Simulated runs of each call.
const SEEDS: u64 = 51;

/// The median of what simulated runs take, stores posted as in the band.
fn simulated_ns(now: &Recorded, start: Start<'_>, costs: &LineCosts) -> Result<f64> {
    let posted = |o: &Operation| matches!(o, Operation::Write { .. } | Operation::Claim { .. });
    let mut totals = Vec::new();
    for seed in 0..SEEDS {
        let run = simulate(now, start, costs, &[0, 1], &Model::default(), seed)?;
        let ends = now.ranks.iter().zip(&run.operations_ns).flat_map(|(rank, ends)| {
            rank.operations.iter().zip(ends).filter(|(o, _)| !posted(o)).map(|(_, end)| *end)
        });
        totals.push(ends.fold(0.0, f64::max) + costs.added.call_ns);
    }
    Ok(stats::median(&totals).unwrap_or(f64::NAN))
}

/// One collective: what was measured, and what the model says.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    pub(super) what: What,
    pub(super) samples: usize,
    /// Samples inside the bands of their calls.
    pub(super) inside: usize,
    /// Of the calls that most are: the lowest `T_min` and the highest `T_max`.
    pub(super) band: Band,
    /// The largest `T_max / T_min` of a call.
    pub(super) ratio: f64,
    /// Percentiles 5, 50 and 95 of the samples, ns.
    pub(super) live_ns: [f64; 3],
    /// The median over samples of what is simulated for their calls, ns.
    pub(super) simulated_ns: f64,
    /// What a call costs beside its operations, ns.
    pub(super) call_ns: f64,
}

impl Verdict {
    pub(super) fn of(what: What, samples: &[Sample], phases: &[Phase], call_ns: f64) -> Self {
        let phase = |s: &Sample| {
            let at = s.call % u64::try_from(phases.len()).unwrap_or(1);
            phases[usize::try_from(at).unwrap_or(0)]
        };
        let mut live: Vec<f64> = samples.iter().map(|s| s.ns).collect();
        live.sort_by(f64::total_cmp);
        let simulated: Vec<f64> = samples.iter().map(|s| phase(s).simulated_ns).collect();
        let quantile = |q| stats::quantile(&live, q).unwrap_or(f64::NAN);
        // Calls without acknowledgements are the most: seven of eight.
        let least = |of: fn(&Band) -> f64| {
            let all: Vec<f64> = phases.iter().map(|p| of(&p.band)).collect();
            stats::median(&all).unwrap_or(f64::NAN)
        };
        Self {
            what,
            samples: samples.len(),
            inside: samples.iter().filter(|s| phase(s).band.holds(s.ns)).count(),
            band: Band { min_ns: least(|b| b.min_ns), max_ns: least(|b| b.max_ns) },
            ratio: phases.iter().map(|p| p.band.max_ns / p.band.min_ns).fold(0.0, f64::max),
            live_ns: [quantile(0.05), quantile(0.5), quantile(0.95)],
            simulated_ns: stats::median(&simulated).unwrap_or(f64::NAN),
            call_ns,
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
            faults.push(format!("{name}: {share:.1} % of the live samples are inside the band"));
        }
        if self.median_off().is_nan() || self.median_off() > MEDIAN_OFF_MOST {
            let off = 100.0 * self.median_off();
            faults.push(format!("{name}: the simulated median is {off:.0} % off the live one"));
        }
        faults
    }
}
