//! Programs on a mapped array, as one has that makes no team: how much a fault brings, and threads that fault at once.

use anyhow::Result;
use isochrone_console::turns::{Ratio, Series};
use isochrone_stats::Spread;
use isochrone_tier::live::Mode;
use serde::Serialize;

use super::arm::{Extent, Runner};
use super::arms::Arms;
use super::curves::Controlled;
use crate::bench::rounds::Cell;
use crate::bench::setting::Setting;
use crate::tier::request::{Answer, FarTier, Mapped as Asked, Pattern, Program, Request};

/// Pages of a group beside the choice by what is seen.
const GROUPS: &[usize] = &[1, 4];
/// The same of a program that uses all pages of a group. Of 16 a sort, which writes to 256 places at once, and a walk
/// would take minutes: they bring 15 pages in vain for each that they need.
const GROUPS_IN_ORDER: &[usize] = &[1, 4, 16];
/// Pages that a walk writes, and all threads together.
const STEPS: u32 = 10_000;
/// Threads beside one.
const THREADS: u16 = 8;
/// The arm that is compared with, and the same once more.
const CHOSEN: &str = "chosen";
const AGAIN: &str = "again";

/// Groups of a stated size.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Group {
    pub(super) pages: usize,
    /// Time over that of the choice.
    pub(super) over_chosen: Option<Controlled>,
    /// Faults that fetched something.
    pub(super) faults: f64,
}

/// One program with groups of each size.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Groups {
    pub(super) program: &'static str,
    pub(super) far: &'static str,
    /// Where how much a fault brings is chosen by what is seen, the default: milliseconds, and faults.
    pub(super) chosen_ms: Option<Spread>,
    pub(super) chosen_faults: f64,
    pub(super) groups: Vec<Group>,
    pub(super) series: Series,
}

/// One way of resolving faults.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Threads {
    /// `signal`: in the thread that has it; `blocking`: by threads of ours.
    pub(super) mode: &'static str,
    /// How many threads beside one.
    pub(super) threads: u16,
    /// Microseconds of a fault with one thread, and of processor time of all threads of the process.
    pub(super) fault_us: Option<Spread>,
    pub(super) processor_us: Option<Spread>,
    /// So many touches by all threads together over as many by one: how many times faster.
    pub(super) faster: Option<Controlled>,
    pub(super) series: Series,
}

/// What came of both.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Mapped {
    pub(super) groups: Vec<Groups>,
    pub(super) threads: Vec<Threads>,
}

fn request(runner: &Runner, asked: Asked, far: &FarTier, group_pages: usize) -> Request {
    let half = runner.request(Program::Mapped(asked), 1, 0.5);
    let oversubscribed = usize::from(asked.threads) > runner.cores().len();
    Request { group_pages, far: far.clone(), oversubscribed, ..half }
}

/// One program with groups of each size, under way.
pub(super) struct OfGroups {
    program: &'static str,
    far: FarTier,
    sizes: &'static [usize],
    arms: Arms,
}

impl OfGroups {
    /// Every program over every far tier.
    pub(super) fn all(
        runner: &Runner,
        extent: Extent,
        far: &[FarTier],
        setting: &mut Setting<'_>,
    ) -> Vec<Self> {
        let programs = [
            ("sweep", Pattern::Sweep, GROUPS_IN_ORDER),
            ("sort", Pattern::Sort, GROUPS),
            ("walk", Pattern::Walk(STEPS), GROUPS),
        ];
        let mut all = Vec::new();
        for far in far {
            for (program, pattern, sizes) in programs {
                let of = |follow| Asked {
                    pattern,
                    pages: extent.pages,
                    threads: 1,
                    follow,
                    by_handlers: false,
                };
                let mut named: Vec<(String, Request)> = [CHOSEN, AGAIN]
                    .map(|name| (name.to_owned(), request(runner, of(true), far, 1)))
                    .into();
                named.extend(
                    sizes.iter().map(|n| (n.to_string(), request(runner, of(false), far, *n))),
                );
                let arms = Arms::new(named, setting);
                all.push(Self { program, far: far.clone(), sizes, arms });
            }
        }
        all
    }

