//! What a watched run found, as text and as a page. It decides nothing and prints nothing.

use isochrone_machine::spans;
use isochrone_report::fmt;
use isochrone_report::html::{Badge, Figure, Page, Section};
use isochrone_report::lines::wrapped;
use isochrone_report::table::Table;
use isochrone_units::Reading;

use super::bounds::{Bound, NOTICED, Says};
use super::looks::Looks;
use super::record::Figures;
use super::seen::Seen;
use crate::advise::words::{lever, several};

/// The line behind the levers.
const NEXT: &str =
    "Bounds are predicted, and high. isochrone advise --try -- CMD measures what each lever gains.";

/// All of it in a sentence.
pub(super) fn summary(levers: &[Bound]) -> String {
    let unknown: Vec<&str> =
        levers.iter().filter(|of| of.says == Says::Unknown).map(|of| of.lever).collect();
    let is_worth =
        |of: &&Bound| of.says == Says::AtMost && of.at_most.is_some_and(|share| share >= NOTICED);
    let worth: Vec<String> = levers
        .iter()
        .filter(is_worth)
        .enumerate()
        .map(|(at, of)| {
            let share = fmt::percent(of.at_most.unwrap_or_default());
            format!("{share}{} by {}", if at == 0 { " of the time" } else { "" }, of.lever)
        })
        .collect();
    let rest = if unknown.is_empty() {
        String::new()
    } else {
        format!(" Unknown from outside: {}.", unknown.join(", "))
    };
    match (worth.as_slice(), unknown.as_slice()) {
        ([], []) => {
            format!("Nothing here for you: no lever takes {} off this run.", fmt::percent(NOTICED))
        }
        ([], _) => format!("Nothing here for you, as far as it is known.{rest}"),
        (worth, _) => format!("At most {} (predicted).{rest}", worth.join(", ")),
    }
}

fn says(of: &Bound) -> String {
    match (of.says, of.at_most) {
        (Says::AtMost, Some(share)) => format!("at most {}", fmt::percent(share)),
        (Says::AtMost | Says::Unknown, _) => "unknown".to_owned(),
        (Says::Nothing, _) => "nothing".to_owned(),
        (Says::NotApplicable, _) => "cannot be".to_owned(),
    }
}

/// What was found, in lines of so many columns.
pub(super) fn text(figures: &Figures, width: usize) -> String {
    let mut lines = vec![wrapped(&figures.summary, width, 0)];
    lines.push(format!("{} (measured): {}", figures.program, ran(&figures.seen)));
    lines.extend(facts(&figures.seen).into_iter().map(|fact| format!("{}: {}", fact.0, fact.1)));
    lines.extend(figures.remarks.iter().cloned());
    for line in lines.iter_mut().skip(1) {
        *line = format!("  {}", wrapped(line, width.saturating_sub(2), 4));
    }
    let atlas = figures.atlas.as_ref().map_or("no atlas", |atlas| &atlas.file);
    lines.push(wrapped(
        &format!("What each lever can take off that time (predicted; {atlas}):"),
        width,
        2,
    ));
    let widest = figures.levers.iter().map(|of| of.lever.len()).max().unwrap_or(0);
    let says_widest = figures.levers.iter().map(|of| says(of).len()).max().unwrap_or(0);
    lines.extend(figures.levers.iter().map(|of| {
        let command =
            of.command.as_ref().map_or_else(String::new, |command| format!(": {command}"));
        let head = format!("  {:<widest$}  {:<says_widest$}  ", of.lever, says(of));
        lever(&head, &format!("{}{command}", of.why), width)
    }));
    lines.push(wrapped(NEXT, width, 0));
    lines.join("\n")
}

/// A time; of none there is no unit to choose.
fn time(seconds: f64) -> String {
    if seconds == 0.0 { "0 s".to_owned() } else { fmt::seconds(seconds) }
}

/// How long it took, and how it ended.
fn ran(seen: &Seen) -> String {
    let end = if seen.code == 0 { String::new() } else { format!(", exit code {}", seen.code) };
    format!(
        "{}, {} cores busy ({} in the program, {} in the kernel){end}",
        time(seen.seconds),
        fmt::significant(seen.cores_busy(), 2),
        time(seen.spent.user_s),
        time(seen.spent.system_s)
    )
}

