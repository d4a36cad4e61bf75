//! `isochrone reproduce`: finds what a paper needs of this machine (an atlas, or a quick one is made), and prints what
//! `isochrone_papers` makes of it.

use std::process::ExitCode;

use anyhow::{Context, Result};
use isochrone_atlas_store::contents::Contents;
use isochrone_papers::hidden_numa::{Benched, hidden_numa};
use isochrone_papers::latency_checker::latency_checker;
use isochrone_papers::numa_aware::{self, Depth, Runs, numa_aware};
use isochrone_papers::{SEED, Shown, cla, pspt};
use isochrone_workloads::{figure4, pspt as paging};

use crate::args::{DepthChoice, Paper, ReproduceArgs};
use crate::line_costs;
use crate::output::{Terminal, write_file};
use crate::run::atlas;
use crate::sim;

/// What the shell sees when runs were interrupted and their results kept.
const INTERRUPTED: u8 = 3;

/// Runs the command.
pub(crate) fn run(args: &ReproduceArgs, terminal: &Terminal) -> Result<ExitCode> {
    match args.paper {
        Paper::LatencyChecker => {
            let contents = this_machine(args, terminal)?;
            show(&latency_checker(Some(&contents), SEED)?, args, terminal)?;
        }
        Paper::HiddenNuma => {
            let benched = benched(args)?;
            let contents = this_machine(args, terminal)?;
            let plan = figure4::Plan::paper(SEED);
            show(&hidden_numa(Some(&contents), benched, &plan)?, args, terminal)?;
        }
        Paper::Pspt => show(&pspt::pspt(&paging::Plan::paper(SEED))?, args, terminal)?,
        Paper::NumaAwareRuntime => return runtime(args, terminal),
        Paper::Cla => {
            let atlas = &this_machine(args, terminal)?;
            let costs = line_costs::measured(atlas).ok();
            let near = costs.and_then(|table| table.costs.classes.first().cloned());
            let threads: Vec<usize> = (2..=16).collect();
            show(&cla::cla(Some(cla::Here { atlas, near }), &threads)?, args, terminal)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the files that are asked for, and prints.
fn show(paper: &dyn Shown, args: &ReproduceArgs, terminal: &Terminal) -> Result<()> {
    if let Some(path) = &args.html {
        write_file(path, &paper.page().render(), terminal)?;
    }
    if let Some(path) = &args.json {
        write_file(path, &serde_json::to_string_pretty(&paper.json())?, terminal)?;
    }
    let width = u16::try_from(terminal.width).unwrap_or(80);
    terminal.print(&paper.text(terminal.colour, width))
}

/// The file of `bench astar` that was named.
fn benched(args: &ReproduceArgs) -> Result<Option<Benched>> {
    let Some(path) = args.bench.as_deref() else {
        return Ok(None);
    };
    let name = path.display().to_string();
    let text =
        std::fs::read_to_string(path).with_context(|| format!("{name}: {}", Benched::ADVICE))?;
    Benched::of(&text, &name).map(Some)
}

fn runtime(args: &ReproduceArgs, terminal: &Terminal) -> Result<ExitCode> {
    let (machine, spec) = sim::machine(&args.machine)?;
    let depth = match args.depth {
        DepthChoice::Quick => Depth::Quick,
        DepthChoice::Paper => Depth::Paper,
        DepthChoice::Full => Depth::Full,
    };
    let keys = numa_aware::plan(&machine.name, depth);
    let jobs = args.jobs.map(usize::from);
    let records = sim::sweep::sweep(&machine, &spec, &keys, args.results.as_deref(), jobs)?;
    let Some(records) = records else {
        terminal.complain("stopped; with --results FILE finished runs are kept, and the same command does the rest");
        return Ok(ExitCode::from(INTERRUPTED));
    };
    let runs = Runs { machine: machine.name.clone(), records };
    let all = numa_aware(&spec, runs, numa_aware::constants::constants(&machine));
    show(&all, args, terminal)?;
    for missed in all.missed() {
        terminal.complain(&missed);
    }
    Ok(ExitCode::SUCCESS)
}

fn this_machine(args: &ReproduceArgs, terminal: &Terminal) -> Result<Contents> {
    if let Some(found) = atlas::known(args.atlas.as_deref(), terminal)? {
        return Ok(found.contents);
    }
    terminal.complain(
        "isochrone: no atlas of this machine yet: measuring a quick one (save one with `isochrone map`)",
    );
    let only = match args.paper {
        Paper::Cla => "block,transfer,multiline",
        _ => "block,region",
    };
    let scratch =
        tempfile::tempdir().context("there is no place for temporary files; set TMPDIR")?;
    Ok(atlas::quick(only, scratch.path())?.contents)
}
