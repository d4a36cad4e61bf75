//! The command line is consistent, and what its help shows is understood.

use clap::{CommandFactory, Subcommand as _};

use super::*;

#[path = "../../../../../tests/examples.rs"]
mod examples;

#[test]
fn the_definition_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_shows_examples_and_every_example_is_understood() {
    // Those of the laboratory stand in its own help.
    let wrong = examples::wrong::<Cli>(LaboratoryCommand::has_subcommand, &[]);
    assert_eq!(wrong, Vec::<String>::new());
}
