//! What one page costs: faults of each kind, replacement in batches, its parts, and interrupts.

use anyhow::Result;
use isochrone_os::clock::Clock;
use isochrone_stats::Spread;
use serde::Serialize;

use super::arm::Runner;
use crate::bench::Stop;
use crate::bench::setting::Setting;
use crate::tier::request::{Answer, Policy, Program, Request, Tables, Timing};

/// Pages touched: more than any buffer of translations has entries.
const PAGES: usize = 4096;
/// Batches of evictions that are compared.
const BATCHES: [u32; 4] = [1, 16, 32, 64];

/// One way of replacing.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Batched {
    pub(super) batch: u32,
    /// Evict and fill, for one page, with one worker.
    pub(super) us: Option<Spread>,
}

/// Microseconds of a fault.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct FaultCosts {
    /// A page that nobody has: zeros.
    pub(super) missing_us: Option<Spread>,
    /// A page that another worker has.
    pub(super) minor_us: Option<Spread>,
    /// A page that a mover puts into the table of another, for the mover; the worker has no fault.
    pub(super) prefetched_map_us: Option<Spread>,
    pub(super) evict_and_fill: Vec<Batched>,
}

/// Where the time of one replaced page goes, microseconds.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Breakdown {
    pub(super) tables: Tables,
    pub(super) workers: u16,
    pub(super) batch: u32,
    /// Waiting for others' entries and locks.
    pub(super) lock: f64,
    /// Permission taken and memory freed, as one worker alone needs for it.
    pub(super) page_table: f64,
    /// What that takes more with a second worker that runs; `null` for one worker, who has none.
    pub(super) shootdown: Option<f64>,
    /// To the far tier, and from it into memory.
    pub(super) copy: f64,
    pub(super) other: f64,
    pub(super) total: f64,
    /// Interrupts for shootdowns, for one batch.
    pub(super) interrupts_per_batch: Option<f64>,
}

/// Interrupts for a batch against the number of running workers, a + b N.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Slope {
    pub(super) a: f64,
    pub(super) b: f64,
    /// Numbers of workers it was fitted on: the cores of this machine.
    pub(super) workers_most: u16,
}

/// The same for both kinds of tables.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Slopes {
    pub(super) shared: Option<Slope>,
    pub(super) separated: Option<Slope>,
    /// Why there is none.
    pub(super) missing: Option<&'static str>,
}

impl Slopes {
    fn of(breakdown: &[Breakdown]) -> Self {
        let shared = slope(breakdown, Tables::Shared);
        let separated = slope(breakdown, Tables::Separated);
        let missing = match (shared, separated) {
            (Some(_), Some(_)) => None,
            _ if breakdown.iter().all(|row| row.workers == 1) => Some(ONE_CORE),
            _ => Some(NOT_COUNTED),
        };
        Self { shared, separated, missing }
    }
}

/// Why a machine of one core has no slope.
const ONE_CORE: &str = "a line needs two numbers of workers on cores of their own, and this run has one core: give \
                        two with --cores, or count up to 32 in the emulated machine of `cargo xtask vm`";
/// Why one with two has none.
const NOT_COUNTED: &str = "this kernel does not say how often it interrupted cores for shootdowns (no TLB line in \
                           /proc/interrupts)";

/// All costs.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Costs {
    pub(super) faults: FaultCosts,
    pub(super) breakdown: Vec<Breakdown>,
    pub(super) slopes: Slopes,
}

/// The part of the time that costs have: what is compared is over them.
const PART: f64 = 0.2;

pub(super) fn measure(
    runner: &mut Runner,
    repeats: u32,
    setting: &mut Setting<'_>,
) -> Result<Costs> {
    let clock = Clock::calibrate();
    setting.step("what a page costs");
    let (faults, pages) = (Faults::of(runner), Pages::of(runner));
    let requests: Vec<&Request> = faults.requests().chain(pages.requests()).collect();
    let answers = asked(runner, &requests, repeats, &setting.stop())?;
    let fewest = answers.iter().map(Vec::len).min().unwrap_or(0);
    setting.did("what a page costs", fewest, repeats, "repeats");
    let (of_faults, of_pages) = answers.split_at(faults.requests().count());
    let breakdown = pages.breakdown(of_pages, &clock);
    let slopes = Slopes::of(&breakdown);
    if let Some(why) = slopes.missing {
        setting.miss(&format!("interrupts against workers: {why}"));
    }
    Ok(Costs { faults: faults.costs(of_faults, &clock), breakdown, slopes })
}

