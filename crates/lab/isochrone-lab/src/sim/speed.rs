//! `isochrone bench sim`: how fast the simulator is, in time of one core of this machine. Measured, while what
//! it simulates is not.

use std::process::ExitCode;

use anyhow::Result;
use isochrone_papers::numa_aware::record::{Key, Record, real};
use isochrone_report::fmt;
use isochrone_report::table::{Cell, Table};
use isochrone_tasks::Regime;
use isochrone_units::Reading;
use isochrone_workloads::numa::{Bench, Variant};
use serde_json::{Value, json};

use super::made;
use crate::args::SpeedArgs;
use crate::output::{Terminal, write_file};

/// One case, several times.
struct Speed {
    key: Key,
    runs: Vec<Record>,
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

/// Runs the command.
pub(crate) fn run(args: &SpeedArgs, terminal: &Terminal) -> Result<ExitCode> {
    let (machine, spec) = super::machine(&args.machine)?;
    let threads = u16::try_from(spec.cores()).unwrap_or(u16::MAX);
    let benches = if args.bench.is_empty() { vec![Bench::Cholesky] } else { args.bench.clone() };
    let mut all = Vec::new();
    for bench in benches {
        for regime in [Regime::Dft, Regime::Di, Regime::Naft] {
            let own: &[Variant] = if regime == Regime::Naft { &[Variant::InoutTwice] } else { &[] };
            let key = Key {
                paper_size: args.size.is_paper(),
                ..Key::new(&machine.name, bench, regime, threads).with(own)
            };
            let runs = (0..args.repeats).map(|_| made::make(&machine, &spec, &key));
            all.push(Speed { runs: runs.collect::<Result<_>>()?, key });
        }
    }
    let verified = all.iter().all(|speed| speed.runs.iter().all(|run| run.verified));
    if let Some(path) = &args.json {
        let report = json!({
            "reading": Reading::Measured,
            "what": "time of one core of this machine that the simulator takes",
            "machine": machine.name,
            "verified": verified,
            "repeats": args.repeats,
            "runs": all.iter().map(Speed::json).collect::<Vec<_>>(),
        });
        write_file(path, &(serde_json::to_string_pretty(&report)? + "\n"), terminal)?;
    }
    if args.json.as_ref().is_none_or(|path| path.as_os_str() != "-") {
        terminal.print(&table(&all, terminal))?;
    }
    Ok(if verified { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn table(all: &[Speed], terminal: &Terminal) -> String {
    let mut table = Table::new([
        "benchmark",
        "regime",
        "threads",
        "core seconds",
        "touches/s",
        "least to most",
        "events/s",
        "state for each GiB",
    ]);
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
            range.join(" to ").into(),
            number(speed.events_per_s()[1]),
            fmt::bytes(state).into(),
        ]);
    }
    table.to_terminal(u16::try_from(terminal.width).unwrap_or(80))
}
