//! `isochrone tier check`: whether this kernel has what an area larger than fast memory needs, in which mode its faults
//! are resolved, and how what is missing can be had. With `--measure`, what a page costs here.

pub(crate) mod measured;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use isochrone_report::fmt;
use isochrone_report::json::{self, Format};
use isochrone_stats::Spread;
use isochrone_tier::live::{Check, Mode, check};
use serde::Serialize;

use isochrone_console::args::JsonArg;
use isochrone_console::codes;
use isochrone_console::output::Terminal;
use isochrone_console::written::{Place, each_written, on_stdout, write_to};
use measured::Costs;

/// What `isochrone tier` does.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum TierCommand {
    /// What this kernel lacks, what that costs, and the way to mend it.
    #[command(after_help = "Examples:\n  isochrone tier check\n  \
                            isochrone tier check --measure        what a page costs here\n  \
                            isochrone tier check --json\n\n\
                            Exit code 0 where an area can be had, 4 where it cannot.")]
    Check(CheckArgs),
}

/// What `isochrone tier check` takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct CheckArgs {
    /// Measures what a fault costs on this machine, with pages compressed by lz4, and from which arithmetic for a page
    /// on tiering pays. Takes some tenths of a second.
    #[arg(long)]
    measure: bool,
    #[command(flatten)]
    json: JsonArg,
}

/// Runs the command.
pub(crate) fn run(command: &TierCommand, terminal: &Terminal) -> Result<ExitCode> {
    let TierCommand::Check(args) = command;
    let [json] = Place::open_all([args.json.asked()])?;
    let alone = on_stdout(std::slice::from_ref(&json));
    let found = check(Path::new("/sys"));
    let asked = (args.measure && found.mode.is_some()).then(measured::costs);
    let costs = asked.and_then(|costs| {
        costs
            .map_err(|why| terminal.complain(&format!("isochrone: nothing is measured: {why:#}")))
            .ok()
    });
    let told = costs.as_ref().map_or_else(String::new, |costs| format!("\n{}", words(costs)));
    each_written([
        if alone { Ok(()) } else { terminal.say(&(text(&found) + &told)) },
        write_to(json, terminal, || Ok(json::pretty(Format::TierCheck, &figures(&found, costs))?)),
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
    /// What a page costs here, measured with lz4; nothing where it was not asked for or cannot be had.
    measured: Option<Costs>,
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

fn figures(found: &Check, measured: Option<Costs>) -> Figures {
    let missing = found.missing.iter().map(|missing| Lack {
        what: missing.what.clone(),
        costs: missing.costs,
        mend: missing.mend,
    });
    Figures { mode: found.mode.map(Mode::as_str), missing: missing.collect(), measured }
}

/// What a page costs, in lines.
fn words(costs: &Costs) -> String {
    let us = |taken: Spread| {
        let [median, least, most] =
            [taken.median, taken.least, taken.most].map(|us| fmt::ns(us * 1e3));
        format!("{median} [{least}, {most}]")
    };
    let of = |us: f64| fmt::ns(us * 1e3);
    format!(
        "A page beyond fast memory (lz4; measured: middle of five, least and most):\n  \
         first touch    {}\n  in order       {}\n  at random      {}\n  plain memory   {}\n\
         A sweep pays from {} of arithmetic for a page on with a mover on a core of its own, and from {} on without \
         one (a tenth longer than in plain memory): predicted from these.",
        us(costs.first_touch_us),
        us(costs.in_order_us),
        us(costs.at_random_us),
        us(costs.plain_us),
        of(costs.with_mover_from_us),
        of(costs.without_mover_from_us)
    )
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
        let written = figures(&found, None);
        assert_eq!((written.mode, written.missing[0].mend), (Some("blocking"), "a newer kernel"));
        let none = Check { mode: None, ..found };
        assert!(text(&none).starts_with("No area") && figures(&none, None).mode.is_none());
    }
    #[test]
    fn what_a_page_costs_is_said_with_where_it_pays() {
        let taken = |median: f64| Spread { median, least: median / 2.0, most: median * 2.0 };
        let costs = Costs {
            first_touch_us: taken(0.5),
            in_order_us: taken(4.0),
            at_random_us: taken(9.0),
            plain_us: taken(0.25),
            with_mover_from_us: 4.0,
            without_mover_from_us: 40.0,
        };
        let text = words(&costs);
        for words in ["in order       4.00 µs [2.00 µs, 8.00 µs]", "from 4.00 µs", "from 40.0 µs"]
        {
            assert!(text.contains(words), "{words}: {text}");
        }
    }
}
