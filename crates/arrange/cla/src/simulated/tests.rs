//! The simulator against what can be computed by hand, and against the predictor.

use isochrone_machine::LineCosts;
use proptest::prelude::*;

use super::{Model, SimulateError, many, simulate};
use crate::collectives::{Acks, Collective, Figure1, Options, Plan, Tree};
use crate::predicted::tests::{random, sandy_bridge};
use crate::predicted::{Rules, Start, predict};
use crate::program::{
    Combine, Compare, Element, Line, Lines, Operation, Rank, Record, Recorded, Span, record,
};

/// Whether the simulated times of some seeds lie in the predicted band; what is wrong if not.
fn inside(
    program: &Recorded,
    start: Start<'_>,
    costs: &LineCosts,
    cores: &[usize],
) -> Result<(), String> {
    let Ok(predicted) = predict(program, start, costs, cores, Rules::Timed) else { return Ok(()) };
    let band = predicted.band();
    for seed in 0..4 {
        let run = simulate(program, start, costs, cores, &Model::default(), seed);
        let run = run.map_err(|error| error.to_string())?;
        let total = run.total_ns();
        // The engine's clock has picoseconds.
        let slack = 1e-3 * program.ranks.iter().map(|r| r.operations.len()).sum::<usize>() as f64;
        if total < band.min_ns - slack || total > band.max_ns + slack {
            return Err(format!(
                "{total} is not in {band:?}, seed {seed}\n{}\n{:?}\n{:?}\n{:?}",
                terse(program),
                predicted.min.end_ns,
                run.operations_ns,
                predicted.max.end_ns,
            ));
        }
    }
    Ok(())
}

/// A program, one rank a line.
fn terse(program: &Recorded) -> String {
    let one = |operation: &Operation| match *operation {
        Operation::Copy { src, dst } | Operation::Reduce { src, dst, .. } => {
            let lines = |span: Span| {
                let lines: Vec<u32> = span.shared_lines().map(|line| line.0).collect();
                if lines.is_empty() { "own".to_owned() } else { format!("{lines:?}") }
            };
            format!("copy {} to {}", lines(src), lines(dst))
        }
        Operation::Wait { line, compare, value } => format!("wait {} {compare:?} {value}", line.0),
        Operation::Write { line, value } => format!("write {} {value}", line.0),
        Operation::Add { line, value } => format!("add {} {value}", line.0),
        Operation::Claim { line, lines } => format!("claim {} {lines}", line.0),
    };
    let rank = |r: &Record| r.operations.iter().map(one).collect::<Vec<_>>().join("; ");
    program.ranks.iter().map(rank).collect::<Vec<_>>().join("\n")
}

/// The next call of a program whose words only grow: every word is counted from where the call before
/// left it.
fn called_again(program: &Recorded) -> Recorded {
    let all = || program.ranks.iter().flat_map(|rank| &rank.operations);
    let last = |line: Line| -> u64 {
        let adds = all().filter(|o| matches!(o, Operation::Add { line: l, .. } if *l == line));
        let writes = all().filter_map(|o| match o {
            Operation::Write { line: l, value } if *l == line => Some(*value),
            _ => None,
        });
        adds.count() as u64 + writes.max().unwrap_or(0)
    };
    let mut again = program.clone();
    for operation in again.ranks.iter_mut().flat_map(|rank| &mut rank.operations) {
        match operation {
            Operation::Wait { line, value, .. } | Operation::Write { line, value } => {
                *value += last(*line);
            }
            _ => {}
        }
    }
    again
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn random_programs_end_within_the_band(
        program in random::programs(),
        costs in random::machines(),
    ) {
        let cores: Vec<usize> = (0..program.ranks.len()).collect();
        let cold = inside(&program, Start::Memory, &costs, &cores);
        prop_assert!(cold.is_ok(), "from memory: {}", cold.unwrap_err());
        let hot = inside(&called_again(&program), Start::After(&program), &costs, &cores);
        prop_assert!(hot.is_ok(), "hot: {}", hot.unwrap_err());
    }

    #[test]
    fn random_programs_end_within_the_band_whatever_the_state_left_behind_costs(
        program in random::programs(),
        costs in random::machines(),
        left_shared_ns in 1.0..150.0,
    ) {
        let cores: Vec<usize> = (0..program.ranks.len()).collect();
        let mut costs = costs;
        costs.added.left_shared_ns = Some(left_shared_ns);
        let hot = inside(&called_again(&program), Start::After(&program), &costs, &cores);
        prop_assert!(hot.is_ok(), "hot: {}", hot.unwrap_err());
    }

    #[test]
    fn random_programs_end_within_the_band_however_long_ranks_pause_between_polls(
        program in random::programs(),
        costs in random::machines(),
        poll_ns in 1.0..150.0,
    ) {
        let cores: Vec<usize> = (0..program.ranks.len()).collect();
        let mut costs = costs;
        costs.added.poll_ns = poll_ns;
        let cold = inside(&program, Start::Memory, &costs, &cores);
        prop_assert!(cold.is_ok(), "from memory: {}", cold.unwrap_err());
        let hot = inside(&called_again(&program), Start::After(&program), &costs, &cores);
        prop_assert!(hot.is_ok(), "hot: {}", hot.unwrap_err());
    }
}

