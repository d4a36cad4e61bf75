//! What is simulated, and what came of it. All costs are in cycles of the processor's clock.

use isochrone_sim::paging::Spec;

use crate::pager::{Habit, Plan, Shape};
use crate::policy::PolicyKind;

/// What the paper's kernel does on a core, beside waiting for others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// Into the fault handler and out of it, and what belongs nowhere else.
    pub trap: f64,
    /// One turn at the lists of pages: a fault takes two.
    pub list: f64,
    /// Of it, with the lists' lock held.
    pub held: f64,
    /// An entry of a page table made or taken away, with the search for it.
    pub entry: f64,
    /// From a wake to when the woken goes on.
    pub wake: f64,
    /// Arithmetic for one page of either grid, by one thread alone on its core.
    pub compute: f64,
    /// Arithmetic differs by up to this part from page to page.
    pub spread: f64,
}

/// Where the cycles of a fault go: the parts of the paper's Figure 6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Managing paging data structures.
    Lists,
    /// Modifying page table entries.
    Entries,
    /// Remote invalidations, with the wait for the lock under which they are sent.
    Shootdown,
    /// Data transfer.
    Transfer,
    /// All other.
    Other,
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Lists, Self::Entries, Self::Shootdown, Self::Transfer, Self::Other];

    /// The name in figures.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lists => "lock and lists",
            Self::Entries => "page table",
            Self::Shootdown => "shootdown",
            Self::Transfer => "copy",
            Self::Other => "other",
        }
    }
}

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The processor.
    pub spec: Spec,
    /// The kernel.
    pub costs: Costs,
    /// Threads that compute.
    pub workers: u16,
    /// Threads that move pages.
    pub movers: u16,
    /// The core of each worker, then of each mover.
    pub places: Vec<usize>,
    /// Each worker has tables of its own.
    pub separated: bool,
    /// Rows of a grid.
    pub rows: u32,
    /// Pages of a row.
    pub width: u32,
    /// Groups that fit the fast tier, of `2 * rows * width`.
    pub frames: u32,
    /// Sweeps that are measured, after one that is not.
    pub sweeps: u32,
    /// Which page goes.
    pub policy: PolicyKind,
    /// How the drivers go about it.
    pub plan: Plan,
    /// How movers go about it.
    pub habit: Habit,
    /// What the spread of arithmetic is drawn from.
    pub seed: u64,
}

impl Case {
    /// Pages of both grids.
    #[must_use]
    pub const fn pages(&self) -> u32 {
        2 * self.rows * self.width
    }

    pub(super) fn shape(&self) -> Shape {
        Shape {
            groups: self.pages(),
            frames: self.frames.min(self.pages()),
            spaces: if self.separated { self.workers } else { 1 },
            workers: self.workers,
            policy: self.policy,
        }
    }
}

/// What the measured sweeps took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Cycles of one sweep.
    pub sweep: f64,
    /// Pages that a worker had to fetch itself in a sweep, in the mean over workers.
    pub faults: f64,
    /// Pages that a worker had to map itself, because another or a mover had fetched them.
    pub minor: f64,
    /// Faults that waited for the mover that was fetching the very page.
    pub late: f64,
    /// Pages that movers fetched, in a sweep.
    pub prefetched: f64,
    /// Cycles of a fault that fetched, by part.
    pub parts: [f64; 5],
    /// Share of the time in which an engine copied.
    pub engines_busy: f64,
    /// Interrupts for one evicted page.
    pub interrupts: f64,
    /// Accesses through entries that were gone; 0 unless the protocol is wrong.
    pub stale: u64,
}

impl Outcome {
    /// Cycles of a fault that fetched.
    #[must_use]
    pub fn fault(&self) -> f64 {
        self.parts.iter().sum()
    }
}
