//! The hidden command `isochrone-lab tier-arm`: one run of a program on an area larger than fast memory, in a
//! process of its own. Teams are made by a process of one thread, which a benchmark is not.

mod announced;
mod area;
pub(crate) mod mapped;
mod plain;
pub(crate) mod request;

use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use isochrone_tier::live::{Counters, Report, Team, Timed, Worker};
use isochrone_tier::pages::Event;
use isochrone_workloads::tiered::Outcome;

use area::{config, far};
use isochrone_console::output::Terminal;
use request::{Answer, Program, Request, Times};

/// What the hidden command takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct TierArmArgs {
    /// What to run, as JSON.
    request: String,
}

/// Runs the command: one answer as a line of JSON.
pub(crate) fn run(args: &TierArmArgs, terminal: &Terminal) -> Result<ExitCode> {
    let request: Request = serde_json::from_str(&args.request).context("reading the request")?;
    let answer = match &request.program {
        Program::Stencil(_) if request.plain.is_some() => plain::run(&request)?,
        Program::Mapped(of) => mapped::run(&request, *of)?,
        Program::Announced(of) => announced::run(&request, *of)?,
        Program::Touch { .. } => touch(&request)?,
        _ => on_area(&request)?,
    };
    terminal.print(&serde_json::to_string(&answer)?)?;
    Ok(ExitCode::SUCCESS)
}

fn answer(digest: u64, ns: u64, report: &Report, events: impl Fn(Event) -> u64) -> Answer {
    let both = [report.of_workers(), report.of_movers()];
    Answer {
        digest,
        ns,
        processor_ns: 0,
        missing: events(Event::Missing),
        minor: events(Event::Minor),
        late: events(Event::Late),
        evicted: both.iter().map(|c| c.events(Event::Evicted)).sum(),
        batches: both.iter().map(|c| c.events(Event::Batch)).sum(),
        prefetched: both[1].events(Event::Prefetched) + both[1].events(Event::Marked),
        marked: both[1].events(Event::Marked),
        markers_touched: both[0].events(Event::MarkerTouched),
        markers_wasted: both.iter().map(|c| c.events(Event::MarkerWasted)).sum(),
        all_missing: both[0].events(Event::Missing),
        all_minor: both[0].events(Event::Minor),
        times: times(&both[0]),
        mover_times: times(&both[1]),
        interrupts: None,
    }
}

fn times(counters: &Counters) -> Times {
    let of = |timed| (counters.times(timed), counters.cycles(timed));
    Times {
        fault: of(Timed::Fault),
        protect: of(Timed::Protect),
        copy_out: of(Timed::CopyOut),
        punch: of(Timed::Punch),
        read: of(Timed::Read),
        fill: of(Timed::Fill),
        map: of(Timed::Map),
        wait: of(Timed::Wait),
    }
}

fn on_area(request: &Request) -> Result<Answer> {
    let program = request.program.tiered().context("not a program for an area")?;
    let bytes = program.bytes(request.group_pages * 4096);
    let config = config(request, bytes);
    let ready = program.ready(&config).map_err(anyhow::Error::msg)?;
    let team = Team::new(config, far(request, bytes)?)?;
    let report = team.run(|worker| ready.run(worker))?;
    let outcome = Outcome::of(&report).map_err(anyhow::Error::msg)?;
    Ok(answer(outcome.digest, outcome.nanoseconds, &report, |event| outcome.events(event)))
}

/// A worker writes one word of each page, in order, again and again; all others run and touch nothing.
fn touch(request: &Request) -> Result<Answer> {
    let Program::Touch { pages, warm, second } = request.program else {
        anyhow::bail!("not a touch")
    };
    let bytes = pages * 4096;
    let mut config = config(request, bytes);
    // Who waits runs all the while, so that it would be interrupted.
    config.spins = u32::MAX;
    let team = Team::new(config, far(request, bytes)?)?;
    let report = team.run(|worker| touching(worker, pages, warm, second))?;
    report.values().map_err(anyhow::Error::msg)?;
    let notes = &report.notes[usize::from(second)];
    let all = report.of_workers();
    let mut answer = answer(notes[1], notes[0], &report, |event| all.events(event));
    answer.interrupts = (notes[2] != u64::MAX).then_some(notes[2]);
    // What belongs to the time, without the touches before it.
    (answer.missing, answer.batches) = (notes[3], notes[4]);
    Ok(answer)
}

/// Rounds over all pages whose time is taken.
const ROUNDS: usize = 3;

fn touching(
    worker: &mut Worker<'_>,
    pages: usize,
    warm: bool,
    second: bool,
) -> Result<u64, String> {
    let words = worker.words();
    let touch_all = || {
        for page in 0..pages {
            words[page * 512].fetch_add(1, Ordering::Relaxed);
        }
    };
    let gone = |gone: isochrone_tier::live::Gone| gone.to_string();
    worker.barrier().map_err(gone)?;
    if worker.index() == 0 && (warm || second) {
        touch_all();
    }
    worker.barrier().map_err(gone)?;
    if worker.index() == u16::from(second) {
        let root = isochrone_host::SysRoot::live();
        let interrupts = || isochrone_host::tlb_shootdowns(&root);
        let rounds = if warm { ROUNDS } else { 1 };
        let (first, counters, begin) = (interrupts(), worker.counters(), Instant::now());
        (0..rounds).for_each(|_| touch_all());
        worker.note(0, u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX));
        let seen = interrupts().zip(first).map(|(last, first)| last - first);
        let counters = worker.counters().since(&counters);
        worker.note(2, seen.unwrap_or(u64::MAX));
        worker.note(3, counters.events(Event::Missing));
        worker.note(4, counters.events(Event::Batch));
        let touches = rounds + usize::from(warm || second);
        let sum: u64 = (0..pages).map(|page| words[page * 512].load(Ordering::Relaxed)).sum();
        worker.note(1, sum / touches as u64);
    }
    worker.barrier().map_err(gone)?;
    Ok(0)
}
