//! `isochrone diff`: what moved between two atlases.

use std::process::ExitCode;

use anyhow::Result;
use isochrone_atlas_store::{diff, load};
use isochrone_report::json::{self, Format};

use crate::args::DiffArgs;
use isochrone_console::codes;
use isochrone_console::output::Terminal;
use isochrone_console::written::{Place, each_written, on_stdout, write_to};

/// Runs the command.
pub(crate) fn run(args: &DiffArgs, terminal: &Terminal) -> Result<ExitCode> {
    let [json] = Place::open_all([args.json.asked()])?;
    let found = diff(&load(&args.a)?, &load(&args.b)?);
    let alone = on_stdout(std::slice::from_ref(&json));
    let say = || match found.is_empty() {
        true => terminal.say("nothing differs beyond what measuring again would show"),
        false => found.lines().iter().try_for_each(|line| terminal.say(line)),
    };
    each_written([
        if alone { Ok(()) } else { say() },
        write_to(json, terminal, || Ok(json::pretty(Format::Diff, &found)?)),
    ])?;
    Ok(codes::checked(args.check && !found.is_empty()))
}
