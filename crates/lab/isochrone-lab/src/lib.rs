//! The laboratory, `isochrone-lab`: what proves claims, and is no part of what the command does for its users.
//!
//! `args` is the whole command line; each command has a module. Workers of benchmarks are hidden
//! commands, since each is a process of its own. Exit codes are those of `isochrone_console::codes`.

mod args;
mod bench;
mod calls;
mod claims;
mod reproduce;
mod scale;
mod schedule_file;
mod sim;
mod tier;
mod verify;
mod workload;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser};
use isochrone_console::partner::{self, Partner};
use isochrone_console::{codes, line, output, pages, run, stack};
use isochrone_os::signal;

use args::{Cli, Command};
use output::Terminal;

/// Runs the command that this process was started with.
pub fn main() -> ExitCode {
    stack::on_enough(run_it)
}

fn run_it() -> ExitCode {
    signal::fail_at_file_limit();
    let cli: Cli = match line::read() {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    let terminal = Terminal::detect(cli.color);
    if let Err(refusal) = partner::admits(Partner::Laboratory, cli.of_build.as_deref()) {
        terminal.complain(&format!("isochrone-lab: {refusal}"));
        return ExitCode::from(partner::REFUSED);
    }
    codes::ended("isochrone-lab", dispatch(cli.command, &terminal), terminal)
}

/// The definition of the command line.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Reads words as a command line, the program's name first, and does nothing.
///
/// # Errors
/// What is said where they are none.
pub fn read(words: impl IntoIterator<Item = OsString>) -> Result<(), clap::Error> {
    Cli::try_parse_from(words).map(drop)
}

fn dispatch(command: Command, terminal: &Terminal) -> Result<ExitCode> {
    match command {
        Command::Bench { command } => bench::run(&command, terminal),
        Command::Verify { command } => verify::run(&command, terminal),
        Command::Reproduce(args) => reproduce::run(&args, terminal),
        Command::Scale(args) => scale::run(&args, terminal),
        Command::Claims(args) => claims::run(&args, terminal),
        Command::Sim { command } => sim::run(&command, terminal),
        Command::Usage(args) => run::usage::run(&args),
        Command::Workload(args) => workload::run(&args, terminal),
        Command::TierArm(args) => tier::run(&args, terminal),
        Command::MallocCalls => bench::malloc_calls(terminal),
        Command::CollRank(args) => bench::coll_rank(&args, terminal),
        Command::Completions { shell } => {
            terminal.print(&pages::completions(shell, Cli::command()))?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Man(args) => {
            pages::run(&args, Cli::command(), terminal)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
