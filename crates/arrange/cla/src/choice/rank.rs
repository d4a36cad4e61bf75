//! Ranking: what each entry of the shortlist takes by the simulator, and when another than the usual rule
//! is taken.

use super::groups::{Groups, placed};
use super::shortlist::{Entry, Form, is_chosen, shortlist};
use super::sketch::{acknowledged_ns, sketch_ns};
use crate::collectives::{Collective, Options, Plan, PlanError, Shape, Tree};
use crate::costs::{of_distances, terms};
use crate::program::{Line, Recorded, record};
use crate::simulated::{Model, last_ns};
use isochrone_distance::Distances;
use isochrone_machine::LineCosts;
use isochrone_stats as stats;
use isochrone_units::CoreId;

/// How far simulated times are from live ones, as a part of the simulated: the most that `verify model` has shown of
/// medians (reduce, 126 ns simulated and 143 live; docs/results/cla-model.md). An entry has to gain more than that.
pub const MODEL_ERROR: f64 = 0.14;

/// The same where what one more sharer and one more acknowledgement cost was not measured, and each counts as a
/// transfer as in the paper: the median distance of that model from published figures (48 %; same file).
pub const PAPER_ERROR: f64 = 0.48;

/// Ranks up to which entries are simulated. Beyond, collectives that the usual rule does by a tree take its
/// trees inside groups, unseen.
pub const RANKS_MOST: u16 = 64;

/// Entries that are simulated beside the usual rule, the best by their sketches first: each takes as long as all the
/// sketches (docs/method/collectives.md).
const SIMULATED: usize = 3;

/// Runs of a simulated call, whose mean is its time. Ranks begin at once, and by chance a poll takes a line from the
/// root before it has written, or not: broadcasts along a flat tree of 16 ranks took 130 ns or 410.
const SEEDS: u64 = 4;

/// Chunks of a message at most in the simulator: two show whether they flow.
const CHUNKS_MOST: u32 = 2;

/// A line in a core's own cache, ns: five cycles of a core with 3 GHz. No shape is better than another by it.
const LOCAL_NS: f64 = 1.7;

/// What is known of the cores of a team.
#[derive(Clone, Debug)]
pub struct Known {
    /// What lines cost between ranks, with the terms that were measured; none beyond [`RANKS_MOST`] ranks.
    pub costs: Option<LineCosts>,
    /// The groups of ranks.
    pub groups: Groups,
    /// What a predicted gain must exceed, as a part of the usual time: [`MODEL_ERROR`] or [`PAPER_ERROR`], and half
    /// the interval of a transfer over the transfer.
    pub error: f64,
}

impl Known {
    /// What is known of ranks, each of which may run on some cores. `None` where that is not enough to
    /// choose by.
    #[must_use]
    pub fn of<D: Distances + ?Sized>(on: &D, ranks: &[Vec<CoreId>]) -> Option<Self> {
        let found = placed(on, ranks)?;
        if ranks.len() > usize::from(RANKS_MOST) {
            return Some(Self { costs: None, groups: found.groups, error: MODEL_ERROR });
        }
        let table = of_distances(on, &found.cores, LOCAL_NS)?;
        let mut costs = table.costs;
        costs.added = terms(on);
        let measured =
            costs.added.rfo_sharer_ns.is_some() && costs.added.overlapped_ack_ns.is_some();
        let error = table.interval + if measured { MODEL_ERROR } else { PAPER_ERROR };
        Some(Self { costs: Some(costs), groups: found.groups, error })
    }
}

/// An entry with its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranked {
    /// The entry.
    pub entry: Entry,
    /// One call by itself, lines as earlier calls leave them: the mean of some simulated runs, and of broadcasts what a
    /// parent's look at acknowledgements adds in the mean. In ns, *simulated*.
    pub ns: f64,
}

/// The entry that a team goes by for the calls of `usual`, the plan by the usual rule.
#[must_use]
pub fn choose(usual: &Plan, known: &Known) -> Entry {
    if usual.ranks() <= 2 || !is_chosen(usual.collective()) {
        return Entry::USUAL;
    }
    let Some(costs) = &known.costs else { return inside_groups(usual, &known.groups) };
    let ranked = rank(usual, costs, &known.groups, SIMULATED);
    let Some((first, others)) = ranked.split_first() else { return Entry::USUAL };
    let best = others.iter().min_by(|a, b| a.ns.total_cmp(&b.ns));
    match best {
        Some(best) if best.ns < first.ns * (1.0 - known.error) => best.entry,
        _ => Entry::USUAL,
    }
}

/// Without a simulation: the usual rule's trees inside groups.
fn inside_groups(usual: &Plan, groups: &Groups) -> Entry {
    let inside = Entry { form: Form::Usual, level: Some(0) };
    let tree = matches!(usual.options().shape, Shape::Tree(_));
    if tree && inside.options(usual, groups).is_some() { inside } else { Entry::USUAL }
}

