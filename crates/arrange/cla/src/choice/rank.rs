//! Ranking: what each entry of the shortlist takes by the simulator, and when another than the usual rule
//! is taken.

use super::form::Form;
use super::groups::{Groups, placed};
use super::judge::{Judge, looks_ns};
use super::shortlist::{Entry, is_chosen, shortlist, variants};
use super::sketch::{Costs, Sketch};
use crate::collectives::{Collective, Options, Plan, Shape};
use crate::costs::{of_distances, terms};
use isochrone_distance::Distances;
use isochrone_machine::LineCosts;
use isochrone_units::CoreId;

/// How far simulated times are from live ones, as a part of the simulated: the most that `verify model` has shown of
/// medians (reduce, 126 ns simulated and 143 live; docs/results/cla-model.md). An entry has to gain more than that.
pub const MODEL_ERROR: f64 = 0.14;

/// The same where what one more sharer and one more acknowledgement cost was not measured, and each counts as a
/// transfer as in the paper: the median distance of that model from published figures (48 %; same file).
pub const PAPER_ERROR: f64 = 0.48;

/// Ranks from which a shape is chosen: two have one way.
pub const RANKS_LEAST: u16 = 3;

/// Ranks up to which entries are priced: more cores than a machine of today has. Beyond, what pairs cost is not asked
/// for, and collectives that the usual rule does by a tree take its trees inside groups, unseen.
pub const RANKS_MOST: u16 = 512;

/// Shapes that are simulated beside the usual one, the best by their sketches first (docs/method/collectives.md).
const SIMULATED: usize = 5;

/// Events that a choice simulates at most, for each rank. When they are over, the best that was found stands, and if
/// the usual rule's own time is not known by then, sketches decide. An event takes about 60 ns, so the first call of a
/// team of up to 64 ranks waits at most about eight milliseconds of a processor for it, and one of 192 for 24. By a
/// clock the same job would choose otherwise from run to run.
const EVENTS_A_RANK: u64 = 1 << 11;

/// Events that a choice among so many ranks simulates at most.
pub(super) fn most_events(ranks: u16) -> u64 {
    EVENTS_A_RANK * u64::from(ranks.max(64))
}

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

/// The entry that a team goes by for the calls of `usual`, the plan by the usual rule.
#[must_use]
pub fn choose(usual: &Plan, known: &Known) -> Entry {
    if usual.ranks() < RANKS_LEAST || !is_chosen(usual.collective()) {
        return Entry::USUAL;
    }
    let Some(costs) = &known.costs else { return inside_groups(usual, &known.groups) };
    best(usual, costs, known, most_events(usual.ranks())).unwrap_or(Entry::USUAL)
}

/// Without costs: the usual rule's trees inside groups.
fn inside_groups(usual: &Plan, groups: &Groups) -> Entry {
    let inside = Entry::shaped(Form::Usual, Some(0));
    let tree = matches!(usual.options().shape, Shape::Tree(_));
    if tree && inside.options(usual, groups).is_some() { inside } else { Entry::USUAL }
}

/// A way with what it takes.
#[derive(Clone)]
struct Way {
    entry: Entry,
    options: Options,
    ns: f64,
}

/// A shape that may be worth a simulation.
struct Sketched {
    entry: Entry,
    shape: Shape,
    sketch: Sketch,
}

impl Sketched {
    /// Whether a plan of this shape needs no more lines than the usual one.
    fn fits(&self, usual: &Plan, known: &Known) -> bool {
        self.entry.with_shape(usual, &known.groups, self.shape.clone()).is_some()
    }
}

/// The best of the shortlist, if it gains more than the error, by so many simulated events at most. Nothing
/// is judged by costs on which even the usual rule cannot be simulated.
pub(super) fn best(
    usual: &Plan,
    costs: &LineCosts,
    known: &Known,
    most_events: u64,
) -> Option<Entry> {
    let options = usual.options();
    let mut judge = Judge::new(usual, costs, options.chunk_lines, most_events);
    let (before, worth) = worth_simulating(usual, judge.costs(), known);
    if usual.collective() == Collective::Allgather {
        return surely_better(&worth, before, usual, known);
    }
    let flows = variants(Entry::USUAL, usual).iter().any(|of| of.chunk_lines.is_some());
    let shaped = shaped_options(&worth, usual, &known.groups);
    if shaped.is_empty() && !flows {
        return None;
    }
    let Some(ns) = judge.ns(options.clone(), f64::INFINITY) else {
        let sketched = || by_sketches(&worth, before, usual, known);
        return (judge.left_events() == 0).then(sketched).flatten();
    };
    let before = Way { entry: Entry::USUAL, options: options.clone(), ns };
    let most_ns = judge.whole_ns(options, ns) * (1.0 - known.error);
    let shaped = best_shape(shaped, &mut judge, most_ns).unwrap_or(before.clone());
    let varied = best_variant(usual, costs, known, &judge, &before, &shaped);
    Some(varied.unwrap_or(shaped.entry))
}

