//! `isochrone cla`: a program text predicted, simulated, checked and run.

mod live;
#[cfg(test)]
mod tests;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use isochrone_cla::check::{Checked, Fault, FaultKind, check};
use isochrone_cla::collectives::Tree;
use isochrone_cla::language::{Program, Setting, parse};
use isochrone_cla::predicted::{Band, Prediction, Rules, Start, predict};
use isochrone_cla::program::{Rank, Recorded};
use isochrone_cla::simulated::{Model, many};
use isochrone_machine::LineCosts;
use isochrone_report::json::Format;
use serde_json::{Value, json};

use crate::args::{ClaArgs, TreeAsked};
use crate::each::Done;
use crate::predict::terms;
use crate::shows::{Graph, Shows};
use crate::trees;
use isochrone_console::codes;
use isochrone_console::line_costs::{self, Table};
use isochrone_console::output::{Terminal, WrongUsage, read_text};
use isochrone_console::progress::Interrupt;
use live::{Calls, Live};

/// Calls before the one that is predicted, where the program counts its calls: lines are hot then.
const WARM: u64 = 3;

/// Ranks where nothing says how many.
const RANKS: u16 = 2;
/// More than the longest program that is parsed has.
const PROGRAM_BYTES_MAX: u64 = 2 << 20;

/// What was found.
struct Found {
    ranks: u16,
    prediction: Prediction,
    printed: Band,
    simulated_ns: [f64; 3],
    /// When each rank is done: predicted at its cheapest, and simulated.
    done: Done,
    simulated_done: Done,
    checked: Result<Checked, Box<Fault>>,
    /// What it did on this machine, or why it was not run.
    live: Result<Live, String>,
    calls: u64,
    /// Whether lines were where earlier calls left them.
    hot: bool,
}

/// Runs the command.
pub(crate) fn run(args: &ClaArgs, terminal: &Terminal) -> Result<ExitCode> {
    let shows = Shows::open(Format::Cla, args.shown.asked())?;
    Interrupt::install().ends_with("isochrone cla: stopped before its end");
    let name = args.file.display().to_string();
    let text = read_text(&args.file, PROGRAM_BYTES_MAX)?;
    let program = parse(&name, &text)?;
    let tree = tree(args)?;
    let mut table =
        line_costs::of(args.machine.as_deref(), args.atlas.as_deref(), false, terminal)?;
    let terms = terms::asked(&args.terms, &table)?;
    terms::add(&mut table.costs.added, &terms.known);
    let found = found(args, &program, tree, &table.costs)?;
    let graph = || {
        let title = format!("{} over {} ranks (predicted)", program.name(), found.ranks);
        Ok(Graph { prediction: found.prediction.clone(), title })
    };
    let json = to_json(args, &program, &table, &found);
    let mut text = words(args, &program, &table, &found);
    terms.notes.iter().for_each(|note| text.extend(["\n", note]));
    if args.each {
        let room = usize::from(terminal.columns());
        let lines = [
            found.done.words("done at T_min", room),
            found.simulated_done.words("done, simulated", room),
        ];
        lines.concat().iter().for_each(|line| text.extend(["\n", line]));
    }
    shows.show(&json, graph, &text, terminal)?;
    Ok(found.code())
}

impl Found {
    /// A fault of the program is what is looked for; that there are too many orders to look at is a failure.
    fn code(&self) -> ExitCode {
        if let Err(fault) = &self.checked
            && matches!(fault.kind, FaultKind::TooMany { .. })
        {
            return ExitCode::FAILURE;
        }
        let wrong = matches!(&self.live, Ok(Live { wrong: Some(_), .. }));
        codes::checked(self.checked.is_err() || wrong)
    }
}

