//! `isochrone reproduce`: finds this machine's atlas (or makes a quick one), then prints.

use std::process::ExitCode;

use anyhow::{Context, Result};
use isochrone_atlas_store::contents::Contents;
use isochrone_workloads::figure4::Plan;

use crate::args::{DepthChoice, Paper, ReproduceArgs};
use crate::output::{Terminal, write_file};
use crate::run::atlas;
use crate::sim;

use super::SEED;
use super::hidden_numa::{self, Benched};
use super::latency_checker::{latency_checker, to_json, to_page, to_terminal};
use super::numa_aware::{self, Depth, Runs};
use super::{cla, pspt};

/// What the shell sees when runs were interrupted and their results kept.
const INTERRUPTED: u8 = 3;

/// Runs the command.
pub(crate) fn run(args: &ReproduceArgs, terminal: &Terminal) -> Result<ExitCode> {
    match args.paper {
        Paper::LatencyChecker => poster(args, terminal),
        Paper::HiddenNuma => paper(args, terminal),
        Paper::Pspt => page_tables(args, terminal),
        Paper::NumaAwareRuntime => runtime(args, terminal),
        Paper::Cla => cache_line_aware(args, terminal),
    }
}

fn paper(args: &ReproduceArgs, terminal: &Terminal) -> Result<ExitCode> {
    let benched = args.bench.as_deref().map(Benched::read).transpose()?;
    let contents = this_machine(args, terminal)?;
    let all = hidden_numa::hidden_numa(Some(&contents), benched, &Plan::paper(SEED))?;
    if let Some(path) = &args.html {
        write_file(path, &hidden_numa::to_page(&all).render(), terminal)?;
    }
    if let Some(path) = &args.json {
        write_file(path, &serde_json::to_string_pretty(&hidden_numa::to_json(&all))?, terminal)?;
    }
    let width = u16::try_from(terminal.width).unwrap_or(80);
    terminal.print(&hidden_numa::to_terminal(&all, terminal.colour, width))?;
    Ok(ExitCode::SUCCESS)
}

fn page_tables(args: &ReproduceArgs, terminal: &Terminal) -> Result<ExitCode> {
    let all = pspt::pspt(&isochrone_workloads::pspt::Plan::paper(SEED))?;
    if let Some(path) = &args.html {
        write_file(path, &pspt::to_page(&all).render(), terminal)?;
    }
    if let Some(path) = &args.json {
        write_file(path, &serde_json::to_string_pretty(&pspt::to_json(&all))?, terminal)?;
    }
    terminal.print(&pspt::to_terminal(&all, u16::try_from(terminal.width).unwrap_or(80)))?;
    Ok(ExitCode::SUCCESS)
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
    let all = numa_aware::numa_aware(&spec, runs, sim::constants::constants(&machine));
    if let Some(path) = &args.json {
        write_file(path, &serde_json::to_string_pretty(&numa_aware::to_json(&all))?, terminal)?;
    }
    if let Some(path) = &args.html {
        write_file(path, &numa_aware::to_page(&all).render(), terminal)?;
    }
    let width = u16::try_from(terminal.width).unwrap_or(80);
    terminal.print(&numa_aware::to_terminal(&all, width))?;
    for row in all.missed() {
        terminal.complain(&format!("{} has to hold and does not: {}", row.id, row.note));
    }
    Ok(ExitCode::SUCCESS)
}

fn cache_line_aware(args: &ReproduceArgs, terminal: &Terminal) -> Result<ExitCode> {
    let contents = this_machine(args, terminal)?;
    let threads: Vec<usize> = (2..=16).collect();
    let all = cla::cla(Some(&contents), &threads)?;
    if let Some(path) = &args.html {
        write_file(path, &cla::to_page(&all).render(), terminal)?;
    }
    if let Some(path) = &args.json {
        write_file(path, &serde_json::to_string_pretty(&cla::to_json(&all))?, terminal)?;
    }
    let width = u16::try_from(terminal.width).unwrap_or(80);
    terminal.print(&cla::to_terminal(&all, width))?;
    Ok(ExitCode::SUCCESS)
}

fn poster(args: &ReproduceArgs, terminal: &Terminal) -> Result<ExitCode> {
    let contents = this_machine(args, terminal)?;
    let all = latency_checker(Some(&contents), SEED)?;
    if let Some(path) = &args.html {
        write_file(path, &to_page(&all).render(), terminal)?;
    }
    if let Some(path) = &args.json {
        write_file(path, &serde_json::to_string_pretty(&to_json(&all))?, terminal)?;
    }
    let width = u16::try_from(terminal.width).unwrap_or(80);
    terminal.print(&to_terminal(&all, terminal.colour, width))?;
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
