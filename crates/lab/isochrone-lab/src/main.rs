//! The laboratory, `isochrone-lab`: what proves claims, and is no part of what the command does for its users.
//!
//! `args` is the whole command line; each command has a module. Workers of benchmarks are hidden
//! commands, since each is a process of its own. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 interrupted with
//! results kept, 126 started by a command of other sources.

mod args;
mod bench;
mod calls;
mod reproduce;
mod schedule_file;
mod sim;
mod tier;
mod verify;
mod workload;

use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser};
use isochrone_console::partner::{self, Partner};
use isochrone_console::{line_costs, output, pages, progress, run};

use args::{Cli, Command};
use output::Terminal;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let terminal = Terminal::detect(cli.color);
    if let Err(refusal) = partner::admits(Partner::Laboratory, cli.of_build.as_deref()) {
        terminal.complain(&format!("isochrone-lab: {refusal}"));
        return ExitCode::from(partner::REFUSED);
    }
    match dispatch(cli.command, &terminal) {
        Ok(code) => code,
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            terminal.complain(&format!("isochrone-lab: {}", output::words(&error)));
            ExitCode::FAILURE
        }
    }
}

fn dispatch(command: Command, terminal: &Terminal) -> Result<ExitCode> {
    match command {
        Command::Bench { command } => bench::run(&command, terminal),
        Command::Verify { command } => verify::run(&command, terminal),
        Command::Reproduce(args) => reproduce::run(&args, terminal),
        Command::Sim { command } => sim::run(&command, terminal),
        Command::Usage(args) => run::usage::run(&args),
        Command::Workload(args) => workload::run(&args, terminal),
        Command::TierArm(args) => tier::run(&args, terminal),
        Command::CollRank(args) => bench::coll_rank(&args, terminal),
        Command::Completions { shell } => {
            terminal.print(&pages::completions(shell, Cli::command()))?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Man => {
            terminal.print(&pages::manual(Cli::command())?)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
