//! What a trial found, as text and as a page. It decides nothing and prints nothing.

use isochrone_console::turns::Ratio;
use isochrone_report::fmt;
use isochrone_report::html::{Badge, Figure, Page, Section};
use isochrone_report::table::{Cell, Table};

use super::record::{Figures, LeverFigures, Outcome, StageName};
use super::verdict::Word;
use crate::advise::words::{lever, several};

/// Why the numbers of all levers do not stand in the text.
const SCREENED: &str = "Runs of all levers by turns, by which the best was chosen. The largest of several looks larger \
                        than it is: what counts are the fresh runs.";

/// What was found, in some lines; those of levers are made for so many columns.
pub(super) fn text(figures: &Figures, width: usize) -> String {
    let mut lines = vec![first(figures)];
    if let Some(best) = &figures.best {
        lines.push(format!("  {}", best.command));
    }
    if let Some(numbers) = numbers(figures) {
        lines.push(format!("  {numbers}"));
    }
    lines.extend(disturbed(figures).map(|line| format!("  {line}")));
    if figures.outcome == Outcome::TooFewRuns {
        lines.push(format!("  {}", more_time(figures)));
    }
    let tried: Vec<&str> =
        figures.levers.iter().filter(|of| of.stage.is_some()).map(|of| of.name.as_str()).collect();
    if !tried.is_empty() {
        lines.push(format!(
            "tried: {}; {} runs in {}",
            tried.join(", "),
            figures.runs,
            fmt::seconds(figures.seconds)
        ));
    }
    if !figures.compared_output && !tried.is_empty() {
        lines.push(
            "outputs were not compared: the plain program's differ from one another".to_owned(),
        );
    }
    lines.extend(left_out(figures, width));
    lines.join("\n")
}

/// All of it in a sentence.
fn first(figures: &Figures) -> String {
    let Figures { program, .. } = figures;
    match (figures.outcome, &figures.best, &figures.confirmed) {
        (Outcome::Gain, Some(best), _) => {
            format!(
                "{}: {program} is {} times as fast (measured)",
                best.name,
                fmt::significant(best.ratio.median, 3)
            )
        }
        (Outcome::TooFewRuns, ..) => {
            format!("Too few runs of {program} in {}", fmt::seconds(figures.budget_s))
        }
        (Outcome::NothingToTry, ..) => {
            format!("Nothing here for you: no lever can be used with {program}")
        }
        (_, _, Some(name)) => {
            format!(
                "Nothing here for you: no lever makes {program} faster beyond the control; the best was {name}"
            )
        }
        _ => format!("Nothing here for you: no lever makes {program} faster beyond the control"),
    }
}

/// What the fresh runs say of the lever that was chosen.
fn numbers(figures: &Figures) -> Option<String> {
    let of = figures.levers.iter().find(|of| of.stage == Some(StageName::Confirmation))?;
    let ratio = of.ratio?;
    let control = of.control.map_or_else(String::new, |control| {
        format!("; the plain program against itself {}", control.interval())
    });
    Some(format!(
        "{}: {} times as fast over {}{control}; p {} for {} (Holm)",
        of.name,
        ratio.interval(),
        several(ratio.blocks, "fresh block", "fresh blocks"),
        of.p_holm.map_or_else(|| "unknown".to_owned(), |p| fmt::significant(p, 2)),
        several(figures.corrected_for, "lever", "levers")
    ))
}

/// What others did meanwhile, where that was in the way.
fn disturbed(figures: &Figures) -> Option<String> {
    let blocks = figures.confirmation.as_ref()?.blocks.len();
    (2 * figures.disturbed_blocks > blocks).then(|| {
        format!(
            "the machine did other work in {} of these {blocks} blocks, which hides small gains: try when it is quiet",
            figures.disturbed_blocks
        )
    })
}

