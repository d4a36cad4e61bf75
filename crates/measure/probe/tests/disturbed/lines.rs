//! What cores do with lines: transfers, round trips, copies of several, cost terms.

use isochrone_atlas_store::contents::Cell;
use isochrone_probe::multiline::{MultilineOptions, MultilinePlan};
use isochrone_probe::terms::{Remote, TermsOptions, TermsPlan};
use isochrone_probe::transfer::{Kind, ModelStage, Operation, Options, Stage, TransferPlan};
use isochrone_probe::{multiline, terms, transfer};
use isochrone_sim::synthetic::{SyntheticMemory, SyntheticSpec, TermCosts};
use isochrone_units::{CoreId, LineState};

use crate::runs::{Found, covers, one};

/// A stage whose cores others use too.
fn stage(spec: SyntheticSpec, cores: &[CoreId], taken: f64, seed: u64) -> ModelStage {
    let spec = spec.with_neighbours(cores.iter().copied(), taken);
    ModelStage::new(SyntheticMemory::new(SyntheticSpec { seed, ..spec }).unwrap())
}

fn first(count: u16) -> Vec<CoreId> {
    (0..count).map(CoreId).collect()
}

fn ring(cores: u16, pages: u64) -> SyntheticSpec {
    let mut spec = SyntheticSpec::ring_e5_2660(3).with_pages(pages).with_cores(cores);
    // Half a millisecond between two scenes, so that a run meets many slices.
    spec.costs.batch_cycles = 0.5e-3 * spec.timer.hz;
    spec
}

fn transfers(kind: Kind, repeats: u32, taken: f64, seed: u64) -> Found {
    let cores = first(2);
    let mut stage = stage(ring(2, 1024), &cores, taken, seed);
    let options = Options { sweeps_max: 5, repeats, ..Options::new(kind, seed) };
    let plan = TransferPlan::new(&cores, 1 << 16, options).unwrap();
    let report = transfer::run(&mut stage, &plan, &mut || false).unwrap();
    one(report.map.latency_ns.cells[1])
}

#[test]
fn transfers_beside_others_cover_the_quiet_truth() {
    let kind = Kind::Timed(LineState::Modified, Operation::Load);
    covers(|taken, seed| transfers(kind, 32, taken, seed));
}

#[test]
fn round_trips_beside_others_cover_the_quiet_truth() {
    covers(|taken, seed| transfers(Kind::Cas { trips: 50 }, 8, taken, seed));
}

fn several_lines(taken: f64, seed: u64) -> Found {
    let cores = first(3);
    let mut stage = stage(ring(3, 1024), &cores, taken, seed);
    let options = MultilineOptions {
        lines: vec![1, 4, 16, 64],
        participants: vec![1, 2],
        places: 8,
        rounds: 3,
        ..MultilineOptions::new(seed)
    };
    let plan = MultilinePlan::new(&cores, stage.lines(), options).unwrap();
    let report = multiline::run(&mut stage, &plan, &mut || false).unwrap();
    let cell = |(median, lo, hi)| Cell { median, lo, hi, p5: lo, p95: hi, n: 1 };
    let fit = report.fit.as_ref();
    let coefficients = [
        ("start", fit.map(|fit| cell(fit.q_ns))),
        ("line", fit.map(|fit| cell(fit.o_ns))),
        ("congestion", fit.and_then(|fit| fit.c_ns).map(cell)),
    ];
    let coefficients = coefficients.map(|(name, cell)| (name.to_owned(), cell));
    let interactions =
        report.interactions.iter().map(|of| (format!("{} {}", of.kind, of.n), of.ns));
    coefficients.into_iter().chain(interactions).collect()
}

#[test]
fn copies_of_several_lines_and_interactions_beside_others_cover_the_quiet_truth() {
    covers(several_lines);
}

fn cost_terms(taken: f64, seed: u64) -> Found {
    let cores = first(3);
    let mut spec = ring(3, 1024);
    spec.transfers.terms = TermCosts {
        local_cycles: 20.0,
        adjacent_cycles: 17.0,
        pair_prefetch: true,
        left_shared_cycles: 55.0,
        left_read_cycles: 33.0,
        overlapped_cycles: 24.0,
        second_socket: Some(2),
        socket_cycles: 130.0,
        remote_reader_cycles: 88.0,
    };
    let mut stage = stage(spec, &cores, taken, seed);
    let remote = Remote { owner: cores[0], near: cores[1], far: cores[2] };
    let options = TermsOptions { places: 16, rounds: 5, ..TermsOptions::new(seed) };
    let plan = TermsPlan::new(&cores, Ok(remote), stage.lines(), options).unwrap();
    let report = terms::run(&mut stage, &plan, &mut || false).unwrap();
    report.terms.into_iter().map(|term| (term.name, term.ns)).collect()
}

#[test]
fn cost_terms_beside_others_cover_the_quiet_truth() {
    covers(cost_terms);
}
