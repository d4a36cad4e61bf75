//! What cores hand each other: lines, several lines at once, and what the model of that leaves out.

use std::sync::Arc;

use isochrone_atlas_store::Experiment;
use isochrone_atlas_store::contents::{Contents, TransferMap};
use isochrone_os::mapping::{Backing, Mapping};
use isochrone_probe::multiline::{MultilineOptions, MultilinePlan};
use isochrone_probe::terms::{Remote, TermsOptions, TermsPlan};
use isochrone_probe::transfer::{CAS_TRIPS, Kind, LiveStage, Operation, Options, TransferPlan};
use isochrone_probe::watch::Watch as _;
use isochrone_probe::{multiline, terms, transfer};
use isochrone_stats::derive_seed;
use isochrone_units::LineState;

use super::super::run::{Cut, Run, keep_drift, note};
use crate::line_costs::remote_readers;
use crate::progress::Progress;

/// Lines that pairs of cores exchange are spread over so much memory.
const TRANSFER_ARENA_BYTES: usize = 8 << 20;

/// What each kind of line transfers may take of the time that is left to all before its next sweep: where not even one
/// sweep of each has time, the first kinds are measured.
const SHARES: [f64; 4] = [0.5, 0.5, 0.5, 1.0];

/// A stage, and the lines that it has.
struct Scenery {
    stage: LiveStage,
    lines: u64,
}

/// Threads on every core, and the lines they exchange.
fn scenery(run: &Run<'_>, stream: u64) -> anyhow::Result<Scenery> {
    let arena = Mapping::anonymous(TRANSFER_ARENA_BYTES, Backing::Transparent2M)
        .map_err(|e| anyhow::anyhow!("{e}"))?;
    let lines = arena.lines();
    let seed = derive_seed(run.seed, stream);
    let stage =
        LiveStage::new(&run.cores, Arc::new(arena), run.clock.hz, run.clock.tick_cycles, seed)?;
    Ok(Scenery { stage, lines })
}

/// Every core from every other, by what is done and by the state of the line.
pub(super) fn transfers(run: &Run<'_>, contents: &mut Contents, progress: &mut Progress) {
    let budget_s = if run.args.quick { 0.5 } else { 3.0 };
    let timed = |state| Kind::Timed(state, Operation::Load);
    let kinds = [
        Kind::Cas { trips: CAS_TRIPS },
        timed(LineState::Modified),
        timed(LineState::Exclusive),
        timed(LineState::Shared),
    ];
    let since = run.seconds();
    let mut scenery = match scenery(run, 2) {
        Ok(scenery) => scenery,
        Err(error) => return note(contents, Experiment::Transfer.title(), &error),
    };
    for (kind, share) in kinds.into_iter().zip(SHARES) {
        progress.step(&format!("line transfers: {}", kind.state_name()));
        let what = format!("{}, {}", Experiment::Transfer.title(), kind.state_name());
        let share_s = progress.left().map(|left| left.as_secs_f64() * share);
        let budget_s = share_s.map_or(budget_s, |share_s| share_s.min(budget_s));
        let options = Options { budget_s, ..Options::new(kind, derive_seed(run.seed, 3)) };
        let plan = match TransferPlan::new(&run.cores, scenery.lines, options) {
            Ok(plan) => plan,
            Err(error) => return note(contents, Experiment::Transfer.title(), &error),
        };
        match transfer::run(&mut scenery.stage, &plan, &mut || !progress.keep_going()) {
            Ok(report) => {
                contents.provenance.missing.extend(report.missing);
                keep_drift(contents, since, report.drift);
                if !report.complete {
                    let (left_out, of) = pairs(&report.map);
                    Cut { what: &what, left_out, of, lack: "pairs were left out" }
                        .note(contents, progress);
                }
                contents.transfers.push(report.map);
            }
            Err(error) => note(contents, &what, &error),
        }
    }
}

/// How many pairs have no number, of how many.
fn pairs(map: &TransferMap) -> (usize, usize) {
    let cores = map.latency_ns.rows.len();
    let measured = map.latency_ns.cells.iter().flatten().count();
    let all = cores * cores.saturating_sub(1);
    (all.saturating_sub(measured), all)
}

/// Several lines, several readers and writers.
pub(super) fn multi_line(run: &Run<'_>, contents: &mut Contents, progress: &mut Progress) {
    progress.step("multi-line transfers and interactions");
    let mut options = MultilineOptions::new(derive_seed(run.seed, 4));
    if run.args.quick {
        options.rounds = 2;
    }
    let found = scenery(run, 5).and_then(|Scenery { mut stage, lines }| {
        let plan = MultilinePlan::new(&run.cores, lines, options)?;
        let report = multiline::run(&mut stage, &plan, &mut || !progress.keep_going())?;
        Ok((report, plan.items.len()))
    });
    match found {
        Ok((report, of)) => {
            contents.multiline.extend(report.fit);
            contents.interactions = report.interactions;
            contents.provenance.missing.extend(report.missing);
            if !report.complete {
                let what = Experiment::Multiline.title();
                Cut { what, left_out: report.left_out, of, lack: "cells were left out" }
                    .note(contents, progress);
            }
        }
        Err(error) => note(contents, Experiment::Multiline.title(), &error),
    }
}

/// What the model leaves out; who is near and who far comes from the transfers measured before.
pub(super) fn cost_terms(run: &Run<'_>, contents: &mut Contents, progress: &mut Progress) {
    progress.step("costs that the model leaves out");
    let mut options = TermsOptions::new(derive_seed(run.seed, 10));
    if run.args.quick {
        options.rounds = 3;
    }
    let remote = remote_readers(contents).map(|[owner, near, far]| Remote {
        owner: run.cores[owner],
        near: run.cores[near],
        far: run.cores[far],
    });
    let found = scenery(run, 11).and_then(|Scenery { mut stage, lines }| {
        let plan = TermsPlan::new(&run.cores, remote, lines, options)?;
        let report = terms::run(&mut stage, &plan, &mut || !progress.keep_going())?;
        Ok((report, plan.items.len()))
    });
    match found {
        Ok((report, of)) => {
            contents.terms = report.terms;
            contents.provenance.missing.extend(report.missing);
            if !report.complete {
                let what = Experiment::Terms.title();
                Cut { what, left_out: report.left_out, of, lack: "terms were left out" }
                    .note(contents, progress);
            }
        }
        Err(error) => note(contents, Experiment::Terms.title(), &error),
    }
}
