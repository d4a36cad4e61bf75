//! `isochrone map`: measure, save the atlas, write the report, say what was found.

mod experiments;
mod figures;
mod measure;

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use isochrone_atlas_store::contents::Contents;
use isochrone_report::fmt;

use crate::args::MapArgs;
use crate::output::{Terminal, write_file};
use crate::progress::{Interrupt, Progress};
use crate::view;

pub(crate) use figures::{QueryFigures, figures};

/// What the shell sees when a run was interrupted and its results kept.
const INTERRUPTED: u8 = 3;

/// Runs the command.
pub(crate) fn run(args: &MapArgs, terminal: &Terminal) -> Result<ExitCode> {
    check_places(args)?;
    let contents = measure(args)?;
    let bytes = isochrone_atlas_store::save(&contents, &args.out)
        .context("the atlas was measured but could not be saved")?;
    let query = QueryFigures::of_atlas(&contents)?;
    let figures = figures(&contents, bytes, query);
    let text = serde_json::to_string_pretty(&figures)?;
    write_file(&args.html, &view::page(&contents, Some(text.clone())).render(), terminal)?;
    if let Some(json) = &args.json {
        write_file(json, &(text + "\n"), terminal)?;
    }
    // With the figures on standard output, nothing else may stand there.
    let figures_on_stdout = args.json.as_deref().is_some_and(|p| p.as_os_str() == "-");
    if !figures_on_stdout {
        terminal.print(&view::summary(&contents, terminal.colour, terminal.width))?;
        terminal.print(&format!(
            "\natlas   {} ({})\nreport  {}",
            args.out.display(),
            fmt::bytes(bytes),
            args.html.display()
        ))?;
    }
    Ok(if contents.complete { ExitCode::SUCCESS } else { ExitCode::from(INTERRUPTED) })
}

/// Measures with the given arguments; also what other commands do that find no atlas.
pub(crate) fn measure(args: &MapArgs) -> Result<Contents> {
    let interrupt = Interrupt::install();
    let mut progress = Progress::new(interrupt);
    let seed = args.seed.unwrap_or_else(seed_of_the_moment);
    let contents = measure::measure(args, seed, &mut progress);
    progress.finish();
    contents
}

/// A minute of measuring must not end at a folder that is not there.
fn check_places(args: &MapArgs) -> Result<()> {
    for path in [Some(&args.out), Some(&args.html), args.json.as_ref()].into_iter().flatten() {
        let folder = path.parent().filter(|f| !f.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|f| !f.is_dir()) {
            anyhow::bail!(
                "{} cannot be written: there is no folder {}; make it first (mkdir -p {})",
                path.display(),
                folder.display(),
                folder.display()
            );
        }
    }
    if std::fs::metadata(&args.out).is_ok_and(|found| !found.is_file()) {
        anyhow::bail!(
            "{} is not a regular file; an atlas needs one: choose another name",
            args.out.display()
        );
    }
    Ok(())
}

fn seed_of_the_moment() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_secs() << 20 ^ u64::from(now.subsec_nanos())
}