/// Plans of every collective over some trees and options.
fn plans(ranks: u16, bytes: u32) -> Vec<(String, Plan)> {
    let mut plans = Vec::new();
    let sum = Combine::Sum(Element::I64);
    let trees = [
        ("flat", Tree::flat(ranks, Rank(0))),
        ("binary", Tree::regular(ranks, Rank(0), 2)),
        ("chain", Tree::regular(ranks, Rank(0), 1)),
        ("binomial", Tree::binomial(ranks, Rank(0))),
    ];
    let mut add = |name: String, collective, options: Options| {
        if let Ok(plan) = Plan::new(collective, ranks, Rank(0), bytes, options) {
            plans.push((name, plan));
        }
    };
    for collective in Collective::all(sum) {
        add(format!("{} exchange", collective.name()), collective, Options::exchange(bytes));
        for (name, tree) in &trees {
            for (acks, acks_in_call, ring, claims) in [
                (Acks::PerChild, false, 16, true),
                (Acks::PerChild, true, 1, false),
                (Acks::Counter, true, 1, false),
                (Acks::Counter, false, 4, false),
            ] {
                let usual = Options::tree(tree.clone(), bytes);
                let options = Options { acks, acks_in_call, ring, claims, ..usual };
                let name = format!("{} {name} {acks:?} ring {ring}", collective.name());
                add(name, collective, options);
            }
        }
    }
    plans
}

#[test]
fn collectives_end_within_the_band() {
    collectives_end_inside(&sandy_bridge(2, 3));
}

#[test]
fn collectives_end_within_the_band_whatever_the_state_left_behind_costs() {
    for left_shared_ns in [8.0, 60.0] {
        let mut costs = sandy_bridge(2, 3);
        costs.added.left_shared_ns = Some(left_shared_ns);
        collectives_end_inside(&costs);
    }
}

#[test]
fn collectives_end_within_the_band_however_long_ranks_pause_between_polls() {
    let mut costs = sandy_bridge(2, 3);
    costs.added.poll_ns = 30.0;
    collectives_end_inside(&costs);
}

fn collectives_end_inside(costs: &LineCosts) {
    let mut outside = Vec::new();
    for (ranks, bytes) in [(2, 8), (3, 8), (6, 8), (4, 256), (2, 1024)] {
        let cores: Vec<usize> = (0..usize::from(ranks)).collect();
        for (name, plan) in plans(ranks, bytes) {
            let (warm, now) = (plan.record(0, 3), plan.record(3, 4));
            for (start, call) in [(Start::Memory, plan.record(0, 1)), (Start::After(&warm), now)] {
                let start_name = if matches!(start, Start::Memory) { "cold" } else { "hot" };
                if let Err(error) = inside(&call, start, costs, &cores) {
                    outside.push(format!("{name}, {ranks} x {bytes}, {start_name}: {error}"));
                }
            }
        }
    }
    assert!(outside.is_empty(), "{} outside:\n{}", outside.len(), outside.join("\n\n"));
}

#[test]
fn figure_1_between_two_ranks_takes_what_hands_compute() {
    let tree = Tree::flat(2, Rank(0));
    let program = record(2, |lines, me| Figure1 { tree: &tree, bytes: 64 }.run(lines, me));
    let costs = sandy_bridge(2, 8);
    let ends = |cores: &[usize]| {
        let model = Model::default();
        simulate(&program, Start::Memory, &costs, cores, &model, 0).unwrap().operations_ns
    };
    let near = ends(&[0, 1]);
    // The root reads its own buffer, 2.3, and fetches the line of the data: 70. The child's poll has the
    // flag's line from memory by then, so the root takes it from there: 35.
    assert!((near[0][0] - 72.3).abs() < 1e-9, "{near:?}");
    assert!((near[0][1] - 107.3).abs() < 1e-9, "{near:?}");
    // The child reads the flag, 35, and the data, 35 and its own buffer, 2.3.
    assert!((near[1][0] - 142.3).abs() < 1e-9, "{near:?}");
    assert!((near[1][1] - 179.6).abs() < 1e-9, "{near:?}");
    // The root's poll had the counter from memory at 107.3 + 70, so the add takes it from there, after
    // 179.6; the root reads it again.
    assert!((near[1][2] - 214.6).abs() < 1e-9, "{near:?}");
    assert!((near[0][2] - 249.6).abs() < 1e-9, "{near:?}");
    let far = ends(&[0, 8]);
    let between = far[0][2] - near[0][2];
    assert!(
        (between - 5.0 * (94.0 - 35.0)).abs() < 1e-9,
        "five transfers between the sockets: {between}"
    );
}

