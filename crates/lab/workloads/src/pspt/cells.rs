//! The cases of the figures and tables, and how threads are placed on cores.

use isochrone_tier::pager::{Habit, Plan as Driving};
use isochrone_tier::policy::PolicyKind;
use isochrone_tier::prefetch::Prefetch;
use isochrone_tier::simulated::{Case, Outcome, Stuck, run};

use super::machine::{BATCH, Card, MOVER_BATCH, RESERVE};
use super::plan::Plan;
use crate::at_once::all_at_once;

/// How data come and go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// All of them are in memory.
    InMemory,
    /// The same with a core for every thread: what a run is compared with that has one, too.
    InMemoryNoSiblings,
    /// One set of page tables, faults alone.
    Regular,
    /// Separated tables, faults alone.
    Pspt,
    /// Separated tables, and movers.
    Prefetch,
    /// The same with as many engines as anybody wants.
    PrefetchAnyEngines,
    /// The same with a core for every thread.
    PrefetchNoSiblings,
    /// Separated tables, and a mover for every worker, however many there are.
    PrefetchMoverEach,
}

impl Mode {
    /// The name in figures.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InMemory => "in memory",
            Self::InMemoryNoSiblings => "in memory, a core for each thread",
            Self::Regular => "regular",
            Self::Pspt => "PSPT",
            Self::Prefetch => "PSPT+pre-fetch",
            Self::PrefetchAnyEngines => "PSPT+pre-fetch, engines without bound",
            Self::PrefetchNoSiblings => "PSPT+pre-fetch, a core for each thread",
            Self::PrefetchMoverEach => "PSPT+pre-fetch, a mover for each thread",
        }
    }

    const fn moves(self) -> bool {
        !self.is_in_memory() && !matches!(self, Self::Regular | Self::Pspt)
    }

    const fn is_in_memory(self) -> bool {
        matches!(self, Self::InMemory | Self::InMemoryNoSiblings)
    }

    const fn has_siblings(self) -> bool {
        !matches!(self, Self::InMemoryNoSiblings | Self::PrefetchNoSiblings)
    }

    /// The run of the same machine with all data in memory.
    pub(super) const fn base(self) -> Self {
        if self.has_siblings() { Self::InMemory } else { Self::InMemoryNoSiblings }
    }
}

/// Whether workers share cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Smt {
    /// A core for each; the mover of each is its sibling.
    Off,
    /// Four workers on a core, movers spread over the cores that are left. The paper does not say where
    /// they sit; that four threads run slower than two says that cores were filled.
    On,
    /// A core for each as far as they go, then a second one: Figure 6 at 64.
    Spread,
}

impl Smt {
    /// The name in figures.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "hyper-threading off",
            Self::On => "hyper-threading on",
            Self::Spread => "threads spread over cores",
        }
    }
}

/// Numbers of threads in the paper's figures.
#[must_use]
pub const fn cores_of(smt: Smt) -> [u16; 6] {
    match smt {
        Smt::Off | Smt::Spread => [2, 4, 8, 16, 32, 56],
        Smt::On => [4, 8, 16, 32, 64, 128],
    }
}

/// One case and what came of it.
#[derive(Clone, Debug)]
pub struct Cell {
    /// How data come and go.
    pub mode: Mode,
    /// Whether workers share cores.
    pub smt: Smt,
    /// How many workers.
    pub workers: u16,
    /// Pages of a row that were simulated: a strip of the paper's grid.
    pub width: u32,
    /// What came of it.
    pub outcome: Outcome,
}

pub(super) type Key = (Mode, Smt, u16);

