//! The command line is consistent, and what its help shows is understood.

use clap::CommandFactory;

use super::*;

#[path = "../../../../../tests/examples.rs"]
mod examples;

#[test]
fn the_definition_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_shows_examples_and_every_example_is_understood() {
    let wrong = examples::wrong::<Cli>(|_| false, &["isochrone map "]);
    assert_eq!(wrong, Vec::<String>::new());
}
