//! `isochrone map`: measure, save the atlas, write the report, say what was found.

mod experiments;
mod figures;
mod grade;
mod measure;
mod replace;
mod targets;

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use isochrone_atlas_store::contents::Contents;
use isochrone_atlas_store::encode;
use isochrone_report::fmt;
use isochrone_view as view;

use crate::args::MapArgs;
use crate::output::{Terminal, cache_folder, words};
use crate::progress::{Interrupt, Progress};

use targets::Targets;

pub(crate) use figures::{QueryFigures, figures};

/// What the shell sees when a run was interrupted and its results kept.
const INTERRUPTED: u8 = 3;

/// Runs the command.
pub(crate) fn run(args: &MapArgs, terminal: &Terminal) -> Result<ExitCode> {
    let targets = Targets::open(args, cache_folder())?;
    let contents = measure(args)?;
    if contents.measured().is_empty() {
        return Ok(nothing(&contents, terminal));
    }
    let bytes =
        encode(&contents).context("the atlas was measured but is not one that can be saved");
    let (places, failed) = match bytes {
        Ok(bytes) => keep(targets, args, &contents, &bytes, terminal),
        Err(error) => (String::new(), vec![error]),
    };
    // With the figures on standard output, nothing else may stand there.
    let figures_on_stdout = args.json.as_deref().is_some_and(|p| p.as_os_str() == "-");
    if !figures_on_stdout {
        terminal.print(&view::summary(&contents, terminal.colour, terminal.width))?;
        terminal.print(&places)?;
    }
    for error in &failed {
        terminal.complain(&format!("isochrone: {}", words(error)));
    }
    Ok(match (failed.is_empty(), contents.complete) {
        (false, _) => ExitCode::FAILURE,
        (true, false) => ExitCode::from(INTERRUPTED),
        (true, true) => ExitCode::SUCCESS,
    })
}

/// Saves and writes all that can be; lines that say where it is, and what failed.
fn keep(
    targets: Targets,
    args: &MapArgs,
    contents: &Contents,
    bytes: &[u8],
    terminal: &Terminal,
) -> (String, Vec<anyhow::Error>) {
    let size = bytes.len() as u64;
    let (mut places, mut failed) = (String::new(), Vec::new());
    let (saved, texts) = targets.save(contents, bytes);
    match saved {
        Ok(saved) => {
            places += &format!("\natlas   {} ({})", saved.path.display(), fmt::bytes(size));
            match saved.why {
                Some(why) if saved.is_lost => failed.push(anyhow::Error::msg(why)),
                Some(why) => terminal.complain(&format!("isochrone: {why}")),
                None => {}
            }
        }
        Err(error) => failed.push(error),
    }
    let text = QueryFigures::of_atlas(contents)
        .and_then(|query| Ok(serde_json::to_string_pretty(&figures(contents, size, query))?));
    match text {
        Ok(text) => {
            let page = view::page(contents, Some(text.clone())).render();
            let [page, figures] = texts.write(&page, &(text + "\n"), terminal);
            if page.is_ok() {
                places += &format!("\nreport  {}", args.html.display());
            }
            failed.extend([page, figures].into_iter().filter_map(Result::err));
        }
        Err(error) => failed.push(error.context("there are no figures and no report")),
    }
    (places, failed)
}

/// Says that there is nothing to keep, and why.
fn nothing(contents: &Contents, terminal: &Terminal) -> ExitCode {
    let interrupted = if contents.complete { "" } else { ": the run was interrupted" };
    terminal
        .complain(&format!("isochrone: nothing was measured{interrupted}; no file was written"));
    for line in &contents.provenance.missing {
        terminal.complain(&format!("  {line}"));
    }
    ExitCode::FAILURE
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

fn seed_of_the_moment() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_secs() << 20 ^ u64::from(now.subsec_nanos())
}
