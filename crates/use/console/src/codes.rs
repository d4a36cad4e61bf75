//! Exit codes of both programs, in one place: numbers, and the words of help and manual pages.

use std::process::ExitCode;

use isochrone_host::MachineFileError;

use crate::output::{self, Terminal, WrongUsage};
use crate::partner;

/// Something could not be done.
pub const FAILED: u8 = 1;
/// The command line asks for what cannot be; clap has the same.
pub const WRONG_USAGE: u8 = 2;
/// It was interrupted, and what was measured is kept.
pub const INTERRUPTED: u8 = 3;
/// All was done, and what was looked for was found: a difference, a model that does not hold, a fault.
pub const FOUND: u8 = 4;

/// An exit code and what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// The code.
    pub code: u8,
    /// In words.
    pub words: &'static str,
}

const fn meaning(code: u8, words: &'static str) -> Meaning {
    Meaning { code, words }
}

/// What all commands of both programs end with, but for those that stand for a program that they run.
pub const MEANINGS: &[Meaning] = &[
    meaning(0, "done"),
    meaning(FAILED, "failed, or nothing was measured"),
    meaning(WRONG_USAGE, "wrong usage: an argument is not known, or has a value that cannot be"),
    meaning(INTERRUPTED, "interrupted; what was measured is kept"),
    meaning(
        FOUND,
        "done, and something was found: `diff --check` differences, `fleet outliers --check` a node that deviates, \
         `verify` a model that does not hold, `cla` a fault of the program, `tier check` that no area can be had, \
         `advise --try` a lever that gains",
    ),
    meaning(partner::REFUSED, "the other program of the two is of other sources"),
    meaning(partner::NOT_THERE, "isochrone-lab, the laboratory, is not there"),
];

/// The same, as it stands below the help of both programs.
pub const HELP: &str = "\
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 interrupted (what was measured is kept), 4 something was found \
(diff --check, fleet --check, verify, cla, tier check, advise --try), 126 and 127 where the laboratory, \
isochrone-lab, is of other sources or not there.";

/// What the shell sees where a check has found something.
pub fn checked(found: bool) -> ExitCode {
    if found { ExitCode::from(FOUND) } else { ExitCode::SUCCESS }
}

/// How `program` ends: with its own code, or with the code of an error, which is said in a line.
pub fn ended(program: &str, done: anyhow::Result<ExitCode>, terminal: Terminal) -> ExitCode {
    match done {
        Ok(code) => code,
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            terminal.complain(&format!("{program}: {}", output::words(&error)));
            ExitCode::from(if is_wrong_usage(&error) { WRONG_USAGE } else { FAILED })
        }
    }
}

/// Whether an error lies in the words of the command line: a value that cannot be, or the name of no machine.
fn is_wrong_usage(error: &anyhow::Error) -> bool {
    let is_name =
        |error: &MachineFileError| matches!(error, MachineFileError::NoSuchMachine { .. });
    error.is::<WrongUsage>() || error.downcast_ref::<MachineFileError>().is_some_and(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn wrong_usage_is_known_below_any_context() {
        let wrong = || Err::<(), _>(WrongUsage::error("--root 9".to_owned()));
        assert!(is_wrong_usage(&wrong().unwrap_err()));
        assert!(is_wrong_usage(&wrong().context("outer").context("outermost").unwrap_err()));
        let unknown = isochrone_host::find_machine("no-such-machine").unwrap_err();
        assert!(is_wrong_usage(&unknown.into()));
        assert!(!is_wrong_usage(&anyhow::anyhow!("the disk is full")));
        let unreadable = isochrone_host::find_machine("no/such.toml").unwrap_err();
        assert!(!is_wrong_usage(&unreadable.into()));
    }

    #[test]
    fn help_has_every_code() {
        for Meaning { code, .. } in MEANINGS {
            assert!(HELP.contains(&format!(" {code} ")), "{code}");
        }
    }
}
