//! What `scale` prints and writes. Fields are added, never renamed.

use isochrone_report::fmt;
use isochrone_report::table::{Cell, Table};
use isochrone_survey::Part;
use isochrone_survey::synthetic::Surveyed;
use isochrone_units::Reading;
use serde::Serialize;

use super::errors::{self, Errors};
use super::goals::{self, ATLAS_BYTES, FULL_S, Goal, PLANNING_S, QUICK_S, REPORT_BYTES, SHOW_MS};
use super::sizes::Sizes;
use crate::args::ScaleArgs;

/// Lines of what was left out that are printed; all are written.
const MISSING_MOST: usize = 12;

/// Everything that was found. Times of this machine are those with `cpu` in their name, and `show_ms`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Figures {
    pub(super) reading: Reading,
    pub(super) cores: u16,
    pub(super) regions: u16,
    pub(super) quick: bool,
    /// Whether pairs of cores disturb each other.
    pub(super) crowded: bool,
    /// Virtual seconds that there were, where they were limited.
    pub(super) budget_s: Option<f64>,
    /// Seconds of this machine that there were for all of it.
    pub(super) within_s: f64,
    /// False where that was not enough for all experiments.
    pub(super) complete: bool,
    pub(super) seed: u64,
    /// Seconds of the whole map on the synthetic machine.
    pub(super) virtual_seconds: f64,
    /// The same with the processor time of this machine for plans, between what is timed, and for what is inferred, as
    /// a live map takes it.
    pub(super) whole_seconds: f64,
    /// Processor time of this machine for plans.
    pub(super) planning_cpu_seconds: f64,
    /// The same between what is timed: means, fits, look-ups. A live map takes it too.
    pub(super) between_cpu_seconds: f64,
    /// The same for what is inferred at last.
    pub(super) inference_cpu_seconds: f64,
    pub(super) atlas_bytes: u64,
    pub(super) atlas_bytes_without_codes: u64,
    /// From the file to the last line, of this machine.
    pub(super) show_ms: f64,
    /// The page that `map` writes, with its figures.
    pub(super) report_bytes: u64,
    /// The largest of the median errors of what was measured, as a share of the truth.
    pub(super) error_against_truth: Option<f64>,
    /// The same of what stands in for cells that were not measured.
    pub(super) predicted_error_against_truth: Option<f64>,
    pub(super) errors: Vec<Errors>,
    pub(super) parts: Vec<PartFigures>,
    pub(super) goals: Vec<Goal>,
    /// What was left out, a line each.
    pub(super) missing: Vec<String>,
}

/// What an experiment took.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct PartFigures {
    experiment: String,
    virtual_seconds: f64,
    planning_cpu_seconds: f64,
    between_cpu_seconds: f64,
}

impl PartFigures {
    /// The experiment's name.
    #[cfg(test)]
    pub(super) fn experiment(&self) -> &str {
        &self.experiment
    }
}

impl From<&Part> for PartFigures {
    fn from(part: &Part) -> Self {
        Self {
            experiment: part.experiment.name().to_owned(),
            virtual_seconds: part.seconds,
            planning_cpu_seconds: part.planning_cpu_s,
            between_cpu_seconds: part.between_cpu_s,
        }
    }
}

impl Figures {
    pub(super) fn of(
        args: &ScaleArgs,
        surveyed: &Surveyed,
        sizes: Sizes,
        errors: Vec<Errors>,
    ) -> Self {
        let parts = &surveyed.parts;
        let sum = |of: fn(&Part) -> f64| parts.iter().map(of).sum::<f64>();
        let inferred = |part: &Part| part.experiment.is_inferred();
        let between = |inferring: bool| {
            let of = parts.iter().filter(move |part| inferred(part) == inferring);
            of.map(|part| part.between_cpu_s).sum::<f64>()
        };
        let planning_cpu_seconds = sum(|part| part.planning_cpu_s);
        let [between_cpu_seconds, inference_cpu_seconds] = [false, true].map(between);
        let thought_s = planning_cpu_seconds + between_cpu_seconds + inference_cpu_seconds;
        let mut figures = Self {
            reading: surveyed.contents.reading,
            cores: args.cores,
            regions: args.regions,
            quick: args.quick,
            crowded: args.crowded,
            budget_s: args.budget.map(|time| time.as_secs_f64()),
            within_s: args.within.as_secs_f64(),
            complete: surveyed.contents.complete,
            seed: args.seed,
            virtual_seconds: surveyed.seconds,
            whole_seconds: surveyed.seconds + thought_s,
            planning_cpu_seconds,
            between_cpu_seconds,
            inference_cpu_seconds,
            atlas_bytes: sizes.atlas_bytes,
            atlas_bytes_without_codes: sizes.atlas_bytes_without_codes,
            show_ms: sizes.show_ms,
            report_bytes: sizes.report_bytes,
            error_against_truth: largest(&errors, Errors::is_measured),
            predicted_error_against_truth: largest(&errors, |errors| !errors.is_measured()),
            errors,
            parts: parts.iter().map(Into::into).collect(),
            goals: Vec::new(),
            missing: surveyed.contents.provenance.missing.clone(),
        };
        figures.goals = judged(&figures);
        figures
    }

