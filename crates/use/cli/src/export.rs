//! `isochrone export`: an atlas in the forms that other programs read.

use std::process::ExitCode;

use anyhow::Result;
use isochrone_atlas_store::{export, load};
use isochrone_report::json::{self, Format};

use crate::args::ExportArgs;
use isochrone_console::output::Terminal;
use isochrone_console::written::{Place, asked, each_written, write_to};

/// Runs the command.
pub(crate) fn run(args: &ExportArgs, terminal: &Terminal) -> Result<ExitCode> {
    let [json, csv, hwloc] = Place::open_all([
        args.json.asked(),
        asked("--csv", args.csv.as_ref()),
        asked("--hwloc-xml", args.hwloc_xml.as_ref()),
    ])?;
    let contents = load(&args.atlas)?;
    each_written([
        write_to(json, terminal, || Ok(json::pretty(Format::Atlas, &contents)?)),
        write_to(csv, terminal, || {
            let mut text = Vec::new();
            export::csv(&contents, &mut text)?;
            Ok(String::from_utf8_lossy(&text).into_owned())
        }),
        write_to(hwloc, terminal, || Ok(export::hwloc_xml(&contents)?)),
    ])?;
    Ok(ExitCode::SUCCESS)
}
