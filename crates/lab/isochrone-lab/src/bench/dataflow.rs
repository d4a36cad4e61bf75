//! `isochrone bench cholesky|smi|streamcluster|jacobi|inthist`: the five benchmarks of the paper on
//! NUMA-aware task runtimes, in its regimes and ours, on this machine.

use isochrone_report::json::Format;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use isochrone_console::turns::{Ratio, Series};
use isochrone_report::fmt;
use isochrone_report::table::{Cell, Table};
use isochrone_tasks::live::{Config, Runtime};
use isochrone_tasks::{Regime, Report, Schedule, TaskError, Topology, Trace, TraceFile};
use isochrone_units::CoreId;
use isochrone_workloads::dataflow::histogram::Image;
use isochrone_workloads::dataflow::jacobi::Grid;
use isochrone_workloads::dataflow::problem::{Checked, Problem, Reference};
use isochrone_workloads::dataflow::streamcluster::Parameters;
use serde::Serialize;

use super::budget::Stop;
use super::findings::Findings;
use super::setting::Setting;
use crate::args::{DataflowArgs, HistogramArgs, JacobiArgs, MatrixArgs, StreamclusterArgs};
use crate::schedule_file;
use isochrone_console::written::{Place, asked, scratch};

/// Blocks unless told otherwise.
const BLOCKS: u32 = 5;
/// Tasks of each worker that a trace keeps: some 40 MB.
const TRACED_MAX: u32 = 1 << 20;
/// The arm that repeats the base: how far an arm is from itself.
const AGAIN: &str = "again";

/// The figures of one benchmark.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Figures {
    problem: String,
    threads: usize,
    regions: usize,
    /// More workers than cores: times say nothing then.
    oversubscribed: bool,
    first_touch: String,
    /// Whether every run of every regime was right.
    verified: bool,
    /// The largest of all runs.
    residual: f64,
    /// With all pages unmapped that a kernel did not declare; `null` where not asked for.
    footprint_checked: Option<bool>,
    regimes: Vec<RegimeFigures>,
    /// Time under NAFT over time under DFT: what regions cost where there is one, and gain where there are
    /// more. `null` where one of them did not run.
    naft_over_dft: Option<Controlled>,
    /// A run that followed a schedule; `null` where none was asked for.
    replayed: Option<Replayed>,
    series: Option<Series>,
}

/// A run that followed a schedule.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Replayed {
    /// Of what run the schedule is.
    program: String,
    /// Whether that was measured or simulated.
    recorded: &'static str,
    /// Time of this run; measured.
    seconds: f64,
    verified: bool,
}

/// One regime.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RegimeFigures {
    regime: &'static str,
    seconds: Option<f64>,
    gflops: Option<f64>,
    /// How many times faster than the first regime named.
    over_first: Option<Controlled>,
    tasks: u64,
    ns_per_task: f64,
    local_bytes: u64,
    remote_bytes: u64,
    spread_bytes: u64,
    steals: Vec<u64>,
    verified: bool,
    residual: f64,
}

/// A ratio beside that of an arm with itself.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Controlled {
    #[serde(flatten)]
    ratio: Ratio,
    control: Option<Ratio>,
}

pub(super) fn matrix(
    args: &MatrixArgs,
    inverse: bool,
    setting: &mut Setting<'_>,
) -> Result<Figures> {
    let (tiles, width) = (args.rows.div_ceil(args.tile), args.tile);
    let problem =
        if inverse { Problem::Smi { tiles, width } } else { Problem::Cholesky { tiles, width } };
    measure(problem, &args.run, setting)
}

pub(super) fn streamcluster(
    args: &StreamclusterArgs,
    setting: &mut Setting<'_>,
) -> Result<Figures> {
    let parameters = Parameters {
        points: args.points as usize,
        chunk: args.chunk as usize,
        block: args.block as usize,
        ..Parameters::PAPER
    };
    measure(Problem::Streamcluster(parameters), &args.run, setting)
}

pub(super) fn jacobi(args: &JacobiArgs, setting: &mut Setting<'_>) -> Result<Figures> {
    let grid = Grid {
        blocks: args.row_blocks as usize,
        rows: args.rows as usize,
        columns: args.columns as usize,
    };
    measure(Problem::Jacobi { grid, sweeps: args.sweeps as usize }, &args.run, setting)
}

