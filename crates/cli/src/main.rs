//! The `isochrone` command: the only crate that reads the environment, prints, or exits.
//!
//! `args` is the whole command line; each command has a module; `view` turns an atlas into what
//! people look at. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 interrupted with results kept;
//! `run` has those of the program that it runs.

mod args;
mod bench;
mod cla;
mod diff;
mod export;
mod line_costs;
mod machine;
mod map;
mod output;
mod predict;
mod progress;
mod reproduce;
mod reproduce_command;
mod run;
mod schedule_file;
mod show;
mod sim;
mod tier;
mod verify;
mod view;
mod workload;

use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser};

use args::{Cli, Command};
use output::Terminal;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let terminal = Terminal::detect(cli.color);
    match dispatch(cli.command, &terminal) {
        Ok(code) => code,
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            terminal.complain(&format!("isochrone: {}", output::words(&error)));
            if error.is::<output::WrongUsage>() { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

fn dispatch(command: Command, terminal: &Terminal) -> Result<ExitCode> {
    match command {
        Command::Map(args) => map::run(&args, terminal),
        Command::Show(args) => show::run(&args, terminal),
        Command::Diff(args) => diff::run(&args, terminal),
        Command::Export(args) => export::run(&args, terminal),
        Command::Machine(args) => machine::run(&args, terminal),
        Command::Run(args) => Ok(run::run(&args, terminal)),
        Command::Bench { command } => bench::run(&command, terminal),
        Command::Predict(args) => predict::run(&args, terminal),
        Command::Cla(args) => cla::run(&args, terminal),
        Command::Verify { command } => verify::run(&command, terminal),
        Command::Reproduce(args) => reproduce_command::run(&args, terminal),
        Command::Sim { command } => sim::run(&command, terminal),
        Command::Usage(args) => run::usage::run(&args),
        Command::Workload(args) => workload::run(&args, terminal),
        Command::Tier { command } => tier::check::run(&command, terminal),
        Command::TierArm(args) => tier::run(&args, terminal),
        Command::CollRank(args) => bench::coll_rank(&args, terminal),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "isochrone", &mut text);
            terminal.print(&String::from_utf8_lossy(&text))?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Man => {
            let mut text = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut text)?;
            terminal.print(&String::from_utf8_lossy(&text))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
