//! What a team's choice takes beside the trees of others, on machines of up to 192 cores: simulated, printed, and no
//! check. Readers of a line are served by its home
//! one after another.

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
/// What the home of a line takes for one more reader, ns: assumed.
const READER_NS: f64 = 5.0;
const RUNS: u64 = 2;

/// One more, with its name.
struct Machine {
    name: &'static str,
    on: Synthetic,
}

fn machines() -> [Machine; 4] {
    let machine = |name, sizes: &[u16], ns: &[f64]| Machine { name, on: Synthetic::new(sizes, ns) };
    [
        machine("16: 2 sockets of 8", &[8, 16], &[35.0, 95.0]),
        machine("64: 8 complexes of 8, 2 sockets", &[8, 32, 64], &[25.0, 110.0, 210.0]),
        machine("128: 16 complexes of 8, 2 sockets", &[8, 64, 128], &[25.0, 110.0, 210.0]),
        machine("192: 24 complexes of 8, 2 sockets", &[8, 96, 192], &[25.0, 120.0, 220.0]),
    ]
}

/// One call by itself on the lines that some before it leave, ns.
fn takes(plan: &Plan, options: Options, costs: &LineCosts, bytes: u32) -> Option<f64> {
    let plan = Plan::new(plan.collective(), plan.ranks(), plan.root(), bytes, options).ok()?;
    let cores: Vec<usize> = (0..usize::from(plan.ranks())).collect();
    let model = Model { reader_ns: READER_NS, ..Model::default() };
    let mut hot = Hot::new(costs, &cores, &model).ok()?;
    let last = u64::from(plan.options().ring) + 1;
    let calls: Vec<_> = (0..=last).map(|call| plan.record(call, call + 1)).collect();
    hot.mean_ns(&calls, 0..RUNS, f64::INFINITY).ok()?
}

#[test]
#[ignore = "prints figures, and checks nothing"]
#[allow(clippy::print_stdout, reason = "that is what it is for")]
fn what_choices_take_beside_the_trees_of_others() {
    for Machine { name, on } in machines() {
        let cores = on.cores();
        let ranks = u16::try_from(cores.len()).expect("few");
        let each: Vec<Vec<CoreId>> = cores.iter().map(|core| vec![*core]).collect();
        let known = Known::of(&on, &each).expect("all is known");
        let mut costs = of_distances(&on, &cores, 1.7).expect("all is known").costs;
        costs.added = terms(&on);
        println!("{name}; ns: chosen, usual, flat, binomial, flat by complexes, flat by sockets");
        for kind in [Kind::Broadcast, Kind::Barrier, Kind::Reduce, Kind::Allreduce] {
            for (class, bytes) in BYTES.into_iter().enumerate() {
                if kind == Kind::Barrier && class > 0 {
                    continue;
                }
                let plan = channel_plan(&Usual, kind, ranks, Rank(0), bytes as usize);
                let plan = plan.expect("fits");
                let outermost = u8::try_from(known.groups.levels().len() - 1).expect("few");
                let others = [
                    Entry::USUAL,
                    Entry::shaped(Form::Flat, None),
                    Entry::shaped(Form::Binomial, None),
                    Entry::shaped(Form::Flat, Some(0)),
                    Entry::shaped(Form::Flat, Some(outermost)),
                ];
                let entry = choose(&plan, &known);
                let bytes = if kind == Kind::Barrier { 0 } else { bytes };
                let ns = |entry: Entry| {
                    let options = entry.options(&plan, &known.groups)?;
                    takes(&plan, options, &costs, bytes & !7)
                };
                let words =
                    |ns: Option<f64>| ns.map_or_else(|| "-".into(), |ns| format!("{ns:.0}"));
                let all: Vec<String> =
                    std::iter::once(entry).chain(others).map(|entry| words(ns(entry))).collect();
                let how = entry.options(&plan, &known.groups).map(|options| {
                    format!("{:?} {:?} {}", entry.form, entry.level, options.chunk_lines)
                });
                println!("| {} | {bytes} | {} | {how:?}", kind.name(), all.join(" | "));
            }
        }
    }
}
