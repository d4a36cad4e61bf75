//! `isochrone run --compare`: what placing gains, by runs with and without that take turns.
//!
//! The first run is what the user asked for, and says what the program says; the others are silent. All of them
//! read the same input: what can be read only once is kept for them. It decides nothing about placing.

use std::fs::File;
use std::io::{IsTerminal as _, Read as _, stdin};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use isochrone_console::output::Terminal;
use isochrone_console::run::record::ProcessRecord;
use isochrone_console::run::signals::Signals;
use isochrone_console::run::start::Program;
use isochrone_console::run::usage::{Measured, Usage};
use isochrone_console::run::{record, setup, usage};
use isochrone_console::turns::{Ratio, Series, Verdict};
use serde::Serialize;

/// The time for the runs after the first one, unless told otherwise.
const BUDGET: Duration = Duration::from_secs(60);
/// More blocks say nothing new, however short the program is.
const BLOCKS_MOST: usize = 30;
/// The most input that is kept.
const INPUT_MOST: u64 = 1 << 30;
/// How long the end of the input is waited for in silence.
const PATIENCE: Duration = Duration::from_secs(2);
const WAITING: &str = "isochrone: --compare waits for the end of standard input, which it keeps for all runs \
                       (< /dev/null if there is nothing to read)";
/// The arms; runs without placement are there twice, as a control.
const ARMS: [&str; 3] = ["without", "without again", "with"];
const WITHOUT: usize = 0;
const AGAIN: usize = 1;
const WITH: usize = 2;

/// Runs of the program with placement and without.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Comparison {
    /// The first run with, which is the one that was seen.
    pub(crate) with: Usage,
    /// The first run without.
    pub(crate) without: Usage,
    /// Peak resident memory with, over that without: the median over blocks, if there are any.
    pub(crate) rss_ratio: Option<f64>,
    pub(crate) verdict: Word,
    /// How many times faster with placement.
    pub(crate) faster: Option<Ratio>,
    /// Without against without.
    pub(crate) aa_control: Option<Ratio>,
    /// Peak resident memory with, over that without, with its interval.
    pub(crate) rss: Option<Ratio>,
    pub(crate) budget_s: f64,
    pub(crate) seed: u64,
    /// Seconds of every run that counts.
    pub(crate) series: Series,
}

/// What the runs say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum Word {
    Faster,
    Slower,
    /// None beyond the control.
    NoDifference,
    /// The time was enough for fewer blocks than an interval takes.
    TooFewRuns,
}

/// The two ways to run a program, and where it is run.
pub(super) struct Sides<'a> {
    pub(super) with: Measured<'a>,
    pub(super) without: Measured<'a>,
    pub(super) scratch: &'a Path,
    pub(super) signals: &'a Signals,
    pub(super) budget: Option<Duration>,
}

/// What came of it.
pub(super) struct Compared {
    /// The program's exit code: of the first run, or of the first one that failed.
    pub(super) code: u8,
    /// What the processes of the first run left.
    pub(super) processes: Vec<ProcessRecord>,
    /// Nothing where a run failed.
    pub(super) comparison: Option<Comparison>,
    /// Why there is no comparison.
    pub(super) failed: Option<String>,
}

impl Sides<'_> {
    /// Runs the program once for the user, and then by turns.
    pub(super) fn compare(&self, terminal: Terminal) -> Result<Compared> {
        let input = input(self.scratch, terminal)?;
        let with = self.once(WITH, &input, true)?;
        let processes = record::read_all(self.scratch)?;
        if with.code != 0 {
            let code = with.code;
            let failed = format!("the program ended with {code}: nothing is compared");
            return Ok(Compared { code, processes, comparison: None, failed: Some(failed) });
        }
        let mut turns = Turns::new(self, &input, with);
        turns.all()?;
        Ok(match turns.failed {
            Some((arm, code)) => Compared {
                code,
                processes,
                comparison: None,
                failed: Some(format!(
                    "a run {} placement ended with {code}, and the first one with 0: nothing is compared",
                    if arm == WITH { "with" } else { "without" }
                )),
            },
            None => {
                let comparison = turns.found().map(Comparison::of);
                Compared { code: 0, processes, comparison, failed: None }
            }
        })
    }

    /// One run. Who wants an end wants no other one: then it has not been, and has the code of that.
    fn once(&self, arm: usize, input: &Path, seen: bool) -> Result<Usage> {
        let ended = |code| Usage { code, ..Usage::default() };
        if let Some(code) = self.signals.wish()? {
            return Ok(ended(code));
        }
        let out = self.scratch.join("usage.json");
        let measured = if arm == WITH { &self.with } else { &self.without };
        if arm == WITH {
            // Threads are bound from the first core on in every run.
            setup::bindings(self.scratch)?;
        }
        let program = Program::of(&measured.command(&out, None, None)?).reads(input);
        // What the run before left says nothing of this one.
        let _ = std::fs::remove_file(&out);
        self.signals.run(&if seen { program } else { program.silently() })?;
        match (self.signals.wish()?, usage::read(&out)) {
            // A program may end well, and whoever keeps its account may be ended before there is one.
            (Some(code), account) => {
                Ok(account.ok().filter(|usage| usage.code != 0).unwrap_or_else(|| ended(code)))
            }
            (None, account) => account,
        }
    }
}