/// Every case of the figures.
pub(super) fn keys(most: u16) -> Vec<Key> {
    let mut keys = Vec::new();
    for smt in [Smt::Off, Smt::On] {
        for workers in cores_of(smt) {
            for mode in [Mode::InMemory, Mode::Regular, Mode::Pspt, Mode::Prefetch] {
                keys.push((mode, smt, workers));
            }
        }
    }
    for (smt, workers) in [(Smt::Off, 8), (Smt::Off, 56), (Smt::On, 128)] {
        keys.push((Mode::PrefetchAnyEngines, smt, workers));
    }
    keys.push((Mode::InMemoryNoSiblings, Smt::Off, 8));
    keys.push((Mode::PrefetchNoSiblings, Smt::Off, 8));
    keys.push((Mode::PrefetchMoverEach, Smt::On, 128));
    keys.push((Mode::Pspt, Smt::Spread, 64));
    keys.retain(|(_, _, workers)| *workers <= most);
    keys
}

fn places(card: &Card, smt: Smt, workers: u16, movers: u16) -> Vec<usize> {
    let (workers, movers) = (usize::from(workers), usize::from(movers));
    let Card { cores, threads, .. } = *card;
    match smt {
        Smt::Off => (0..workers).chain(0..movers).collect(),
        Smt::Spread => (0..workers + movers).map(|thread| thread % cores).collect(),
        Smt::On => {
            let full = workers.div_ceil(threads);
            let left = cores.saturating_sub(full).max(1);
            let of_movers = (0..movers).map(|mover| full + mover % left);
            (0..workers).map(|worker| worker / threads).chain(of_movers).collect()
        }
    }
}

/// The case of a key.
pub(super) fn case(plan: &Plan, card: &Card, (mode, smt, workers): Key, compute: f64) -> Case {
    let mut spec = card.spec;
    if mode == Mode::PrefetchAnyEngines {
        spec.engines = 0;
    }
    spec.siblings = mode.has_siblings();
    let movers = match mode {
        _ if !mode.moves() => 0,
        Mode::PrefetchMoverEach => workers,
        // "for this case only we distribute 64 pre-fetchers" (section IV-C).
        _ => workers.min(64),
    };
    let width = match mode.moves() {
        true => (plan.frames_of_a_worker * u32::from(workers)).div_ceil(plan.rows).max(1),
        false => 1,
    };
    let pages = 2 * plan.rows * width;
    Case {
        spec,
        costs: card.costs(compute),
        workers,
        movers,
        places: places(card, smt, workers, movers),
        separated: mode != Mode::Regular,
        rows: plan.rows,
        width,
        frames: if mode.is_in_memory() { pages } else { pages / 2 },
        sweeps: plan.sweeps,
        policy: PolicyKind::Fifo,
        plan: Driving {
            batch: BATCH,
            mover_batch: MOVER_BATCH,
            cluster: 1,
            chunk: plan.chunk,
            clean: false,
            protect: true,
        },
        habit: Habit {
            prefetch: Prefetch::Next,
            window: plan.window,
            markers: false,
            reserve: RESERVE * u32::from(movers),
            write_back: false,
        },
        seed: plan.seed,
    }
}

/// Sweep times are for the same area, whatever was simulated of it.
fn whole(mut outcome: Outcome, width: u32) -> Outcome {
    let scale = 1.0 / f64::from(width);
    for value in [
        &mut outcome.sweep,
        &mut outcome.faults,
        &mut outcome.minor,
        &mut outcome.late,
        &mut outcome.prefetched,
    ] {
        *value *= scale;
    }
    outcome
}

/// One case.
pub(super) fn one(plan: &Plan, card: &Card, key: Key, compute: f64) -> Result<Cell, Stuck> {
    let case = case(plan, card, key, compute);
    let outcome = whole(run(&case)?, case.width);
    let (mode, smt, workers) = key;
    Ok(Cell { mode, smt, workers, width: case.width, outcome })
}

/// These cases at once; the longest come last in the list.
pub(super) fn all(plan: &Plan, cards: &[(Card, Key)], compute: f64) -> Result<Vec<Cell>, Stuck> {
    let cells = all_at_once(cards, &|(card, key)| one(plan, card, *key, compute));
    cells.into_iter().collect()
}
