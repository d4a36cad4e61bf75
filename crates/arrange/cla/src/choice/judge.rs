//! What a call takes in one shape or another, by the simulator.

use super::sketch::{Costs, acknowledged_ns, stage_ns};
use crate::collectives::{Collective, Options, Plan, PlanError, Shape};
use crate::program::{Line, Recorded, record};
use crate::simulated::{Hot, Model};
use isochrone_machine::{ClassCost, LineCosts};

/// Runs of a simulated call, whose mean is its time: ranks begin at once, and chance says who of them comes first.
/// Where they wait for one another first, that is over before anything goes down: on 26 machines one run was seldom
/// more than a twentieth from the mean of four, and a gain has to be more than [`MODEL_ERROR`](super::MODEL_ERROR). In
/// a broadcast a root writes before any request for its line has come.
const fn runs(collective: Collective) -> u64 {
    match collective {
        Collective::Broadcast => 2,
        _ => 1,
    }
}

/// Chunks of a message at most in the simulator: two show whether they flow.
const CHUNKS_MOST: u32 = 2;

/// Bytes of the long messages whose time decides on chunks: in the middle of their class, by ratio.
const LONG_BYTES: u32 = 16 << 10;

/// Says what the calls of one plan would take with other options.
#[derive(Debug)]
pub(super) struct Judge<'a> {
    usual: &'a Plan,
    /// What lines cost, and what chunks do, each as one line.
    line: LineCosts,
    whole: LineCosts,
    /// What the lines cost that stand for a chunk, and how many do.
    stands: (LineCosts, u32),
    /// Events that may be simulated.
    most_events: u64,
    /// Made when it is asked.
    hot: Option<Hot>,
}

impl<'a> Judge<'a> {
    /// Of the calls of `usual` with chunks of so many lines, by so many events at most.
    pub(super) fn new(
        usual: &'a Plan,
        costs: &LineCosts,
        chunk_lines: u32,
        most_events: u64,
    ) -> Self {
        let all = (usual.bytes() + Line::WORD_BYTES).div_ceil(Line::BYTES);
        let lines = all.min(chunk_lines);
        let few = standing(costs, lines, all > chunk_lines);
        let [whole, stands] = [1, few].map(|few| folded(costs, lines, few));
        let line = costs.clone();
        Self { usual, line, whole, stands: (stands, few), most_events, hot: None }
    }

    /// What lines and chunks cost, for sketches.
    pub(super) const fn costs(&self) -> Costs<'_> {
        Costs { line: &self.line, whole: &self.whole }
    }

    /// Events that may still be simulated.
    pub(super) fn left_events(&self) -> u64 {
        let spent = self.hot.as_ref().map_or(0, Hot::events);
        self.most_events.saturating_sub(spent)
    }

    /// One call by itself, lines as earlier calls leave them, with some options: the mean of some simulated runs, and
    /// of broadcasts what a parent's look at acknowledgements adds in the mean; ns. `None` where there is no such
    /// plan, it cannot be simulated, takes more than `most_ns`, or no event is left.
    pub(super) fn ns(&mut self, options: Options, most_ns: f64) -> Option<f64> {
        if self.left_events() == 0 {
            return None;
        }
        let collective = self.usual.collective();
        let looks_ns = looks_ns(collective, &options, &self.line);
        let (stands, few) = &self.stands;
        let programs = judged(self.usual, options, *few).ok()?;
        let hot = match &mut self.hot {
            Some(hot) => hot,
            none => {
                let cores: Vec<usize> = (0..usize::from(self.usual.ranks())).collect();
                let mut hot = Hot::new(stands, &cores, &Model::contended(stands)).ok()?;
                hot.ends_after(self.most_events);
                none.insert(hot)
            }
        };
        let ns = hot.mean_ns(&programs, 0..runs(collective), most_ns - looks_ns).ok()??;
        Some(ns + looks_ns)
    }

    /// What calls that nobody acknowledges take with what acknowledgements add in the mean.
    pub(super) fn with_looks(&self, options: &Options, ns: f64) -> f64 {
        ns + looks_ns(self.usual.collective(), options, &self.line)
    }

    /// What a message in the middle of its class takes of which the first chunks, as [`Self::ns`] has them, take
    /// `first_ns`.
    pub(super) fn whole_ns(&self, options: &Options, first_ns: f64) -> f64 {
        first_ns + self.further_ns(options)
    }

    /// What it takes beyond its first chunks.
    pub(super) fn further_ns(&self, options: &Options) -> f64 {
        let chunks = self.usual.bytes().min(LONG_BYTES).div_ceil(options.chunk_bytes());
        let more = f64::from(chunks.saturating_sub(CHUNKS_MOST));
        let collective = self.usual.collective();
        more * stage_ns(collective, &options.shape, &options.groups, self.costs())
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
    let mut judge = Judge::new(usual, costs, options.chunk_lines, u64::MAX);
    let first_ns = judge.ns(options.clone(), f64::INFINITY)?;
    Some(judge.whole_ns(&options, first_ns))
}

