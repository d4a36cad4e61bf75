//! What the simulated Knights Corner is made of, each number with its standing. Frozen before
//! the figure was first run; nothing here was chosen by looking at it.
//!
//! The ring, the caches and the controllers are those of the machine file. Latencies of memory
//! come from two numbers there: a memory access and a directory look-up (assumed), and the
//! paper's own "up to 60 %" between cores, from which the cost of a hop follows. So a ratio of two
//! latencies does not depend on the memory access. That access is uncertain: Intel's document
//! 671479 states 500 to 1000 cycles for a load from memory, beyond the machine file's range.

use isochrone_machine::{Constant, Cost, Machine, Value};
use isochrone_sim::paging::InOrderCore;

use crate::astar::Step;

/// Largest latency of a block from one core over that from another.
///
/// "Access latencies to the same memory block can vary by up to 60 % when issuing requests from
/// different CPU cores" (section 1); the machine file has the one pair of cores that is named.
const SPREAD_COST: &str = "core 45 over core 0 at 0x125080";

/// The two readings of the published 60 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// The most over all blocks and pairs of cores.
    AllPairs,
    /// The most over all blocks of core 45 over core 0, which the text names.
    NamedPair,
}

impl Spread {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::AllPairs, Self::NamedPair];

    /// In words.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AllPairs => "all pairs of cores",
            Self::NamedPair => "core 45 over core 0",
        }
    }
}

/// The cores of [`Spread::NamedPair`]: the slower, the faster.
pub(super) const NAMED: [usize; 2] = [45, 0];

/// The costs of the simulation, in cycles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// A memory access by its controller, ring not counted.
    pub memory: f64,
    /// A directory look-up.
    pub directory: f64,
    /// From one stop of the ring to the next; `None` to derive it from the published spread.
    pub hop: Option<f64>,
    /// Of which cores the published spread is.
    pub spread: Spread,
    /// What the order of stops is drawn from; `None` for the machine file's.
    pub order: Option<u64>,
    /// An access that hits the first-level cache.
    pub l1: f64,
    /// An access that hits the second-level cache.
    pub l2: f64,
    /// Whether the first write to a new node waits for its line.
    pub stores_wait: bool,
    /// Computation at each step of the search is multiplied by this.
    pub work: f64,
}

/// The unit of all costs.
const CYCLES: &str = "cycles";
/// Ways of both caches.
pub(super) const WAYS: usize = 8;

impl Costs {
    /// The frozen costs, from a machine file; `None` if it lacks one.
    #[must_use]
    pub fn of(machine: &Machine) -> Option<Self> {
        let cost = |name| machine.cost(name).and_then(Cost::number);
        Some(Self {
            memory: cost("memory access")?,
            directory: cost("directory lookup")?,
            hop: None,
            spread: Spread::AllPairs,
            order: None,
            l1: 1.0,
            l2: 23.4,
            stores_wait: false,
            work: 1.0,
        })
    }
}

/// The published spread.
pub(super) fn spread(machine: &Machine) -> Option<f64> {
    machine.cost(SPREAD_COST).and_then(Cost::number)
}

/// Cycles of computation at the steps of a search: about 30, 30, 6 and 12 instructions, by
/// counting the operations in the source, at the rate at which one thread issues.
#[must_use]
pub(super) const fn work_cycles(step: Step) -> u32 {
    match step {
        Step::Expand | Step::Generate => InOrderCore::issue_cycles(30),
        Step::Compare => InOrderCore::issue_cycles(6),
        Step::Link => InOrderCore::issue_cycles(12),
    }
}

/// Everything that a run rests on, for a table.
pub(super) fn list(machine: &Machine, costs: &Costs, hop: f64) -> Vec<Constant> {
    let assumed = |number: f64, unit: &str, why: &str| Value::assumed(number, unit, why);
    let of_file = |name: &str, number: f64| {
        let stated = machine.cost(name).and_then(|cost| cost.value.as_ref().ok());
        match stated {
            Some(stated) => Value { number, unit: CYCLES.to_owned(), ..stated.clone() },
            None => assumed(number, CYCLES, "the machine file does not say"),
        }
    };
    let hop = match costs.hop {
        Some(_) => assumed(hop, CYCLES, "swept"),
        None => Value::derived(
            hop,
            CYCLES,
            "the hop at which some block is 1.6 times as far from one core as from another \
             (europar14, sections 1 and 2: up to 60 %)",
        ),
    };
    let per_step = "instructions counted in the source, two cycles each: one thread does not \
                    issue in successive cycles";
    let work = |step| assumed(f64::from(work_cycles(step)) * costs.work, CYCLES, per_step);
    let l1 = "Intel, document 671479 on the Xeon Phi coprocessor: one cycle";
    let l2 =
        "J. McCalpin, Intel forum, topic 499156: 23.4 cycles, pointer chase on a Xeon Phi SE10P";
    let ways = "not in the paper's text; true LRU assumed";
    let waits = "a store that misses does not stop the core; any other access does";
    vec![
        Constant::new("memory access", of_file("memory access", costs.memory)),
        Constant::new("directory lookup", of_file("directory lookup", costs.directory)),
        Constant::new("ring hop", hop),
        Constant::new("L1 hit", Value::published(costs.l1, CYCLES, l1)),
        Constant::new("L2 hit", Value::published(costs.l2, CYCLES, l2)),
        Constant::new("ways of L1 and L2", assumed(8.0, "ways", ways)),
        Constant::new("work of an expansion", work(Step::Expand)),
        Constant::new("work of a successor", work(Step::Generate)),
        Constant::new("work of a comparison", work(Step::Compare)),
        Constant::new("work of a link", work(Step::Link)),
        Constant::new(
            "first write of a node waits",
            assumed(f64::from(u8::from(costs.stores_wait)), "0 or 1", waits),
        ),
    ]
}
