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

#[test]
fn every_place_for_text_takes_a_file_or_none() {
    assert_eq!(examples::other_forms(&Cli::command()), Vec::<String>::new());
}

#[test]
fn lines_of_help_are_cut_where_the_terminal_ends() {
    assert_eq!(examples::cut_lines(&Cli::command()), Vec::<String>::new());
}

#[test]
fn an_example_can_be_copied_from_a_terminal_of_eighty_columns() {
    assert_eq!(examples::broken(&Cli::command()), Vec::<String>::new());
}

/// Lines of README and documents, in the form in which they were written first.
#[test]
fn old_ways_to_name_a_file_are_understood() {
    for line in [
        "bench coll --json coll.json",
        "bench chase --json chase.json --sizes 2.5,3.5 --near 1/8",
        "bench flags --blocks 2 --windows 50 --seed 5 --json -",
        "bench sim --repeats 5 --json speed.json",
        "verify model --json model.json --scale 2",
        "verify published --json published.json",
        "verify published --json",
        "sim smi --regime di --json smi.json --html smi.html",
        "reproduce pspt --html pspt.html --json pspt.json",
        "reproduce --html --json=- pspt",
    ] {
        let words = std::iter::once("isochrone-lab").chain(line.split_whitespace());
        assert!(Cli::try_parse_from(words).is_ok(), "{line}");
    }
}

#[test]
fn values_that_cannot_be_are_refused_by_the_parser() {
    for line in [
        "verify model --windows 0",
        "verify model --scale nan",
        "bench chase --sizes 0",
        "bench chase --sizes nan",
        "bench chase --cores 5-2",
        "bench chase --blocks 1",
        "bench astar --budgets 0",
        "bench astar --instances 0",
        "bench astar --instances 101",
        "bench tier --radii 0",
        "bench tier --area 4k",
        "bench tier --peer swap=x",
        "bench tier --data 4M",
        "bench tier --program perl=/bin/perl",
        "bench tier --program redis=",
        "bench coll --peer mpich",
        "bench malloc --limit 0",
        "sim jacobi --threads 0",
        "bench strctures",
    ] {
        let words = std::iter::once("isochrone-lab").chain(line.split_whitespace());
        let refused = Cli::try_parse_from(words).map(drop).map_err(|error| error.exit_code());
        assert_eq!(refused, Err(2), "{line}");
    }
}