/// Lines that stand for a chunk of several at most.
const STANDING_MOST: u32 = 4;

/// How many lines stand for a chunk of `lines`: the first of it, which is polled, and so many more that those which are
/// fetched together cost what the chunk does. A simulation then takes not much longer than for one line. Where a
/// message has `several` chunks, so that as much is simulated anyway, they are as few as will do.
fn standing(costs: &LineCosts, lines: u32, several: bool) -> u32 {
    let enough = |few: &u32| {
        let room_ns = |class: &ClassCost| f64::from(*few) * class.transfer_ns;
        costs.classes.iter().all(|class| several_ns(class, lines) <= room_ns(class))
    };
    let most = lines.min(STANDING_MOST);
    let least = if several { 2 } else { most };
    (least..most).find(enough).unwrap_or(most).max(1)
}

/// What so many lines take together, at most as long as one after another, ns.
fn several_ns(class: &ClassCost, lines: u32) -> f64 {
    let lines = f64::from(lines);
    let together = class.start_ns + lines * (class.line_ns + class.congestion_ns);
    together.min(lines * class.transfer_ns)
}

/// The costs by which `few` lines cost together what `lines` do: a line by itself what one does, or as much more as is
/// needed for that.
fn folded(costs: &LineCosts, lines: u32, few: u32) -> LineCosts {
    let mut folded = costs.clone();
    if lines > few {
        let ratio = f64::from(lines) / f64::from(few);
        for class in &mut folded.classes {
            let each_ns = several_ns(class, lines) / f64::from(few);
            class.transfer_ns = class.transfer_ns.max(each_ns);
            class.line_ns *= ratio;
            class.congestion_ns *= ratio;
        }
    }
    folded
}

/// The calls that are simulated, of chunks of so many lines, the last of which counts.
fn judged(usual: &Plan, options: Options, few: u32) -> Result<Vec<Recorded>, PlanError> {
    let chunks = usual.bytes().div_ceil(options.chunk_bytes()).clamp(1, CHUNKS_MOST);
    let options = Options { chunk_lines: few, ..options };
    let bytes = (chunks * options.chunk_bytes()).min(usual.bytes());
    let plan = Plan::new(usual.collective(), usual.ranks(), usual.root(), bytes & !7, options)?;
    let members = plan.members();
    let one =
        |epoch: u64| record(plan.ranks(), |lines, rank| members[rank.index()].run(lines, epoch));
    Ok(calls(&plan, u64::from(chunks)).into_iter().map(one).collect())
}

/// By number, a call of `chunks` chunks that neither acknowledges nor looks at acknowledgements, and before it those
/// that leave its lines as all earlier ones would: the call that used its slots before, and the one just before it,
/// which claimed them. Where rings are too short for that, all calls from the first on.
fn calls(plan: &Plan, chunks: u64) -> Vec<u64> {
    let ring = u64::from(plan.options().ring);
    let acknowledged = matches!(plan.collective(), Collective::Broadcast | Collective::Reduce(_));
    // Chunk `s` of a call is looked at where `s = 1` modulo half a ring: these calls have chunks 2, 3 and 4, or
    // 3 to 6.
    let call = match (ring, chunks) {
        (8.., 1) => 2 * ring + 3,
        (16.., 2) => ring + 2,
        // It acknowledges: each call of such a ring does, or looks. What the one before it looks for, the earliest has
        // said.
        (8, 2) => ring + 1,
        (4.., _) if !acknowledged => ring + 2,
        _ => return (0..=ring + 1).collect(),
    };
    // A barrier's flags take turns between two lines: it claims the one that was used just before, when its own was
    // claimed.
    if plan.collective() == Collective::Barrier {
        return vec![call - 1, call];
    }
    vec![call - ring / chunks, call - 1, call]
}