/// Where the runs read: what stands on standard input now, or nothing where that is a terminal.
fn input(scratch: &Path, terminal: Terminal) -> Result<PathBuf> {
    if stdin().is_terminal() {
        return Ok(PathBuf::from("/dev/null"));
    }
    let kept = scratch.join("input");
    let mut file = File::create(&kept).with_context(|| kept.display().to_string())?;
    let (done, waits) = channel::<()>();
    thread::spawn(move || {
        if waits.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            terminal.complain(WAITING);
        }
    });
    let copied = std::io::copy(&mut stdin().lock().take(INPUT_MOST + 1), &mut file);
    drop(done);
    let bytes = copied.context("standard input cannot be kept for the runs")?;
    ensure!(
        bytes <= INPUT_MOST,
        "--compare keeps what the program reads, so that each run can read it, and there is more than {} MiB: name \
         the file to the program instead",
        INPUT_MOST >> 20
    );
    Ok(kept)
}

/// Runs under way.
struct Turns<'a> {
    sides: &'a Sides<'a>,
    input: &'a Path,
    with: Usage,
    without: Option<Usage>,
    budget: Duration,
    begin: Instant,
    /// The longest run so far.
    longest: Duration,
    seed: u64,
    series: Series,
    /// Peak resident memory of every run, by arm, in the order of time.
    memory: Vec<(usize, Option<u64>)>,
    /// The arm and the code of a run that failed.
    failed: Option<(usize, u8)>,
}

impl<'a> Turns<'a> {
    fn new(sides: &'a Sides<'a>, input: &'a Path, with: Usage) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            sides,
            input,
            with,
            without: None,
            budget: sides.budget.unwrap_or(BUDGET),
            begin: Instant::now(),
            longest: time_of(with),
            seed: now.as_secs() << 20 ^ u64::from(now.subsec_nanos()),
            series: Series::new(&ARMS.map(str::to_owned), "s"),
            memory: Vec::new(),
            failed: None,
        }
    }

    /// Blocks of all arms as far as there is time; one run without, where there is not time for all arms once.
    fn all(&mut self) -> Result<()> {
        let arms = u32::try_from(ARMS.len()).unwrap_or(u32::MAX);
        if self.longest * arms > self.budget {
            self.run(WITHOUT)?;
            return Ok(());
        }
        while self.series.blocks.len() < BLOCKS_MOST && self.block()? {}
        let counted: usize = self.series.blocks.iter().map(|block| block.runs.len()).sum();
        self.memory.truncate(counted);
        Ok(())
    }

    fn block(&mut self) -> Result<bool> {
        // Taken out while its runs are made.
        let mut series = std::mem::replace(&mut self.series, Series::new(&[], ""));
        let made = series.add(self.seed, &mut |_| true, &mut |arm| self.turn(arm));
        self.series = series;
        made
    }

    /// A run's cost; nothing where there is no time for it, or it failed.
    fn turn(&mut self, arm: usize) -> Result<Option<f64>> {
        if self.begin.elapsed() + self.longest > self.budget {
            return Ok(None);
        }
        let usage = self.run(arm)?;
        self.memory.push((arm, usage.peak_rss_bytes));
        Ok(self.failed.is_none().then_some(usage.seconds))
    }

    fn run(&mut self, arm: usize) -> Result<Usage> {
        let usage = self.sides.once(arm, self.input, false)?;
        if usage.code != 0 {
            self.failed = Some((arm, usage.code));
        }
        self.longest = self.longest.max(time_of(usage));
        if arm == WITHOUT && self.without.is_none() {
            self.without = Some(usage);
        }
        Ok(usage)
    }

    /// What came out; nothing where there was no run without.
    fn found(self) -> Option<Found> {
        let Self { with, without, series, memory, seed, budget, .. } = self;
        Some(Found { with, without: without?, series, memory, seed, budget })
    }
}

/// Runs that were made.
struct Found {
    with: Usage,
    without: Usage,
    series: Series,
    memory: Vec<(usize, Option<u64>)>,
    seed: u64,
    budget: Duration,
}

fn time_of(usage: Usage) -> Duration {
    Duration::try_from_secs_f64(usage.seconds).unwrap_or_default()
}

