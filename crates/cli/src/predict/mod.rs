//! `isochrone predict`: which tree a collective should use, and between which times it takes.

mod row;
mod show;
mod terms;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use anyhow::{Result, bail};
use isochrone_cla::predicted::{self, Rules};

pub(crate) use show::words;

use crate::args::PredictArgs;
use crate::line_costs;
use crate::output::{Terminal, write_file};

/// Runs the command.
pub(crate) fn run(args: &PredictArgs, terminal: &Terminal) -> Result<ExitCode> {
    let mut table = line_costs::of(args.machine.as_deref(), &args.atlas, args.smt.is_some())?;
    let terms = terms::asked(&args.terms, &table)?;
    terms::add(&mut table.costs.added, &terms.known);
    let table = table;
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
        rows.push(row::row(args, &table, &terms.known, count)?);
    }
    if let Some(path) = &args.shown.json {
        let json = serde_json::to_string_pretty(&show::json(args, &table, &terms, &rows))?;
        write_file(path, &json, terminal)?;
    }
    if let Some(last) = rows.iter().max_by_key(|row| row.threads) {
        pictures(args, last, terminal)?;
    }
    terminal.print(&show::text(args, &table, &terms, &rows, terminal.width))?;
    Ok(ExitCode::SUCCESS)
}

fn pictures(args: &PredictArgs, row: &row::Row, terminal: &Terminal) -> Result<()> {
    if args.shown.dot.is_none() && args.shown.svg.is_none() {
        return Ok(());
    }
    let prediction = row.prediction(Rules::Timed)?;
    let title = format!(
        "{} over {} threads: T_min {:.1} ns (predicted)",
        row.question.collective.name(),
        row.threads,
        prediction.min.total_ns
    );
    if let Some(path) = &args.shown.dot {
        write_file(path, &predicted::dot(&prediction, &prediction.min, &title), terminal)?;
    }
    if let Some(path) = &args.shown.svg {
        write_file(path, &predicted::svg(&prediction, &prediction.min, &title), terminal)?;
    }
    Ok(())
}
