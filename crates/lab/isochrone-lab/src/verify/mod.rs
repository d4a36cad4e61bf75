//! `isochrone verify`: whether the model is right, here and against what others published.

pub(crate) mod live;
mod model;
mod published;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use isochrone_atlas_store::contents::Contents;
use isochrone_cla::live::late_ns;
use isochrone_cla::program::Rank;
use isochrone_machine::LineCosts;
use isochrone_os::clock::Clock;
use isochrone_report::json::{self as written, Format};
use isochrone_report::{fmt, table::Cell, table::Table};
use isochrone_stats as stats;
use isochrone_units::{CoreId, Reading};
use serde_json::{Value, json};

use crate::args::{ModelArgs, VerifyCommand};
use isochrone_console::codes;
use isochrone_console::line_costs::{cores, measured};
use isochrone_console::output::Terminal;
use isochrone_console::progress::Interrupt;
use isochrone_console::run::atlas;
use isochrone_console::written::{Place, each_written, write_to};
use live::{Series, What, alone, series};
use model::{
    Beside, MEDIAN_OFF_MOST, OfCall, RATIO_MOST, SHARE_LEAST, Verdict, awaited_ns, block_phases,
    calls,
};

/// Runs the command.
pub(crate) fn run(command: &VerifyCommand, terminal: &Terminal) -> Result<ExitCode> {
    match command {
        VerifyCommand::Model(args) => check_model(args, terminal),
        VerifyCommand::Published(json) => published::run(json, terminal),
    }
}

/// What was measured here to have the model's costs.
struct Costs {
    costs: LineCosts,
    cores: [CoreId; 2],
}

/// Windows from which the cost of a call alone is taken.
const ALONE: u64 = 4000;
/// Windows from which the cost of a call that comes late is taken, for each rank.
const LATE: u64 = 2000;

/// Costs between the first two cores of the atlas. What a transfer takes is measured with the samples.
fn costs(atlas: &Contents) -> Result<Costs> {
    let cores = cores(atlas)?;
    let (Some(&first), Some(&second)) = (cores.first(), cores.get(1)) else {
        bail!("this needs two cores; the atlas has one");
    };
    Ok(Costs { costs: measured(atlas)?.costs, cores: [first, second] })
}

/// What a call costs beside its operations, at least and at most, measured now.
fn beside(what: What, cores: [CoreId; 2], clock: &Clock) -> Result<Beside> {
    let least_ns = mean_ns(&alone(what, cores[0], ALONE, clock)?, clock)?.max(0.0);
    let calls = calls(what)?;
    // The second call of a ring: neither is it the first, nor does it acknowledge.
    let usual = calls.get(1).or_else(|| calls.first()).context("a collective has calls")?;
    let mut most_ns = least_ns;
    for late in [Rank(0), Rank(1)] {
        let mut found = Vec::new();
        for block in series(what, cores, LATE, Some(late), clock)?.blocks {
            let Some(awaited_ns) = awaited_ns(usual, late, &block) else { continue };
            let ns: Vec<f64> = block.samples.iter().map(|sample| sample.ns).collect();
            found.push(mean_ns(&ns, clock)? - awaited_ns);
        }
        most_ns = most_ns.max(stats::median(&found).unwrap_or(least_ns));
    }
    Ok(Beside { least_ns, most_ns })
}

/// A mean: one reading is a multiple of the counter's step, which may be as long as the call.
fn mean_ns(ns: &[f64], clock: &Clock) -> Result<f64> {
    let found = stats::tick_mean(ns, clock.ns(f64::from(clock.tick)));
    Ok(found.context("no window began in time: is the machine busy?")?.mean)
}

/// What the model, with all costs times `scale`, says of what was measured.
fn verdict(
    what: What,
    live: Series,
    costs: &LineCosts,
    beside: Beside,
    scale: f64,
) -> Result<Verdict> {
    let calls = calls(what)?;
    let scaled = Beside { least_ns: beside.least_ns * scale, most_ns: beside.most_ns * scale };
    let mut blocks = Vec::with_capacity(live.blocks.len());
    for mut block in live.blocks {
        for times in &mut block.lines {
            times.from.iter_mut().flatten().for_each(|ns| *ns *= scale);
        }
        block.polls_ns.iter_mut().for_each(|ns| *ns *= scale);
        let phases = block_phases(&calls, &costs.scaled(scale), scaled, &block)?;
        blocks.push((block.samples, phases));
    }
    Ok(Verdict::of(what, &blocks, scaled))
}

