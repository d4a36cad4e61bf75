//! `isochrone cla`: a program text predicted, simulated, checked and run.

mod live;
#[cfg(test)]
mod tests;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use isochrone_cla::check::{Checked, Fault, FaultKind, check};
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
use live::{Calls, Live};

/// Calls before the one that is predicted, where the program counts its calls: lines are hot then.
const WARM: u64 = 3;

/// What was found.
struct Found {
    prediction: Prediction,
    printed: Band,
    simulated_ns: [f64; 3],
    checked: Result<Checked, Box<Fault>>,
    /// What it did on this machine, or why it was not run.
    live: Result<Live, String>,
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
    let table = line_costs::of(args.machine.as_deref(), args.atlas.as_deref(), false, terminal)?;
    let found = found(args, &program, &table.costs)?;
    if let Some(path) = &args.shown.json {
        let json = to_json(args, &program, &table, &found);
        write_file(path, &serde_json::to_string_pretty(&json)?, terminal)?;
    }
    let title = format!("{} over {} ranks (predicted)", program.name(), args.threads);
    if let Some(path) = &args.shown.dot {
        write_file(
            path,
            &predicted::dot(&found.prediction, &found.prediction.min, &title),
            terminal,
        )?;
    }
    if let Some(path) = &args.shown.svg {
        write_file(
            path,
            &predicted::svg(&found.prediction, &found.prediction.min, &title),
            terminal,
        )?;
    }
    terminal.print(&words(args, &program, &table, &found))?;
    let right = !matches!(&found.live, Ok(Live { wrong: Some(_), .. }));
    let good = found.checked.is_ok() && right;
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
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
    let runs = many(&now, start, costs, &cores, &Model::default(), 0..args.shown.seeds.max(1))?;
    let simulated_ns = [0.0, 0.5, 1.0].map(|q| runs.quantile_ns(q).unwrap_or(f64::NAN));
    let live = live(args, program, &setting, &checked);
    Ok(Found { prediction, printed, simulated_ns, checked, live, calls, hot })
}

/// Runs the program here, unless it is known to go wrong.
fn live(
    args: &ClaArgs,
    program: &Program,
    setting: &Setting,
    checked: &Result<Checked, Box<Fault>>,
) -> Result<Live, String> {
    if args.live == 0 {
        return Err("not asked for".to_owned());
    }
    if let Err(fault) = checked
        && !matches!(fault.kind, FaultKind::TooMany { .. })
    {
        return Err("the checker found a fault".to_owned());
    }
    let calls = Calls::of(program, setting, args.live).map_err(|error| format!("{error:#}"))?;
    live::play(&calls, Duration::from_secs(args.limit)).map_err(|error| format!("{error:#}"))
}

/// Which share of the samples lies in the band, where that is the band of this machine.
#[allow(clippy::cast_precision_loss, reason = "counts of samples are far below 2^52")]
fn inside(args: &ClaArgs, band: Band, live: &Live) -> Option<f64> {
    let all = live.samples_ns.len();
    let inside = live.samples_ns.iter().filter(|&&ns| band.holds(ns)).count();
    (args.machine.is_none() && all > 0).then(|| inside as f64 / all as f64)
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
        "live": found.live.as_ref().ok().map(|live| json!({
            "calls": live.calls,
            "right": live.wrong.is_none(),
            "samples": live.samples_ns.len(),
            "late_windows": live.late,
            "p5_ns": live.quantile_ns(0.05),
            "median_ns": live.quantile_ns(0.5),
            "p95_ns": live.quantile_ns(0.95),
            "inside_share": inside(args, band, live),
        })),
        "not_live": found.live.as_ref().err(),
        "checked_calls": found.calls,
        "states": found.checked.as_ref().ok().map(|c| c.states),
        "fault": found.checked.as_ref().err().map(ToString::to_string),
        "assumed": table.assumed,
    })
}

fn live_words(args: &ClaArgs, band: Band, live: &Result<Live, String>) -> String {
    let live = match live {
        Ok(live) => live,
        Err(why) => return format!("live: not run: {why}"),
    };
    let calls = live.calls;
    if let Some((call, rank)) = live.wrong {
        return format!(
            "live: WRONG: after call {} of {calls} rank {rank} holds other bytes",
            call + 1
        );
    }
    let quantiles = [0.5, 0.05, 0.95].map(|q| live.quantile_ns(q));
    let [Some(median), Some(low), Some(high)] = quantiles else {
        return format!("live: {calls} calls, all bytes right; not timed: ranks share cores");
    };
    let share = match inside(args, band, live) {
        Some(share) => format!("{:.1} % inside the predicted band", 100.0 * share),
        None => "on this machine, which is not the predicted one".to_owned(),
    };
    let late = live.late;
    format!(
        "live: median {median:.1} ns, {low:.1} to {high:.1} for nine in ten of {} calls (measured; {late} late); all \
         bytes right; {share}",
        live.samples_ns.len()
    )
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
        live_words(args, band, &found.live),
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