pub(super) fn histogram(args: &HistogramArgs, setting: &mut Setting<'_>) -> Result<Figures> {
    let image = Image { blocks: args.image_blocks.into(), side: args.side.into() };
    measure(Problem::Histogram(image), &args.run, setting)
}

/// How runs are set up.
struct Bench {
    problem: Problem,
    args: DataflowArgs,
    cores: Vec<CoreId>,
    workers: usize,
    topology: Topology,
    /// The same with an atlas's latencies and bandwidths for costs, for our own policy.
    measured: Option<Topology>,
    seed: u64,
    reference: Reference,
}

/// What a run left.
struct Ran {
    seconds: f64,
    report: Report,
    trace: Trace,
    schedule: Result<Schedule, TaskError>,
    checked: Checked,
}

fn measure(problem: Problem, args: &DataflowArgs, setting: &mut Setting<'_>) -> Result<Figures> {
    let [record, trace] = Place::open_all([
        asked("--record", args.record.as_ref()),
        asked("--trace", args.trace.as_ref()),
    ])?;
    let topology = Topology::of(setting.machine());
    let cores = setting.cores(args.threads.map_or(usize::MAX, usize::from))?;
    let workers = args.threads.map_or(cores.len(), usize::from);
    let seed = setting.seed();
    setting.step("the serial reference");
    let stop = setting.stop();
    let reference =
        stop.apart(move || Ok(problem.reference(seed))).context("the serial reference")?;
    let of = args.clone();
    let mut bench =
        Bench { problem, args: of, cores, workers, topology, measured: None, seed, reference };
    let regimes = if args.regime.is_empty() { Regime::ALL.to_vec() } else { args.regime.clone() };
    if bench.topology.regions() > 1 && regimes.contains(&Regime::Isochrone) {
        let scratch = scratch()?;
        let atlas = setting.atlas(scratch.path())?;
        let found = bench.topology.clone();
        let (found, how) = found.measured(&atlas.atlas.atlas()?);
        bench.measured = Some(found);
        if let Some(missing) = how.missing() {
            setting.miss(missing);
        }
    }
    let bench = Arc::new(bench);
    let footprint_checked = match args.check_footprint {
        true => Some(bench.apart(&stop, Bench::check_footprint)?),
        false => None,
    };
    let mut last: Vec<Option<Ran>> = regimes.iter().map(|_| None).collect();
    let mut worst = Checked { verified: true, residual: 0.0 };
    let mut names: Vec<String> = regimes.iter().map(|r| r.name().to_owned()).collect();
    names.push(AGAIN.to_owned());
    let blocks = args.common.blocks.unwrap_or(BLOCKS);
    let series = setting.series(&names, "s", blocks, bench.problem.name(), &mut |arm| {
        let regime = *regimes.get(arm).unwrap_or(&regimes[0]);
        let ran =
            bench.apart(&stop, move |bench| bench.run(bench.config(regime, bench.workers)))?;
        worst.verified &= ran.checked.verified;
        worst.residual = worst.residual.max(ran.checked.residual);
        let seconds = ran.seconds;
        if let Some(last) = last.get_mut(arm) {
            *last = Some(ran);
        }
        Ok(seconds)
    })?;
    // What was asked for beside the comparison is made however long that has taken, unless nobody wants it any more.
    let wanted = stop.endless();
    let first = regimes[0];
    let replayed = args.replay.clone().map(|path| {
        setting.beyond_budget("a run that follows a schedule");
        bench.apart(&wanted, move |bench| bench.replay(&path, first))
    });
    let replayed = replayed.transpose()?;
    if let Some(place) = record {
        setting.beyond_budget("a schedule");
        let (program, schedule) = bench.apart(&wanted, move |bench| bench.record(first))?;
        place.write(&schedule_file::text(&program, &schedule)?, setting.terminal())?;
    }
    if let Some(place) = trace {
        setting.beyond_budget("traces");
        let all = regimes.clone();
        place.write(&bench.apart(&wanted, move |bench| bench.trace(&all))?, setting.terminal())?;
    }
    ensure!(worst.verified, "a run gave a wrong answer: residual {}", worst.residual);
    let any = last.iter().any(Option::is_some);
    let figures = regimes.iter().zip(last);
    let figures = figures.filter_map(|(regime, ran)| Some(bench.figures(*regime, &ran?, &series)));
    Ok(Figures {
        problem: format!("{}, {}", bench.problem.name(), bench.problem.words()),
        threads: workers,
        regions: bench.topology.regions(),
        oversubscribed: workers > bench.cores.len(),
        first_touch: format!("{:?}", args.first_touch).to_lowercase(),
        verified: any && worst.verified,
        residual: worst.residual,
        footprint_checked,
        regimes: figures.collect(),
        naft_over_dft: bench.naft_over_dft(&series),
        replayed,
        series: (!series.blocks.is_empty()).then_some(series),
    })
}

