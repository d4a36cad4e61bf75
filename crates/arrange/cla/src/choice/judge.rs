//! What a call takes in one shape or another, by the simulator.

use super::calls::{CHUNKS_MOST, judged};
use super::sketch::{acknowledged_ns, stage_ns};
use super::stream::Stream;
use crate::collectives::{Collective, Options, Plan, Shape};
use crate::program::{Line, Recorded, record};
use crate::simulated::{Hot, Model};
use isochrone_machine::LineCosts;

/// Runs of a simulated call, whose mean is its time. Ranks begin at once, and by chance a poll takes a line from the
/// root before it has written, or not: broadcasts along a flat tree of 16 ranks took 130 ns or 410.
const SEEDS: u64 = 4;

/// Bytes of the long messages whose time decides on chunks: in the middle of their class, by ratio.
const LONG_BYTES: u32 = 16 << 10;

/// Says what the calls of one plan would take with other options.
#[derive(Debug)]
pub(super) struct Judge<'a> {
    usual: &'a Plan,
    /// What chunks cost, each as one line.
    costs: LineCosts,
    hot: Hot,
}

impl<'a> Judge<'a> {
    /// Of the calls of `usual` with chunks of so many lines; `None` where the machine has other cores than the plan
    /// has ranks.
    pub(super) fn new(usual: &'a Plan, costs: &LineCosts, chunk_lines: u32) -> Option<Self> {
        let costs = folded(usual, costs, chunk_lines);
        let cores: Vec<usize> = (0..usize::from(usual.ranks())).collect();
        let hot = Hot::new(&costs, &cores, &Model::default()).ok()?;
        Some(Self { usual, costs, hot })
    }

    /// What chunks cost, each as one line.
    pub(super) const fn costs(&self) -> &LineCosts {
        &self.costs
    }

    /// One call by itself, lines as earlier calls leave them, with some options: the mean of some simulated runs, and
    /// of broadcasts what a parent's look at acknowledgements adds in the mean; ns. `None` where there is no such
    /// plan, it cannot be simulated, or takes more than `most_ns`.
    pub(super) fn ns(&mut self, options: Options, most_ns: f64) -> Option<f64> {
        self.mean_ns(options, SEEDS, most_ns)
    }

    /// The same of one run.
    pub(super) fn once_ns(&mut self, options: Options, most_ns: f64) -> Option<f64> {
        self.mean_ns(options, 1, most_ns)
    }

    fn mean_ns(&mut self, options: Options, seeds: u64, most_ns: f64) -> Option<f64> {
        let looks_ns = looks_ns(self.usual.collective(), &options, &self.costs);
        let (plan, calls) = judged(self.usual, options).ok()?;
        let members = plan.members();
        let one = |&epoch: &u64| {
            record(plan.ranks(), |lines, rank| members[rank.index()].run(lines, epoch))
        };
        let programs: Vec<Recorded> = calls.iter().map(one).collect();
        let ns = self.hot.mean_ns(&programs, 0..seeds, most_ns - looks_ns).ok()??;
        Some(ns + looks_ns)
    }

    /// One call of a stream with roots in turn, each call done as `options` says of its plan: the time of the stream,
    /// of one run, for each of its calls, and what looks at acknowledgements add; ns. `None` as for [`Self::ns`].
    pub(super) fn stream_ns(
        &mut self,
        options: impl Fn(&Plan) -> Option<Options>,
        most_ns: f64,
    ) -> Option<f64> {
        let looks_ns = looks_ns(self.usual.collective(), &options(self.usual)?, &self.costs);
        let Stream { programs, calls } = Stream::of(self.usual, options)?;
        let calls = f64::from(calls);
        let ns = self.hot.mean_ns(&programs, 0..1, (most_ns - looks_ns) * calls).ok()??;
        Some(ns / calls + looks_ns)
    }

    /// What calls that nobody acknowledges take with what acknowledgements add in the mean.
    pub(super) fn with_looks(&self, options: &Options, ns: f64) -> f64 {
        ns + looks_ns(self.usual.collective(), options, &self.costs)
    }

    /// What a message in the middle of its class takes of which the first chunks, as [`Self::ns`] has them, take
    /// `first_ns`.
    pub(super) fn whole_ns(&self, options: &Options, first_ns: f64) -> f64 {
        let chunk = options.chunk_bytes();
        let chunks = self.usual.bytes().min(LONG_BYTES).div_ceil(chunk);
        let more = f64::from(chunks.saturating_sub(CHUNKS_MOST));
        let (collective, groups) = (self.usual.collective(), &options.groups);
        first_ns + more * stage_ns(collective, &options.shape, groups, &self.costs)
    }
}

/// What acknowledgements add to a broadcast in the mean, which others have none of.
pub(super) fn looks_ns(collective: Collective, options: &Options, costs: &LineCosts) -> f64 {
    match (collective, &options.shape) {
        (Collective::Broadcast, Shape::Tree(tree)) => {
            acknowledged_ns(tree, options.acks, costs, options.ring / 2)
        }
        _ => 0.0,
    }
}

/// The time of such calls with some options on some costs, ns; `None` where there is no such plan, or it cannot be
/// simulated.
#[must_use]
pub fn judge(usual: &Plan, options: Options, costs: &LineCosts) -> Option<f64> {
    let mut judge = Judge::new(usual, costs, options.chunk_lines)?;
    let first_ns = judge.ns(options.clone(), f64::INFINITY)?;
    Some(judge.whole_ns(&options, first_ns))
}

/// The costs of chunks of several lines as if they were one: a class's whole chunk stands for its line, at
/// most as much as its lines one after another. A simulation then takes as long for them as for one line.
fn folded(usual: &Plan, costs: &LineCosts, chunk_lines: u32) -> LineCosts {
    let all = (usual.bytes() + Line::WORD_BYTES).div_ceil(Line::BYTES);
    let lines = f64::from(all.min(chunk_lines));
    let mut folded = costs.clone();
    if lines > 1.0 {
        for class in &mut folded.classes {
            let several = class.start_ns + lines * (class.line_ns + class.congestion_ns);
            class.transfer_ns = several.min(lines * class.transfer_ns).max(class.transfer_ns);
            class.congestion_ns *= lines;
        }
    }
    folded
}
