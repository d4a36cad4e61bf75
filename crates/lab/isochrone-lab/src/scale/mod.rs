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
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use isochrone_atlas_store::{Destination, encode};
use isochrone_os::clock::thread_cpu_ns;
use isochrone_probe::region::BUFFER_BYTES;
use isochrone_probe::watch::Watch;
use isochrone_report::json::{self, Format};
use isochrone_sim::synthetic::SyntheticSpec;
use isochrone_survey::synthetic::{Order, Surveyed, survey};
use isochrone_survey::{Schedule, Wishes};

use crate::args::ScaleArgs;
use crate::bench::Stop;
use isochrone_console::codes;
use isochrone_console::output::{Terminal, WrongUsage};
use isochrone_console::progress::{Interrupt, LastResort, Progress};
use isochrone_console::written::{Place, each_written, write_to};

use figures::Figures;
use sizes::Sizes;

/// What pairs that exchange lines at the same time add to each other on a crowded machine, cycles for each.
const CROWDED_CYCLES: f64 = 2.0;

/// The part of the time for the map; the rest is for what became of it.
const SURVEYING: f64 = 0.8;

/// Runs the command.
pub(crate) fn run(args: &ScaleArgs, terminal: &Terminal) -> Result<ExitCode> {
    if args.cores < args.regions {
        let why = format!("{} regions need as many cores, not {}", args.regions, args.cores);
        return Err(WrongUsage::error(why));
    }
    let [place] = Place::open_all([args.json.asked()])?;
    let kept = args.out.as_deref().map(|path| kept(path, place.as_ref())).transpose()?;
    let alone = place.as_ref().is_some_and(Place::is_stdout);
    let (begin, interrupt) = (Instant::now(), Interrupt::install());
    let resort = LastResort::arm("isochrone-lab scale", Some(args.within));
    let mut watch = Watched { progress: Progress::new(interrupt.clone()), resort };
    watch.progress.end_at(Some(begin + args.within.mul_f64(SURVEYING)));
    let order = order(args);
    let surveyed = Arc::new(survey(order.clone(), &mut watch)?);
    if let Some(kept) = kept {
        watch.step("the atlas");
        kept.write(&encode(&surveyed.contents)?)?;
    }
    watch.step("how far it is from the truth");
    let stop = Stop::new(interrupt, Some(begin + args.within));
    let figures = {
        let (args, surveyed, terminal) = (args.clone(), Arc::clone(&surveyed), *terminal);
        stop.apart(move || judged(&args, &order, &surveyed, &terminal))
    };
    watch.progress.finish();
    let figures = match figures {
        Err(_) if stop.is_set() => {
            drop(watch);
            let interrupted = stop.is_interrupted();
            terminal.say(&figures::unjudged(args, &surveyed, interrupted, terminal.columns()))?;
            let code = if interrupted { codes::INTERRUPTED } else { codes::FAILED };
            return Ok(ExitCode::from(code));
        }
        figures => figures?,
    };
    drop(watch);
    each_written([
        if alone { Ok(()) } else { terminal.say(&figures.text(terminal.columns())) },
        write_to(place, terminal, || Ok(json::pretty(Format::Scale, &figures)? + "\n")),
    ])?;
    Ok(ExitCode::SUCCESS)
}

/// Progress that is told to the last resort as well.
struct Watched {
    progress: Progress,
    resort: LastResort,
}

impl Watch for Watched {
    fn step(&mut self, words: &str) {
        self.resort.doing(words);
        self.progress.step(words);
    }

    fn keep_going(&self) -> bool {
        self.progress.keep_going()
    }

    // Time of this machine is none of the synthetic one's: what there is of it is not planned with.
}

/// What became of the map: what it is written as, and how far it is from the truth.
fn judged(
    args: &ScaleArgs,
    order: &Order,
    surveyed: &Surveyed,
    terminal: &Terminal,
) -> Result<Figures> {
    let sizes = Sizes::of(&surveyed.contents, terminal)?;
    let blocks = blocks::errors(order, surveyed)?;
    let mut errors = errors::of(order, surveyed, blocks)?;
    errors.extend(stand_ins::errors(order, &surveyed.contents)?);
    Ok(Figures::of(args, surveyed, sizes, errors))
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
