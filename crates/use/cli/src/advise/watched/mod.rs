//! `isochrone advise -- CMD`: one run of a program, watched from outside, and what each lever can take off it.
//!
//! The program runs as if nobody stood before it, with its own input and output; what is found is said on standard
//! error, and the exit code is the program's. Ranks of an MPI job count their calls, by a library that leaves all of
//! them to the MPI, and what a program allocates is looked at where that was asked for; nothing is written to a program
//! but, where that was asked for, its referenced bits.

mod allocations;
mod bounds;
mod fault;
mod inside;
mod job;
mod looks;
mod proc;
mod record;
mod seen;
#[cfg(test)]
mod tests;
mod tree;
mod words;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use isochrone_console::output::Terminal;
use isochrone_console::run::atlas::{self, Found};
use isochrone_console::run::signals::Signals;
use isochrone_console::run::spent;
use isochrone_console::written::{Place, each_written, write_to};
use isochrone_host::{Meter, SysRoot, this_machine};
use isochrone_machine::Machine;
use isochrone_report::fmt;
use isochrone_report::json::{self, Format};

pub(crate) use record::Figures;

use super::{kept, machine};
use crate::advise::trial::levers::is_launcher;
use crate::args::AdviseArgs;
use crate::run::program;
use crate::tier::measured;
use bounds::Around;
use inside::{Inside, SeenInside};
use looks::{ASKED, Watch};
use seen::Seen;

/// A run of which less is not seen well: ticks are 10 ms, and a look at pages comes five times a second.
const SHORT: Duration = Duration::from_millis(500);
/// What counting a call takes of a job that does nothing else, some 16 to 37 ns under Open MPI, and 80 under MPICH
/// (docs/results/advise-epyc-9005-vm.md).
const COUNTED_NS: f64 = 40.0;
/// The share of a run from which that is told: what a watched run may take.
const COUNTED_SHARE: f64 = 0.03;

/// Runs `advise` with a program and without `--try`.
pub(super) fn run(args: &AdviseArgs, terminal: &Terminal) -> Result<ExitCode> {
    let name = args.command.first().context("no program was named")?;
    let path = match program::found(name) {
        Ok(path) => path,
        Err(refusal) => return Ok(ExitCode::from(refusal.said(terminal))),
    };
    let [html, json] = Place::open_all([args.html.asked(), args.json.asked()])?;
    let known = atlas::known(args.atlas.as_deref(), terminal)?;
    let machine = match &known {
        Some(found) => found.contents.machine.clone(),
        None => this_machine(&SysRoot::live())?,
    };
    let ran = match watched(args, &path, machine.regions.len() > 1) {
        Ok(ran) => ran,
        Err(error) => return program::not_started(error, terminal).map(ExitCode::from),
    };
    let figures = figures(args, &path, known.as_ref(), &machine, ran)?;
    kept::keep(&figures.program, Format::AdviseWatched, &figures, terminal);
    terminal.complain(&words::text(&figures, terminal.width));
    each_written([
        write_to(html, terminal, || Ok(words::page(&figures).render())),
        write_to(json, terminal, || Ok(json::pretty(Format::AdviseWatched, &figures)? + "\n")),
    ])?;
    Ok(ExitCode::from(figures.seen.code))
}

/// What a run left.
struct Ran {
    seen: Seen,
    /// Processes that went on when it ended.
    left: usize,
    /// Why something that was to be seen from inside is not.
    unseen: Vec<String>,
}

