//! That the verdict notices a wrong model, on samples that a machine with known costs would give.

use isochrone_console::args::JsonArg;
use isochrone_machine::{AddedTerms, ClassCost, LineCosts, PairClass};
use isochrone_report::json::Format;
use isochrone_report::table::too_wide;
use isochrone_units::CoreId;

use super::live::{Block, LineTimes, Sample, What};
use super::model::{Beside, Phase, RATIO_MOST, Transfers, Verdict, block_phases, calls, phases};
use crate::args::ModelArgs;

fn costs() -> LineCosts {
    let near = ClassCost {
        transfer_ns: 80.0,
        memory_ns: 120.0,
        start_ns: 69.0,
        line_ns: 12.5,
        congestion_ns: 0.0,
    };
    let mut costs = LineCosts::new(2, vec![near], 2.0, |_, _| PairClass(0));
    costs.added = AddedTerms { call_ns: 6.0, request_ns: 40.0, ..AddedTerms::default() };
    costs
}

/// As much at most as at least.
fn beside(costs: &LineCosts) -> Beside {
    Beside { least_ns: costs.added.call_ns, most_ns: costs.added.call_ns }
}

/// The calls of a ring with one cost for all lines.
fn of(what: What, costs: &LineCosts) -> Vec<Phase> {
    let transfers = Transfers::all(costs.pair(0, 1).transfer_ns);
    let calls = calls(what).unwrap_or_else(|error| panic!("{error:#}"));
    phases(&calls, costs, beside(costs), |_| transfers).unwrap_or_else(|error| panic!("{error:#}"))
}

/// What the machine would give: the simulated time of each call, up to a fifth longer.
fn samples(what: What, costs: &LineCosts) -> Vec<Sample> {
    let phases = of(what, costs);
    let late = [0.0, 0.02, 0.05, 0.1, 0.2];
    (0..400_u64)
        .map(|call| {
            let phase = phases[usize::try_from(call).unwrap_or(0) % phases.len()];
            let ns = phase.simulated_ns * (1.0 + late[usize::try_from(call).unwrap_or(0) % 5]);
            Sample { call, ns }
        })
        .collect()
}

#[test]
fn a_right_model_holds_and_one_scaled_by_half_or_two_does_not() {
    for what in What::ALL {
        let samples = samples(what, &costs());
        let verdict = |factor: f64| {
            let phases = of(what, &costs().scaled(factor));
            Verdict::of(what, &[(samples.clone(), phases)], Beside::default())
        };
        let right = verdict(1.0);
        for width in [60, 80, 120] {
            let text = super::table(&[verdict(1.0)]).to_terminal(width);
            assert_eq!(too_wide(&text, width), None);
        }
        assert!(right.faults().is_empty(), "{right:?}");
        for factor in [0.5, 2.0] {
            let wrong = verdict(factor);
            assert_eq!(wrong.faults().len(), 2, "{factor}: {wrong:?}");
            assert!(wrong.share() < 0.2, "{factor}: {wrong:?}");
        }
    }
}

#[test]
fn what_is_found_is_written_as_its_schema_says() {
    let found = super::Costs { costs: costs(), cores: [CoreId(0), CoreId(1)] };
    let verdict = |what| {
        let block = (samples(what, &costs()), of(what, &costs()));
        Verdict::of(what, &[block], Beside::default())
    };
    let seen = super::Seen { blocks: 1, transfers_ns: vec![80.0], ..super::Seen::default() };
    let args = ModelArgs { atlas: None, windows: 400, scale: 1.0, json: JsonArg::default() };
    let json = super::to_json(&args, &found, &What::ALL.map(verdict), &seen);
    isochrone_schemas::hold(Format::VerifyModel, &json).expect("as its schema says");
}

#[test]
fn the_band_of_two_ranks_is_narrow() {
    let phases = of(What::Broadcast, &costs());
    let narrow = phases.iter().filter(|p| p.band.max_ns <= RATIO_MOST * p.band.min_ns).count();
    assert!(8 * narrow >= 7 * phases.len(), "{phases:?}");
}

#[test]
fn a_call_is_priced_by_its_own_lines() {
    let calls = calls(What::Broadcast).unwrap_or_else(|error| panic!("{error:#}"));
    // The line of the second slot is dearer from rank 0 to rank 1, the only way in which it is handed.
    let mut from = [vec![80.0; 64], vec![1.0; 64]];
    from[0][1] = 120.0;
    let block = Block {
        samples: Vec::new(),
        late: 0,
        lines: [LineTimes { from: from.clone() }, LineTimes { from }],
        ahead_ns: [0.0; 2],
        polls_ns: Vec::new(),
        trips_ns: Vec::new(),
        distances: Vec::new(),
    };
    let with = |phases: &[Phase]| phases.iter().map(|p| p.band.min_ns).collect::<Vec<_>>();
    let phases = block_phases(&calls, &costs(), beside(&costs()), &block)
        .unwrap_or_else(|e| panic!("{e:#}"));
    let (one, usual) = (with(&phases), with(&of(What::Broadcast, &costs())));
    let dearer: Vec<usize> = (0..one.len()).filter(|&n| one[n] > usual[n] + 39.0).collect();
    // Chunk `s` lies in slot `s mod slots`, and the first call is chunk 1.
    assert_eq!(dearer, [0], "{one:?} {usual:?}");
}

#[test]
fn where_two_lines_must_cross_the_dearer_one_is_on_the_way() {
    let calls = calls(What::Barrier).unwrap_or_else(|error| panic!("{error:#}"));
    let block = |there: f64, back: f64| {
        let times = LineTimes { from: [vec![there; 64], vec![back; 64]] };
        let lines = [times.clone(), times];
        let block = Block {
            samples: Vec::new(),
            late: 0,
            lines,
            ahead_ns: [0.0; 2],
            polls_ns: Vec::new(),
            trips_ns: Vec::new(),
            distances: Vec::new(),
        };
        block_phases(&calls, &costs(), beside(&costs()), &block)
            .unwrap_or_else(|error| panic!("{error:#}"))[0]
            .band
    };
    let (usual, there, back) = (block(80.0, 80.0), block(120.0, 80.0), block(80.0, 120.0));
    assert!((there.min_ns - usual.min_ns - 40.0).abs() < 1e-6, "{there:?} {usual:?}");
    assert!((back.min_ns - there.min_ns).abs() < 1e-6, "{back:?} {there:?}");
    assert!(usual.max_ns <= RATIO_MOST * usual.min_ns, "{usual:?}");
}
