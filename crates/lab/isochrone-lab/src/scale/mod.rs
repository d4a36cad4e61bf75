//! `isochrone-lab scale`: a whole map of a synthetic machine of hundreds of cores, in virtual time, held against its
//! truth and against goals.

mod blocks;
mod errors;
mod exhaustive;
mod figures;
mod goals;
mod sizes;
mod stand_ins;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use isochrone_atlas_store::contents::Contents;
use isochrone_atlas_store::{Destination, encode};
use isochrone_os::clock::thread_cpu_ns;
use isochrone_probe::region::BUFFER_BYTES;
use isochrone_probe::watch::Watch;
use isochrone_report::json::{self, Format};
use isochrone_report::lines::fit;
use isochrone_sim::synthetic::SyntheticSpec;
use isochrone_survey::synthetic::{Order, survey};
use isochrone_survey::{Schedule, Wishes};

use crate::args::ScaleArgs;
use isochrone_console::codes;
use isochrone_console::output::{Terminal, WrongUsage};
use isochrone_console::progress::{Interrupt, Progress};
use isochrone_console::written::{Place, write_to};

use figures::Figures;
use sizes::Sizes;

/// What pairs that exchange lines at the same time add to each other on a crowded machine, cycles for each.
const CROWDED_CYCLES: f64 = 2.0;

/// Runs the command.
pub(crate) fn run(args: &ScaleArgs, terminal: &Terminal) -> Result<ExitCode> {
    if args.cores < args.regions {
        let why = format!("{} regions need as many cores, not {}", args.regions, args.cores);
        return Err(WrongUsage::error(why));
    }
    let [place] = Place::open_all([args.json.asked()])?;
    let kept = args.out.as_deref().map(|path| kept(path, place.as_ref())).transpose()?;
    let alone = place.as_ref().is_some_and(Place::is_stdout);
    let interrupt = Interrupt::install();
    let mut progress = Progress::new(interrupt.clone());
    let made = made(args, &mut progress, terminal);
    progress.finish();
    if interrupt.is_set() {
        terminal.complain("isochrone-lab: stopped: the map is not whole, and nothing was written");
        return Ok(ExitCode::from(codes::INTERRUPTED));
    }
    let (figures, contents) = made?;
    if let Some(kept) = kept {
        kept.write(&encode(&contents)?)?;
    }
    write_to(place, terminal, || Ok(json::pretty(Format::Scale, &figures)? + "\n"))?;
    if !alone {
        terminal.print(&fit(&figures.text(terminal.columns()), terminal.width))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The map, and what became of it.
fn made(
    args: &ScaleArgs,
    watch: &mut dyn Watch,
    terminal: &Terminal,
) -> Result<(Figures, Contents)> {
    let order = order(args);
    let surveyed = survey(order.clone(), watch)?;
    watch.step("what it is written as");
    let sizes = Sizes::of(&surveyed.contents, terminal)?;
    watch.step("how far it is from the truth");
    let blocks = blocks::errors(&order, &surveyed)?;
    let mut errors = errors::of(&order, &surveyed, blocks)?;
    errors.extend(stand_ins::errors(&order, &surveyed.contents)?);
    let contents = surveyed.contents.clone();
    Ok((Figures::of(args, surveyed, sizes, errors), contents))
}

/// The place of the atlas, tried before anything is surveyed.
fn kept(path: &Path, json: Option<&Place>) -> Result<Destination> {
    if json.and_then(Place::file) == Some(path) {
        return Err(WrongUsage::error(format!("--out and --json are both {}", path.display())));
    }
    Destination::file(path).context("nothing is done, since --out cannot be written")
}

/// What is surveyed.
fn order(args: &ScaleArgs) -> Order {
    let mut spec = SyntheticSpec::clusters(args.cores, args.regions, args.seed);
    if args.crowded {
        spec.transfers.parallel_cycles = CROWDED_CYCLES;
    }
    Order {
        spec,
        wishes: Wishes { quick: args.quick, memory: None, buffer: BUFFER_BYTES },
        schedule: Schedule::of(&args.only, args.budget, args.quick),
        seed: args.seed,
        cpu_s,
    }
}

/// Seconds of processor time of this thread.
fn cpu_s() -> f64 {
    Duration::from_nanos(thread_cpu_ns()).as_secs_f64()
}
