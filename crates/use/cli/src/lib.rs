//! The `isochrone` command: measures, shows, runs, predicts and advises. What only proves claims is in the
//! laboratory, which it starts for `bench`, `reproduce`, `sim` and `verify`.
//!
//! `args` is the whole command line; each command has a module; `view` turns an atlas into what
//! people look at. Exit codes are those of `isochrone_console::codes`; `run` has those of the program that it runs.

mod advise;
mod args;
mod cla;
mod diff;
mod each;
mod export;
mod fleet;
mod machine;
mod map;
mod pin;
mod predict;
mod run;
#[cfg(test)]
mod schemas;
mod show;
mod shows;
mod tier;
mod trees;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser};
use isochrone_console::partner::{self, Partner};
use isochrone_console::run::{usage, witness};
use isochrone_console::{codes, line, output, pages, stack};
use isochrone_os::signal;

use args::{Cli, Command};
use output::Terminal;

/// Runs the command that this process was started with.
pub fn main() -> ExitCode {
    stack::on_enough(run_it)
}

fn run_it() -> ExitCode {
    if std::env::args_os().next().is_some_and(|name| name == witness::NAME) {
        return witness::serve();
    }
    signal::fail_at_file_limit();
    let cli: Cli = match line::read() {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    let terminal = Terminal::detect(cli.color);
    if let Err(refusal) = partner::admits(Partner::Command, cli.of_build.as_deref()) {
        terminal.complain(&format!("isochrone: {refusal}"));
        return ExitCode::from(partner::REFUSED);
    }
    codes::ended("isochrone", dispatch(cli.command, &terminal), terminal)
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
        Command::Map(args) => map::run(&args, terminal),
        Command::Advise(args) => advise::run(&args, terminal),
        Command::Show(args) => show::run(&args, terminal),
        Command::Diff(args) => diff::run(&args, terminal),
        Command::Fleet { command } => fleet::run(&command, terminal),
        Command::Export(args) => export::run(&args, terminal),
        Command::Machine(args) => machine::run(&args, terminal),
        Command::Run(args) => Ok(run::run(&args, terminal)),
        Command::Pin(args) => pin::run(&args, terminal),
        Command::Predict(args) => predict::run(&args, terminal),
        Command::Cla(args) => cla::run(&args, terminal),
        Command::Tier { command } => tier::run(&command, terminal),
        Command::Laboratory(_) => Ok(laboratory(terminal)),
        Command::Usage(args) => usage::run(&args),
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

/// Becomes the laboratory, which understands the same words.
fn laboratory(terminal: &Terminal) -> ExitCode {
    let words = std::env::args_os().skip(1);
    if let Err(error) = Partner::Laboratory.become_it(words) {
        terminal.complain(&format!("isochrone: {}", output::words(&error)));
    }
    ExitCode::from(partner::NOT_THERE)
}
