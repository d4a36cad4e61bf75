//! A choice by an atlas: only the atlas changes, and the choice changes as it should.

#![allow(clippy::tests_outside_test_module, reason = "an integration test is one")]

use isochrone_atlas::Atlas;
use isochrone_atlas_store::contents::{
    Cell, Clock, Contents, CostTerm, Matrix, MultiLineFit, TransferMap,
};
use isochrone_atlas_store::encode;
use isochrone_cla::choice::{Entry, Known, choose};
use isochrone_cla::live::{Kind, Usual, channel_plan};
use isochrone_cla::program::Rank;
use isochrone_machine::{Core, Machine};
use isochrone_units::CoreId;

const CORES: u16 = 16;

/// What was measured between 16 cores, where lines take `far_ns` between those below 8 and the others.
fn atlas(far_ns: f64, terms: &[&str]) -> Vec<u8> {
    let core = |id| Core { id, ..Core::default() };
    let machine = Machine { cores: (0..CORES).map(core).collect(), ..Machine::default() };
    let clock = Clock { hz: 2e9, tick_cycles: 1, overhead_cycles: 0.0 };
    let mut contents = Contents::begun(isochrone_units::Reading::Measured, machine, clock);
    let cell = |ns: f64| Cell { lo: ns * 0.98, hi: ns * 1.02, ..Cell::single(ns) };
    let transfer = |at: u16| {
        let (a, b) = (at / CORES, at % CORES);
        let noise = f64::from((a * 7 + b * 3) % 5) / 10.0;
        (a != b).then(|| cell(noise + if a / 8 == b / 8 { 30.0 } else { far_ns }))
    };
    let names = || (0..CORES).map(|core| format!("core {core}")).collect();
    contents.transfers.push(TransferMap {
        state: "modified".into(),
        what: "one way".into(),
        lines: 64,
        latency_ns: Matrix {
            what: "x".into(),
            rows: names(),
            columns: names(),
            cells: (0..CORES * CORES).map(transfer).collect(),
        },
        best_line_ns: Vec::new(),
    });
    contents.multiline.push(MultiLineFit {
        what: "core 0 -> core 2".into(),
        q_ns: (30.0, 29.0, 31.0),
        o_ns: (4.0, 4.0, 4.0),
        c_ns: None,
        r2: 0.99,
        points: Vec::new(),
    });
    contents.terms.extend(terms.iter().map(|name| CostTerm {
        name: (*name).into(),
        what: "x".into(),
        with_ns: None,
        without_ns: None,
        ns: Some(cell(6.0)),
        missing: None,
    }));
    encode(&contents).expect("it can be written")
}

/// The choice of 16 ranks, one on each core, for reductions to rank 3.
fn chosen(bytes: &[u8]) -> (Known, Entry) {
    let atlas = Atlas::open(bytes).expect("just written");
    let cores: Vec<Vec<CoreId>> = (0..CORES).map(|core| vec![CoreId(core)]).collect();
    let known = Known::of(&atlas, &cores).expect("all pairs were measured");
    let plan = channel_plan(&Usual, Kind::Reduce, CORES, Rank(3), 8).expect("fits");
    let entry = choose(&plan, &known);
    (known, entry)
}

#[test]
fn another_atlas_is_another_choice() {
    let terms = ["rfo-sharer", "overlapped-ack"];
    let (near, of_near) = chosen(&atlas(30.0, &terms));
    let (far, of_far) = chosen(&atlas(400.0, &terms));
    assert!(near.groups.levels().is_empty(), "all are equally far: {:?}", near.groups);
    assert_eq!(of_near.level, None);
    let halves: Vec<u16> = (0..CORES).map(|core| core / 8).collect();
    assert_eq!(far.groups.levels(), [halves]);
    assert_eq!(of_far.level, Some(0), "the far way is gone once: {of_far:?}");
    let costs = far.costs.expect("few ranks");
    assert_eq!(costs.classes.len(), 2);
    assert!((costs.pair(0, 8).transfer_ns / 400.0 - 1.0).abs() < 0.01);
}

#[test]
fn an_atlas_without_terms_is_believed_less() {
    let (with, _) = chosen(&atlas(400.0, &["rfo-sharer", "overlapped-ack"]));
    let (without, _) = chosen(&atlas(400.0, &["rfo-sharer"]));
    assert!(without.error > with.error + 0.3, "{} {}", without.error, with.error);
}