impl Bench {
    /// Does something that looks at nothing, apart from who waits for it.
    fn apart<T: Send + 'static>(
        self: &Arc<Self>,
        stop: &Stop,
        work: impl FnOnce(&Self) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let bench = Arc::clone(self);
        stop.apart(move || work(&bench))
    }

    fn config(&self, regime: Regime, workers: usize) -> Config {
        let measured = self.measured.as_ref().filter(|_| regime == Regime::Isochrone);
        let topology = measured.unwrap_or(&self.topology).clone();
        let mut config = Config::new(regime, workers, topology);
        config.cores = Some(self.cores.clone());
        config.setup.seed = self.seed;
        config
    }

    fn run(&self, config: Config) -> Result<Ran> {
        let mut run = Runtime::start(config)?;
        let touch = self.args.first_touch.into();
        let (answer, seconds) = self.problem.solve(&mut run, self.seed, touch)?;
        let (report, trace, schedule) = (run.report(), run.trace(), run.schedule());
        let checked = self.problem.check(&mut run, &answer, &self.reference, self.seed)?;
        Ok(Ran { seconds, report, trace, schedule, checked })
    }

    /// One more run of each regime, with every task on record.
    fn trace(&self, regimes: &[Regime]) -> Result<String> {
        let mut file = TraceFile::new();
        for regime in regimes {
            let mut config = self.config(*regime, self.workers);
            config.setup.capacity.trace = TRACED_MAX;
            file.add(regime.name(), &self.run(config)?.trace);
        }
        Ok(file.text())
    }

    /// One more run, whose schedule is kept, and of what program it is.
    fn record(&self, regime: Regime) -> Result<(String, Schedule)> {
        let mut config = self.config(regime, self.workers);
        config.setup.capacity.trace = TRACED_MAX;
        let ran = self.run(config)?;
        let program = format!("{}, {}, {regime}", self.problem.name(), self.problem.words());
        Ok((program, ran.schedule?))
    }

    /// A run that follows a schedule, with memory as the regime has it.
    fn replay(&self, path: &Path, regime: Regime) -> Result<Replayed> {
        let (program, schedule) = schedule_file::read(path)?;
        let reading = schedule.reading.as_str();
        let mut config = self.config(regime, self.workers);
        config.setup.follow = Some(schedule);
        let ran = self.run(config).with_context(|| format!("{}, of {program}", path.display()))?;
        ensure!(ran.checked.verified, "a wrong answer, residual {}", ran.checked.residual);
        Ok(Replayed { program, recorded: reading, seconds: ran.seconds, verified: true })
    }

    /// Runs with everything unmapped that a kernel did not declare. What touches it is killed, so this
    /// goes on only where nothing did.
    fn check_footprint(&self) -> Result<bool> {
        let mut config = self.config(Regime::Naft, 1);
        config.check_footprint = true;
        let ran = self.run(config).context("--check-footprint")?;
        if !ran.checked.verified {
            bail!("--check-footprint: a wrong answer, residual {}", ran.checked.residual);
        }
        Ok(true)
    }

    fn figures(&self, regime: Regime, ran: &Ran, series: &Series) -> RegimeFigures {
        let means = series.arm(regime.name()).map(|arm| series.block_means(arm));
        let seconds = means.as_deref().and_then(isochrone_stats::median);
        let ratio = |arm: &str| Ratio::of(series, arm, &series.arms[0], self.seed);
        let control = ratio(AGAIN);
        RegimeFigures {
            regime: regime.name(),
            seconds,
            gflops: self.problem.flops().zip(seconds).map(|(flops, s)| flops / s / 1e9),
            over_first: ratio(regime.name()).map(|ratio| Controlled { ratio, control }),
            tasks: ran.report.tasks,
            ns_per_task: ran.report.busy_ns as f64 / ran.report.tasks.max(1) as f64,
            local_bytes: ran.report.local_bytes(),
            remote_bytes: ran.report.remote_bytes(),
            spread_bytes: ran.report.spread_bytes,
            steals: ran.report.steals.clone(),
            verified: ran.checked.verified,
            residual: ran.checked.residual,
        }
    }
}

