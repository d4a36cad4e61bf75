//! The experiments one after the other, each with the time that it has.

mod beyond;
mod block;
mod columns;
mod cores;
mod layout;
mod memory;

use isochrone_atlas_store::Experiment;
use isochrone_atlas_store::contents::Contents;

use crate::course::Course;
use crate::grade::grade;
use crate::ground::Ground;
use crate::run::{Part, Run, note, why};

use block::Hands;

/// Runs all that was asked for and puts it into `contents`, which `keep` gets as it is after each. What each took, in
/// order.
pub fn all(
    run: &Run,
    ground: &mut dyn Ground,
    contents: &mut Contents,
    course: &mut dyn Course,
    keep: &mut dyn FnMut(&Contents),
) -> Vec<Part> {
    let mut hands = Hands { ground, codes: Vec::new() };
    let mut parts = Vec::new();
    for experiment in run.schedule.experiments.iter().copied() {
        course.end_at(run.schedule.ends(experiment));
        if experiment.is_inferred() {
            parts.push(timed(experiment, run, &mut hands, contents, course));
        } else if course.is_interrupted() {
            note(contents, experiment.title(), &format!("not measured, {}", why(course)));
        } else {
            let others = hands.ground.disturbance(&run.cores);
            parts.push(timed(experiment, run, &mut hands, contents, course));
            let graded = grade(experiment, others(), contents);
            contents.quality.extend(graded.map(|graded| (experiment, graded)));
            contents.provenance.seconds = hands.ground.seconds();
            // After an interruption all is saved at once.
            if !course.is_interrupted() {
                keep(contents);
            }
        }
        hands.ground.let_go();
        course.next_part();
    }
    course.end_at(None);
    parts
}

/// One experiment, and what it took.
fn timed(
    experiment: Experiment,
    run: &Run,
    hands: &mut Hands<'_>,
    contents: &mut Contents,
    course: &mut dyn Course,
) -> Part {
    let now = |hands: &Hands<'_>| {
        let ground = &hands.ground;
        [ground.seconds(), run.planned_s.get(), (run.cpu_s)() - ground.modelled_cpu_s()]
    };
    let begun = now(hands);
    one(experiment, run, hands, contents, course);
    let ended = now(hands);
    let [seconds, planning_cpu_s, own_cpu_s] = [0, 1, 2].map(|at| ended[at] - begun[at]);
    let between_cpu_s = (own_cpu_s - planning_cpu_s).max(0.0);
    Part { experiment, seconds, planning_cpu_s, between_cpu_s }
}

fn one(
    experiment: Experiment,
    run: &Run,
    hands: &mut Hands<'_>,
    contents: &mut Contents,
    course: &mut dyn Course,
) {
    match experiment {
        Experiment::Block => {
            block::block(run, hands, contents, course);
            hands.ground.let_go();
            block::llc_shares(run, hands, contents, course);
        }
        Experiment::Transfer => cores::transfers(run, hands, contents, course),
        Experiment::Multiline => cores::multi_line(run, hands, contents, course),
        Experiment::Terms => cores::cost_terms(run, hands, contents, course),
        Experiment::Region => memory::regions(run, hands, contents, course),
        Experiment::Bandwidth => memory::triad(run, hands, contents, course),
        Experiment::Placement => layout::place(run, contents, course),
    }
}
