//! What one process of a team has: the area, the common words, the far tier, and the descriptors of every
//! set of page tables.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use isochrone_os::clock;
use isochrone_os::userfault::{Features, Userfault};

use super::area::Area;
use super::common::Common;
use super::config::{Config, Tables};
use super::far::Far;
use super::poisons::Poisons;
use crate::directory::State;
use crate::names::{Actor, Group, Space};
use crate::pager::{Pager, Plan, Shape};
use crate::streams::Streams;

/// One process's view of a team. Made before processes are, so that all have it at one address; only the
/// descriptors come later.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) config: Config,
    pub(super) shape: Shape,
    pub(super) area: Area,
    pub(super) common: Common,
    pub(super) far: Box<dyn Far>,
    /// By space; a mover gets all of them, a worker its own and the others'.
    pub(super) tables: Vec<OnceLock<Userfault>>,
    /// Which process of the team this is: workers first, then movers.
    pub(super) number: OnceLock<u16>,
    pub(super) features: Features,
    pub(super) born: Born,
    /// Of this process's own faults.
    pub(super) streams: Streams,
    /// The same.
    pub(super) poisons: Poisons,
    /// Threads of this process unmap and free one after the other.
    pub(super) unmapping: Mutex<()>,
}

/// When a team was made, by both clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Born {
    cycles: u64,
    ns: u64,
}

impl Born {
    pub(super) fn now() -> Self {
        Self { cycles: clock::start(), ns: clock::monotonic_ns() }
    }

    /// How long a cycle has been since.
    #[allow(clippy::cast_precision_loss, reason = "a ratio, of which 53 bits are enough")]
    pub(super) fn ns_per_cycle(self) -> f64 {
        let now = Self::now();
        let [ns, cycles] = [now.ns.saturating_sub(self.ns), now.cycles.saturating_sub(self.cycles)];
        ns as f64 / cycles.max(1) as f64
    }
}

impl Process {
    pub(super) fn pager(&self) -> Pager<'_> {
        Pager::new(self.common.pager_words(), self.shape, self.config.plan)
    }

    /// The pager for a fault, which fetches what the fault is worth.
    pub(super) fn pager_at(&self, group: Group) -> Pager<'_> {
        let Config { plan, follow, movers, workers, .. } = self.config;
        let pager = self.pager();
        // One that is there is only mapped, or may be written from now on: that says nothing of what comes next.
        if !follow || movers > 0 || pager.directory().look(group).state() != State::Absent {
            return pager;
        }
        let frames = self.shape.frames / u32::from(workers);
        let cluster = self.streams.cluster(group, self.shape.groups, frames, |most| most);
        Pager::new(self.common.pager_words(), self.shape, Plan { cluster, ..plan })
    }

    /// Nobody else of this process unmaps or frees pages as long as this lives. Where two do at the same moment Linux
    /// has both flush again, also where nothing was mapped (`mm_tlb_flush_nested` in mm/mmu_gather.c): up to three
    /// interrupts for a page, of which one is needed.
    pub(super) fn unmapping(&self) -> MutexGuard<'_, ()> {
        self.unmapping.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn userfault(&self, space: Space) -> Option<&Userfault> {
        self.tables.get(space.index()).and_then(OnceLock::get)
    }

    /// The tables that a worker uses.
    pub(super) fn space_of(&self, worker: u32) -> Space {
        match self.config.tables {
            Tables::Shared => Space(0),
            Tables::Separated => Space(u16::try_from(worker).unwrap_or(0)),
        }
    }

    /// The process that an actor is in.
    pub(super) fn process_of(&self, actor: Actor) -> u16 {
        match self.config.tables {
            Tables::Shared if actor.0 < self.config.workers => 0,
            Tables::Shared => actor.0 - self.config.workers + 1,
            Tables::Separated => actor.0,
        }
    }

    /// Whether an actor's process ended.
    pub(super) fn is_dead(&self, actor: Actor) -> bool {
        let process = self.process_of(actor);
        self.number.get() != Some(&process) && !self.common.lights.is_lit(process)
    }

    /// The mover that serves a worker.
    pub(super) const fn mover_of(&self, worker: u32) -> Option<u16> {
        let movers = self.config.movers as u32;
        let Some(mover) = worker.checked_rem(movers) else { return None };
        let [low, high, ..] = mover.to_le_bytes();
        Some(u16::from_le_bytes([low, high]))
    }
}

/// Times something, in cycles.
pub(super) fn timed<T>(act: impl FnOnce() -> T) -> (T, u64) {
    let begin = clock::start();
    let result = act();
    (result, clock::stop().saturating_sub(begin))
}