impl Bench {
    fn naft_over_dft(&self, series: &Series) -> Option<Controlled> {
        let (naft, dft) = (Regime::Naft.name(), Regime::Dft.name());
        let ratio = Ratio::of(series, dft, naft, self.seed)?;
        Some(Controlled { ratio, control: Ratio::of(series, AGAIN, &series.arms[0], self.seed) })
    }
}

impl Findings for Figures {
    const FORMAT: Format = Format::BenchTasks;

    fn text(&self, width: u16) -> String {
        let mut table = Table::new([
            "regime",
            "time",
            "GFLOP/s",
            "over first",
            "tasks",
            "ns a task",
            "local",
            "remote",
            "steals",
        ]);
        let three = |x: f64| fmt::significant(x, 3);
        let bytes = |n: u64| Cell::number(n as f64, fmt::bytes(n));
        for figure in &self.regimes {
            let over = figure.over_first.map(|controlled| controlled.ratio);
            table.row([
                Cell::text(figure.regime),
                Cell::maybe(figure.seconds, fmt::seconds),
                Cell::maybe(figure.gflops, three),
                over.map_or_else(Cell::missing, |r| Cell::number(r.median, r.to_string())),
                Cell::number(figure.tasks as f64, fmt::count(figure.tasks)),
                Cell::number(figure.ns_per_task, three(figure.ns_per_task)),
                bytes(figure.local_bytes),
                bytes(figure.remote_bytes),
                Cell::text(steals(&figure.steals)),
            ]);
        }
        let control = self.regimes.first().and_then(|figure| figure.over_first?.control);
        let control = control.map_or_else(|| "-".to_owned(), |ratio| ratio.to_string());
        let naft = self.naft_over_dft.map_or_else(String::new, |controlled| {
            format!("\nNAFT's time over DFT's: {}", controlled.ratio)
        });
        let oversubscribed =
            if self.oversubscribed { ", oversubscribed: times say nothing" } else { "" };
        let replayed = self.replayed.as_ref().map_or_else(String::new, |replayed| {
            format!(
                "\nOne run followed the {} schedule of {}: {}, verified.",
                replayed.recorded,
                replayed.program,
                fmt::seconds(replayed.seconds)
            )
        });
        let footprint = match self.footprint_checked {
            Some(_) => "\nEvery kernel ran with all pages unmapped that it did not declare.",
            None => "",
        };
        let verified = match self.verified {
            true => format!("verified: residual {} at most", three(self.residual)),
            false => "no run came to its end, and nothing is verified".to_owned(),
        };
        format!(
            "{}, {} workers in {} region{}{oversubscribed}\n{}\n{verified}; a regime over itself: \
             {control}{naft}{footprint}{replayed}",
            self.problem,
            self.threads,
            self.regions,
            if self.regions == 1 { "" } else { "s" },
            table.to_terminal(width),
        )
    }
}

/// Tasks taken from other regions, from the nearest to the farthest; the first number is always 0.
fn steals(by_distance: &[u64]) -> String {
    let words: Vec<String> = by_distance.iter().skip(1).map(u64::to_string).collect();
    words.join("/")
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{fits, ratio};
    use super::*;

    #[test]
    fn tables_fit_a_terminal() {
        let over = || ratio().map(|ratio| Controlled { ratio, control: Some(ratio) });
        let regime = |regime: Regime| RegimeFigures {
            regime: regime.name(),
            seconds: Some(1.234),
            gflops: Some(123.4),
            over_first: over(),
            tasks: 1_234_567,
            ns_per_task: 123_456.7,
            local_bytes: 123_456_789,
            remote_bytes: 123_456_789,
            spread_bytes: 0,
            steals: vec![0, 12_345, 1234, 123],
            verified: true,
            residual: 0.125,
        };
        fits(&Figures {
            problem: "cholesky, 4096 rows in tiles of 256".to_owned(),
            threads: 16,
            regions: 4,
            oversubscribed: true,
            first_touch: "blocks".to_owned(),
            verified: true,
            residual: 0.125,
            footprint_checked: Some(true),
            regimes: Regime::ALL.map(regime).into(),
            naft_over_dft: over(),
            replayed: None,
            series: None,
        });
    }
}
