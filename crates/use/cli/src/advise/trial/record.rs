//! What a trial found, as it is written: for programs by `--json`, and kept below the cache folder. It holds no
//! environment, and no argument of the program unless that was asked for.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use isochrone_console::codes;
use isochrone_console::turns::{Ratio, Series};
use isochrone_units::Reading;
use serde::Serialize;

use super::levers::Lever;
use super::stages::{ALPHA, End, Stage};
use super::verdict::{Judged, Word};
use crate::args::AdviseArgs;

/// What runs found.
#[derive(Clone, Debug, Default)]
pub(super) struct Trial {
    pub(super) seed: u64,
    pub(super) seconds: f64,
    pub(super) runs: usize,
    /// Levers that the program gets along with, run once.
    pub(super) fit: usize,
    /// Seconds that it takes where intervals are narrow at once.
    pub(super) needs_s: f64,
    pub(super) compares: bool,
    /// Levers that the program does not get along with, and why.
    pub(super) out: Vec<(String, String)>,
    pub(super) screened: BTreeMap<String, Judged>,
    pub(super) best: Option<(String, Judged)>,
    pub(super) screening: Option<Stage>,
    pub(super) confirmation: Option<Stage>,
}

/// What `advise --try --json` writes. Fields are added, never renamed.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Figures {
    /// The program's name.
    pub(super) program: String,
    /// Its arguments, where they were asked for.
    pub(super) arguments: Option<Vec<String>>,
    pub(super) machine: String,
    pub(super) reading: Reading,
    pub(super) levers: Vec<LeverFigures>,
    /// The lever that gains, by fresh runs and beyond the control; nothing where none does.
    pub(super) best: Option<Best>,
    /// What all of it comes to.
    pub(super) outcome: Outcome,
    /// The lever that was run again on fresh blocks, whatever came of it.
    pub(super) confirmed: Option<String>,
    /// The chance of a gain or a loss where no lever does anything, of all of them together.
    pub(super) alpha: f64,
    /// Levers among which the best was chosen, for which it is corrected.
    pub(super) corrected_for: usize,
    pub(super) budget_s: f64,
    pub(super) seconds: f64,
    /// Seconds that are enough where intervals are narrow at once.
    pub(super) needs_s: f64,
    pub(super) runs: usize,
    pub(super) seed: u64,
    /// Fresh blocks in which others took more than a twentieth of the processors' time, or cores were slow.
    pub(super) disturbed_blocks: usize,
    /// Whether what the program writes was compared; not where the plain program's outputs differ.
    pub(super) compared_output: bool,
    /// Runs of all levers by turns, seconds.
    pub(super) screening: Option<Series>,
    /// Why these runs ended.
    pub(super) screening_ended_by: Option<End>,
    /// Runs of the best one by turns, seconds.
    pub(super) confirmation: Option<Series>,
    pub(super) confirmation_ended_by: Option<End>,
}

/// What all of it comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// A lever gains beyond the control.
    Gain,
    /// None does.
    NoGain,
    /// The time was too short to say.
    TooFewRuns,
    /// No lever can be used here with this program.
    NothingToTry,
}

/// One lever.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct LeverFigures {
    pub(super) name: String,
    /// How many times faster than the plain program; nothing where it was not measured.
    pub(super) ratio: Option<Ratio>,
    /// The plain program against itself in the same blocks.
    pub(super) control: Option<Ratio>,
    pub(super) command: String,
    pub(super) verdict: Word,
    /// Which runs the numbers are of: those of all levers, or the fresh ones. Of the former the largest is larger than
    /// it would be again.
    pub(super) stage: Option<StageName>,
    /// How surprising the difference is, by itself and corrected for the number of levers.
    pub(super) p: Option<f64>,
    pub(super) p_holm: Option<f64>,
    /// Why it was not tried, or was left out.
    pub(super) why: Option<String>,
}

/// Which runs a number is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum StageName {
    Screening,
    Confirmation,
}

/// The lever that gains.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Best {
    pub(super) name: String,
    pub(super) command: String,
    /// With an interval that holds for all levers together.
    pub(super) ratio: Ratio,
    pub(super) control: Option<Ratio>,
    pub(super) p_holm: f64,
}

