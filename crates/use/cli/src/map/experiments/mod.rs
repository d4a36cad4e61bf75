//! The experiments one after the other, each with the time that it has.

mod block;
mod cores;
mod layout;
mod memory;

use isochrone_atlas_store::Experiment;
use isochrone_atlas_store::contents::Contents;
use isochrone_host::Meter;
use isochrone_probe::live::LiveTarget;
use isochrone_probe::target::Target as _;

use super::grade::grade;
use super::run::{Run, note, why};
use crate::progress::Progress;

use block::Hands;

/// Runs all that was asked for and puts it into `contents`, which `keep` gets as it is after each.
pub(super) fn all(
    run: &Run<'_>,
    target: LiveTarget,
    contents: &mut Contents,
    progress: &mut Progress,
    keep: &mut dyn FnMut(&Contents),
) {
    let clock = target.clock();
    let mut hands = Hands { target: Some(target), clock, arena: None, codes: Vec::new() };
    for experiment in run.schedule.experiments.iter().copied() {
        progress.end_at(run.ends(experiment));
        if experiment.is_inferred() {
            one(experiment, run, &mut hands, contents, progress);
        } else if progress.is_interrupted() {
            note(contents, experiment.title(), &format!("not measured, {}", why(progress)));
        } else {
            let meter = Meter::on(&run.cores.iter().map(|core| core.0).collect::<Vec<_>>());
            one(experiment, run, &mut hands, contents, progress);
            let graded = grade(experiment, Meter::since(meter.as_ref()), contents);
            contents.quality.extend(graded.map(|graded| (experiment, graded)));
            contents.provenance.seconds = run.seconds();
            // After an interruption all is saved at once.
            if !progress.is_interrupted() {
                keep(contents);
            }
        }
        hands.let_go();
        progress.next_part();
    }
    progress.end_at(None);
}

fn one(
    experiment: Experiment,
    run: &Run<'_>,
    hands: &mut Hands,
    contents: &mut Contents,
    progress: &mut Progress,
) {
    match experiment {
        Experiment::Block => {
            block::block(run, hands, contents, progress);
            hands.let_go();
            block::llc_shares(run, hands.clock, contents, progress);
        }
        Experiment::Transfer => cores::transfers(run, contents, progress),
        Experiment::Multiline => cores::multi_line(run, contents, progress),
        Experiment::Terms => cores::cost_terms(run, contents, progress),
        Experiment::Region => memory::regions(run, hands, contents, progress),
        Experiment::Bandwidth => memory::triad(run, contents, progress),
        Experiment::Placement => layout::place(run, contents, progress),
    }
}
