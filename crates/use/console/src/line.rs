//! The words that a program is started with, read by the definition of its command line.

use std::ffi::OsString;
use std::io::{self, Write as _, stdout};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{Command, Error, Parser};

use crate::codes::FAILED;
use crate::output::{NOT_WRITTEN, arguments, complain, is_too_long};

/// Letters of a command's name for each slip of the hand with which a word is still taken for it: with more slips it is
/// another word.
const LETTERS_A_SLIP: usize = 3;

/// Reads them.
///
/// # Errors
/// With how the process ends: they ask for help, which is printed, or they are none of its command line, which is said
/// in lines of the terminal.
pub fn read<C: Parser>() -> Result<C, ExitCode> {
    C::try_parse().map_err(|mut error| {
        suggest(&mut error, C::command(), arguments().skip(1));
        let text = error.render().to_string();
        if error.use_stderr() && is_too_long(&text) {
            complain(&text);
        } else {
            // With colours.
            let printed = error.print().and_then(|()| stdout().flush());
            if let Some(why) = printed.err().filter(|why| is_felt(&error, why)) {
                complain(&format!("{}: {NOT_WRITTEN}: {why}", C::command().get_name()));
                return ExitCode::from(FAILED);
            }
        }
        ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(FAILED))
    })
}

/// Whether somebody lacks the help that could not be printed. A reader that went away has what it wanted, and where
/// standard error is closed nobody is there to be told.
fn is_felt(error: &Error, why: &io::Error) -> bool {
    !error.use_stderr() && why.kind() != io::ErrorKind::BrokenPipe
}

/// Names the command that was meant, where clap takes none for near enough: it compares short words by letters in
/// common, of which `mpa` and `map` have too few in order. Of those that clap names, the hidden ones are left out.
fn suggest(error: &mut Error, of: Command, words: impl Iterator<Item = OsString>) {
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidSubcommand) else {
        return;
    };
    let unknown = unknown.clone();
    let of = looked_in(&unknown, of, words);
    let named = match error.get(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::Strings(names)) => names.clone(),
        Some(ContextValue::String(name)) => vec![name.clone()],
        _ => Vec::new(),
    };
    let is_shown = |name: &String| of.find_subcommand(name).is_none_or(|one| !one.is_hide_set());
    let shown: Vec<String> = named.into_iter().filter(is_shown).collect();
    let names = if shown.is_empty() { meant(&unknown, &of).into_iter().collect() } else { shown };
    error.remove(ContextKind::SuggestedSubcommand);
    if !names.is_empty() {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(names));
    }
}

/// The command below which an unknown one was looked for.
fn looked_in(unknown: &str, mut of: Command, words: impl Iterator<Item = OsString>) -> Command {
    for word in words {
        match of.find_subcommand(&word) {
            Some(below) => of = below.clone(),
            None if word == *unknown => break,
            None => {}
        }
    }
    of
}

/// The name of the command of these that `unknown` stands for, if one is near.
fn meant(unknown: &str, of: &Command) -> Option<String> {
    let names = of.get_subcommands().filter(|below| !below.is_hide_set());
    let near = names.map(|below| (slips(unknown, below.get_name()), below.get_name()));
    let (slips, name) = near.min()?;
    (slips * LETTERS_A_SLIP <= name.len()).then(|| name.to_owned())
}

/// How many letters were left out, put in, taken for another, or typed in the wrong order.
fn slips(typed: &str, meant: &str) -> usize {
    let (typed, meant): (Vec<char>, Vec<char>) = (typed.chars().collect(), meant.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=meant.len()).collect()];
    for i in 1..=typed.len() {
        let mut row = vec![i];
        for j in 1..=meant.len() {
            let other = usize::from(typed[i - 1] != meant[j - 1]);
            let mut least =
                (rows[i - 1][j] + 1).min(row[j - 1] + 1).min(rows[i - 1][j - 1] + other);
            let swapped =
                i > 1 && j > 1 && typed[i - 1] == meant[j - 2] && typed[i - 2] == meant[j - 1];
            if swapped {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[typed.len()][meant.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program() -> Command {
        let sim = Command::new("sim")
            .subcommand(Command::new("sweep"))
            .subcommand(Command::new("sweep-run").hide(true));
        Command::new("program")
            .subcommand(Command::new("map"))
            .subcommand(Command::new("machine"))
            .subcommand(sim)
    }

    /// What is said of a line.
    fn said(line: &str) -> String {
        let words = || line.split(' ').map(OsString::from);
        let mut error = program().try_get_matches_from(words()).expect_err("it is none");
        suggest(&mut error, program(), words().skip(1));
        error.render().to_string()
    }

    #[test]
    fn slips_of_the_hand_are_counted() {
        let all = [("mpa", "map"), ("map", "map"), ("amp", "map"), ("mp", "map"), ("show", "map")];
        assert_eq!(all.map(|(typed, meant)| slips(typed, meant)), [1, 0, 1, 1, 4]);
    }

    #[test]
    fn the_command_that_was_meant_is_named() {
        assert!(said("program mpa").contains("'map'"), "{}", said("program mpa"));
        let sweep = said("program sim sweep-ru");
        assert!(said("program sim swep").contains("'sweep'") && !sweep.contains("'sweep-run'"));
        assert!(!said("program xy").contains("similar"));
    }
}
