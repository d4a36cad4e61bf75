//! What a team's choice takes beside the trees of others, on machines of up to 192 cores: all of it simulated by the
//! model that choices are made by, in which a line's home serves its readers one after another and requests travel.
//!
//! The choice sees a call by chunks of few lines and two of its chunks at most; here each line of each chunk is
//! simulated.

use isochrone_machine::LineCosts;
use isochrone_units::CoreId;

use super::{Hot, Model};
use crate::choice::synthetic::Synthetic;
use crate::choice::{Entry, Form, Known, choose};
use crate::collectives::{Options, Plan};
use crate::costs::{of_distances, terms};
use crate::live::{Kind, Usual, channel_plan};
use crate::program::Rank;

/// Bytes of each size class; the last is a long message of few chunks.
const BYTES: [u32; 3] = [56, 504, 4096];
const RUNS: u64 = 2;

/// One more, with its name.
struct Machine {
    name: &'static str,
    on: Synthetic,
}

impl Machine {
    fn new(name: &'static str, sizes: &[u16], ns: &[f64]) -> Self {
        Self { name, on: Synthetic::new(sizes, ns) }
    }
}

/// One call by itself on the lines that some before it leave, ns.
fn takes(plan: &Plan, options: Options, costs: &LineCosts, bytes: u32) -> Option<f64> {
    let plan = Plan::new(plan.collective(), plan.ranks(), plan.root(), bytes, options).ok()?;
    let cores: Vec<usize> = (0..usize::from(plan.ranks())).collect();
    let mut hot = Hot::new(costs, &cores, &Model::contended(costs)).ok()?;
    let last = u64::from(plan.options().ring) + 1;
    let calls: Vec<_> = (0..=last).map(|call| plan.record(call, call + 1)).collect();
    hot.mean_ns(&calls, 0..RUNS, f64::INFINITY).ok()?
}

/// The trees of others, after the usual rule: flat, binomial, and the hierarchies that Open MPI's xhc has.
fn others(known: &Known) -> [Entry; 5] {
    let outermost = u8::try_from(known.groups.levels().len() - 1).expect("few");
    [
        Entry::USUAL,
        Entry::shaped(Form::Flat, None),
        Entry::shaped(Form::Binomial, None),
        Entry::shaped(Form::Flat, Some(0)),
        Entry::shaped(Form::Flat, Some(outermost)),
    ]
}

/// Prints what each takes, and holds that none of the others takes so much less than what is chosen that the choice
/// should have seen it: by more than what a gain has to exceed, as a part of what is chosen.
#[allow(clippy::print_stdout, reason = "the docs have these figures")]
fn chosen_are_not_behind(Machine { name, on }: &Machine) {
    let cores = on.cores();
    let ranks = u16::try_from(cores.len()).expect("few");
    let each: Vec<Vec<CoreId>> = cores.iter().map(|core| vec![*core]).collect();
    let known = Known::of(on, &each).expect("all is known");
    let mut costs = of_distances(on, &cores, 1.7).expect("all is known").costs;
    costs.added = terms(on);
    println!("{name}; ns: chosen, usual, flat, binomial, flat by complexes, flat by sockets");
    let kinds = [Kind::Broadcast, Kind::Barrier, Kind::Reduce, Kind::Allreduce];
    let sized = kinds.into_iter().flat_map(|kind| BYTES.map(|bytes| (kind, bytes)));
    let mut behind = Vec::new();
    for (kind, bytes) in sized.filter(|(kind, bytes)| *kind != Kind::Barrier || *bytes == BYTES[0])
    {
        let plan = channel_plan(&Usual, kind, ranks, Rank(0), bytes as usize).expect("fits");
        let bytes = if kind == Kind::Barrier { 0 } else { bytes };
        let ns = |entry: Entry| {
            let options = entry.options(&plan, &known.groups)?;
            takes(&plan, options, &costs, bytes & !7)
        };
        let entry = choose(&plan, &known);
        let chosen_ns = ns(entry).expect("what is chosen has a plan");
        let others_ns = others(&known).map(ns);
        let words = |ns: Option<f64>| ns.map_or_else(|| "-".into(), |ns| format!("{ns:.0}"));
        let all: Vec<String> =
            std::iter::once(Some(chosen_ns)).chain(others_ns).map(words).collect();
        let row =
            format!("| {ranks} | {} | {bytes} | {} | {entry:?}", kind.name(), all.join(" | "));
        println!("{row}");
        let best_ns = others_ns.into_iter().flatten().fold(f64::INFINITY, f64::min);
        if best_ns < chosen_ns * (1.0 - known.error) {
            behind.push(row);
        }
    }
    assert!(behind.is_empty(), "{name}, behind the best by more than {}: {behind:#?}", known.error);
}

#[test]
fn choices_among_16_are_not_behind_the_trees_of_others() {
    chosen_are_not_behind(&Machine::new("16: 2 sockets of 8", &[8, 16], &[35.0, 95.0]));
}

#[test]
fn choices_among_64_are_not_behind_the_trees_of_others() {
    let (sizes, ns) = (&[8, 32, 64], &[25.0, 110.0, 210.0]);
    chosen_are_not_behind(&Machine::new("64: 8 complexes of 8, 2 sockets", sizes, ns));
}

#[test]
fn choices_among_128_are_not_behind_the_trees_of_others() {
    let (sizes, ns) = (&[8, 64, 128], &[25.0, 110.0, 210.0]);
    chosen_are_not_behind(&Machine::new("128: 16 complexes of 8, 2 sockets", sizes, ns));
}

#[test]
fn choices_among_192_are_not_behind_the_trees_of_others() {
    let (sizes, ns) = (&[8, 96, 192], &[25.0, 120.0, 220.0]);
    chosen_are_not_behind(&Machine::new("192: 24 complexes of 8, 2 sockets", sizes, ns));
}
