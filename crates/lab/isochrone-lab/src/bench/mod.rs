//! `isochrone bench`: placements compared in one run, arms in turns, on the same pinned cores.
//!
//! A benchmark says what its arms are and what a run of one costs; turns, ratios, intervals, the
//! record of the machine and the file are the same for all. What cannot be measured here is named
//! in one line and is `null`, and the rest goes on.

mod astar;
mod cholesky;
mod coll;
mod dataflow;
mod field;
mod flags;
mod known_lines;
mod locked;
mod malloc;
mod nodes;
mod peers;
mod process;
mod ratio;
mod recipe;
mod series;
mod setting;
mod taskbench;
mod tier;
mod workers;

use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;

use crate::args::BenchCommand;
use crate::output::{Terminal, write_file};
pub(crate) use coll::{RankArgs, coll_rank};
use setting::{Head, Setting};

/// What the shell sees when a run was interrupted and its results kept.
const INTERRUPTED: u8 = 3;

/// The file.
#[derive(Serialize)]
struct Report<'a, F: Serialize> {
    #[serde(flatten)]
    head: &'a Head,
    #[serde(flatten)]
    figures: &'a F,
}

/// What a benchmark found: a record for the file, tables for people.
trait Findings: Serialize {
    /// Tables of at most `width` characters, and what they say in words.
    fn text(&self, width: u16) -> String;
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
        BenchCommand::Cholesky(args) => {
            let setting = setting("cholesky", &args.matrix.run.common)?;
            if args.peers {
                measured(setting, |setting| cholesky::measure(args, setting))
            } else {
                measured(setting, |setting| dataflow::matrix(&args.matrix, false, setting))
            }
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
    let figures = measure(&mut setting)?;
    let text = figures.text(setting.width());
    finish(setting, &figures, &text)
}

fn finish<F: Serialize>(setting: Setting<'_>, figures: &F, text: &str) -> Result<ExitCode> {
    let (head, json, terminal) = setting.end();
    if let Some(path) = json {
        let report = Report { head: &head, figures };
        write_file(path, &(serde_json::to_string_pretty(&report)? + "\n"), terminal)?;
    }
    // With the figures on standard output, nothing else may stand there.
    if json.is_none_or(|path| path.as_os_str() != "-") {
        terminal.print(text)?;
        for missing in &head.missing {
            terminal.print(&format!("missing: {missing}"))?;
        }
        terminal.print(&head.words())?;
    }
    Ok(if head.complete { ExitCode::SUCCESS } else { ExitCode::from(INTERRUPTED) })
}