/// The best shape by sketches alone, if they leave no doubt. In an allgather everybody reads everybody's line in any
/// shape: a simulation takes as long as many others, of something that is known without.
fn surely_better(worth: &[Sketched], before: Sketch, usual: &Plan, known: &Known) -> Option<Entry> {
    let sure = worth.iter().find(|one| one.sketch.surely_gains(before, known.error))?;
    sure.fits(usual, known).then_some(sure.entry)
}

/// The best shape by sketches, if it gains more than the error by them: where nothing more is to be had.
fn by_sketches(worth: &[Sketched], before: Sketch, usual: &Plan, known: &Known) -> Option<Entry> {
    let most_ns = before.ns() * (1.0 - known.error);
    let better = worth.iter().take_while(|one| one.sketch.ns() < most_ns);
    better.filter(|one| one.fits(usual, known)).map(|one| one.entry).next()
}

/// The options of the shapes that are simulated.
fn shaped_options(worth: &[Sketched], usual: &Plan, groups: &Groups) -> Vec<(Entry, Options)> {
    let options = worth.iter().filter_map(|Sketched { entry, shape, .. }| {
        let options = entry.with_shape(usual, groups, shape.clone())?;
        (options != *usual.options()).then_some((*entry, options))
    });
    options.take(SIMULATED).collect()
}

/// The best of some shapes by the simulator and what is reckoned of further chunks, if it takes less than `most_ns`.
fn best_shape(
    shaped: Vec<(Entry, Options)>,
    judge: &mut Judge<'_>,
    mut most_ns: f64,
) -> Option<Way> {
    let mut best = None;
    for (entry, options) in shaped {
        let further_ns = judge.further_ns(&options);
        if let Some(ns) = judge.ns(options.clone(), most_ns - further_ns)
            && ns + further_ns < most_ns
        {
            most_ns = ns + further_ns;
            best = Some(Way { entry, options, ns });
        }
    }
    best
}

/// The best of the chosen shape with other chunks or acknowledgements, if it is better than with the usual ones, and
/// gains more than the error. What its first chunks take is sketched by what they take with the usual ones; only the
/// best is simulated, as long as there are events.
fn best_variant(
    usual: &Plan,
    costs: &LineCosts,
    known: &Known,
    judge: &Judge<'_>,
    before: &Way,
    shaped: &Way,
) -> Option<Entry> {
    let collective = usual.collective();
    let sketch = |options: &Options, costs: Costs<'_>| {
        Sketch::of(collective, &options.shape, &options.groups, costs).ns()
    };
    let whole_ns = |way: &Way| judge.whole_ns(&way.options, way.ns);
    let most_ns = whole_ns(shaped).min(whole_ns(before) * (1.0 - known.error));
    let varied = |entry: Entry| {
        let shape = shaped.options.shape.clone();
        let options = entry.with_shape(usual, &known.groups, shape)?;
        let other = Judge::new(usual, costs, options.chunk_lines, judge.left_events());
        let looks_ns = looks_ns(collective, &shaped.options, judge.costs().line);
        let ratio = sketch(&options, other.costs()) / sketch(&shaped.options, judge.costs());
        let first_ns = other.with_looks(&options, (shaped.ns - looks_ns) * ratio);
        let ns = other.whole_ns(&options, first_ns);
        (ns < most_ns).then_some((ns, entry, options, other))
    };
    let best = variants(shaped.entry, usual).into_iter().filter_map(varied);
    let (_, entry, options, mut judge) = best.min_by(|a, b| a.0.total_cmp(&b.0))?;
    let gains = match judge.ns(options.clone(), most_ns) {
        Some(first_ns) => judge.whole_ns(&options, first_ns) < most_ns,
        // What it was reckoned to take stands.
        None => judge.left_events() == 0,
    };
    gains.then_some(entry)
}

/// A sketch of the usual shape, and the shapes that may gain more than the error, each once, the best by their sketches
/// first.
fn worth_simulating(usual: &Plan, costs: Costs<'_>, known: &Known) -> (Sketch, Vec<Sketched>) {
    let (collective, groups) = (usual.collective(), &known.groups);
    let sketch = |shape: &Shape, of: &[u16]| Sketch::of(collective, shape, of, costs);
    let before = sketch(&usual.options().shape, &usual.options().groups);
    let mut worth: Vec<Sketched> = Vec::new();
    for entry in shortlist(collective, groups).into_iter().skip(1) {
        let Some(shape) = entry.shape(usual, groups) else { continue };
        let sketch = sketch(&shape, entry.lines(groups));
        let same = |other: &Sketched| other.entry.level == entry.level && other.shape == shape;
        if sketch.may_gain(before, known.error) && !worth.iter().any(same) {
            worth.push(Sketched { entry, shape, sketch });
        }
    }
    worth.sort_by(|a, b| a.sketch.ns().total_cmp(&b.sketch.ns()));
    (before, worth)
}
