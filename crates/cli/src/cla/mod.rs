//! `isochrone cla`: a program text predicted, simulated and checked.

#[cfg(test)]
mod tests;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use isochrone_cla::check::{Checked, Fault, check};
use isochrone_cla::collectives::Tree;
use isochrone_cla::language::{Program, Setting, parse};
use isochrone_cla::predicted::{self, Band, Prediction, Rules, Start, predict};
use isochrone_cla::program::{Rank, Recorded};
use isochrone_cla::simulated::{Model, many};
use isochrone_machine::LineCosts;
use serde_json::{Value, json};

use crate::args::ClaArgs;
use crate::line_costs::{self, Table};
use crate::output::{Terminal, write_file};

/// Calls before the one that is predicted, where the program counts its calls: lines are hot then.
const WARM: u64 = 3;

/// What was found.
struct Found {
    prediction: Prediction,
    printed: Band,
    simulated_ns: [f64; 3],
    checked: Result<Checked, Box<Fault>>,
    calls: u64,
    /// Whether lines were where earlier calls left them.
    hot: bool,
}

/// Runs the command.
pub(crate) fn run(args: &ClaArgs, terminal: &Terminal) -> Result<ExitCode> {
    let name = args.file.display().to_string();
    let text =
        std::fs::read_to_string(&args.file).with_context(|| format!("{name} cannot be read"))?;
    let program = parse(&name, &text)?;
    let table = line_costs::of(args.machine.as_deref(), &args.atlas, false)?;
    let found = found(args, &program, &table.costs)?;
    if let Some(path) = &args.json {
        let json = to_json(args, &program, &table, &found);
        write_file(path, &serde_json::to_string_pretty(&json)?, terminal)?;
    }
    let title = format!("{} over {} ranks (predicted)", program.name(), args.threads);
    if let Some(path) = &args.dot {
        write_file(
            path,
            &predicted::dot(&found.prediction, &found.prediction.min, &title),
            terminal,
        )?;
    }
    if let Some(path) = &args.svg {
        write_file(
            path,
            &predicted::svg(&found.prediction, &found.prediction.min, &title),
            terminal,
        )?;
    }
    terminal.print(&words(args, &program, &table, &found))?;
    Ok(if found.checked.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn found(args: &ClaArgs, program: &Program, costs: &LineCosts) -> Result<Found> {
    let setting = Setting { tree: tree(args)?, values: args.values.clone() };
    let cores: Vec<usize> = (0..usize::from(args.threads)).collect();
    if cores.len() > costs.cores() {
        bail!("{} ranks on {} cores; ask for fewer", cores.len(), costs.cores());
    }
    let unknown = args.values.iter().find(|(name, _)| !program.values().contains(&name.as_str()));
    if let Some((name, _)) = unknown {
        bail!(
            "{} takes no number `{name}`; it takes: {}",
            program.name(),
            program.values().join(", ")
        );
    }
    let hot = program.counts_calls();
    let calls = args.calls.unwrap_or(if hot { 2 } else { 1 });
    let each: Vec<Recorded> =
        (0..calls).map(|n| program.record(&setting, n, n + 1)).collect::<Result<_, _>>()?;
    let checked = check(&each, args.states);
    let (warm, now) = if hot {
        (Some(program.record(&setting, 0, WARM)?), program.record(&setting, WARM, WARM + 1)?)
    } else {
        (None, program.record(&setting, 0, 1)?)
    };
    let start = warm.as_ref().map_or(Start::Memory, Start::After);
    let prediction = predict(&now, start, costs, &cores, Rules::Timed)?;
    let printed = predict(&now, start, costs, &cores, Rules::Paper)?.band();
    let runs = many(&now, start, costs, &cores, &Model::default(), 0..args.seeds.max(1))?;
    let simulated_ns = [0.0, 0.5, 1.0].map(|q| runs.quantile_ns(q).unwrap_or(f64::NAN));
    Ok(Found { prediction, printed, simulated_ns, checked, calls, hot })
}

fn tree(args: &ClaArgs) -> Result<Tree> {
    let (ranks, root) = (args.threads, Rank(args.root));
    if ranks == 0 || root.0 >= ranks {
        bail!("root {} of {ranks} ranks; ranks are 0 to {}", root.0, ranks.saturating_sub(1));
    }
    match args.tree.as_str() {
        "flat" => Ok(Tree::flat(ranks, root)),
        "binomial" => Ok(Tree::binomial(ranks, root)),
        parents if parents.contains(',') => {
            let one = |p: &str| match p.trim() {
                "-" => Ok(None),
                rank => rank.parse().map(|r| Some(Rank(r))),
            };
            let parents: Vec<Option<Rank>> = parents
                .split(',')
                .map(one)
                .collect::<Result<_, _>>()
                .context("--tree takes ranks and one `-`, such as -,0,0,1")?;
            if parents.len() != usize::from(ranks) {
                bail!("--tree has {} ranks, --threads {ranks}", parents.len());
            }
            Ok(Tree::new(&parents)?)
        }
        degree => match degree.parse::<u16>() {
            Ok(degree) if degree > 0 => Ok(Tree::regular(ranks, root, degree)),
            _ => bail!("--tree {degree}: flat, binomial, a degree, or parents such as -,0,0,1"),
        },
    }
}

fn to_json(args: &ClaArgs, program: &Program, table: &Table, found: &Found) -> Value {
    let band = found.prediction.band();
    let [least, median, most] = found.simulated_ns;
    json!({
        "program": program.name(),
        "machine": table.machine,
        "threads": args.threads,
        "start": if found.hot { "hot" } else { "memory" },
        "t_min_ns": band.min_ns,
        "t_max_ns": band.max_ns,
        "printed_t_min_ns": found.printed.min_ns,
        "printed_t_max_ns": found.printed.max_ns,
        "simulated_min_ns": least,
        "simulated_median_ns": median,
        "simulated_max_ns": most,
        "inside_band": band.holds(median),
        "checked_calls": found.calls,
        "states": found.checked.as_ref().ok().map(|c| c.states),
        "fault": found.checked.as_ref().err().map(ToString::to_string),
        "assumed": table.assumed,
    })
}

fn words(args: &ClaArgs, program: &Program, table: &Table, found: &Found) -> String {
    let band = found.prediction.band();
    let [least, median, most] = found.simulated_ns;
    let mut lines = vec![
        format!("{}, {} ranks, {}", program.name(), args.threads, table.machine),
        format!(
            "predicted: {:.1} to {:.1} ns; by the printed rules {:.1} to {:.1} ns ({})",
            band.min_ns,
            band.max_ns,
            found.printed.min_ns,
            found.printed.max_ns,
            if found.hot { "hot, as calls before leave lines" } else { "lines in memory" }
        ),
        format!("simulated: median {median:.1} ns, {least:.1} to {most:.1} over seeds"),
        "live: not run; the live reading runs programs that are written in Rust".to_owned(),
    ];
    match &found.checked {
        Err(fault) => lines.push(format!("checked, {} calls: {fault}", found.calls)),
        Ok(checked) => {
            let calls = found.calls;
            lines.push(format!(
                "checked, {calls} calls in every order: no fault in {} states",
                checked.states
            ));
            lines.extend(checked.delivered.iter().map(|d| format!("  {d}")));
        }
    }
    lines.extend(table.assumed.iter().map(|what| format!("assumed: {what}")));
    lines.join("\n")
}
