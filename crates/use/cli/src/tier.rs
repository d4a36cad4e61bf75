//! `isochrone tier check`: whether this kernel has what an area larger than fast memory needs, in which mode its faults
//! are resolved, and how what is missing can be had.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use isochrone_tier::live::{Check, Mode, check};
use serde_json::{Value, json};

use crate::output::Terminal;

/// What `isochrone tier` does.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum TierCommand {
    /// What this kernel lacks, what that costs, and the way to mend it.
    #[command(after_help = "Examples:\n  isochrone tier check\n  isochrone tier check --json\n\n\
                            Exit code 0 where an area can be had, 1 where it cannot.")]
    Check(CheckArgs),
}

/// What `isochrone tier check` takes.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct CheckArgs {
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(command: &TierCommand, terminal: &Terminal) -> Result<ExitCode> {
    let TierCommand::Check(args) = command;
    let found = check(Path::new("/sys"));
    let text = if args.json { serde_json::to_string_pretty(&value(&found))? } else { text(&found) };
    terminal.print(&text)?;
    Ok(if found.mode.is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn value(found: &Check) -> Value {
    let missing = found.missing.iter().map(
        |missing| json!({ "what": missing.what, "costs": missing.costs, "mend": missing.mend }),
    );
    json!({ "mode": found.mode.map(Mode::as_str), "missing": missing.collect::<Vec<_>>() })
}

fn text(found: &Check) -> String {
    let first = match found.mode {
        Some(Mode::Signal) => {
            "An area can be had. Faults are resolved by the thread that has one (SIGBUS)."
        }
        Some(Mode::Blocking) => {
            "An area can be had. Faults are resolved by another thread of the process."
        }
        None => "No area can be had.",
    };
    let missing = found.missing.iter().map(|missing| {
        format!("missing: {}\n  costs: {}\n  mend:  {}", missing.what, missing.costs, missing.mend)
    });
    std::iter::once(first.to_owned()).chain(missing).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use isochrone_os::userfault::Features;
    use isochrone_tier::live::Missing;

    #[test]
    fn what_is_missing_is_said_with_its_cost_and_its_cure() {
        let lacks = Missing { what: "a thing".to_owned(), costs: "time", mend: "a newer kernel" };
        let found =
            Check { mode: Some(Mode::Blocking), features: Features(0), missing: vec![lacks] };
        for words in ["another thread", "a thing", "costs: time", "mend:  a newer kernel"] {
            assert!(text(&found).contains(words), "{words}");
        }
        assert_eq!(value(&found)["mode"], "blocking");
        assert_eq!(value(&found)["missing"][0]["mend"], "a newer kernel");
        let none = Check { mode: None, ..found };
        assert!(text(&none).starts_with("No area") && value(&none)["mode"].is_null());
    }
}
