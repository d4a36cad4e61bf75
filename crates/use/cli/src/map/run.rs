//! One map under way: what all its experiments need, and how they say what is lacking.

use std::fmt::Display;
use std::time::Instant;

use isochrone_atlas_store::Experiment;
use isochrone_atlas_store::contents::{Clock, Contents, DriftEvent};
use isochrone_probe::target::TargetError;
use isochrone_units::CoreId;

use super::time::Schedule;
use crate::args::MapArgs;
use crate::progress::Progress;

/// What is measured, by whom, with which seed, in which time.
pub(super) struct Run<'a> {
    pub(super) args: &'a MapArgs,
    pub(super) schedule: Schedule,
    pub(super) seed: u64,
    pub(super) cores: Vec<CoreId>,
    pub(super) clock: Clock,
    /// When the run began: experiments have clocks of their own.
    pub(super) begin: Instant,
}

impl Run<'_> {
    /// Seconds into the run.
    pub(super) fn seconds(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }

    /// When an experiment is to end.
    pub(super) fn ends(&self, experiment: Experiment) -> Option<Instant> {
        self.schedule.ends(experiment).map(|time| self.begin + time)
    }
}

/// One line for what could not be done; the rest goes on.
pub(super) fn note(contents: &mut Contents, what: &str, why: &dyn Display) {
    contents.provenance.missing.push(format!("{what}: {why}"));
}

/// Drift seen by an experiment that began `since` seconds into the run.
pub(super) fn keep_drift(contents: &mut Contents, since: f64, drift: Vec<DriftEvent>) {
    contents.drift.extend(drift.into_iter().map(|d| DriftEvent { at_s: d.at_s + since, ..d }));
}

/// What an experiment that was stopped left out.
pub(super) struct Cut<'a> {
    /// What was measured.
    pub(super) what: &'a str,
    /// How many were left out, of how many, and what was not done with them.
    pub(super) left_out: usize,
    pub(super) of: usize,
    pub(super) lack: &'a str,
}

impl Cut<'_> {
    /// Says so in one line.
    pub(super) fn note(&self, contents: &mut Contents, progress: &Progress) {
        let why = why(progress);
        let line = match self.left_out {
            0 => format!("measured less often than planned, {why}"),
            left_out => format!("{left_out} of {} {}, {why}", self.of, self.lack),
        };
        note(contents, self.what, &line);
    }
}

/// Says in one line why nothing at all was measured.
pub(super) fn note_failed(
    contents: &mut Contents,
    what: &str,
    error: &TargetError,
    progress: &Progress,
) {
    match error {
        TargetError::Stopped => note(contents, what, &format!("not measured, {}", why(progress))),
        other => note(contents, what, other),
    }
}

/// Why something is not measured, or not as much as was planned.
pub(super) fn why(progress: &Progress) -> &'static str {
    if progress.is_interrupted() {
        "since the run was interrupted"
    } else {
        "since its share of the time was over"
    }
}
