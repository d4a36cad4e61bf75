//! `isochrone sim`: benchmarks on a machine that nobody here owns, in virtual time.

mod described;
mod made;
pub(crate) mod speed;
pub(crate) mod sweep;
mod words;

#[cfg(test)]
mod tests;

use std::process::ExitCode;

use anyhow::Result;
use isochrone_papers::numa_aware::constants::constants;
use isochrone_papers::numa_aware::record::Key;
use isochrone_report::json::{self, Format};
use isochrone_workloads::numa::Bench;

use crate::args::{SimArgs, SimCommand};
use crate::schedule_file;
pub(crate) use described::machine;
use isochrone_console::output::Terminal;
use isochrone_console::progress::Interrupt;
use isochrone_console::written::{Place, asked, each_written, on_stdout, write_to};

/// Runs the command.
pub(crate) fn run(command: &SimCommand, terminal: &Terminal) -> Result<ExitCode> {
    match command {
        SimCommand::Cholesky(args) => one(Bench::Cholesky, args, terminal),
        SimCommand::Smi(args) => one(Bench::Smi, args, terminal),
        SimCommand::Streamcluster(args) => one(Bench::Streamcluster, args, terminal),
        SimCommand::Jacobi(args) => one(Bench::Jacobi, args, terminal),
        SimCommand::Inthist(args) => one(Bench::Inthist, args, terminal),
        SimCommand::Sweep(args) => sweep::run(args, terminal),
    }
}

fn one(bench: Bench, args: &SimArgs, terminal: &Terminal) -> Result<ExitCode> {
    let places = Place::open_all([
        args.html.asked(),
        args.json.asked(),
        asked("--record", args.record.as_ref()),
    ])?;
    let alone = on_stdout(&places);
    let [html, json, recorded] = places;
    Interrupt::install().ends_with("isochrone-lab sim: stopped before its end");
    let (machine, spec) = machine(&args.machine)?;
    let most = u16::try_from(spec.cores()).unwrap_or(u16::MAX);
    let key = Key {
        paper_size: args.size.is_paper(),
        ..Key::new(&machine.name, bench, args.regime, args.threads.unwrap_or(most))
            .with(&args.variant)
            .seeded(args.seed)
    };
    let follow = args.replay.as_deref().map(schedule_file::read).transpose()?;
    let (record, schedule) = made::followed(&machine, &spec, &key, |case| {
        case.record = args.record.is_some();
        case.follow = follow.map(|(_, schedule)| schedule);
    })?;
    if let Some((place, schedule)) = recorded.zip(schedule) {
        place.write(&schedule_file::text(&key.words(), &schedule)?, terminal)?;
    }
    let free = constants(&machine);
    each_written([
        if alone { Ok(()) } else { terminal.say(&words::to_text(&record, &free, terminal)) },
        write_to(html, terminal, || Ok(words::to_page(&record, &free).render())),
        write_to(json, terminal, || {
            Ok(json::pretty(Format::Sim, &words::to_json(&record, &free))? + "\n")
        }),
    ])?;
    Ok(if record.verified { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
