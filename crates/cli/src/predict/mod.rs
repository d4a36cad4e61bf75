//! `isochrone predict`: which tree a collective should use, and between which times it takes.

mod row;
mod show;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use anyhow::{Result, bail};
use isochrone_atlas_store::load;
use isochrone_cla::predicted::{self, Rules};

use crate::args::PredictArgs;
use crate::line_costs::{Table, described, measured};
use crate::output::{Terminal, write_file};

/// Runs the command.
pub(crate) fn run(args: &PredictArgs, terminal: &Terminal) -> Result<ExitCode> {
    let table = table(args)?;
    let cores = table.costs.cores();
    let threads = args.threads.as_ref().map_or_else(|| (2..=cores).collect(), |t| t.0.clone());
    if let Some(many) = threads.iter().find(|&&n| n > cores) {
        bail!(
            "{many} threads on the {cores} of {}; ask for at most {cores}{}",
            table.machine,
            if args.smt.is_none() { ", or add --smt assumed" } else { "" }
        );
    }
    let mut rows = Vec::with_capacity(threads.len());
    for &count in &threads {
        rows.push(row::row(args, &table, count)?);
    }
    if let Some(path) = &args.json {
        let json = serde_json::to_string_pretty(&show::json(args, &table, &rows))?;
        write_file(path, &json, terminal)?;
    }
    if let Some(last) = rows.iter().max_by_key(|row| row.threads) {
        pictures(args, last, terminal)?;
    }
    terminal.print(&show::text(args, &table, &rows, terminal.width))?;
    Ok(ExitCode::SUCCESS)
}

fn table(args: &PredictArgs) -> Result<Table> {
    match &args.machine {
        Some(name) => described(&isochrone_host::find_machine(name)?, args.smt.is_some()),
        None if args.smt.is_some() => {
            bail!("--smt assumed needs --machine: an atlas has measured its hardware threads")
        }
        None => measured(&load(&args.atlas)?),
    }
}

fn pictures(args: &PredictArgs, row: &row::Row, terminal: &Terminal) -> Result<()> {
    if args.dot.is_none() && args.svg.is_none() {
        return Ok(());
    }
    let prediction = row.prediction(Rules::Timed)?;
    let title = format!(
        "{} over {} threads: T_min {:.1} ns (predicted)",
        row.question.collective.name(),
        row.threads,
        prediction.min.total_ns
    );
    if let Some(path) = &args.dot {
        write_file(path, &predicted::dot(&prediction, &prediction.min, &title), terminal)?;
    }
    if let Some(path) = &args.svg {
        write_file(path, &predicted::svg(&prediction, &prediction.min, &title), terminal)?;
    }
    Ok(())
}
