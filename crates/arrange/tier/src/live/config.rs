//! What a team is to be, and why there is none: the ground that all of its files stand on.

use isochrone_os::OsError;
use isochrone_units::{CoreId, PAGE_BYTES, RegionId};

use super::check::Mode;
use super::common::Timed;
use crate::names::Actor;
use crate::pager::{Habit, Plan, Shape};
use crate::policy::PolicyKind;

/// Whose page tables workers use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tables {
    /// Workers are threads of one process, with one set of tables: the paper's regular page tables. They
    /// share heap and globals.
    Shared,
    /// Workers are processes, each with tables of its own: the paper's partially separated page tables.
    /// They share the area, and nothing else that is written after they were made: heap and globals are
    /// copies, unlike those of the paper's threads.
    #[default]
    Separated,
}

impl Tables {
    /// The name in figures.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Separated => "separated",
        }
    }
}

/// What a team is to be.
#[derive(Clone, Debug)]
pub struct Config {
    /// Bytes of the area, rounded up to whole groups.
    pub area_bytes: usize,
    /// Bytes of it that may be in fast memory, rounded down to whole groups.
    pub fast_bytes: usize,
    /// Pages of a group: 1 to 16, a power of two.
    pub group_pages: usize,
    /// How many workers.
    pub workers: u16,
    /// Whether they are threads or processes.
    pub tables: Tables,
    /// The process that makes the team is worker 0 itself.
    pub parent_works: bool,
    /// Movers: processes that fetch and evict, and map nothing themselves.
    pub movers: u16,
    /// How movers go about it.
    pub habit: Habit,
    /// How the drivers go about it.
    pub plan: Plan,
    /// A worker fetches the more groups at a fault the longer faults follow each other ([`crate::streams`]), and not
    /// always [`Plan::cluster`]. Where movers fetch ahead it fetches one.
    pub follow: bool,
    /// Which group goes.
    pub policy: PolicyKind,
    /// Files that the area is made of.
    pub files: u16,
    /// Cores for workers, in turn; none leaves them to the system.
    pub worker_cores: Vec<CoreId>,
    /// Cores for movers, in turn.
    pub mover_cores: Vec<CoreId>,
    /// The region that fast memory is to come from.
    pub region: Option<RegionId>,
    /// How faults are resolved; `None` for the best that the kernel allows.
    pub mode: Option<Mode>,
    /// Looks at a word before sleeping on it: few where workers and movers share cores.
    pub spins: u32,
    /// Somebody is killed or stopped at a step: for tests of what the others do.
    pub trap: Option<Trap>,
}

/// An actor sends itself a signal when it does something that it did so often before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trap {
    /// Who sends it, to itself.
    pub actor: Actor,
    /// At which step.
    pub step: Timed,
    /// When it is done, and not before.
    pub after: bool,
    /// How often it was done before.
    pub times: u64,
    /// The signal: 9 to be killed, 19 to be stopped (signal(7)).
    pub signal: i32,
}

impl Config {
    /// A team of processes with an area of which a part is in fast memory; all else as it is by default.
    #[must_use]
    pub fn new(area_bytes: usize, fast_bytes: usize, workers: u16) -> Self {
        Self {
            area_bytes,
            fast_bytes,
            group_pages: 1,
            workers,
            tables: Tables::default(),
            parent_works: false,
            movers: 0,
            habit: Habit::default(),
            plan: Plan::default(),
            follow: true,
            policy: PolicyKind::default(),
            files: 1,
            worker_cores: Vec::new(),
            mover_cores: Vec::new(),
            region: None,
            mode: None,
            spins: 200,
            trap: None,
        }
    }

    pub(super) const fn group_bytes(&self) -> usize {
        self.group_pages * PAGE_BYTES
    }

    pub(super) fn shape(&self) -> Result<Shape, TierError> {
        let wrong = |what| Err(TierError::Config(what));
        if !self.group_pages.is_power_of_two() || self.group_pages > 16 {
            return wrong("a group has 1, 2, 4, 8 or 16 pages");
        }
        if self.workers == 0 || self.workers.saturating_add(self.movers) > Actor::MOST {
            return wrong("there are 1 to 8191 workers and movers");
        }
        let group_bytes = self.group_bytes();
        let groups = u32::try_from(self.area_bytes.div_ceil(group_bytes)).unwrap_or(u32::MAX);
        if groups == 0 || groups > u32::MAX / 2 {
            return wrong("the area has at least one group and less than 2^31");
        }
        let frames = u32::try_from(self.fast_bytes / group_bytes).unwrap_or(u32::MAX).min(groups);
        // Each worker fetches one group while it holds none back; movers fetch a few at once.
        let least = u32::from(self.workers) + 4 * u32::from(self.movers);
        if frames < least {
            return wrong(
                "the fast tier has at least one group for each worker and four for each mover",
            );
        }
        let spaces = match self.tables {
            Tables::Shared => 1,
            Tables::Separated => self.workers,
        };
        Ok(Shape { groups, frames, spaces, workers: self.workers, policy: self.policy })
    }
}

/// Why there is no team, or no end of its work.
#[derive(Debug, thiserror::Error)]
pub enum TierError {
    /// A parameter is out of bounds.
    #[error("{0}: change the parameters")]
    Config(&'static str),
    /// The kernel lacks something.
    #[error("no area can be had: {0}; {1}")]
    Unavailable(String, &'static str),
    /// The kernel refused.
    #[error(transparent)]
    Os(#[from] OsError),
    /// A worker or mover ended before all were ready.
    #[error("{0} ended before all were ready: look at what it wrote to standard error")]
    Unready(String),
}