/// Runs the program once.
fn watched(args: &AdviseArgs, path: &Path, by_region: bool) -> Result<Ran> {
    let (inside, program) = Inside::begin(args, path);
    let signals = Signals::hold()?;
    let stalls = || std::fs::read_to_string("/proc/pressure/memory").ok();
    let stalled_us = || stalls().and_then(|text| proc::stalled_us(&text));
    let (meter, stalled_before) = (Meter::start(), stalled_us());
    let mut watch = Watch::new(by_region, args.working_set);
    signals.look_out();
    let begin = Instant::now();
    let code = signals
        .run_watched(&program, Some((ASKED, &mut |process| watch.look(process.as_raw()))))?;
    let seconds = begin.elapsed().as_secs_f64();
    let stalled_after = stalled_us();
    let disturbance = Meter::since(meter.as_ref());
    let (looks, left) = watch.end();
    let SeenInside { mpi, allocations, unseen } = inside.end()?;
    let spent = spent::of_children()?;
    let memory_stalls_s = stalled_before.zip(stalled_after).map(|(then, now)| (now - then) / 1e6);
    let waited = memory_stalls_s.is_some_and(|stalled_s| stalled_s >= bounds::NOTICED * seconds);
    let far = (waited && spent.major_faults > 0).then(measured::costs).and_then(Result::ok);
    let seen = Seen {
        mpi,
        allocations,
        code,
        seconds,
        spent,
        looks,
        memory_stalls_s,
        fault_ns: fault::small_page_ns(),
        far_fault_us: far.map(|costs| costs.at_random_us.median),
        disturbance,
    };
    Ok(Ran { seen, left, unseen })
}

fn figures(
    args: &AdviseArgs,
    path: &Path,
    known: Option<&Found>,
    machine: &Machine,
    ran: Ran,
) -> Result<Figures> {
    let offers = machine::figures(known, machine, &SysRoot::live())?;
    let fit = program::check(path, program::Who::here()).map_err(|refusal| refusal.why);
    let around = Around { seen: &ran.seen, machine, fit, launches: is_launcher(path) };
    let levers = bounds::all(&offers.levers, &around);
    let remarks = remarks(&ran, args.working_set).into_iter().chain(offers.lacks).collect();
    let lossy = |word: &OsString| word.to_string_lossy().into_owned();
    let arguments = || args.command.iter().skip(1).map(lossy).collect();
    Ok(Figures {
        program: name(&args.command),
        arguments: args.with_arguments.then(arguments),
        machine: offers.machine,
        atlas: offers.atlas,
        summary: words::summary(&levers),
        remarks,
        seen: ran.seen,
        levers,
    })
}

/// The program's name, without its folders.
fn name(command: &[OsString]) -> String {
    let path = command.first().map(PathBuf::from).unwrap_or_default();
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// What the run leaves open.
fn remarks(ran: &Ran, working_set: bool) -> Vec<String> {
    let Ran { seen, left, unseen } = ran;
    let mut all = Vec::new();
    if seen.seconds < SHORT.as_secs_f64() {
        all.push("a run this short is seen badly: give it more to do".to_owned());
    }
    if seen.looks.threads_looks > 0 && seen.looks.pages.is_none() {
        all.push(
            "where its pages lay may not be seen by this user (setuid, or another user's), or this kernel does not tell"
                .to_owned(),
        );
    }
    all.extend(unseen.iter().cloned());
    let counted_s = seen.mpi.as_ref().map_or(0.0, |job| job.calls() as f64 * COUNTED_NS / 1e9);
    if counted_s > COUNTED_SHARE * seen.seconds {
        all.push(format!(
            "its collectives were counted, which may have taken {} of the run ({COUNTED_NS} ns a call)",
            fmt::percent(counted_s / seen.seconds)
        ));
    }
    if seen.mpi.as_ref().is_some_and(|job| job.reports > 0 && !job.ended) {
        all.push("a rank was killed: its calls of MPI were so many or more".to_owned());
    }
    if *left > 0 {
        all.push(format!("{left} processes that it started go on: what they take is not counted"));
    }
    if seen.spent.user_s + seen.spent.system_s > 0.0 && !seen.disturbance.is_quiet() {
        all.push(
            "the machine did other work meanwhile, which makes the run longer and shares smaller"
                .to_owned(),
        );
    }
    if working_set && seen.looks.working_set.is_none() {
        all.push(
            "no working set: the run was too short, or its referenced bits cannot be cleared"
                .to_owned(),
        );
    }
    all
}
