//! A choice by an atlas: only the atlas changes, and the choice changes as it should.

#![allow(clippy::tests_outside_test_module, reason = "an integration test is one")]

use isochrone_atlas::Atlas;
use isochrone_atlas_store::{encode, made::lines};
use isochrone_cla::choice::{Entry, Known, choose};
use isochrone_cla::live::{Kind, Usual, channel_plan};
use isochrone_cla::program::Rank;
use isochrone_units::CoreId;

const CORES: u16 = 16;

/// What was measured between 16 cores, where lines take `far_ns` between those below 8 and the others.
fn atlas(far_ns: f64, terms: &[&str]) -> Vec<u8> {
    let transfer_ns = |a: u16, b: u16| {
        let noise = f64::from((a * 7 + b * 3) % 5) / 10.0;
        Some(noise + if a / 8 == b / 8 { 30.0 } else { far_ns })
    };
    let terms: Vec<(&str, f64)> = terms.iter().map(|&name| (name, 6.0)).collect();
    encode(&lines(CORES, transfer_ns, &terms)).expect("it can be written")
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