fn found(args: &ClaArgs, program: &Program, tree: Tree, costs: &LineCosts) -> Result<Found> {
    let cores: Vec<usize> = (0..usize::from(tree.ranks())).collect();
    if cores.len() > costs.cores() {
        let why = format!("{} ranks on {} cores; ask for fewer", cores.len(), costs.cores());
        return Err(WrongUsage::error(why));
    }
    let ranks = tree.ranks();
    let setting = Setting { tree, values: args.values.clone() };
    let unknown = args.values.iter().find(|(name, _)| !program.values().contains(&name.as_str()));
    if let Some((name, _)) = unknown {
        let takes = match program.values().join(", ") {
            none if none.is_empty() => "none at all: leave --set out".to_owned(),
            some => some,
        };
        let program = program.name();
        return Err(WrongUsage::error(format!(
            "{program} takes no number `{name}`; it takes: {takes}"
        )));
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
    let runs = many(&now, start, costs, &cores, &Model::default(), 0..args.shown.seeds)?;
    let simulated_ns = [0.0, 0.5, 1.0].map(|q| runs.quantile_ns(q).unwrap_or(f64::NAN));
    let (done, simulated_done) = (Done::cheapest(&prediction), Done(runs.end_ns));
    let live = live(args, program, &setting, &checked);
    Ok(Found {
        ranks,
        prediction,
        printed,
        simulated_ns,
        done,
        simulated_done,
        checked,
        live,
        calls,
        hot,
    })
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
    let most = usize::try_from(args.live).unwrap_or(usize::MAX);
    let calls = Calls::of(program, setting, most).map_err(|error| format!("{error:#}"))?;
    live::play(&calls, Duration::from_secs(args.limit.into())).map_err(|error| format!("{error:#}"))
}

/// Which share of the samples lies in the band, where that is the band of this machine.
#[allow(clippy::cast_precision_loss, reason = "counts of samples are far below 2^52")]
fn inside(args: &ClaArgs, band: Band, live: &Live) -> Option<f64> {
    let all = live.samples_ns.len();
    let inside = live.samples_ns.iter().filter(|&&ns| band.holds(ns)).count();
    (args.machine.is_none() && all > 0).then(|| inside as f64 / all as f64)
}

/// The tree over as many ranks as are asked for.
fn tree(args: &ClaArgs) -> Result<Tree> {
    let (mut ranks, mut root) = (RANKS, Rank(0));
    if let TreeAsked::Parents(parents) = &args.tree {
        let tree = Tree::new(parents)?;
        (ranks, root) = (tree.ranks(), tree.root());
    }
    ranks = args.threads.unwrap_or(ranks);
    root = args.root.map_or(root, Rank);
    let named = matches!(args.tree, TreeAsked::Parents(_));
    if !named && root.0 >= ranks {
        let last = ranks - 1;
        let why = format!("--root {} of {ranks} ranks: ranks are 0 to {last}", root.0);
        return Err(WrongUsage::error(why));
    }
    trees::of(&args.tree, ranks, root)
}

fn to_json(args: &ClaArgs, program: &Program, table: &Table, found: &Found) -> Value {
    let band = found.prediction.band();
    let [least, median, most] = found.simulated_ns;
    json!({
        "program": program.name(),
        "machine": table.machine,
        "threads": found.ranks,
        "start": if found.hot { "hot" } else { "memory" },
        "t_min_ns": band.min_ns,
        "t_max_ns": band.max_ns,
        "printed_t_min_ns": found.printed.min_ns,
        "printed_t_max_ns": found.printed.max_ns,
        "simulated_min_ns": least,
        "simulated_median_ns": median,
        "simulated_max_ns": most,
        "done": found.done.json(),
        "simulated_done": found.simulated_done.json(),
        "inside_band": band.holds(median),
        "live": found.live.as_ref().ok().map(|live| json!({
            "calls": live.calls,
            "right": live.wrong.is_none(),
            "samples": live.samples_ns.len(),
            "late_windows": live.late,
            "late_ns": live.late_ns,
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
        format!("{}, {} ranks, {}", program.name(), found.ranks, table.machine),
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
