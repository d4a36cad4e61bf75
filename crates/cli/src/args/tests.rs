//! The command line is consistent, and what its help shows is understood.

use clap::CommandFactory;

use super::*;

#[test]
fn the_definition_is_consistent() {
    Cli::command().debug_assert();
}

/// What a shell makes of a line: words, some in quotes, up to a redirection or a
/// comment in a column of its own.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let (mut quoted, mut before) = (false, 'i');
    for letter in line.chars() {
        match letter {
            '\'' => quoted = !quoted,
            ' ' if !quoted && before == ' ' => break,
            '>' if !quoted => break,
            ' ' if !quoted => words.push(String::new()),
            _ => words.last_mut().expect("one at least").push(letter),
        }
        before = letter;
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Commands in the examples of a help text; several may stand in one line.
fn examples(command: &clap::Command) -> Vec<String> {
    let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let lines = text.lines().map(str::trim).filter(|line| line.starts_with("isochrone "));
    lines
        .flat_map(|line| line.split(" && ").flat_map(|part| part.split("; ")))
        .filter(|part| part.starts_with("isochrone "))
        .map(str::to_owned)
        .collect()
}

fn all(command: &clap::Command) -> Vec<&clap::Command> {
    let children = command.get_subcommands().filter(|child| !child.is_hide_set());
    std::iter::once(command).chain(children.flat_map(all)).collect()
}

#[test]
fn every_command_shows_examples_and_every_example_is_understood() {
    let root = Cli::command();
    let mut wrong = Vec::new();
    for command in all(&root).into_iter().skip(1) {
        let found = examples(command);
        if !command.has_subcommands() && found.is_empty() {
            wrong.push(format!("{} has no example", command.get_name()));
        }
        let refused =
            |example: &String| Some(Cli::try_parse_from(words(example)).err()?.to_string());
        wrong.extend(found.iter().filter_map(refused));
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn sizes() {
    assert_eq!(parse_bytes("100M"), Ok(100 << 20));
    assert_eq!(parse_bytes("2GiB"), Ok(2 << 30));
    assert_eq!(parse_bytes("4096"), Ok(4096));
    assert!(parse_bytes("12parsecs").is_err());
    assert!(parse_bytes("99999999999999999999G").is_err());
}

#[test]
fn core_lists() {
    assert_eq!(parse_cores("0,2-4,3"), Ok(vec![0, 2, 3, 4]));
    assert!(parse_cores("4-2").is_err());
    assert!(parse_cores("a").is_err());
}