/// Answers to each of the requests: all have one before one has two.
fn asked(
    runner: &mut Runner,
    requests: &[&Request],
    repeats: u32,
    stop: &Stop,
) -> Result<Vec<Vec<Answer>>> {
    let part = stop.part(PART);
    let mut answers = vec![Vec::new(); requests.len()];
    for turn in 0..repeats {
        for (request, answers) in requests.iter().zip(&mut answers) {
            if stop.is_set() || (turn > 0 && part.is_set()) {
                break;
            }
            match runner.run(request) {
                Err(_) if stop.is_set() => break,
                answer => answers.push(answer?),
            }
        }
    }
    Ok(answers)
}

fn spread(answers: &[Answer], cost: impl Fn(&Answer) -> f64) -> Option<Spread> {
    Spread::of(answers.iter().map(cost))
}

/// What is asked of faults.
struct Faults {
    missing: Request,
    /// Both need two cores.
    minor_and_moved: Option<[Request; 2]>,
    /// One for each number of pages that are evicted together.
    batched: Vec<Request>,
}

impl Faults {
    fn of(runner: &Runner) -> Self {
        let touch = |warm, second| Program::Touch { pages: PAGES, warm, second };
        let minor = runner.request(touch(false, true), 2, 1.0);
        let moved = runner.with_movers(runner.request(touch(true, false), 1, 0.5));
        let batched = BATCHES.map(|batch| {
            let half = runner.request(touch(true, false), 1, 0.5);
            Request { batch, ..half }
        });
        Self {
            missing: runner.request(touch(false, false), 1, 1.0),
            minor_and_moved: (runner.cores().len() >= 2).then_some([minor, moved]),
            batched: batched.to_vec(),
        }
    }

    fn requests(&self) -> impl Iterator<Item = &Request> {
        let two = self.minor_and_moved.iter().flatten();
        std::iter::once(&self.missing).chain(two).chain(&self.batched)
    }

    /// Given answers in the order of the requests.
    fn costs(&self, answers: &[Vec<Answer>], clock: &Clock) -> FaultCosts {
        let of_a_page = |answer: &Answer| answer.ns as f64 / PAGES as f64 / 1e3;
        let map = |answer: &Answer| {
            us(clock, answer.mover_times.fill.1) / (answer.prefetched as f64).max(1.0)
        };
        let cycle = |answer: &Answer| answer.ns as f64 / (answer.missing as f64).max(1.0) / 1e3;
        let (single, batched) = answers.split_at(answers.len() - self.batched.len());
        let batched = self.batched.iter().zip(batched);
        let row = |(request, answers): (&Request, &Vec<Answer>)| Batched {
            batch: request.batch,
            us: spread(answers, cycle),
        };
        FaultCosts {
            missing_us: single.first().and_then(|answers| spread(answers, of_a_page)),
            minor_us: single.get(1).and_then(|answers| spread(answers, of_a_page)),
            prefetched_map_us: single.get(2).and_then(|answers| spread(answers, map)),
            evict_and_fill: batched.map(row).collect(),
        }
    }
}

fn us(clock: &Clock, cycles: u64) -> f64 {
    clock.ns(cycles as f64) / 1e3
}

/// Sums of one kind of run, microseconds for a page that came and went.
struct Parts {
    wait: f64,
    table: f64,
    copy: f64,
    total: f64,
    interrupts: Option<f64>,
}

fn parts(answer: &Answer, clock: &Clock) -> Parts {
    // Times are of all touches, also those before the time was taken.
    let pages = (answer.evicted as f64).max(1.0);
    let each = |(_, cycles): Timing| us(clock, cycles) / pages;
    let times = &answer.times;
    let batches = (answer.batches as f64).max(1.0);
    Parts {
        wait: each(times.wait),
        table: each(times.protect) + each(times.punch),
        copy: each(times.copy_out) + each(times.read) + each(times.fill),
        total: each(times.fault),
        interrupts: answer.interrupts.map(|seen| seen as f64 / batches),
    }
}

