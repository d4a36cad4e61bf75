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

#[test]
fn lines_of_help_are_cut_where_the_terminal_ends() {
    assert_eq!(examples::cut_lines(&Cli::command()), Vec::<String>::new());
}

#[test]
fn an_example_can_be_copied_from_a_terminal_of_eighty_columns() {
    assert_eq!(examples::broken(&Cli::command()), Vec::<String>::new());
}

/// Lines of README, documents and scripts, in the form in which they were written first: each goes on to mean what it
/// meant.
#[test]
fn old_ways_to_name_a_file_are_understood() {
    let read = |line: &str| {
        let words = std::iter::once("isochrone").chain(line.split_whitespace());
        Cli::try_parse_from(words).unwrap_or_else(|e| panic!("{line}: {e}")).command
    };
    let path = |text: &str| Some(PathBuf::from(text));
    for (line, file) in [
        ("map --only transfer --memory 4M --json -", "-"),
        ("map --quick --seed 7 --json map.json", "map.json"),
        ("map --json=map.json --quick", "map.json"),
        ("map --json --quick", "-"),
        ("map --json", "-"),
    ] {
        let Command::Map(args) = read(line) else { panic!("{line}") };
        assert_eq!((args.json.json, args.html.html), (path(file), path(REPORT)), "{line}");
    }
    let Command::Map(args) = read("map --html report.html --out x") else { panic!("map") };
    assert_eq!(args.html.html, path("report.html"));
    for (line, html, json) in [
        ("show isochrone.atlas --html report.html", path("report.html"), None),
        ("show --json isochrone.atlas", None, path("-")),
        ("show isochrone.atlas --json", None, path("-")),
        ("show isochrone.atlas --html --json=a.json", path(REPORT), path("a.json")),
    ] {
        let Command::Show(args) = read(line) else { panic!("{line}") };
        assert_eq!((args.html.html, args.json.json), (html, json), "{line}");
        assert_eq!(args.atlas, PathBuf::from("isochrone.atlas"), "{line}");
    }
    let Command::Diff(args) = read("diff --json a.atlas b.atlas --check") else { panic!("diff") };
    assert_eq!((args.json.json, args.a), (path("-"), PathBuf::from("a.atlas")));
    for (line, json, csv) in [
        ("export isochrone.atlas --json -", path("-"), None),
        ("export --csv -", None, path("-")),
        ("export --json a.json --csv=b.csv", path("a.json"), path("b.csv")),
        ("export isochrone.atlas --csv", None, path("-")),
    ] {
        let Command::Export(args) = read(line) else { panic!("{line}") };
        assert_eq!((args.json.json, args.csv), (json, csv), "{line}");
    }
    for line in ["machine --json bullion-s-16s", "machine bullion-s-16s --json"] {
        let Command::Machine(args) = read(line) else { panic!("{line}") };
        assert_eq!((args.json.json, args.name.as_deref()), (path("-"), Some("bullion-s-16s")));
    }
    let Command::Predict(args) = read("predict bcast --threads 2 --json p.json --dot t.dot") else {
        panic!("predict")
    };
    assert_eq!((args.shown.json.json, args.shown.dot), (path("p.json"), path("t.dot")));
    for line in ["run --json run.json sh -c true", "run --json=run.json -- sh -c true"] {
        let Command::Run(args) = read(line) else { panic!("{line}") };
        assert_eq!((args.json.json, args.command.len()), (path("run.json"), 3), "{line}");
    }
}

#[test]
fn every_place_for_text_takes_a_file_or_none() {
    assert_eq!(examples::other_forms(&Cli::command()), Vec::<String>::new());
}

#[test]
fn a_command_that_nobody_knows_is_told_by_one_that_is_like_it() {
    for (line, like) in [
        ("shwo", "'show'"),
        ("predcit bcast", "'predict'"),
        ("bnech chase", "'bench'"),
        ("verfy model", "'verify'"),
        ("map --qiuck", "'--quick'"),
        ("predict bcsat", "'bcast'"),
    ] {
        let words = std::iter::once("isochrone").chain(line.split_whitespace());
        let said = Cli::try_parse_from(words).map(drop).unwrap_err();
        assert_eq!(said.exit_code(), 2, "{line}");
        let said = said.to_string();
        assert!(said.contains("similar") && said.contains(like), "{line}: {said}");
    }
}