/// The rest of what was seen: what it is of, and its numbers.
fn facts(seen: &Seen) -> Vec<(&'static str, String)> {
    let looks = &seen.looks;
    let regions = looks.pages.as_ref().filter(|pages| !pages.by_region.is_empty()).map(|pages| {
        let of = |(region, bytes): (&u16, &u64)| format!("{} in {region}", fmt::bytes(*bytes));
        pages.by_region.iter().map(of).collect::<Vec<_>>().join(", ")
    });
    let working_set = looks.working_set.map(|set| {
        format!(
            "{} touched within {}, from {} on (referenced bits cleared {})",
            fmt::bytes(set.bytes),
            time(set.within_s),
            time(set.from_s),
            several(set.cleared, "time", "times")
        )
    });
    let looked = format!(
        "{} at threads ({} at most between two), {} at pages ({}); they took {} of one core's time",
        looks.threads_looks,
        time(looks.threads_every_s),
        looks.pages_looks,
        time(looks.pages_every_s),
        fmt::percent(looks.took_s / seen.seconds.max(f64::MIN_POSITIVE))
    );
    let facts = [
        ("pages", Some(pages(looks))),
        ("regions", regions),
        ("working set", working_set),
        ("faults", Some(faults(seen))),
        ("threads", Some(threads(seen))),
        ("looks", Some(looked)),
    ];
    facts.into_iter().filter_map(|(of, words)| Some((of, words?))).collect()
}

fn pages(looks: &Looks) -> String {
    let Some(pages) = &looks.pages else { return "not seen".to_owned() };
    format!(
        "{} anonymous ({} in huge pages), {} of files, {} shared, {} swapped, at the largest of {}",
        fmt::bytes(pages.anonymous),
        fmt::bytes(pages.huge),
        fmt::bytes(pages.file),
        fmt::bytes(pages.shared),
        fmt::bytes(pages.swapped),
        several(looks.pages_looks, "look", "looks")
    )
}

fn faults(seen: &Seen) -> String {
    let spent = &seen.spent;
    let rate = if seen.seconds > 0.0 { spent.minor_faults as f64 / seen.seconds } else { 0.0 };
    let peak = spent
        .peak_rss_bytes
        .map_or_else(String::new, |bytes| format!("; largest process {}", fmt::bytes(bytes)));
    let stalls = seen.memory_stalls_s.map_or_else(String::new, |stalls| {
        format!("; waits for memory in the whole system {}", time(stalls))
    });
    let each =
        seen.fault_ns.map_or_else(String::new, |ns| format!(", one takes {} here", fmt::ns(ns)));
    format!(
        "{} minor ({} a second{each}), {} major{stalls}{peak}",
        fmt::count(spent.minor_faults),
        fmt::significant(rate, 3),
        fmt::count(spent.major_faults)
    )
}

fn threads(seen: &Seen) -> String {
    let Looks { threads, processes, cores, moves, .. } = &seen.looks;
    let ran = if *threads == 0 {
        "not seen".to_owned()
    } else {
        format!(
            "at most {threads} at once, in {}, on {} {}; {} seen",
            several(*processes, "process", "processes"),
            if cores.len() == 1 { "core" } else { "cores" },
            spans(cores),
            several(usize::try_from(*moves).unwrap_or(usize::MAX), "move", "moves")
        )
    };
    format!(
        "{ran}; {} waits and {} times put off a core",
        fmt::count(seen.spent.voluntary_switches),
        fmt::count(seen.spent.involuntary_switches)
    )
}

/// The same as a page.
pub(super) fn page(figures: &Figures) -> Page {
    let mut table = Table::new(["lever", "can take off", "why", "command"]);
    for of in &figures.levers {
        table.row([
            of.lever.into(),
            says(of).into(),
            of.why.clone().into(),
            of.command.clone().unwrap_or_default().into(),
        ]);
    }
    let mut seen = Table::new(["of", "seen"]);
    seen.row(["run".into(), ran(&figures.seen).into()]);
    for (of, words) in facts(&figures.seen) {
        seen.row([of.into(), words.into()]);
    }
    let figure = |caption: &str, table| Figure {
        caption: caption.to_owned(),
        table: Some(table),
        open: true,
        ..Figure::default()
    };
    let section = |id: &str, heading: &str, reading, figure| Section {
        id: id.to_owned(),
        heading: heading.to_owned(),
        badge: Some(Badge::Reading(reading)),
        figures: vec![figure],
        ..Section::default()
    };
    let arguments =
        figures.arguments.as_ref().map(|words| ("arguments".to_owned(), words.join(" ")));
    Page {
        title: format!("What {} could gain at most", figures.program),
        subtitle: figures.machine.clone(),
        badges: vec![Badge::Reading(Reading::Predicted)],
        summary: std::iter::once(figures.summary.clone()).chain(figures.remarks.clone()).collect(),
        facts: arguments.into_iter().collect(),
        sections: vec![
            section(
                "levers",
                "Levers",
                Reading::Predicted,
                figure("The share of the run's time that each lever can take off, at most.", table),
            ),
            section(
                "seen",
                "The run",
                Reading::Measured,
                figure("One run, seen from outside.", seen),
            ),
        ],
        footer: "isochrone advise".to_owned(),
        ..Page::default()
    }
}
