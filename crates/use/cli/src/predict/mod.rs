//! `isochrone predict`: which tree a collective should use, and between which times it takes.

mod row;
mod show;
pub(crate) mod terms;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use isochrone_cla::collectives::Options;
use isochrone_cla::predicted::Rules;
use isochrone_report::json::Format;

use crate::args::{PredictArgs, TreeAsked};
use crate::shows::{Graph, Shows};
use isochrone_console::line_costs;
use isochrone_console::output::{Terminal, WrongUsage};
use isochrone_console::progress::Interrupt;

/// Lines that are touched at most by the calls that are recorded; one takes 0.3 KB.
const MOST_TOUCHED: u64 = 1 << 22;
/// Bytes of a line.
const LINE_BYTES: u64 = 64;

/// Runs the command.
pub(crate) fn run(args: &PredictArgs, terminal: &Terminal) -> Result<ExitCode> {
    if let Some(least) = args.threads.as_ref().and_then(|threads| threads.0.iter().min()) {
        refuse_root(args, *least)?;
    }
    let shows = Shows::open(Format::Predict, args.shown.asked())?;
    Interrupt::install().ends_with("isochrone predict: stopped before its end");
    let mut table = line_costs::of(
        args.machine.as_deref(),
        args.atlas.as_deref(),
        args.smt.is_some(),
        terminal,
    )?;
    let terms = terms::asked(&args.terms, &table)?;
    terms::add(&mut table.costs.added, &terms.known);
    let table = table;
    let cores = table.costs.cores();
    let root = usize::from(args.root);
    let threads = match &args.threads {
        Some(threads) => threads.0.clone(),
        None => match &args.tree {
            Some(TreeAsked::Parents(parents)) => vec![parents.len()],
            _ => (2.max(root + 1)..=cores).collect(),
        },
    };
    if let Some(many) = threads.iter().find(|&&n| n > cores) {
        let or = if args.smt.is_none() { ", or add --smt assumed" } else { "" };
        return Err(WrongUsage::error(format!(
            "{many} threads on the {cores} of {}; ask for at most {cores}{or}",
            table.machine
        )));
    }
    refuse_root(args, threads.iter().copied().min().unwrap_or(cores))?;
    refuse_too_much(args, threads.iter().copied().max().unwrap_or(0))?;
    ensure!(!threads.is_empty(), "{} has {cores} core, and a collective takes two", table.machine);
    let mut rows = Vec::with_capacity(threads.len());
    for &count in &threads {
        rows.push(row::row(args, &table, &terms.known, count)?);
    }
    let json = show::json(args, &table, &terms, &rows);
    let words = show::text(args, &table, &terms, &rows, terminal.columns());
    let graph = || graph(rows.iter().max_by_key(|row| row.threads).context("no threads")?);
    shows.show(&json, graph, &words, terminal)?;
    Ok(ExitCode::SUCCESS)
}

/// A root must be one of the fewest threads, too.
fn refuse_root(args: &PredictArgs, least: usize) -> Result<()> {
    if usize::from(args.root) < least {
        return Ok(());
    }
    let last = least.saturating_sub(1);
    Err(WrongUsage::error(format!(
        "--root {} is not one of {least} threads: their roots are 0 to {last}",
        args.root
    )))
}

/// Lines times calls that are recorded must fit into memory.
fn refuse_too_much(args: &PredictArgs, most: usize) -> Result<()> {
    let ring = u64::from(args.ring.unwrap_or(Options::RING));
    let lines = u64::from(args.bytes).div_ceil(LINE_BYTES).max(1);
    let touched = lines.saturating_mul(most as u64).saturating_mul(2 * ring + 1);
    if touched <= MOST_TOUCHED {
        return Ok(());
    }
    Err(WrongUsage::error(format!(
        "--bytes {} for {most} threads in calls that go twice round {ring} slots touch {touched} lines, and at \
         most {MOST_TOUCHED} are predicted: take fewer bytes or a smaller --ring",
        args.bytes
    )))
}

/// The graph of the chosen one.
fn graph(row: &row::Row<'_>) -> Result<Graph> {
    let prediction = row.prediction(Rules::Timed)?;
    let title = format!(
        "{} over {} threads: T_min {:.1} ns (predicted)",
        row.question.collective.name(),
        row.threads,
        prediction.min.total_ns
    );
    Ok(Graph { prediction, title })
}
