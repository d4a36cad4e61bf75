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
mod latencies;
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

/// Runs the command.
pub(crate) fn run(command: &BenchCommand, terminal: &Terminal) -> Result<ExitCode> {
    match command {
        BenchCommand::Chase(args) => {
            let mut setting = Setting::new("chase", &args.common, terminal)?;
            setting.placed(args.placement.near, args.placement.waste_of_pools());
            let figures = nodes::chase(args, &mut setting)?;
            let text = figures.text(setting.width());
            finish(setting, &figures, &text)
        }
        BenchCommand::Structures(args) => {
            let mut setting = Setting::new("structures", &args.common, terminal)?;
            setting.placed(args.placement.near, args.placement.waste_of_pools());
            let figures = nodes::structures(args, &mut setting)?;
            let text = figures.text(setting.width());
            finish(setting, &figures, &text)
        }
        BenchCommand::Astar(args) => {
            let mut setting = Setting::new("astar", &args.common, terminal)?;
            setting.placed(args.placement.near, args.placement.waste_of_pools());
            let figures = astar::measure(args, &mut setting)?;
            let text = figures.text(setting.width());
            finish(setting, &figures, &text)
        }
        BenchCommand::Cholesky(args) => {
            let mut setting = Setting::new("cholesky", &args.matrix.run.common, terminal)?;
            if args.peers {
                let figures = cholesky::measure(args, &mut setting)?;
                let text = figures.text(setting.width());
                return finish(setting, &figures, &text);
            }
            let figures = dataflow::matrix(&args.matrix, false, &mut setting)?;
            let text = figures.text(setting.width());
            finish(setting, &figures, &text)
        }
        BenchCommand::Smi(args) => {
            let mut setting = Setting::new("smi", &args.run.common, terminal)?;
            let figures = dataflow::matrix(args, true, &mut setting)?;
            let text = figures.text(setting.width());
            finish(setting, &figures, &text)
        }
        BenchCommand::Streamcluster(args) => {
            let mut setting = Setting::new("streamcluster", &args.run.common, terminal)?;
            let figures = dataflow::streamcluster(args, &mut setting)?;
            let text = figures.text(setting.width());
            finish(setting, &figures, &text)
        }
        BenchCommand::Jacobi(args) => {
            let mut setting = Setting::new("jacobi", &args.run.common, terminal)?;
            let figures = dataflow::jacobi(args, &mut setting)?;
            let text = figures.text(setting.width());
            finish(setting, &figures, &text)
        }
        BenchCommand::Inthist(args) => {
            let mut setting = Setting::new("inthist", &args.run.common, terminal)?;
            let figures = dataflow::histogram(args, &mut setting)?;
            let text = figures.text(setting.width());
            finish(setting, &figures, &text)
        }
        BenchCommand::Taskbench(args) => {
            let mut setting = Setting::new("taskbench", &args.common, terminal)?;
            let figures = taskbench::measure(args, &mut setting)?;
            let text = figures.text(setting.width());
            finish(setting, &figures, &text)
        }
        BenchCommand::CholeskyRun(args) => {
            cholesky::child::run(args, terminal)?;
            Ok(ExitCode::SUCCESS)
        }
        BenchCommand::TaskbenchRun { question } => {
            taskbench::child::run(question, terminal)?;
            Ok(ExitCode::SUCCESS)
        }
        BenchCommand::Tier(args) => {
            let mut setting = Setting::new("tier", &args.common, terminal)?;
            let figures = tier::measure(args, &mut setting)?;
            let text = figures.text(setting.width());
            finish(setting, &figures, &text)
        }
        BenchCommand::Coll(args) => {
            let mut setting = Setting::new("coll", &args.common, terminal)?;
            let figures = coll::measure(args, &mut setting)?;
            let text = figures.text(setting.width());
            finish(setting, &figures, &text)
        }
        BenchCommand::Flags(args) => {
            let mut setting = Setting::new("flags", &args.common, terminal)?;
            let figures = flags::measure(args, &mut setting)?;
            let text = figures.text(setting.width());
            finish(setting, &figures, &text)
        }
        BenchCommand::Sim(args) => crate::sim::speed::run(args, terminal),
        BenchCommand::Malloc(args) => {
            let mut setting = Setting::new("malloc", &args.common, terminal)?;
            setting.placed(args.placement.near, args.placement.waste_of_programs());
            let figures = malloc::measure(args, &mut setting)?;
            let text = figures.text(setting.width());
            finish(setting, &figures, &text)
        }
    }
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