/// What went on while measuring.
#[derive(Debug, Default)]
struct Seen {
    late: usize,
    /// From when on after its moment a rank was late, ns.
    late_ns: f64,
    blocks: usize,
    moved: usize,
    /// All lines of all blocks, ns.
    transfers_ns: Vec<f64>,
    /// How far the counter of rank 1 was ahead, for each block, ns.
    ahead_ns: Vec<f64>,
    /// From one poll to the next, ns; nothing where ranks do not pause.
    polls_ns: Vec<f64>,
}

impl Seen {
    fn add(&mut self, live: &Series) {
        self.late += live.blocks.iter().map(|b| b.late).sum::<usize>();
        self.blocks += live.blocks.len();
        self.moved += live.moved;
        self.polls_ns.extend(live.blocks.iter().flat_map(|b| &b.polls_ns));
        let lines = live.blocks.iter().flat_map(|b| &b.lines).flat_map(|l| &l.from);
        self.transfers_ns.extend(lines.flatten());
        self.ahead_ns
            .extend(live.blocks.iter().map(|b| f64::midpoint(b.ahead_ns[0], b.ahead_ns[1])));
    }

    /// Percentiles 5, 50 and 95 of a transfer.
    fn transfer_ns(&self) -> [f64; 3] {
        let mut all = self.transfers_ns.clone();
        all.sort_by(f64::total_cmp);
        [0.05, 0.5, 0.95].map(|q| stats::quantile(&all, q).unwrap_or(f64::NAN))
    }
}

fn check_model(args: &ModelArgs, terminal: &Terminal) -> Result<ExitCode> {
    let [place] = Place::open_all([args.json.asked()])?;
    let alone = place.as_ref().is_some_and(Place::is_stdout);
    let interrupt = Interrupt::install();
    let atlas = atlas::needed(args.atlas.as_deref(), terminal)?.contents;
    let clock = Clock::calibrate();
    let found = costs(&atlas)?;
    let mut verdicts = Vec::new();
    let mut seen = Seen { late_ns: late_ns(&clock), ..Seen::default() };
    for (done, what) in What::ALL.into_iter().enumerate() {
        // A verdict on some collectives is none on the model, so nothing is kept.
        interrupt.ends_with(&format!(
            "stopped: {done} of {} collectives were measured, and the model is not verified",
            What::ALL.len()
        ));
        let beside = beside(what, found.cores, &clock)?;
        let live = series(what, found.cores, args.windows, None, &clock)?;
        seen.add(&live);
        verdicts.push(verdict(what, live, &found.costs, beside, args.scale)?);
    }
    let faults: Vec<String> = verdicts.iter().flat_map(Verdict::faults).collect();
    let kept = write_to(place, terminal, || {
        let json = to_json(args, &found, &verdicts, &seen);
        Ok(written::pretty(Format::VerifyModel, &json)?)
    });
    let said = if alone {
        Ok(())
    } else {
        let mut lines = vec![text(args, &found, &verdicts, &seen, terminal.columns())];
        lines.extend(faults.iter().map(|fault| format!("the model is wrong: {fault}")));
        if faults.is_empty() {
            lines.push("the model holds".to_owned());
        }
        terminal.say(&lines.join("\n"))
    };
    each_written([said, kept])?;
    Ok(codes::checked(!faults.is_empty()))
}

fn of_call(call: &OfCall) -> Value {
    json!({
        "samples": call.samples,
        "below": call.outside[0],
        "above": call.outside[1],
        "t_min_ns": call.band[0],
        "t_max_ns": call.band[1],
        "live_ns_p50": call.live_ns,
        "above_ns_p50": call.above_ns.is_finite().then_some(call.above_ns),
        "simulated_median_ns": call.simulated_ns,
    })
}

