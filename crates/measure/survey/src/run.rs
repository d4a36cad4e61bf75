//! One map under way: what all its experiments need, and how they say what is lacking.

use std::cell::Cell;
use std::fmt::Display;

use isochrone_atlas_store::Experiment;
use isochrone_atlas_store::contents::{Clock, Contents, DriftEvent};
use isochrone_host::Reach;
use isochrone_probe::target::TargetError;
use isochrone_units::CoreId;

use crate::course::Course;
use crate::size::Wishes;
use crate::time::Schedule;

/// What is measured, on which cores, with which seed, in which time.
#[derive(Debug)]
pub struct Run {
    /// How much of everything.
    pub wishes: Wishes,
    /// Which experiments, and until when.
    pub schedule: Schedule,
    /// Seed of every random order.
    pub seed: u64,
    /// The cores that take part.
    pub cores: Vec<CoreId>,
    /// What of the machine may be measured at all.
    pub reach: Reach,
    /// The clock behind the samples, as the atlas has it.
    pub clock: Clock,
    /// Memory of the machine, where it is known.
    pub total_bytes: Option<u64>,
    /// Tells seconds of processor time of the calling thread.
    pub cpu_s: fn() -> f64,
    /// Processor time that plans have taken so far, seconds.
    pub planned_s: Cell<f64>,
}

impl Run {
    /// A plan; what making it takes is counted.
    pub(crate) fn planned<T>(&self, plan: impl FnOnce() -> T) -> T {
        let begun = (self.cpu_s)();
        let made = plan();
        self.planned_s.set(self.planned_s.get() + (self.cpu_s)() - begun);
        made
    }
}

/// What one experiment took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// The experiment that it was.
    pub experiment: Experiment,
    /// From its beginning to its end, by the ground's clock.
    pub seconds: f64,
    /// Processor time of the calling thread for its plans.
    pub planning_cpu_s: f64,
    /// The same for everything between what the ground was asked: means, fits, look-ups.
    pub between_cpu_s: f64,
}

/// One line for what could not be done; the rest goes on.
pub(crate) fn note(contents: &mut Contents, what: &str, why: &dyn Display) {
    contents.provenance.missing.push(format!("{what}: {why}"));
}

/// Drift seen by an experiment that began `since` seconds into the run.
pub(crate) fn keep_drift(contents: &mut Contents, since: f64, drift: Vec<DriftEvent>) {
    contents.drift.extend(drift.into_iter().map(|d| DriftEvent { at_s: d.at_s + since, ..d }));
}

/// What an experiment that was stopped left out.
pub(crate) struct Cut<'a> {
    /// What was measured.
    pub(crate) what: &'a str,
    /// How many were left out, of how many, and what was not done with them.
    pub(crate) left_out: usize,
    pub(crate) of: usize,
    pub(crate) lack: &'a str,
}

impl Cut<'_> {
    /// Says so in one line.
    pub(crate) fn note(&self, contents: &mut Contents, course: &dyn Course) {
        let why = why(course);
        let line = match self.left_out {
            0 => format!("measured less often than planned, {why}"),
            left_out => format!("{left_out} of {} {}, {why}", self.of, self.lack),
        };
        note(contents, self.what, &line);
    }
}

/// Says in one line why nothing at all was measured.
pub(crate) fn note_failed(
    contents: &mut Contents,
    what: &str,
    error: &TargetError,
    course: &dyn Course,
) {
    match error {
        TargetError::Stopped => note(contents, what, &format!("not measured, {}", why(course))),
        other => note(contents, what, other),
    }
}

/// Why something is not measured, or not as much as was planned.
pub(crate) fn why(course: &dyn Course) -> &'static str {
    if course.is_interrupted() {
        "since the run was interrupted"
    } else {
        "since its share of the time was over"
    }
}
