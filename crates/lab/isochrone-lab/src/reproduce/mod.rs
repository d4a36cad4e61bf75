//! `isochrone reproduce`: finds what a paper needs of this machine (an atlas, or a quick one is made), and prints what
//! `isochrone_papers` makes of it.

mod all;
mod local;
mod parts;

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::ValueEnum as _;
use isochrone_atlas_store::Destination;
use isochrone_atlas_store::contents::Contents;
use isochrone_papers::hidden_numa::hidden_numa;
use isochrone_papers::latency_checker::latency_checker;
use isochrone_papers::numa_aware::{self, Runs, numa_aware};
use isochrone_papers::{SEED, Shown, pspt};
use isochrone_report::json;
use isochrone_workloads::{figure4, pspt as paging};

use crate::args::{Paper, ReproduceArgs};
use crate::sim;
use isochrone_console::output::{Terminal, WrongUsage};
use isochrone_console::progress::Interrupt;
use isochrone_console::run::atlas;
use isochrone_console::written::{Place, each_written, on_stdout, scratch, write_to};
use parts::{benched, beside, cla_beside, depth, lacks, needs};

/// Runs the command. It may be stopped at any moment: files are whole or not there.
pub(crate) fn run(args: &ReproduceArgs, terminal: &Terminal) -> Result<ExitCode> {
    let interrupt = Interrupt::install();
    // Before hours of simulation, and for papers that need none as well.
    atlas::wished(args.atlas.as_deref(), terminal)?;
    if args.paper == Paper::All {
        return all::run(args, &interrupt, terminal);
    }
    if args.whole || args.quick && args.paper != Paper::HiddenNuma {
        let words = "--quick and --paper are of `reproduce all`, --quick of hidden-numa too; \
                     for numa-aware-runtime say --depth";
        return Err(WrongUsage::error(words.to_owned()));
    }
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
    let places = Places::open(args)?;
    let simulate = || interrupt.ends_with(&stopped(args));
    match args.paper {
        Paper::All => {}
        Paper::LatencyChecker => {
            let contents = this_machine(args, interrupt, terminal)?;
            simulate();
            show(&latency_checker(Some(&contents), SEED)?, places, terminal)?;
        }
        Paper::HiddenNuma => {
            let benched = benched(args)?;
            let contents = this_machine(args, interrupt, terminal)?;
            simulate();
            let quick = args.quick.then(|| figure4::Plan::quick(SEED));
            let plan = quick.unwrap_or_else(|| figure4::Plan::paper(SEED));
            show(&hidden_numa(Some(&contents), benched, &plan)?, places, terminal)?;
        }
        Paper::Pspt => {
            simulate();
            show(&pspt::pspt(&paging::Plan::paper(SEED))?, places, terminal)?;
        }
        Paper::NumaAwareRuntime => return runtime(args, places, terminal),
        Paper::Cla => {
            let atlas = &this_machine(args, interrupt, terminal)?;
            simulate();
            show(&cla_beside(Some(atlas))?, places, terminal)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Where page and figures go.
struct Places {
    asked: [Option<Place>; 2],
    markdown: Option<Destination>,
}

impl Places {
    /// Whether they can be written is found before hours of simulation.
    fn open(args: &ReproduceArgs) -> Result<Self> {
        let named = args.markdown.as_deref();
        if named.is_some() && !matches!(args.paper, Paper::NumaAwareRuntime | Paper::Pspt) {
            let words = "--markdown is of numa-aware-runtime and of pspt, whose rows have changes beside them";
            return Err(WrongUsage::error(words.to_owned()));
        }
        let asked = Place::open_all([args.html.asked(), args.json.asked()])?;
        Ok(Self { asked, markdown: named.map(Destination::text).transpose()? })
    }
}

/// Writes page and figures where they are asked for, and prints.
fn show(paper: &dyn Shown, places: Places, terminal: &Terminal) -> Result<()> {
    let alone = on_stdout(&places.asked);
    let [html, json] = places.asked;
    let text = || paper.text(terminal.colour, terminal.columns());
    let markdown = |place: Destination| {
        let text = paper.markdown().context(
            "no mechanism was switched: --mechanisms runs them, and --markdown needs it",
        )?;
        Ok(place.write(text.as_bytes())?)
    };
    each_written([
        if alone { Ok(()) } else { terminal.print(&text()) },
        write_to(html, terminal, || Ok(paper.page().render())),
        write_to(json, terminal, || Ok(json::pretty(paper.format(), &paper.json())?)),
        places.markdown.map_or(Ok(()), markdown),
    ])
}

fn runtime(args: &ReproduceArgs, places: Places, terminal: &Terminal) -> Result<ExitCode> {
    let (machine, spec) = sim::machine(&args.machine)?;
    let depth = depth(args.depth);
    let beside = beside(args, depth);
    let keys = numa_aware::plan(&machine.name, depth, &beside);
    let jobs = args.jobs.map(usize::from);
    let file = args.results.as_deref();
    let records = match file.filter(|_| args.finished) {
        Some(file) => sim::sweep::finished(file, &keys)?,
        None => sim::sweep::to_the_end(&machine, &spec, &keys, file, jobs)?,
    };
    let runs = Runs { machine: machine.name.clone(), records, beside };
    let all = numa_aware(&spec, runs, numa_aware::constants::constants(&machine));
    show(&all, places, terminal)?;
    for missed in all.missed() {
        terminal.complain(&missed);
    }
    Ok(ExitCode::SUCCESS)
}

fn this_machine(
    args: &ReproduceArgs,
    interrupt: &Interrupt,
    terminal: &Terminal,
) -> Result<Contents> {
    if let Some(found) = atlas::known(args.atlas.as_deref(), terminal)? {
        if let Some(lack) = lacks(args.paper, &found) {
            terminal.complain(&format!("isochrone: {lack}"));
        }
        return Ok(found.contents);
    }
    let names: Vec<&str> = needs(args.paper).iter().map(|experiment| experiment.name()).collect();
    let scratch = scratch()?;
    let stop = || interrupt.is_set();
    Ok(atlas::quick_for_now(&names.join(","), scratch.path(), terminal, &stop)?.contents)
}