fn to_json(args: &ModelArgs, found: &Costs, verdicts: &[Verdict], seen: &Seen) -> Value {
    let one = |v: &Verdict| {
        json!({
            "collective": v.what.collective().name(),
            "bytes": v.what.bytes(),
            "samples": v.samples,
            "inside_share": v.share(),
            "below": v.outside[0],
            "above": v.outside[1],
            "t_min_ns": v.band.min_ns,
            "t_max_ns": v.band.max_ns,
            "t_max_over_t_min": v.ratio[0],
            "t_max_over_t_min_largest": v.ratio[1],
            "live_ns_p5": v.live_ns[0],
            "live_ns_p50": v.live_ns[1],
            "live_ns_p95": v.live_ns[2],
            "simulated_median_ns": v.simulated_ns,
            "call_ns": v.beside.least_ns,
            "late_call_ns": v.beside.most_ns,
            "holds": v.faults().is_empty(),
            "calls": v.calls.iter().map(of_call).collect::<Vec<_>>(),
        })
    };
    json!({
        "readings": "live is measured, t_min and t_max are predicted, simulated is simulated",
        "scale": args.scale,
        "cores": found.cores.map(|c| c.0),
        "transfer_ns": seen.transfer_ns()[1],
        "transfer_ns_p5": seen.transfer_ns()[0],
        "transfer_ns_p95": seen.transfer_ns()[2],
        "counters_apart_ns": stats::median(&seen.ahead_ns),
        "poll_ns": stats::median(&seen.polls_ns),
        "local_ns": found.costs.local_ns,
        "windows": args.windows,
        "late_windows": seen.late,
        "late_ns": seen.late_ns,
        "blocks": seen.blocks,
        "moved_blocks": seen.moved,
        "collectives": verdicts.iter().map(one).collect::<Vec<_>>(),
    })
}

fn text(args: &ModelArgs, found: &Costs, verdicts: &[Verdict], seen: &Seen, width: u16) -> String {
    let [a, b] = found.cores.map(|c| c.0);
    let [least, middle, most] = seen.transfer_ns();
    let scaled = if (args.scale - 1.0).abs() > f64::EPSILON {
        format!(", all costs times {}", args.scale)
    } else {
        String::new()
    };
    [
        format!(
            "2 ranks on cores {a} and {b}: a line crosses in {middle:.1} ns, {least:.1} to {most:.1} for nine \
             in ten (measured before and after each block){scaled}",
        ),
        "T_min, T_max: predicted, medians over calls; live, and what a call costs beside its operations \
         (call: of one rank alone; late: of a rank that comes last): measured"
            .to_owned(),
        table(verdicts).to_terminal(width),
        format!(
            "it holds where {:.0} % of the live samples are inside and the simulated median is within {:.0} % of \
             the live one; a band is worth something where T_max is at most {RATIO_MOST} T_min; {} late \
             windows were left out, {} of {} blocks done again because a core was moved",
            100.0 * SHARE_LEAST,
            100.0 * MEDIAN_OFF_MOST,
            seen.late,
            seen.moved,
            seen.moved + seen.blocks
        ),
    ]
    .join("\n")
}

fn table(verdicts: &[Verdict]) -> Table {
    let mut table = Table::new([
        "collective",
        "T_min ns",
        "T_max ns",
        "ratio",
        "live p5",
        "p50",
        "p95",
        "call",
        "late",
        Reading::Simulated.as_str(),
        "inside",
    ]);
    let ns = |value: f64| Cell::number(value, fmt::significant(value, 4));
    for v in verdicts {
        table.row([
            Cell::text(v.what.collective().name()),
            ns(v.band.min_ns),
            ns(v.band.max_ns),
            Cell::number(v.ratio[0], format!("{:.2}", v.ratio[0])),
            ns(v.live_ns[0]),
            ns(v.live_ns[1]),
            ns(v.live_ns[2]),
            ns(v.beside.least_ns),
            ns(v.beside.most_ns),
            ns(v.simulated_ns),
            Cell::text(fmt::percent(v.share())),
        ]);
    }
    table
}
