//! One map: measure, save the atlas, write the report, say what was found.

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use isochrone_atlas_store::contents::Contents;
use isochrone_atlas_store::encode;
use isochrone_host::{SysRoot, Turn, lateness};
use isochrone_report::fmt;
use isochrone_report::json::{self, Format};
use isochrone_survey::Schedule;
use isochrone_survey::figures::{QueryFigures, figures};
use isochrone_view as view;

use crate::args::MapArgs;
use isochrone_console::codes;
use isochrone_console::output::{Terminal, cache_folder, words};
use isochrone_console::progress::{Interrupt, Progress};

use super::measure::{self, Order};
use super::plan;
use super::so_far::SoFar;
use super::targets::Targets;
use super::turn::{self, Manner};

/// About how many seconds it takes to time queries, where nobody else wants the core.
const QUERIES_S: f64 = 0.3;

/// One map, in the turn that is given and outlasts it; else in one of its own.
pub(super) fn one(args: &MapArgs, turn: Option<&Turn>, terminal: &Terminal) -> Result<ExitCode> {
    let targets = Targets::open(args, cache_folder())?;
    let mut so_far = SoFar::new(targets.atlas());
    let alone = targets.on_stdout();
    let contents = measure(args, &targets, turn, &mut so_far, terminal)?;
    if contents.measured().is_empty() {
        return Ok(nothing(&contents, terminal));
    }
    let bytes =
        encode(&contents).context("the atlas was measured but is not one that can be saved");
    let (places, mut failed) = match bytes {
        Ok(bytes) => {
            // Who asked for an end, or has no time left, does not wait for queries to be timed.
            let queries_s = QUERIES_S * lateness(&SysRoot::live()).unwrap_or(1.0);
            let until_s = contents.provenance.seconds + queries_s;
            let has_time = contents.complete && !is_late(args, until_s);
            keep(targets, &contents, &bytes, has_time, &mut so_far, terminal)
        }
        Err(error) => (String::new(), vec![error]),
    };
    if let Some(place) = so_far.place() {
        let place = place.display();
        failed.push(anyhow::anyhow!("what was measured before the last experiment is in {place}"));
    }
    // With figures or report on standard output, nothing else may stand there.
    if args.fleet.is_some() {
        terminal.print(&in_a_line(&contents, args))?;
    } else if !alone {
        terminal.print(&view::summary(&contents, terminal.colour, terminal.width))?;
        terminal.say(&places)?;
    }
    for error in &failed {
        terminal.complain(&format!("isochrone: {}", words(error)));
    }
    Ok(match (failed.is_empty(), contents.complete) {
        (false, _) => ExitCode::FAILURE,
        (true, false) => ExitCode::from(codes::INTERRUPTED),
        (true, true) => ExitCode::SUCCESS,
    })
}

/// Whether a map that takes so many seconds takes more than the time that it was given.
fn is_late(args: &MapArgs, seconds: f64) -> bool {
    let time = Schedule::of(&args.only, args.budget, args.quick).budget;
    time.is_some_and(|time| seconds > time.as_secs_f64())
}

/// Saves and writes all that can be; lines that say where it is, and what failed.
fn keep(
    targets: Targets,
    contents: &Contents,
    bytes: &[u8],
    has_time: bool,
    so_far: &mut SoFar,
    terminal: &Terminal,
) -> (String, Vec<anyhow::Error>) {
    let size = bytes.len() as u64;
    let (mut places, mut failed) = (String::new(), Vec::new());
    let (saved, texts) = targets.save(contents, bytes);
    match saved {
        Ok(saved) => {
            so_far.end(&saved.path);
            if let Some(why) = so_far.complaint() {
                terminal.complain(&format!("isochrone: {why}"));
            }
            places += &format!("\natlas   {} ({})", saved.path.display(), fmt::bytes(size));
            match saved.why {
                Some(why) if saved.is_lost => failed.push(anyhow::Error::msg(why)),
                Some(why) => terminal.complain(&format!("isochrone: {why}")),
                None => {}
            }
        }
        Err(error) => failed.push(error),
    }
    let queries = match has_time {
        true => QueryFigures::of_atlas(contents),
        false => Ok(QueryFigures::default()),
    };
    let text =
        queries.and_then(|query| Ok(json::pretty(Format::Map, &figures(contents, size, query))?));
    match text {
        Ok(text) => {
            let page = view::page(contents, Some(text.clone())).render();
            let report = texts.report();
            let [page, figures] = texts.write(&page, &(text + "\n"), terminal);
            if let Some(report) = report.filter(|_| page.is_ok()) {
                places += &format!("\nreport  {}", report.display());
            }
            failed.extend([page, figures].into_iter().filter_map(Result::err));
        }
        Err(error) => failed.push(error.context("there are no figures and no report")),
    }
    (places, failed)
}

/// One of many maps.
fn in_a_line(contents: &Contents, args: &MapArgs) -> String {
    let cores = plan::counted(contents.machine.cores.len(), "core");
    let regions = plan::counted(contents.machine.regions.len(), "region");
    let seconds = fmt::seconds(contents.provenance.seconds);
    format!("{}: {cores}, {regions}, {seconds}", args.out.display())
}

/// Says that there is nothing to keep, and why.
fn nothing(contents: &Contents, terminal: &Terminal) -> ExitCode {
    let interrupted = if contents.complete { "" } else { ": the run was interrupted" };
    terminal
        .complain(&format!("isochrone: nothing was measured{interrupted}; no file was written"));
    for line in &contents.provenance.missing {
        terminal.complain(&format!("  {line}"));
    }
    ExitCode::FAILURE
}

/// Measures, when it is our turn.
fn measure(
    args: &MapArgs,
    targets: &Targets,
    turn: Option<&Turn>,
    so_far: &mut SoFar,
    terminal: &Terminal,
) -> Result<Contents> {
    let _own = if turn.is_some() { None } else { own_turn(args, terminal)? };
    let mut progress = Progress::new(Interrupt::install());
    let contents = measure::measure(
        Order {
            args,
            schedule: Schedule::of(&args.only, args.budget, args.quick),
            seed: args.seed.unwrap_or_else(seed_of_the_moment),
            plan: &mut |size, schedule| {
                let plan = plan::lines(size, schedule, &targets.words());
                for line in plan.iter().filter(|_| !args.quiet) {
                    terminal.complain(line);
                }
            },
            keep: &mut |contents| so_far.keep(contents),
        },
        &mut progress,
    );
    progress.finish();
    contents
}

/// Waits for our turn.
fn own_turn(args: &MapArgs, terminal: &Terminal) -> Result<Option<Turn>> {
    let manner = if args.no_wait { Manner::Refuse } else { Manner::Wait };
    let mut progress = Progress::new(Interrupt::install());
    let turn = turn::take(manner, &mut progress, terminal);
    progress.finish();
    turn
}

fn seed_of_the_moment() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_secs() << 20 ^ u64::from(now.subsec_nanos())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    #[test]
    fn a_map_is_late_where_it_takes_more_than_the_time_that_it_was_given() {
        let late = |line: &str, seconds| {
            let words = ["isochrone", "map"].into_iter().chain(line.split_whitespace());
            match Cli::parse_from(words).command {
                Command::Map(args) => is_late(&args, seconds),
                other => panic!("{other:?} is not map"),
            }
        };
        assert!(late("--budget 20s", 20.8) && !late("--budget 20s", 19.5));
        assert!(late("--quick", 13.8) && !late("--quick", 9.0));
        assert!(!late("", 100.0), "it was given none");
    }
}
