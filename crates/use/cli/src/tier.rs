//! `isochrone tier check`: whether this kernel has what an area larger than fast memory needs, in which mode its faults
//! are resolved, and how what is missing can be had.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use isochrone_report::json::{self, Format};
use isochrone_tier::live::{Check, Mode, check};
use serde::Serialize;

use isochrone_console::args::JsonArg;
use isochrone_console::codes;
use isochrone_console::output::Terminal;
use isochrone_console::written::{Place, each_written, on_stdout, write_to};

/// What `isochrone tier` does.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum TierCommand {
    /// What this kernel lacks, what that costs, and the way to mend it.
    #[command(after_help = "Examples:\n  isochrone tier check\n  isochrone tier check --json\n\n\
                            Exit code 0 where an area can be had, 4 where it cannot.")]
    Check(CheckArgs),
}

/// What `isochrone tier check` takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    json: JsonArg,
}

/// Runs the command.
pub(crate) fn run(command: &TierCommand, terminal: &Terminal) -> Result<ExitCode> {
    let TierCommand::Check(args) = command;
    let [json] = Place::open_all([args.json.asked()])?;
    let alone = on_stdout(std::slice::from_ref(&json));
    let found = check(Path::new("/sys"));
    each_written([
        if alone { Ok(()) } else { terminal.say(&text(&found)) },
        write_to(json, terminal, || Ok(json::pretty(Format::TierCheck, &figures(&found))?)),
    ])?;
    Ok(codes::checked(found.mode.is_none()))
}

/// What `--json` prints. Fields are added, never renamed.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Figures {
    /// How faults are resolved: `signal` or `blocking`; none where no area can be had.
    mode: Option<&'static str>,
    /// What the kernel lacks.
    missing: Vec<Lack>,
}

/// One thing that the kernel lacks.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Lack {
    what: String,
    /// What that costs.
    costs: &'static str,
    /// The way to mend it.
    mend: &'static str,
}

fn figures(found: &Check) -> Figures {
    let missing = found.missing.iter().map(|missing| Lack {
        what: missing.what.clone(),
        costs: missing.costs,
        mend: missing.mend,
    });
    Figures { mode: found.mode.map(Mode::as_str), missing: missing.collect() }
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
        let written = figures(&found);
        assert_eq!((written.mode, written.missing[0].mend), (Some("blocking"), "a newer kernel"));
        let none = Check { mode: None, ..found };
        assert!(text(&none).starts_with("No area") && figures(&none).mode.is_none());
    }
}