    /// All of it as text for so many columns.
    pub(super) fn text(&self, columns: u16) -> String {
        let head = head(self.quick, self.cores, self.regions, self.seed);
        let missed = self.goals.iter().filter(|goal| !goal.met()).count();
        let judged = format!("{missed} of {} goals are missed", self.goals.len());
        let mut lines = vec![
            head,
            table(&self.parts).to_terminal(columns),
            errors::table(&self.errors).to_terminal(columns),
            goals::table(&self.goals).to_terminal(columns),
            judged,
        ];
        if !self.complete {
            lines.push(format!(
                "left out: the map is not whole in {:.0} s of this machine; more with --within TIME",
                self.within_s
            ));
        }
        lines.extend(left_out(&self.missing));
        lines.join("\n") + "\n"
    }
}

/// What a map has that was stopped, or that there was no time to judge: it is held against nothing.
pub(super) fn unjudged(
    args: &ScaleArgs,
    surveyed: &Surveyed,
    interrupted: bool,
    columns: u16,
) -> String {
    let parts: Vec<PartFigures> = surveyed.parts.iter().map(Into::into).collect();
    let why = match interrupted {
        true => {
            "stopped: the map was not held against its truth, and no JSON was written".to_owned()
        }
        false => format!(
            "left out: in {:.0} s of this machine the map was not held against its truth, and no JSON was written; \
             more with --within TIME",
            args.within.as_secs_f64()
        ),
    };
    let mut lines = vec![
        head(args.quick, args.cores, args.regions, args.seed),
        table(&parts).to_terminal(columns),
        why,
    ];
    lines.extend(left_out(&surveyed.contents.provenance.missing));
    lines.join("\n") + "\n"
}

fn head(quick: bool, cores: u16, regions: u16, seed: u64) -> String {
    let what = if quick { "a quick map" } else { "a full map" };
    format!("simulated: {what} of {cores} cores in {regions} regions, seed {seed}\n")
}

/// Lines of what was left out, as many as are printed.
fn left_out(missing: &[String]) -> Vec<String> {
    let mut lines: Vec<String> =
        missing.iter().take(MISSING_MOST).map(|line| format!("  {line}")).collect();
    let more = missing.len().saturating_sub(MISSING_MOST);
    lines.extend((more > 0).then(|| format!("  and {more} more that were left out")));
    lines
}

/// Experiments and what they took.
fn table(parts: &[PartFigures]) -> Table {
    let heads = ["experiment", "virtual time", "plans, CPU", "between, CPU"];
    let mut table = Table::new(heads).keyed(1);
    for part in parts {
        let number = |s: f64| Cell::number(s, format!("{} s", fmt::significant(s, 3)));
        table.row([
            part.experiment.as_str().into(),
            number(part.virtual_seconds),
            number(part.planning_cpu_seconds),
            number(part.between_cpu_seconds),
        ]);
    }
    table
}

/// The largest of some median errors.
fn largest(errors: &[Errors], is_one: impl Fn(&Errors) -> bool) -> Option<f64> {
    errors.iter().filter(|one| is_one(one)).filter_map(Errors::median).reduce(f64::max)
}

/// All goals of a map. Where no goal is set for so many cores, time has none.
fn judged(figures: &Figures) -> Vec<Goal> {
    let limit = FULL_S.iter().find(|(cores, _)| figures.cores <= *cores).map(|(_, s)| *s);
    let limit = if figures.quick { Some(QUICK_S) } else { limit };
    let map = if figures.quick { "quick map" } else { "full map" };
    let times = limit.into_iter().flat_map(|limit| {
        let with = format!("{map}, with what this processor took between");
        let time = |what: &str, found| Goal::new(what, "s", limit, found);
        let virtual_only = format!("{map}, virtual time");
        [time(&virtual_only, figures.virtual_seconds), time(&with, figures.whole_seconds)]
    });
    let bytes = |count: u64| count as f64;
    let without = bytes(figures.atlas_bytes_without_codes);
    let sizes = [
        Goal::new("plans, processor time", "s", PLANNING_S, figures.planning_cpu_seconds),
        Goal::new("atlas without codes of pages", "bytes", ATLAS_BYTES, without),
        Goal::new("show", "ms", SHOW_MS, figures.show_ms),
        Goal::new("report", "bytes", REPORT_BYTES, bytes(figures.report_bytes)),
    ];
    let accurate = figures.errors.iter().filter_map(Errors::goal);
    let accurate = accurate.map(|(what, limit, found)| Goal::new(&what, "share", limit, found));
    times.chain(sizes).chain(accurate).collect()
}
