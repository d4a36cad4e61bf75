//! Which region a ready task goes to, who may take it elsewhere, and where memory lies: all of it data.

use core::fmt;
use core::str::FromStr;

use crate::footprint::Mode;

/// What a region is worth to a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// Nothing: one queue for the whole machine.
    Oblivious,
    /// Bytes of the task's ranges that live there, each range once (Nanos++ 0.10.3, `socket_sched.cpp`).
    Bytes,
    /// The same, with ranges that are read and written counted twice (Nanos6, `_rwBonusFactor` 2.0).
    InoutCountsTwice,
    /// The least sum of what all ranges cost from there (`Topology::transfer`): where bandwidths are known, the
    /// latency and the time of their bytes, else their bytes times the distance. Ranges that are read and written
    /// count twice, since their lines come and go. Sums that differ by 2 % are equal.
    LatencyWeighted,
    /// What a partition of the next [`Policy::window`] tasks of the program says, where edges are the
    /// bytes that tasks share (Sánchez Barrera et al., PPoPP 2018); tasks of tasks as `LatencyWeighted`.
    Partition,
    /// What a schedule says that was recorded: a queue for each worker.
    Recorded,
}

impl Rank {
    /// Whether bytes that a task uses so count twice.
    pub(crate) fn moves_twice(self, mode: Mode) -> bool {
        !matches!(self, Self::Bytes) && matches!(mode, Mode::InOut | Mode::Commutative)
    }
}

/// Which of several regions that are worth the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tie {
    /// Any, by chance.
    Random,
    /// The one with the lowest number.
    Lowest,
}

/// From which regions a worker without work takes some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steal {
    /// From none: it waits for its own.
    Never,
    /// Those nearest to its own (the paper, section 4).
    Nearest,
    /// The first nearer than distance 15 with more than 20 ready tasks, else the one with the largest
    /// `100 / distance + ready / 5` (Nanos6, `UnsyncScheduler.cpp`).
    Score,
    /// All, from near to far.
    Any,
}

/// How tasks are scheduled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy {
    /// What it is called.
    pub name: &'static str,
    /// What a region is worth.
    pub rank: Rank,
    /// Which of equal ones.
    pub tie: Tie,
    /// From where an idle worker takes.
    pub steal: Steal,
    /// How long a worker lies idle before it takes from another region.
    pub idle_ns: u64,
    /// Chance that a worker runs a task that it has just made ready itself, instead of queueing it.
    pub successor: f32,
    /// Whether tasks that first output a range are dealt round-robin over the regions.
    pub deal: bool,
    /// Ready tasks for each worker of a queue beyond which whoever registers more runs some first.
    pub backlog: u32,
    /// Tasks of the program that are held back and partitioned together, for [`Rank::Partition`].
    pub window: u32,
    /// Whether ready tasks go through outboxes where there is one queue, of 16 workers at most. They save what the
    /// queue's lock costs. A simulated machine is not asked for that, so a [`Plan`](crate::simulated::Plan) leaves
    /// them out.
    pub outboxes: bool,
}

/// Ready tasks for each worker beyond which libgomp runs new ones at once (`gomp_team`, 64 a thread).
const BACKLOG: u32 = 64;
/// Tasks of a window: enough for some steps of a blocked program, registered in a tenth of a millisecond.
const WINDOW: u32 = 1024;
/// Some multiple of what a steal costs.
const IDLE_NS: u64 = 20_000;

