//! `isochrone bench`: placements compared in one run, arms in turns, on the same pinned cores.
//!
//! A benchmark says what its arms are and what a run of one costs; turns, ratios, intervals, the
//! record of the machine and the file are the same for all. What cannot be measured here is named
//! in one line and is `null`, and the rest goes on. What there is no time for is named, too: cells have a block each
//! before one has two.

mod advise;
mod astar;
mod beside_peers;
mod budget;
mod cholesky;
mod coll;
mod contest;
mod dataflow;
mod field;
mod findings;
#[cfg(test)]
mod fixtures;
mod flags;
mod goals;
mod known_lines;
mod locked;
mod lu;
mod malloc;
mod nodes;
mod process;
mod recipe;
mod rounds;
#[cfg(test)]
mod schemas;
mod setting;
mod taskbench;
mod tier;
mod tiled;
mod workers;

use std::process::ExitCode;

use anyhow::Result;
use isochrone_console::turns::BLOCKS_LEAST;
use isochrone_report::json;
use serde::Serialize;

use crate::args::BenchCommand;
pub(crate) use budget::{LeftOut, Stop, words};
pub(crate) use coll::{RankArgs, coll_rank};
use findings::Findings;
use isochrone_console::codes;
use isochrone_console::output::Terminal;
use isochrone_console::written::{Place, each_written, write_to};
pub(crate) use malloc::malloc_calls;
use setting::{End, Head, Setting};

/// The file.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Report<'a, F: Serialize> {
    #[serde(flatten)]
    head: &'a Head,
    #[serde(flatten)]
    figures: &'a F,
}