/// What is asked of replaced pages: with one worker first, then with two.
struct Pages(Vec<Request>);

impl Pages {
    fn of(runner: &Runner) -> Self {
        let most = u16::try_from(runner.cores().len()).unwrap_or(1).min(2);
        let mut all = Vec::new();
        for tables in [Tables::Shared, Tables::Separated] {
            for batch in [1, 32] {
                for workers in 1..=most {
                    let program = Program::Touch { pages: PAGES, warm: true, second: false };
                    let half = runner.request(program, workers, 0.5);
                    all.push(Request { tables, batch, policy: Policy::Fifo, ..half });
                }
            }
        }
        Self(all)
    }

    fn requests(&self) -> impl Iterator<Item = &Request> {
        self.0.iter()
    }

    /// Given answers in the order of the requests. Those without an answer have no row.
    fn breakdown(&self, answers: &[Vec<Answer>], clock: &Clock) -> Vec<Breakdown> {
        let mut alone = None;
        let mut rows = Vec::new();
        for (request, answers) in self.0.iter().zip(answers).filter(|(_, all)| !all.is_empty()) {
            let all: Vec<Parts> = answers.iter().map(|answer| parts(answer, clock)).collect();
            let median = |of: &dyn Fn(&Parts) -> f64| {
                Spread::of(all.iter().map(of)).map_or(f64::NAN, |s| s.median)
            };
            let (wait, table) = (median(&|p| p.wait), median(&|p| p.table));
            let (copy, total) = (median(&|p| p.copy), median(&|p| p.total));
            let counted = all.iter().all(|p| p.interrupts.is_some());
            if request.workers == 1 {
                alone = Some(table);
            }
            let own = alone.unwrap_or(table);
            rows.push(Breakdown {
                tables: request.tables,
                workers: request.workers,
                batch: request.batch,
                lock: wait,
                page_table: own.min(table),
                shootdown: (request.workers > 1).then_some((table - own).max(0.0)),
                copy,
                other: total - wait - table - copy,
                total,
                interrupts_per_batch: counted
                    .then(|| median(&|p| p.interrupts.unwrap_or(f64::NAN))),
            });
        }
        rows
    }
}

/// Through one worker and two: what this machine has cores for. The emulated machine of the gate has 33.
fn slope(rows: &[Breakdown], tables: Tables) -> Option<Slope> {
    let at = |workers| {
        let row = rows.iter().find(|r| (r.tables, r.workers, r.batch) == (tables, workers, 32))?;
        row.interrupts_per_batch
    };
    let (one, two) = (at(1)?, at(2)?);
    Some(Slope { a: 2.0 * one - two, b: two - one, workers_most: 2 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(workers: u16, interrupts_per_batch: Option<f64>, tables: Tables) -> Breakdown {
        Breakdown {
            tables,
            workers,
            batch: 32,
            lock: 0.0,
            page_table: 0.0,
            shootdown: None,
            copy: 0.0,
            other: 0.0,
            total: 0.0,
            interrupts_per_batch,
        }
    }

    #[test]
    fn a_line_goes_through_both_numbers_of_workers_or_says_why_there_is_none() {
        let all = |workers: &[u16], count: Option<f64>| {
            let rows = [Tables::Shared, Tables::Separated].into_iter().flat_map(|tables| {
                workers.iter().map(move |n| row(*n, count.map(|c| c * f64::from(n - 1)), tables))
            });
            Slopes::of(&rows.collect::<Vec<_>>())
        };
        let line = Some(Slope { a: -2.0, b: 2.0, workers_most: 2 });
        let both = all(&[1, 2], Some(2.0));
        assert_eq!((both.shared, both.separated, both.missing), (line, line, None));
        let alone = all(&[1], Some(0.0));
        assert_eq!((alone.shared, alone.missing), (None, Some(ONE_CORE)));
        assert_eq!(all(&[1, 2], None).missing, Some(NOT_COUNTED));
    }
}
