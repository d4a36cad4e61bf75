//! What a watched run found, as text and as a page. It decides nothing and prints nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use isochrone_machine::spans;
use isochrone_report::fmt;
use isochrone_report::html::{Badge, Figure, Page, Section};
use isochrone_report::lines::wrapped;
use isochrone_report::table::Table;
use isochrone_units::Reading;

use super::allocations::{Allocations, OfSize};
use super::bounds::{Bound, NOTICED, Says};
use super::job::{Calls, Job, Sized};
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
    let is_worth = |share: &f64| *share >= NOTICED;
    let at_most = levers.iter().filter_map(|of| Some(("At most", of.at_most?, of.lever)));
    let about = levers.iter().filter_map(|of| Some(("About", of.about?, of.lever)));
    let mut word = "";
    let worth: Vec<String> = at_most
        .chain(about)
        .filter(|(_, share, _)| is_worth(share))
        .enumerate()
        .map(|(at, (begins, share, lever))| {
            let (of, begin) = match at {
                0 => (" of the time", format!("{begins} ")),
                _ if begins == word => ("", String::new()),
                _ => ("", format!("{} ", begins.to_lowercase())),
            };
            word = begins;
            format!("{begin}{}{of} by {lever}", fmt::percent(share))
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
        (worth, _) => format!("{} (predicted).{rest}", worth.join(", ")),
    }
}

fn says(of: &Bound) -> String {
    match (of.says, of.at_most) {
        (Says::AtMost, Some(share)) => format!("at most {}", fmt::percent(share)),
        (Says::About, _) => format!("about {}", fmt::percent(of.about.unwrap_or_default())),
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
    let collectives = seen.mpi.as_ref().map(collectives);
    let allocations = seen.allocations.as_ref().map(|all| allocations(all, seen.seconds));
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
        ("collectives", collectives),
        ("allocations", allocations),
        ("looks", Some(looked)),
    ];
    facts.into_iter().filter_map(|(of, words)| Some((of, words?))).collect()
}

/// Sizes that are named in a line; a page has all.
const SIZES_NAMED: usize = 4;
/// Objects that live no longer are called brief in a line, seconds.
const BRIEF_S: f64 = 1e-3;

/// What a program allocated, in a line.
fn allocations(all: &Allocations, seconds: f64) -> String {
    if all.looked_at == 0 {
        return format!("none seen in {}", several(all.processes, "process", "processes"));
    }
    let mut by_calls: Vec<&OfSize> = all.sizes.iter().collect();
    by_calls.sort_by(|a, b| b.calls.total_cmp(&a.calls));
    let size = |of: &&OfSize| {
        format!("{} {}", fmt::percent(of.calls / all.calls), up_to(of.up_to, "of more"))
    };
    let sizes: Vec<String> = by_calls.iter().take(SIZES_NAMED).map(size).collect();
    let lives = all.lives(BRIEF_S).map_or_else(String::new, |(brief, stayed)| {
        format!(
            "; {} of {} followed were freed within {}, {} never",
            fmt::percent(brief),
            fmt::count(all.followed),
            time(BRIEF_S),
            fmt::percent(stayed)
        )
    });
    format!(
        "{} ({} a second) in {}, {} looked at: {}{lives}",
        fmt::count(super::bounds::whole(all.calls)),
        fmt::count(super::bounds::whole(all.calls / seconds.max(f64::MIN_POSITIVE))),
        several(all.processes, "process", "processes"),
        fmt::count(all.looked_at),
        sizes.join(", ")
    )
}

fn up_to(bytes: Option<u64>, more: &str) -> String {
    bytes.map_or_else(|| more.to_owned(), |bytes| format!("up to {}", fmt::bytes(bytes)))
}

/// The same as a table.
fn allocations_table(all: &Allocations) -> Table {
    let lives: BTreeSet<u64> = all
        .sizes
        .iter()
        .flat_map(|of| &of.lived)
        .map(|lived| nanoseconds(lived.at_most_s))
        .collect();
    let heads = ["size", "calls", "bytes", "looked at", "followed"]
        .map(str::to_owned)
        .into_iter()
        .chain(lives.iter().map(|ns| match *ns {
            u64::MAX => "longer".to_owned(),
            ns => format!("within {}", fmt::ns(ns as f64)),
        }))
        .chain(["never freed".to_owned()]);
    let mut table = Table::new(heads);
    for of in &all.sizes {
        let lived = |ns: &u64| {
            let found = of.lived.iter().find(|lived| nanoseconds(lived.at_most_s) == *ns);
            fmt::count(found.map_or(0, |lived| lived.objects))
        };
        let cells = [
            up_to(of.up_to, "more"),
            fmt::count(super::bounds::whole(of.calls)),
            fmt::bytes(super::bounds::whole(of.bytes)),
            fmt::count(of.looked_at),
            fmt::count(of.followed),
        ]
        .into_iter()
        .chain(lives.iter().map(lived))
        .chain([fmt::count(of.stayed)]);
        table.row(cells.map(Into::into));
    }
    table
}