#[test]
fn a_pause_between_polls_delays_what_comes_within_it() {
    let call = |value: u64| {
        record(2, |lines, me| {
            if me.0 == 0 {
                (4..8).for_each(|own| lines.write(Line(own), value));
                lines.write(Line(0), value);
                return Ok(());
            }
            lines.wait(Line(0), Compare::AtLeast, value)
        })
    };
    let (before, now) = (call(1), call(2));
    let start = Start::After(&before);
    let with = |poll_ns: f64, request_ns: f64| {
        let mut costs = sandy_bridge(1, 2);
        (costs.added.poll_ns, costs.added.request_ns) = (poll_ns, request_ns);
        costs
    };
    let most = |costs: &LineCosts| {
        predict(&now, start, costs, &[0, 1], Rules::Timed).unwrap().band().max_ns
    };
    // Who has just looked looks again after the whole pause, less half of a transfer, where that is how long the
    // answer to the writer's request is on its way: the line would not have come sooner.
    assert!((most(&with(50.0, 0.0)) - most(&with(0.0, 0.0)) - 50.0).abs() < 1e-9);
    assert!((most(&with(50.0, 17.5)) - most(&with(0.0, 17.5)) - 32.5).abs() < 1e-9);
    assert!((most(&with(10.0, 17.5)) - most(&with(0.0, 17.5))).abs() < 1e-9);
    let totals = |costs: &LineCosts| {
        many(&now, start, costs, &[0, 1], &Model::default(), 0..40).unwrap().total_ns
    };
    // The root writes four lines of its own, 2.3 each, and the child sees the line that it has of the call before.
    // The write takes it, 35, and the child's next poll gets it back, 35. The poll comes within the pause
    // after the line has left the child, and waits for the write: up to 50 - 35 later.
    let (alone, paused) = (totals(&with(0.0, 0.0)), totals(&with(50.0, 0.0)));
    assert!(alone.iter().all(|ns| (ns - 79.2).abs() < 1e-9), "{alone:?}");
    assert!(paused.iter().all(|&ns| (79.2 - 1e-9..=94.2).contains(&ns)), "{paused:?}");
    assert!(paused[0] < 79.3 && paused[39] > 90.0, "{paused:?}");
}

#[test]
fn who_waits_for_ever_is_named() {
    let program = record(2, |lines, me| {
        lines.write(Line(4), 1);
        if me.0 == 1 { lines.wait(Line(3), Compare::Equal, 9) } else { Ok(()) }
    });
    let costs = sandy_bridge(1, 2);
    let stuck = simulate(&program, Start::Memory, &costs, &[0, 1], &Model::default(), 0);
    let operation = Operation::Wait { line: Line(3), compare: Compare::Equal, value: 9 };
    let expected = SimulateError::Stuck { rank: Rank(1), at: 1, operation, waiting: 1, ranks: 2 };
    assert_eq!(stuck, Err(expected));
    let twice = simulate(&program, Start::Memory, &costs, &[0, 0], &Model::default(), 0);
    assert_eq!(twice, Err(SimulateError::Cores { ranks: 2, cores: 1 }));
}

#[test]
fn seeds_differ_and_each_replays() {
    let tree = Tree::flat(6, Rank(0));
    let options = Options { acks: Acks::Counter, ..Options::tree(tree, 8) };
    let plan = Plan::new(Collective::Broadcast, 6, Rank(0), 8, options).unwrap();
    let (warm, call) = (plan.record(0, 16), plan.record(16, 17));
    let costs = sandy_bridge(2, 3);
    let cores = [0, 1, 2, 3, 4, 5];
    let model = Model { begin_ns: 50.0, poll_ns: 2.0, ..Model::default() };
    let runs = |seeds| many(&call, Start::After(&warm), &costs, &cores, &model, seeds).unwrap();
    let all = runs(0..40);
    assert_eq!(all, runs(0..40));
    assert!(all.quantile_ns(0.0) < all.quantile_ns(1.0), "{all:?}");
    assert_eq!(all.end_ns.len(), 6);
    let one = simulate(&call, Start::After(&warm), &costs, &cores, &model, 7).unwrap();
    assert!(all.total_ns.contains(&one.total_ns()), "a run does not depend on those before it");
}