impl Comparison {
    fn of(found: Found) -> Self {
        let Found { with, without, series, memory, seed, budget } = found;
        let ratio = |arm: usize| Ratio::of(&series, ARMS[arm], ARMS[WITHOUT], seed);
        let (faster, aa_control) = (ratio(WITH), ratio(AGAIN));
        // Memory is the other way round: above 1 it is more with placement.
        let memory = series.with_costs(&memory, "peak resident bytes");
        let rss = memory.and_then(|m| Ratio::of(&m, ARMS[WITHOUT], ARMS[WITH], seed));
        let once = with.peak_rss_bytes.zip(without.peak_rss_bytes);
        let once = once.map(|(with, without)| with as f64 / without as f64);
        let verdict = match faster.map(|faster| faster.verdict(aa_control)) {
            Some(Verdict::Gain) => Word::Faster,
            Some(Verdict::Loss) => Word::Slower,
            Some(Verdict::NoDifference) => Word::NoDifference,
            Some(Verdict::TooFew) | None => Word::TooFewRuns,
        };
        Self {
            with,
            without,
            rss_ratio: rss.map(|rss| rss.median).or(once),
            verdict,
            faster,
            aa_control,
            rss,
            budget_s: budget.as_secs_f64(),
            seed,
            series,
        }
    }

    /// The verdict in a sentence.
    pub(super) fn words(&self) -> String {
        let control = self.aa_control.map_or_else(String::new, |control| {
            format!("; without against itself {}", percent(control, 1.0))
        });
        let blocks = self.series.blocks.len();
        let many = if blocks == 1 { "block" } else { "blocks" };
        let Some(faster) = self.faster else {
            return format!(
                "too few runs for a verdict: one with and one without in {:.0} s; more with --budget TIME",
                self.budget_s
            );
        };
        match self.verdict {
            Word::Faster => {
                format!("faster by {}, over {blocks} {many}{control}", percent(faster, 1.0))
            }
            Word::Slower => {
                format!("slower by {}, over {blocks} {many}{control}", percent(faster, -1.0))
            }
            Word::NoDifference => {
                let found = percent(faster, 1.0);
                format!("no difference beyond the control: {found}, over {blocks} {many}{control}")
            }
            Word::TooFewRuns => format!(
                "too few runs for a verdict: {:+.1} % over {blocks} {many}; more with --budget TIME",
                100.0 * (faster.median - 1.0)
            ),
        }
    }
}

/// A ratio's distance from 1 with its interval, in percent; with a sign of -1 how much less it is.
fn percent(ratio: Ratio, sign: f64) -> String {
    let of = |value: f64| 100.0 * sign * (value - 1.0);
    let (mut lo, mut hi) = (of(ratio.lo), of(ratio.hi));
    if lo > hi {
        std::mem::swap(&mut lo, &mut hi);
    }
    if ratio.has_interval() {
        format!("{:.1} % [{lo:.1}, {hi:.1}]", of(ratio.median))
    } else {
        format!("{:.1} %", of(ratio.median))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A comparison whose runs took so long, by arm, in so many blocks.
    fn compared(seconds: [f64; 3], blocks: usize) -> Comparison {
        let usage = |seconds| Usage { seconds, ..Usage::default() };
        let (mut series, mut noise) = (Series::new(&ARMS.map(str::to_owned), "s"), 0.0);
        for _ in 0..blocks {
            let mut cost = |arm: usize| {
                noise = (noise + 0.37) % 1.0;
                Ok(Some(seconds[arm] * (1.0 + 0.002 * noise)))
            };
            series.add(7, &mut |_| true, &mut cost).expect("no run fails");
        }
        Comparison::of(Found {
            with: usage(seconds[WITH]),
            without: usage(seconds[WITHOUT]),
            series,
            memory: Vec::new(),
            seed: 3,
            budget: BUDGET,
        })
    }

    #[test]
    fn a_verdict_has_a_sign_an_interval_and_its_control() {
        let faster = compared([1.03, 1.03, 1.0], 12);
        assert_eq!(faster.verdict, Word::Faster);
        let words = faster.words();
        assert!(words.starts_with("faster by 3.") || words.starts_with("faster by 2.9"), "{words}");
        assert!(words.contains(" % [") && words.contains("over 12 blocks"), "{words}");
        assert!(words.contains("without against itself"), "{words}");
        let slower = compared([1.0, 1.0, 1.25], 12);
        assert_eq!(slower.verdict, Word::Slower);
        assert!(slower.words().starts_with("slower by 20."), "{}", slower.words());
        let same = compared([1.0, 1.0, 1.0], 12);
        assert_eq!(same.verdict, Word::NoDifference);
        assert!(same.words().starts_with("no difference beyond the control"), "{}", same.words());
    }

    #[test]
    fn too_few_runs_have_no_verdict() {
        for blocks in [0, 2] {
            let few = compared([2.0, 2.0, 1.0], blocks);
            assert_eq!(few.verdict, Word::TooFewRuns);
            assert!(few.words().contains("--budget"), "{}", few.words());
        }
    }
}