/// A bound of a lifetime as a number that can be ordered; of none the largest.
fn nanoseconds(seconds: Option<f64>) -> u64 {
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .and_then(|time| u64::try_from(time.as_nanos()).ok())
        .unwrap_or(u64::MAX)
}

/// Collectives that are named in a line; a page has all.
const NAMED: usize = 3;

/// What a job called, in a line.
fn collectives(job: &Job) -> String {
    if job.reports == 0 {
        return "not counted".to_owned();
    }
    let of = |calls: &Calls| {
        let size = |size: &Sized| {
            let bytes = size.up_to.map_or_else(
                || "of more".to_owned(),
                |bytes| format!("up to {}", fmt::bytes(bytes.into())),
            );
            format!("{} {bytes}", fmt::count(size.calls))
        };
        let sizes: Vec<String> = calls.sizes.iter().map(size).collect();
        let of = if calls.name == "barrier" || sizes.is_empty() {
            String::new()
        } else {
            format!(" ({})", sizes.join(", "))
        };
        format!("{} {}{of}", fmt::count(calls.calls), calls.name)
    };
    let named: Vec<String> = job.collectives.iter().take(NAMED).map(of).collect();
    let rest: u64 = job.collectives.iter().skip(NAMED).map(|calls| calls.calls).sum();
    let rest = if rest > 0 { format!(", {} others", fmt::count(rest)) } else { String::new() };
    let all = if named.is_empty() { "none".to_owned() } else { named.join(", ") };
    // Behind the first comma Open MPI says who built it, and when.
    let mpi = job.mpi.split(',').next().unwrap_or_default();
    format!("rank {} of {}, {mpi}: {all}{rest}", job.rank, job.reports)
}

/// The same as a table.
fn collectives_table(job: &Job) -> Table {
    let sizes: BTreeSet<(bool, Option<u32>)> = job
        .collectives
        .iter()
        .flat_map(|calls| calls.sizes.iter().map(|size| (size.up_to.is_none(), size.up_to)))
        .collect();
    let size = |up_to: &Option<u32>| {
        up_to.map_or_else(|| "more".to_owned(), |bytes| fmt::bytes(bytes.into()))
    };
    let heads = ["collective".to_owned(), "calls".to_owned()]
        .into_iter()
        .chain(sizes.iter().map(|(_, up_to)| size(up_to)))
        .chain(["size unknown", "in lines", "would save"].map(str::to_owned));
    let mut table = Table::new(heads);
    for calls in &job.collectives {
        let of = |up_to: Option<u32>| {
            let found = calls.sizes.iter().find(|size| size.up_to == up_to);
            fmt::count(found.map_or(0, |size| size.calls))
        };
        let cells = [calls.name.clone(), fmt::count(calls.calls)]
            .into_iter()
            .chain(sizes.iter().map(|(_, up_to)| of(*up_to)))
            .chain([
                fmt::count(calls.unsized_calls),
                fmt::count(calls.in_lines),
                time(calls.saves_s),
            ]);
        table.row(cells.map(Into::into));
    }
    table
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
    let counted = figures.seen.mpi.as_ref().filter(|job| !job.collectives.is_empty());
    let collectives = counted.map(|job| {
        let caption = format!(
            "Calls of rank {} of {}, by bytes from or to each rank; what they would save is predicted.",
            job.rank, job.reports
        );
        let figure = figure(&caption, collectives_table(job));
        section("collectives", "Collectives", Reading::Measured, figure)
    });
    let sampled = figures.seen.allocations.as_ref().filter(|all| !all.sizes.is_empty());
    let allocations = sampled.map(|all| {
        let caption = "Objects by the bytes that were asked for: calls and bytes are estimated by those that were \
                       looked at; of those that were followed, how long they lived.";
        section("allocations", "Allocations", Reading::Measured, figure(caption, allocations_table(all)))
    });
    let sections = [
        section(
            "levers",
            "Levers",
            Reading::Predicted,
            figure("The share of the run's time that each lever can take off, at most.", table),
        ),
        section("seen", "The run", Reading::Measured, figure("One run, seen from outside.", seen)),
    ];
    Page {
        title: format!("What {} could gain at most", figures.program),
        subtitle: figures.machine.clone(),
        badges: vec![Badge::Reading(Reading::Predicted)],
        summary: std::iter::once(figures.summary.clone()).chain(figures.remarks.clone()).collect(),
        facts: arguments.into_iter().collect(),
        sections: sections.into_iter().chain(collectives).chain(allocations).collect(),
        footer: "isochrone advise".to_owned(),
        ..Page::default()
    }
}