/// Runs the command.
pub(crate) fn run(command: &BenchCommand, terminal: &Terminal) -> Result<ExitCode> {
    let setting = |name, common| Setting::new(name, common, terminal);
    match command {
        BenchCommand::Chase(args) => {
            let (near, waste) = (args.placement.near, args.placement.waste_of_pools());
            let setting = setting("chase", &args.common)?.placed(near, waste);
            measured(setting, |setting| nodes::chase(args, setting))
        }
        BenchCommand::Structures(args) => {
            let (near, waste) = (args.placement.near, args.placement.waste_of_pools());
            let setting = setting("structures", &args.common)?.placed(near, waste);
            measured(setting, |setting| nodes::structures(args, setting))
        }
        BenchCommand::Astar(args) => {
            let (near, waste) = (args.placement.near, args.placement.waste_of_pools());
            let setting = setting("astar", &args.common)?.placed(near, waste);
            measured(setting, |setting| astar::measure(args, setting))
        }
        BenchCommand::Malloc(args) => {
            let (near, waste) = (args.placement.near, args.placement.waste_of_programs());
            let setting = setting("malloc", &args.common)?.placed(near, waste);
            measured(setting, |setting| malloc::measure(args, setting))
        }
        BenchCommand::Advise(args) => {
            let setting = setting("advise", &args.common)?;
            measured(setting, |setting| advise::measure(args, setting))
        }
        BenchCommand::Cholesky(args) => {
            let setting = setting("cholesky", &args.matrix.run.common)?;
            if args.peers {
                measured(setting, |setting| cholesky::measure(args, setting))
            } else {
                measured(setting, |setting| dataflow::matrix(&args.matrix, false, setting))
            }
        }
        BenchCommand::Lu(args) => {
            let setting = setting("lu", &args.common)?;
            measured(setting, |setting| lu::measure(args, setting))
        }
        BenchCommand::Smi(args) => {
            let setting = setting("smi", &args.run.common)?;
            measured(setting, |setting| dataflow::matrix(args, true, setting))
        }
        BenchCommand::Streamcluster(args) => {
            let setting = setting("streamcluster", &args.run.common)?;
            measured(setting, |setting| dataflow::streamcluster(args, setting))
        }
        BenchCommand::Jacobi(args) => {
            let setting = setting("jacobi", &args.run.common)?;
            measured(setting, |setting| dataflow::jacobi(args, setting))
        }
        BenchCommand::Inthist(args) => {
            let setting = setting("inthist", &args.run.common)?;
            measured(setting, |setting| dataflow::histogram(args, setting))
        }
        BenchCommand::Taskbench(args) => {
            let setting = setting("taskbench", &args.common)?;
            measured(setting, |setting| taskbench::measure(args, setting))
        }
        BenchCommand::Tier(args) => {
            let setting = setting("tier", &args.common)?;
            measured(setting, |setting| tier::measure(args, setting))
        }
        BenchCommand::Coll(args) => {
            let setting = setting("coll", &args.common)?;
            measured(setting, |setting| coll::measure(args, setting))
        }
        BenchCommand::Flags(args) => {
            let setting = setting("flags", &args.common)?;
            measured(setting, |setting| flags::measure(args, setting))
        }
        BenchCommand::Sim(args) => crate::sim::speed::run(args, terminal),
        BenchCommand::CholeskyRun(args) => {
            cholesky::child::run(args, terminal)?;
            Ok(ExitCode::SUCCESS)
        }
        BenchCommand::LuRun(args) => {
            lu::child::run(args, terminal)?;
            Ok(ExitCode::SUCCESS)
        }
        BenchCommand::TaskbenchRun { question } => {
            taskbench::child::run(question, terminal)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Measures, then writes the file and prints the tables.
fn measured<F: Findings>(
    mut setting: Setting<'_>,
    measure: impl FnOnce(&mut Setting<'_>) -> Result<F>,
) -> Result<ExitCode> {
    let figures = match measure(&mut setting) {
        Err(error) if !setting.keep_going() => return Ok(nothing(setting, &error)),
        figures => figures?,
    };
    // All of it is measured: tables do not wait for anybody, and are worth more late than not at all.
    setting.beyond_budget("tables");
    let text = figures.text(setting.width());
    finish(setting, &figures, &text)
}

/// What is said where it was over before anything was whole, and the exit code of that.
fn nothing(setting: Setting<'_>, why: &anyhow::Error) -> ExitCode {
    let End { head, terminal, interrupted, .. } = setting.end();
    let bench = head.bench;
    let (over, more, code) = match head.budget_s.filter(|_| !interrupted) {
        Some(seconds) => (format!("in {seconds:.0} s"), "; more with --budget TIME", codes::FAILED),
        None => ("before it was stopped".to_owned(), "", codes::INTERRUPTED),
    };
    terminal.complain(&format!(
        "isochrone-lab bench {bench}: nothing was measured {over}: {}{more}",
        isochrone_console::output::words(why)
    ));
    ExitCode::from(code)
}

fn finish<F: Findings>(setting: Setting<'_>, figures: &F, text: &str) -> Result<ExitCode> {
    let End { head, json, terminal, interrupted, in_vain } = setting.end();
    // With the figures on standard output, nothing else may stand there.
    let alone = json.as_ref().is_some_and(Place::is_stdout);
    let said = if alone { Ok(()) } else { say(&head, text, interrupted, terminal) };
    let kept = write_to(json, terminal, || {
        let report = Report { head: &head, figures };
        Ok(json::pretty(F::FORMAT, &report)? + "\n")
    });
    each_written([said, kept])?;
    Ok(match (interrupted, in_vain) {
        (true, _) => ExitCode::from(codes::INTERRUPTED),
        (false, true) => {
            let bench = head.bench;
            terminal.complain(&format!(
                "isochrone-lab bench {bench}: nothing was measured in its time"
            ));
            ExitCode::from(codes::FAILED)
        }
        (false, false) => ExitCode::SUCCESS,
    })
}

/// The tables, and what is to be known beside them.
fn say(head: &Head, text: &str, interrupted: bool, terminal: &Terminal) -> Result<()> {
    let mut lines = vec![text.trim_end().to_owned()];
    if text.contains(" block)") || text.contains(" blocks)") {
        lines.push(format!(
            "behind a figure: its blocks, too few for an interval, which takes {BLOCKS_LEAST}"
        ));
    }
    lines.extend(head.missing.iter().map(|missing| format!("missing: {missing}")));
    // Who was interrupted had less time.
    lines.extend(words(&head.left_out, head.budget_s.filter(|_| !interrupted)));
    lines.push(head.words(interrupted));
    terminal.say(&lines.join("\n"))
}
