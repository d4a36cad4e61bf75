//! What cores hand each other: lines, several lines at once, and what the model of that leaves out.

use isochrone_atlas_store::contents::{Contents, TransferMap};
use isochrone_atlas_store::{Experiment, matrix_classes};
use isochrone_probe::multiline::{MultilineOptions, MultilinePlan};
use isochrone_probe::seats::Seats;
use isochrone_probe::target::TargetError;
use isochrone_probe::terms::{Remote, TermsOptions, TermsPlan};
use isochrone_probe::transfer::{CAS_TRIPS, Kind, Operation, Options, Stage, TransferPlan};
use isochrone_probe::{multiline, terms, transfer};
use isochrone_stats::derive_seed;
use isochrone_units::LineState;

use super::block::Hands;
use crate::course::Course;
use crate::run::{Cut, Run, keep_drift, note};

/// Lines that pairs of cores exchange are spread over so much memory.
const TRANSFER_ARENA_BYTES: usize = 8 << 20;

/// What each kind of line transfers may take of the time that is left to all before its next sweep: where not even one
/// sweep of each has time, the first kinds are measured.
const SHARES: [f64; 4] = [0.5, 0.5, 0.5, 1.0];

/// A stage, and the lines that it has.
struct Scenery {
    stage: Box<dyn Stage>,
    lines: u64,
}

/// Threads on every core, and the lines they exchange.
fn scenery(run: &Run, hands: &mut Hands<'_>, stream: u64) -> Result<Scenery, TargetError> {
    let seed = derive_seed(run.seed, stream);
    let stage = hands.ground.stage(&run.cores, TRANSFER_ARENA_BYTES, seed)?;
    Ok(Scenery { lines: stage.lines(), stage })
}

/// Every core from every other, by what is done and by the state of the line.
pub(super) fn transfers(
    run: &Run,
    hands: &mut Hands<'_>,
    contents: &mut Contents,
    course: &mut dyn Course,
) {
    let budget_s = transfer::budget_s(run.cores.len(), run.wishes.quick);
    let seats = Seats::of(&contents.machine, &run.cores);
    let timed = |state| Kind::Timed(state, Operation::Load);
    let kinds = [
        Kind::Cas { trips: CAS_TRIPS },
        timed(LineState::Modified),
        timed(LineState::Exclusive),
        timed(LineState::Shared),
    ];
    let since = hands.ground.seconds();
    let mut scenery = match scenery(run, hands, 2) {
        Ok(scenery) => scenery,
        Err(error) => return note(contents, Experiment::Transfer.title(), &error),
    };
    for (kind, share) in kinds.into_iter().zip(SHARES) {
        course.step(&format!("line transfers: {}", kind.state_name()));
        let what = format!("{}, {}", Experiment::Transfer.title(), kind.state_name());
        let share_s = course.left().map(|left| left.as_secs_f64() * share);
        let options = Options {
            budget_s: share_s.map_or(budget_s, |share_s| share_s.min(budget_s)),
            patience_s: share_s.unwrap_or(budget_s),
            seats: Some(seats.clone()),
            ..Options::new(kind, derive_seed(run.seed, 3))
        };
        let plan = run.planned(|| TransferPlan::new(&run.cores, scenery.lines, options));
        let plan = match plan {
            Ok(plan) => plan,
            Err(error) => return note(contents, Experiment::Transfer.title(), &error),
        };
        match transfer::run(&mut *scenery.stage, &plan, &mut || !course.keep_going()) {
            Ok(report) => {
                contents.provenance.missing.extend(report.missing);
                keep_drift(contents, since, report.drift);
                // Where some pairs were measured, what is said of the others says that they were left out.
                if !report.complete && report.map.strata.is_empty() {
                    let (left_out, of) = pairs(&report.map);
                    Cut { what: &what, left_out, of, lack: "pairs were left out" }
                        .note(contents, course);
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
pub(super) fn multi_line(
    run: &Run,
    hands: &mut Hands<'_>,
    contents: &mut Contents,
    course: &mut dyn Course,
) {
    course.step("multi-line transfers and interactions");
    let mut options = MultilineOptions::new(derive_seed(run.seed, 4));
    if run.wishes.quick {
        options.rounds = 2;
    }
    let found = scenery(run, hands, 5).map_err(Into::into);
    let found = found.and_then(|Scenery { mut stage, lines }| -> anyhow::Result<_> {
        let plan = run.planned(|| MultilinePlan::new(&run.cores, lines, options))?;
        let report = multiline::run(&mut *stage, &plan, &mut || !course.keep_going())?;
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
                    .note(contents, course);
            }
        }
        Err(error) => note(contents, Experiment::Multiline.title(), &error),
    }
}

/// What the model leaves out; who is near and who far comes from the transfers measured before.
pub(super) fn cost_terms(
    run: &Run,
    hands: &mut Hands<'_>,
    contents: &mut Contents,
    course: &mut dyn Course,
) {
    course.step("costs that the model leaves out");
    let mut options = TermsOptions::new(derive_seed(run.seed, 10));
    if run.wishes.quick {
        options.rounds = 3;
    }
    let remote = remote_readers(contents).map(|[owner, near, far]| Remote {
        owner: run.cores[owner],
        near: run.cores[near],
        far: run.cores[far],
    });
    let found = scenery(run, hands, 11).map_err(Into::into);
    let found = found.and_then(|Scenery { mut stage, lines }| -> anyhow::Result<_> {
        let plan = run.planned(|| TermsPlan::new(&run.cores, remote, lines, options))?;
        let report = terms::run(&mut *stage, &plan, &mut || !course.keep_going())?;
        Ok((report, plan.items.len()))
    });
    match found {
        Ok((report, of)) => {
            contents.terms = report.terms;
            contents.provenance.missing.extend(report.missing);
            if !report.complete {
                let what = Experiment::Terms.title();
                Cut { what, left_out: report.left_out, of, lack: "terms were left out" }
                    .note(contents, course);
            }
        }
        Err(error) => note(contents, Experiment::Terms.title(), &error),
    }
}

/// An owner, a core near it and one that is farther away than that, by their places in the matrix of line
/// transfers; why there are none, where there are none.
fn remote_readers(atlas: &Contents) -> Result<[usize; 3], String> {
    let map = atlas.transfers.iter().find(|t| t.state == "modified");
    let map = map.ok_or("needs the line transfers of the same map")?;
    let cores = map.latency_ns.rows.len();
    let found =
        matrix_classes(&map.latency_ns).ok_or("needs the line transfers of pairs of cores")?;
    let class = |a: usize, b: usize| found.class[a * cores + b];
    let others = |owner: usize| (0..cores).filter(move |&core| core != owner);
    let others = |owner: usize| others(owner).filter(move |&core| class(owner, core).is_some());
    for owner in 0..cores {
        let near = others(owner).min_by_key(|&core| class(owner, core));
        let far = others(owner).max_by_key(|&core| class(owner, core));
        if let (Some(near), Some(far)) = (near, far)
            && class(owner, near) < class(owner, far)
        {
            return Ok([owner, near, far]);
        }
    }
    Err("needs a core that is farther away than another; all cores here are equally far".to_owned())
}
