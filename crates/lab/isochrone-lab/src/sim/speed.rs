//! `isochrone bench sim`: how fast the simulator is, in time of one core of this machine. Measured, while what
//! it simulates is not.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use isochrone_machine::Machine;
use isochrone_papers::numa_aware::record::{Key, Record, real};
use isochrone_report::fmt;
use isochrone_report::json::{self as written, Format};
use isochrone_report::table::{Cell, Table};
use isochrone_sim::coherence::NumaSpec;
use isochrone_tasks::Regime;
use isochrone_units::Reading;
use isochrone_workloads::numa::{Bench, Variant};
use serde_json::{Value, json};

use super::made;
use crate::args::SpeedArgs;
use crate::bench::{LeftOut, Stop, words};
use isochrone_console::codes;
use isochrone_console::output::Terminal;
use isochrone_console::progress::Interrupt;
use isochrone_console::written::{Place, each_written, write_to};

/// One case, several times.
pub(super) struct Speed {
    pub(super) key: Key,
    pub(super) runs: Vec<Record>,
}

impl Speed {
    /// Least, median and most of something over the runs.
    fn spread(&self, of: impl Fn(&Record) -> f64) -> [f64; 3] {
        let mut values: Vec<f64> = self.runs.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        let last = values.len() - 1;
        [values[0], f64::midpoint(values[last / 2], values[last.div_ceil(2)]), values[last]]
    }

    fn touches_per_s(&self) -> [f64; 3] {
        self.spread(|run| real(run.touches) / run.host_seconds)
    }

    fn events_per_s(&self) -> [f64; 3] {
        self.spread(|run| real(run.solved) / run.host_seconds)
    }

    /// Bytes of state for each GiB of data.
    fn state_per_gib(&self) -> f64 {
        let run = &self.runs[0];
        real(run.state_bytes) / (real(run.data_bytes) / f64::from(1 << 30))
    }

    fn left_out(&self, wanted: u32) -> Option<LeftOut> {
        let done = u32::try_from(self.runs.len()).unwrap_or(u32::MAX);
        let what = format!("{} under {}", self.key.bench, self.key.regime);
        (done < wanted).then_some(LeftOut { what, done, wanted, of: "runs" })
    }

    fn json(&self) -> Value {
        let spread =
            |[least, median, most]: [f64; 3]| json!({ "median": median, "lo": least, "hi": most });
        json!({
            "benchmark": self.key.bench, "regime": self.key.regime, "threads": self.key.threads,
            "verified": self.runs.iter().all(|run| run.verified),
            "host_seconds": spread(self.spread(|run| run.host_seconds)),
            "touches_per_s": spread(self.touches_per_s()),
            "events_per_s": spread(self.events_per_s()),
            "state_bytes_per_gib": self.state_per_gib(),
            "touches": self.runs[0].touches,
        })
    }
}

/// Runs of each case, unless told otherwise.
const REPEATS: u16 = 3;

/// Runs the command.
pub(crate) fn run(args: &SpeedArgs, terminal: &Terminal) -> Result<ExitCode> {
    let [place] = Place::open_all([args.json.asked()])?;
    let alone = place.as_ref().is_some_and(Place::is_stdout);
    let (machine, spec) = super::machine(&args.machine)?;
    let mut all: Vec<Speed> =
        cases(args, &machine, &spec).map(|key| Speed { key, runs: Vec::new() }).collect();
    let repeats = args.repeats.unwrap_or(REPEATS);
    let budget = args.time();
    let stop = Stop::new(Interrupt::install(), budget.map(|budget| Instant::now() + budget));
    let simulator = Arc::new((machine, spec));
    'runs: for _ in 0..repeats {
        for speed in &mut all {
            match one(&simulator, &speed.key, &stop)? {
                Some(record) => speed.runs.push(record),
                None => break 'runs,
            }
        }
    }
    let left_out: Vec<LeftOut> =
        all.iter().filter_map(|speed| speed.left_out(repeats.into())).collect();
    all.retain(|speed| !speed.runs.is_empty());
    let verified = all.iter().all(|speed| speed.runs.iter().all(|run| run.verified));
    let budget_s = budget.map(|budget| budget.as_secs_f64());
    let kept = write_to(place, terminal, || {
        let report = json!({
            "reading": Reading::Measured,
            "what": "time of one core of this machine that the simulator takes",
            "machine": simulator.0.name,
            "verified": verified,
            "complete": left_out.is_empty(),
            "repeats": repeats,
            "budget_s": budget_s,
            "left_out": left_out,
            "runs": all.iter().map(Speed::json).collect::<Vec<_>>(),
        });
        Ok(written::pretty(Format::BenchSim, &report)? + "\n")
    });
    let said = if alone {
        Ok(())
    } else {
        let lines = [Some(table(&all).to_terminal(terminal.columns())), words(&left_out, budget_s)];
        terminal.say(&lines.into_iter().flatten().collect::<Vec<_>>().join("\n"))
    };
    each_written([said, kept])?;
    Ok(match (stop.is_interrupted(), verified) {
        (true, _) => ExitCode::from(codes::INTERRUPTED),
        (false, true) => ExitCode::SUCCESS,
        (false, false) => ExitCode::FAILURE,
    })
}

/// Every benchmark in every regime of the paper.
fn cases(args: &SpeedArgs, machine: &Machine, spec: &NumaSpec) -> impl Iterator<Item = Key> {
    let threads = u16::try_from(spec.cores()).unwrap_or(u16::MAX);
    let benches = if args.bench.is_empty() { vec![Bench::Cholesky] } else { args.bench.clone() };
    let (name, paper_size) = (machine.name.clone(), args.size.is_paper());
    benches.into_iter().flat_map(move |bench| {
        let name = name.clone();
        [Regime::Dft, Regime::Di, Regime::Naft].into_iter().map(move |regime| {
            let own: &[Variant] = if regime == Regime::Naft { &[Variant::InoutTwice] } else { &[] };
            Key { paper_size, ..Key::new(&name, bench, regime, threads).with(own) }
        })
    })
}

/// One run; `None` where it was ended before its time.
fn one(simulator: &Arc<(Machine, NumaSpec)>, key: &Key, stop: &Stop) -> Result<Option<Record>> {
    let (simulator, key) = (Arc::clone(simulator), key.clone());
    match stop.apart(move || made::make(&simulator.0, &simulator.1, &key)) {
        Err(_) if stop.is_set() => Ok(None),
        made => made.map(Some),
    }
}

pub(super) fn table(all: &[Speed]) -> Table {
    let mut table = Table::new([
        "benchmark",
        "regime",
        "threads",
        "core seconds",
        "touches/s",
        "least to most",
        "events/s",
        "state for each GiB",
    ])
    .keyed(3);
    for speed in all {
        let number = |value: f64| Cell::number(value, fmt::significant(value, 3));
        let touches = speed.touches_per_s();
        let range = [touches[0], touches[2]].map(|value| fmt::significant(value, 3));
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "bytes, not negative"
        )]
        let state = speed.state_per_gib() as u64;
        table.row([
            speed.key.bench.as_str().into(),
            speed.key.regime.as_str().into(),
            number(f64::from(speed.key.threads)),
            number(speed.spread(|run| run.host_seconds)[1]),
            number(touches[1]),
            Cell::number(touches[1], range.join(" to ")),
            number(speed.events_per_s()[1]),
            fmt::bytes(state).into(),
        ]);
    }
    table
}