    /// What came out; nothing without a block.
    pub(super) fn groups(self, setting: &mut Setting<'_>) -> Option<Groups> {
        let Self { program, far, sizes, arms } = self;
        if arms.series.blocks.is_empty() {
            return None;
        }
        let seed = setting.seed();
        let control = Ratio::of(&arms.series, CHOSEN, AGAIN, seed);
        let groups = sizes.iter().zip(2..).map(|(pages, arm)| {
            let ratio = Ratio::of(&arms.series, CHOSEN, &pages.to_string(), seed);
            let controlled = |ratio| Controlled { ratio, control, oversubscribed: false };
            let over_chosen = ratio.map(controlled);
            Group { pages: *pages, over_chosen, faults: arms.faults(arm) }
        });
        Some(Groups {
            program,
            far: far.as_str(),
            chosen_ms: arms.spread(0, |answer| answer.ns as f64 / 1e6),
            chosen_faults: arms.faults(0),
            groups: groups.collect(),
            series: arms.series,
        })
    }
}

impl Cell<Runner> for OfGroups {
    fn what(&self) -> String {
        format!("groups of a {} over {}", self.program, self.far.as_str())
    }

    fn blocks(&self) -> usize {
        self.arms.series.blocks.len()
    }

    fn block(&mut self, runner: &mut Runner, setting: &mut Setting<'_>) -> Result<()> {
        let what = self.what();
        self.arms.block(&what, runner, setting)
    }
}

/// Threads that fault at once, under way.
pub(super) struct OfThreads {
    by_handlers: bool,
    arms: Arms,
}

impl OfThreads {
    /// Both ways of resolving faults.
    pub(super) fn both(runner: &Runner, extent: Extent, setting: &mut Setting<'_>) -> Vec<Self> {
        let mut of = |by_handlers| {
            let arm = |name: &str, threads| {
                let pattern = Pattern::Walk(STEPS);
                let asked =
                    Asked { pattern, pages: extent.pages, threads, follow: false, by_handlers };
                (name.to_owned(), request(runner, asked, &FarTier::Memory, 1))
            };
            let named = vec![arm("one", 1), arm(AGAIN, 1), arm("all", THREADS)];
            Self { by_handlers, arms: Arms::new(named, setting) }
        };
        vec![of(false), of(true)]
    }

    const fn mode(&self) -> &'static str {
        let mode = if self.by_handlers { Mode::Blocking } else { Mode::Signal };
        mode.as_str()
    }

    /// What came out; nothing without a block.
    pub(super) fn threads(self, setting: &mut Setting<'_>) -> Option<Threads> {
        let mode = self.mode();
        let arms = self.arms;
        if arms.series.blocks.is_empty() {
            return None;
        }
        let seed = setting.seed();
        let control = Ratio::of(&arms.series, AGAIN, "one", seed);
        let ratio = Ratio::of(&arms.series, "all", "one", seed);
        let of_a_fault =
            |ns: u64, answer: &Answer| ns as f64 / 1e3 / (answer.missing as f64).max(1.0);
        Some(Threads {
            mode,
            threads: THREADS,
            fault_us: arms.spread(0, |answer| of_a_fault(answer.ns, answer)),
            processor_us: arms.spread(0, |answer| of_a_fault(answer.processor_ns, answer)),
            faster: ratio.map(|ratio| Controlled { ratio, control, oversubscribed: false }),
            series: arms.series,
        })
    }
}

impl Cell<Runner> for OfThreads {
    fn what(&self) -> String {
        format!("threads that fault at once, {}", self.mode())
    }

    fn blocks(&self) -> usize {
        self.arms.series.blocks.len()
    }

    fn block(&mut self, runner: &mut Runner, setting: &mut Setting<'_>) -> Result<()> {
        let what = self.what();
        self.arms.block(&what, runner, setting)
    }
}