impl Figures {
    /// What is written of a trial.
    pub(super) fn of(args: &AdviseArgs, machine: &str, levers: &[Lever], trial: &Trial) -> Self {
        let lossy = |word: &std::ffi::OsString| word.to_string_lossy().into_owned();
        let program = args.command.first().map(Path::new).and_then(Path::file_name);
        let arguments = || args.command.iter().skip(1).map(lossy).collect();
        let figures: Vec<LeverFigures> =
            levers.iter().map(|lever| of_lever(lever, trial)).collect();
        let outcome = outcome(levers, trial);
        let confirmed = trial.best.as_ref().map(|(name, _)| name.clone());
        Self {
            program: program.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
            arguments: args.with_arguments.then(arguments),
            machine: machine.to_owned(),
            reading: Reading::Measured,
            best: trial.best.as_ref().filter(|_| outcome == Outcome::Gain).and_then(
                |(name, judged)| {
                    let lever = levers.iter().find(|lever| lever.name == name)?;
                    Some(Best {
                        name: name.clone(),
                        command: lever.command.clone(),
                        ratio: judged.ratio,
                        control: judged.control,
                        p_holm: judged.p_holm,
                    })
                },
            ),
            outcome,
            confirmed,
            alpha: ALPHA,
            corrected_for: trial.screened.len(),
            budget_s: args.budget.as_secs_f64(),
            seconds: trial.seconds,
            needs_s: trial.needs_s,
            runs: trial.runs,
            seed: trial.seed,
            disturbed_blocks: trial.confirmation.as_ref().map_or(0, disturbed),
            compared_output: trial.compares,
            screening: trial.screening.as_ref().map(|stage| stage.series.clone()),
            screening_ended_by: trial.screening.as_ref().map(|stage| stage.end),
            confirmation: trial.confirmation.as_ref().map(|stage| stage.series.clone()),
            confirmation_ended_by: trial.confirmation.as_ref().map(|stage| stage.end),
            levers: figures,
        }
    }

    /// What the shell sees.
    pub(super) fn code(&self) -> ExitCode {
        match self.outcome {
            Outcome::Gain => ExitCode::from(codes::FOUND),
            Outcome::NoGain | Outcome::NothingToTry => ExitCode::SUCCESS,
            Outcome::TooFewRuns => ExitCode::from(codes::FAILED),
        }
    }
}

fn disturbed(stage: &Stage) -> usize {
    stage.series.blocks.iter().filter(|block| !block.disturbance.is_quiet()).count()
}

fn outcome(levers: &[Lever], trial: &Trial) -> Outcome {
    let usable = levers.iter().filter(|lever| lever.how.is_ok()).count();
    let left_out = trial.out.len();
    match trial.best.as_ref().map(|(_, judged)| judged.word) {
        Some(Word::Gain) => Outcome::Gain,
        Some(Word::TooFewRuns) => Outcome::TooFewRuns,
        Some(_) => Outcome::NoGain,
        None if usable == 0 || left_out >= usable => Outcome::NothingToTry,
        None => Outcome::TooFewRuns,
    }
}

fn of_lever(lever: &Lever, trial: &Trial) -> LeverFigures {
    let mut figures = LeverFigures {
        name: lever.name.to_owned(),
        ratio: None,
        control: None,
        command: lever.command.clone(),
        verdict: Word::TooFewRuns,
        stage: None,
        p: None,
        p_holm: None,
        why: None,
    };
    let left_out = trial.out.iter().find(|(name, _)| name == lever.name).map(|(_, why)| why);
    if let Err(why) = &lever.how {
        (figures.verdict, figures.why) = (Word::NotApplicable, Some(why.clone()));
    } else if let Some(why) = left_out {
        (figures.verdict, figures.why) = (Word::Excluded, Some(why.clone()));
    } else {
        let fresh = trial.best.as_ref().filter(|(name, _)| name == lever.name);
        let fresh = fresh.map(|(_, judged)| (*judged, StageName::Confirmation));
        let screened = trial.screened.get(lever.name).map(|judged| (*judged, StageName::Screening));
        if let Some((judged, stage)) = fresh.or(screened) {
            figures.verdict = judged.word;
            (figures.ratio, figures.control) = (Some(judged.ratio), judged.control);
            (figures.p, figures.p_holm) = (Some(judged.p), Some(judged.p_holm));
            figures.stage = Some(stage);
        }
    }
    figures
}