/// The times of the usual rule, which comes first, and of the `most` entries that are best by their sketches;
/// nothing where not even the usual rule can be simulated.
#[must_use]
pub fn rank(usual: &Plan, costs: &LineCosts, groups: &Groups, most: usize) -> Vec<Ranked> {
    let folded = folded(usual, costs);
    let time =
        |entry: Entry, options| Some(Ranked { entry, ns: time_ns(usual, options, &folded)? });
    let Some(first) = time(Entry::USUAL, usual.options().clone()) else { return Vec::new() };
    let mut sketched: Vec<(f64, Entry, Tree)> = Vec::new();
    for entry in shortlist(usual.collective(), groups) {
        let Some(tree) = entry.tree(usual, groups) else { continue };
        let same = |other: &(f64, Entry, Tree)| other.2 == tree && other.1.level == entry.level;
        if entry != Entry::USUAL && !sketched.iter().any(same) {
            let lines = entry.lines(groups);
            sketched.push((sketch_ns(usual.collective(), &tree, lines, &folded), entry, tree));
        }
    }
    sketched.sort_by(|a, b| a.0.total_cmp(&b.0));
    let others = sketched.into_iter().filter_map(|(_, entry, tree)| {
        let options = entry.with_tree(usual, groups, tree)?;
        (options != *usual.options()).then(|| time(entry, options)).flatten()
    });
    std::iter::once(first).chain(others.take(most)).collect()
}

/// The time of such calls with some options on some costs, as [`Ranked::ns`]; `None` where there is no such plan, or it
/// cannot be simulated.
#[must_use]
pub fn judge(usual: &Plan, options: Options, costs: &LineCosts) -> Option<f64> {
    time_ns(usual, options, &folded(usual, costs))
}

/// The costs of messages of several lines as if they were one: a class's whole message stands for its line, at
/// most as much as its lines one after another. A simulation then takes as long for them as for one line.
fn folded(usual: &Plan, costs: &LineCosts) -> LineCosts {
    let lines = f64::from(chunk_lines(usual));
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

/// Lines of a chunk of the longest message.
fn chunk_lines(usual: &Plan) -> u32 {
    let bytes = usual.bytes().min(usual.options().chunk_bytes());
    (bytes + Line::WORD_BYTES).div_ceil(Line::BYTES)
}

/// The time of a plan with other options on folded costs.
fn time_ns(usual: &Plan, options: Options, costs: &LineCosts) -> Option<f64> {
    let period = options.ring / 2;
    let (plan, calls) = judged(usual, options).ok()?;
    let members = plan.members();
    let one =
        |&epoch: &u64| record(plan.ranks(), |lines, rank| members[rank.index()].run(lines, epoch));
    let programs: Vec<Recorded> = calls.iter().map(one).collect();
    let cores: Vec<usize> = (0..usize::from(plan.ranks())).collect();
    let ns = stats::mean(&last_ns(&programs, costs, &cores, &Model::default(), 0..SEEDS).ok()?)?;
    let looks = match (plan.collective(), &plan.options().shape) {
        (Collective::Broadcast, Shape::Tree(tree)) => acknowledged_ns(tree, costs, period),
        _ => 0.0,
    };
    Some(ns + looks)
}

/// The plan that is simulated, of chunks of one line, and its calls by number, the last of which counts.
fn judged(usual: &Plan, options: Options) -> Result<(Plan, Vec<u64>), PlanError> {
    let chunks = usual.bytes().div_ceil(options.chunk_bytes()).clamp(1, CHUNKS_MOST);
    let bytes = (chunks * Line::PAYLOAD_BYTES).min(usual.bytes());
    let calls = calls(usual.collective(), u64::from(options.ring), u64::from(chunks));
    let options = Options { chunk_lines: 1, ..options };
    let plan = Plan::new(usual.collective(), usual.ranks(), usual.root(), bytes & !7, options)?;
    Ok((plan, calls))
}

/// A call of `chunks` chunks that neither acknowledges nor looks at acknowledgements, in rings of `ring` slots, and
/// before it those that leave its lines as all earlier ones would: the call that used its slots before, and the one
/// just before it, which claimed them. Where rings are too short for that, all calls from the first on.
fn calls(collective: Collective, ring: u64, chunks: u64) -> Vec<u64> {
    // Chunk `s` of a call is looked at where `s = 1` modulo half a ring: these calls have chunks 2, 3 and 4, or
    // 3 to 6.
    let call = match (ring, chunks) {
        (8.., 1) => 2 * ring + 3,
        (16.., 2) => ring + 2,
        _ => return (0..=ring + 1).collect(),
    };
    // A barrier's flags take turns between two lines.
    let earlier = if collective == Collective::Barrier { call - 2 } else { call - ring / chunks };
    vec![earlier, call - 1, call]
}