/// How much time it takes.
fn more_time(figures: &Figures) -> String {
    let minutes = (2.0 * figures.needs_s.max(figures.budget_s) / 60.0).ceil().max(1.0);
    format!(
        "it takes about {}, and more where runs differ much: --budget {minutes:.0}m",
        fmt::seconds(figures.needs_s)
    )
}

/// A line for each lever that was not measured.
fn left_out(figures: &Figures, width: usize) -> Vec<String> {
    let out: Vec<&LeverFigures> = figures.levers.iter().filter(|of| of.why.is_some()).collect();
    if out.is_empty() {
        return Vec::new();
    }
    let widest = out.iter().map(|of| of.name.len()).max().unwrap_or(0);
    let line = |of: &LeverFigures| {
        let why = of.why.as_deref().unwrap_or_default();
        let left = if of.verdict == Word::Excluded { "left out: " } else { "" };
        lever(&format!("  {:<widest$}  ", of.name), &format!("{left}{why}"), width)
    };
    std::iter::once("not measured:".to_owned()).chain(out.into_iter().map(line)).collect()
}

fn word(verdict: Word) -> &'static str {
    match verdict {
        Word::Gain => "gain",
        Word::Loss => "loss",
        Word::NoDifference => "no difference",
        Word::TooFewRuns => "too few runs",
        Word::Excluded => "left out",
        Word::NotApplicable => "not applicable",
    }
}

/// The same as a page.
pub(super) fn page(figures: &Figures) -> Page {
    let mut sections = vec![Section {
        id: "levers".to_owned(),
        heading: "Levers".to_owned(),
        badge: Some(Badge::Reading(figures.reading)),
        prose: vec![SCREENED.to_owned()],
        figures: vec![Figure {
            caption: "Times as fast as the plain program, with 95 % intervals (of the fresh runs, one that holds for \
                      all levers together), and the plain program against itself."
                .to_owned(),
            table: Some(table(figures)),
            open: true,
            ..Figure::default()
        }],
    }];
    sections[0].prose.extend(numbers(figures));
    let summary = text(figures, usize::MAX)
        .lines()
        .take_while(|line| !line.starts_with("not measured"))
        .map(str::to_owned)
        .collect();
    let arguments =
        figures.arguments.as_ref().map(|words| ("arguments".to_owned(), words.join(" ")));
    let facts = [
        ("runs".to_owned(), figures.runs.to_string()),
        ("time".to_owned(), fmt::seconds(figures.seconds)),
        ("seed".to_owned(), figures.seed.to_string()),
        ("level".to_owned(), format!("{} for all levers together", figures.alpha)),
    ];
    let few =
        (figures.outcome == Outcome::TooFewRuns).then(|| Badge::Warning("too few runs".to_owned()));
    Page {
        title: format!("What {} gains", figures.program),
        subtitle: figures.machine.clone(),
        badges: std::iter::once(Badge::Reading(figures.reading)).chain(few).collect(),
        summary,
        facts: facts.into_iter().chain(arguments).collect(),
        sections,
        footer: "isochrone advise --try".to_owned(),
        ..Page::default()
    }
}

fn table(figures: &Figures) -> Table {
    let mut table = Table::new([
        "lever",
        "verdict",
        "times as fast",
        "control",
        "runs",
        "p (Holm)",
        "command, or why not",
    ]);
    for of in &figures.levers {
        let ratio = |ratio: Option<Ratio>| match ratio {
            Some(ratio) => Cell::number(ratio.median, ratio.interval()),
            None => Cell::missing(),
        };
        let stage = match of.stage {
            Some(StageName::Confirmation) => "fresh",
            Some(StageName::Screening) => "of all",
            None => "",
        };
        table.row([
            of.name.clone().into(),
            word(of.verdict).into(),
            ratio(of.ratio),
            ratio(of.control),
            stage.into(),
            Cell::maybe(of.p_holm, |p| fmt::significant(p, 2)),
            of.why.clone().unwrap_or_else(|| of.command.clone()).into(),
        ]);
    }
    table
}
