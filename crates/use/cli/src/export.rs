//! `isochrone export`: an atlas in the forms that other programs read.

use std::process::ExitCode;

use anyhow::Result;
use isochrone_atlas_store::{export, load};

use crate::args::ExportArgs;
use crate::output::{Terminal, write_file};

/// Runs the command.
pub(crate) fn run(args: &ExportArgs, terminal: &Terminal) -> Result<ExitCode> {
    let contents = load(&args.atlas)?;
    if let Some(path) = &args.json {
        write_file(path, &serde_json::to_string_pretty(&contents)?, terminal)?;
    }
    if let Some(path) = &args.csv {
        let mut text = Vec::new();
        export::csv(&contents, &mut text)?;
        write_file(path, &String::from_utf8_lossy(&text), terminal)?;
    }
    if let Some(path) = &args.hwloc_xml {
        write_file(path, &export::hwloc_xml(&contents)?, terminal)?;
    }
    Ok(ExitCode::SUCCESS)
}