impl Policy {
    /// The default scheduler of Nanos++: one queue, first in, first out, and the immediate successor
    /// (`bf_sched.cpp`).
    pub const OBLIVIOUS: Self = Self {
        name: "oblivious",
        rank: Rank::Oblivious,
        tie: Tie::Lowest,
        steal: Steal::Never,
        idle_ns: 0,
        successor: 1.0,
        deal: false,
        backlog: BACKLOG,
        window: 0,
        outboxes: true,
    };
    /// The NUMA-aware scheduler of Nanos++ 0.10.3 with the flags as they come: children of the main
    /// task are never taken by another region.
    pub const NANOS: Self = Self {
        name: "nanos++-0.10.3",
        rank: Rank::Bytes,
        tie: Tie::Random,
        steal: Steal::Never,
        idle_ns: IDLE_NS,
        successor: 1.0,
        deal: true,
        backlog: BACKLOG,
        window: 0,
        outboxes: true,
    };
    /// What the paper's section 4 says, with stealing.
    pub const PAPER: Self = Self { name: "paper", steal: Steal::Nearest, ..Self::NANOS };
    /// Nanos6 4.3: its immediate successor is taken three times in four.
    pub const NANOS6: Self = Self {
        name: "nanos6",
        rank: Rank::InoutCountsTwice,
        steal: Steal::Score,
        successor: 0.75,
        ..Self::NANOS
    };
    /// Ours: costs instead of counts, by measured latencies and bandwidths where an atlas has them. What is farther
    /// than the nearest regions is not stolen: it takes longer there than it would have waited (simulated with 288
    /// threads, an integral histogram takes 1.6 times as long where everything may be stolen).
    pub const ISOCHRONE: Self = Self {
        name: "isochrone",
        rank: Rank::LatencyWeighted,
        steal: Steal::Nearest,
        ..Self::NANOS
    };
    /// As ours, with a partition of the tasks that come next.
    pub const PARTITION: Self =
        Self { name: "partition", rank: Rank::Partition, window: WINDOW, ..Self::ISOCHRONE };
    /// For a run that follows a [`crate::Schedule`]; no preset, since it needs one.
    pub(crate) const RECORDED: Self = Self {
        name: "recorded",
        rank: Rank::Recorded,
        successor: 0.0,
        backlog: u32::MAX,
        outboxes: false,
        ..Self::OBLIVIOUS
    };
    /// All presets.
    pub const PRESETS: [Self; 6] =
        [Self::OBLIVIOUS, Self::NANOS, Self::NANOS6, Self::PAPER, Self::ISOCHRONE, Self::PARTITION];

    /// The preset with this name.
    #[must_use]
    pub fn preset(name: &str) -> Option<Self> {
        Self::PRESETS.into_iter().find(|preset| preset.name == name)
    }

    /// The same without outboxes.
    #[must_use]
    pub const fn without_outboxes(self) -> Self {
        Self { outboxes: false, ..self }
    }

    /// Whether there is one queue for all.
    #[must_use]
    pub fn is_oblivious(&self) -> bool {
        self.rank == Rank::Oblivious
    }
}

/// Where memory lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Where it is touched first.
    FirstTouch,
    /// Over all regions, page by page.
    Interleaved,
}

/// The regimes of the paper's section 4.1, and ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Regime {
    /// One queue, first touch.
    Dft,
    /// One queue, interleaved.
    Di,
    /// A queue for each region, first touch.
    Naft,
    /// As NAFT, with our policy.
    Isochrone,
}

impl Regime {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Dft, Self::Di, Self::Naft, Self::Isochrone];

    /// Its name as commands and files write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dft => "dft",
            Self::Di => "di",
            Self::Naft => "naft",
            Self::Isochrone => "isochrone",
        }
    }

    /// What it means.
    #[must_use]
    pub const fn parts(self) -> (Policy, Placement) {
        match self {
            Self::Dft => (Policy::OBLIVIOUS, Placement::FirstTouch),
            Self::Di => (Policy::OBLIVIOUS, Placement::Interleaved),
            Self::Naft => (Policy::PAPER, Placement::FirstTouch),
            Self::Isochrone => (Policy::ISOCHRONE, Placement::FirstTouch),
        }
    }
}

impl fmt::Display for Regime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Regime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|regime| regime.name() == text);
        found.ok_or_else(|| format!("{text:?} is no regime; choose dft, di, naft or isochrone"))
    }
}

/// Why interleaved memory and a queue for each region are not combined.
pub(crate) const CONFLICT: &str = "NUMA-aware scheduling of interleaved memory is no regime: both the \
     system and the runtime would then distribute data, and no region has most of a task's bytes \
     (Caheny et al., section 4.1); use di or naft, or ask for it as an ablation";
