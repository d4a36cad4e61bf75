//! `isochrone reproduce`: finds what a paper needs of this machine (an atlas, or a quick one is made), and prints what
//! `isochrone_papers` makes of it.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::ValueEnum as _;
use isochrone_atlas_store::Experiment;
use isochrone_atlas_store::contents::Contents;
use isochrone_papers::hidden_numa::{Benched, hidden_numa};
use isochrone_papers::latency_checker::latency_checker;
use isochrone_papers::numa_aware::{self, Depth, Runs, numa_aware};
use isochrone_papers::{SEED, Shown, cla, pspt};
use isochrone_report::json;
use isochrone_workloads::{figure4, pspt as paging};

use crate::args::{DepthChoice, Paper, ReproduceArgs};
use crate::sim;
use isochrone_console::line_costs;
use isochrone_console::output::{Terminal, read_text};
use isochrone_console::progress::Interrupt;
use isochrone_console::run::atlas;
use isochrone_console::written::{Place, on_stdout, write_to};

/// A file of `bench astar` with ten thousand blocks has a tenth of it.
const BENCHED_BYTES_MAX: u64 = 64 << 20;

/// Runs the command. It may be stopped at any moment: files are whole or not there.
pub(crate) fn run(args: &ReproduceArgs, terminal: &Terminal) -> Result<ExitCode> {
    let interrupt = Interrupt::install();
    let reproduced = paper(args, &interrupt, terminal);
    // While this machine is measured, whoever measures it ends first.
    if reproduced.is_err() && interrupt.is_set() {
        interrupt.ends_with(&stopped(args));
    }
    reproduced
}

/// What is said where it is stopped.
fn stopped(args: &ReproduceArgs) -> String {
    let name = args.paper.to_possible_value().map(|value| value.get_name().to_owned());
    let name = name.unwrap_or_default();
    format!("stopped: {name} is not reproduced; files that were not written yet are as they were")
}

fn paper(args: &ReproduceArgs, interrupt: &Interrupt, terminal: &Terminal) -> Result<ExitCode> {
    let places = Place::open_all([args.html.asked(), args.json.asked()])?;
    let simulate = || interrupt.ends_with(&stopped(args));
    match args.paper {
        Paper::LatencyChecker => {
            let contents = this_machine(args, terminal)?;
            simulate();
            show(&latency_checker(Some(&contents), SEED)?, places, terminal)?;
        }
        Paper::HiddenNuma => {
            let benched = benched(args)?;
            let contents = this_machine(args, terminal)?;
            simulate();
            let plan = figure4::Plan::paper(SEED);
            show(&hidden_numa(Some(&contents), benched, &plan)?, places, terminal)?;
        }
        Paper::Pspt => {
            simulate();
            show(&pspt::pspt(&paging::Plan::paper(SEED))?, places, terminal)?;
        }
        Paper::NumaAwareRuntime => return runtime(args, places, terminal),
        Paper::Cla => {
            let atlas = &this_machine(args, terminal)?;
            simulate();
            let costs = line_costs::measured(atlas).ok();
            let near = costs.and_then(|table| table.costs.classes.first().cloned());
            let threads: Vec<usize> = (2..=16).collect();
            show(&cla::cla(Some(cla::Here { atlas, near }), &threads)?, places, terminal)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes page and figures where they are asked for, and prints.
fn show(paper: &dyn Shown, places: [Option<Place>; 2], terminal: &Terminal) -> Result<()> {
    let alone = on_stdout(&places);
    let [html, json] = places;
    write_to(html, terminal, || Ok(paper.page().render()))?;
    write_to(json, terminal, || Ok(json::pretty(paper.format(), &paper.json())?))?;
    if alone {
        return Ok(());
    }
    let width = terminal.columns();
    terminal.print(&paper.text(terminal.colour, width))
}

/// The file of `bench astar` that was named.
fn benched(args: &ReproduceArgs) -> Result<Option<Benched>> {
    let Some(path) = args.bench.as_deref() else {
        return Ok(None);
    };
    let name = path.display().to_string();
    let text = read_text(path, BENCHED_BYTES_MAX).with_context(|| Benched::ADVICE)?;
    Benched::of(&text, &name).map(Some)
}

fn runtime(
    args: &ReproduceArgs,
    places: [Option<Place>; 2],
    terminal: &Terminal,
) -> Result<ExitCode> {
    let (machine, spec) = sim::machine(&args.machine)?;
    let depth = match args.depth {
        DepthChoice::Quick => Depth::Quick,
        DepthChoice::Paper => Depth::Paper,
        DepthChoice::Full => Depth::Full,
    };
    let keys = numa_aware::plan(&machine.name, depth);
    let jobs = args.jobs.map(usize::from);
    let records = sim::sweep::sweep(&machine, &spec, &keys, args.results.as_deref(), jobs)?;
    let runs = Runs { machine: machine.name.clone(), records };
    let all = numa_aware(&spec, runs, numa_aware::constants::constants(&machine));
    show(&all, places, terminal)?;
    for missed in all.missed() {
        terminal.complain(&missed);
    }
    Ok(ExitCode::SUCCESS)
}

/// What a paper shows of this machine.
fn needs(paper: Paper) -> &'static [Experiment] {
    match paper {
        Paper::Cla => &[Experiment::Block, Experiment::Transfer, Experiment::Multiline],
        _ => &[Experiment::Block, Experiment::Region],
    }
}

fn this_machine(args: &ReproduceArgs, terminal: &Terminal) -> Result<Contents> {
    let needs = needs(args.paper);
    if let Some(found) = atlas::known(args.atlas.as_deref(), terminal)? {
        for lack in needs.iter().filter(|experiment| !found.contents.has(**experiment)) {
            terminal.complain(&format!(
                "isochrone: {} has no {}, which stays empty here: run `isochrone map`",
                found.path.display(),
                lack.title()
            ));
        }
        return Ok(found.contents);
    }
    let names: Vec<&str> = needs.iter().map(|experiment| experiment.name()).collect();
    let scratch =
        tempfile::tempdir().context("there is no place for temporary files; set TMPDIR")?;
    Ok(atlas::quick_for_now(&names.join(","), scratch.path(), terminal, None)?.contents)
}
