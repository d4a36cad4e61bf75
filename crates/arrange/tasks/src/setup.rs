//! How a run is set up, on this machine or in virtual time: the options that both take, what is refused, and the
//! scheduler that follows from them. So one experiment can be run both ways, by the same words.

use isochrone_units::{CoreId, Reading};

use crate::arena::{Arena, Capacity, Provide, check_workers};
use crate::error::TaskError;
use crate::policy::{Placement, Policy, Rank, Regime};
use crate::schedule::Schedule;
use crate::scheduler::Scheduler;
use crate::topology::Topology;

/// What every run takes, whichever machine it is on.
#[derive(Clone, Debug)]
pub struct Setup {
    /// How many workers, [`WORKERS_MAX`](crate::WORKERS_MAX) at most; the program is the first of them.
    pub workers: usize,
    /// The machine.
    pub topology: Topology,
    /// How tasks are scheduled.
    pub policy: Policy,
    /// Where memory lies.
    pub placement: Placement,
    /// Whether interleaved memory with queues for each region is wanted all the same.
    pub ablation: bool,
    /// How much the arena holds.
    pub capacity: Capacity,
    /// Seed of every random choice: in virtual time the same one gives the same run.
    pub seed: u64,
    /// A schedule to follow instead of scheduling: each task runs on the worker that ran it, in the order that
    /// it had there. Times are kept where both runs are in virtual time. The arena is made large enough.
    pub follow: Option<Schedule>,
}

impl Setup {
    /// A run in one of the regimes.
    #[must_use]
    pub fn new(regime: Regime, workers: usize, topology: Topology) -> Self {
        let (policy, placement) = regime.parts();
        Self {
            workers,
            topology,
            policy,
            placement,
            ablation: false,
            capacity: Capacity::default(),
            seed: 1,
            follow: None,
        }
    }

    /// Refuses what makes no sense on any machine.
    pub(crate) fn check(&self) -> Result<(), TaskError> {
        check_workers(self.workers)?;
        let aware = self.policy.rank != Rank::Oblivious;
        if self.placement == Placement::Interleaved && aware && !self.ablation {
            return Err(TaskError::Conflict);
        }
        Ok(())
    }

    /// Where the workers sit, if these cores may be used: core and region of each, evenly over the regions.
    pub(crate) fn places(&self, cores: &[CoreId]) -> Result<Vec<(CoreId, usize)>, TaskError> {
        let places = self.topology.spread(cores, self.workers);
        if places.is_empty() {
            return Err(TaskError::Config(
                "none of the cores is part of the machine that the topology describes".to_owned(),
            ));
        }
        Ok(places)
    }

    /// The scheduler for workers in these places, in the run's own memory or in the memory that `shared` hands out.
    /// Only a clock of the given reading can keep the times of a schedule.
    pub(crate) fn scheduler(
        mut self,
        places: &[(CoreId, usize)],
        clock: Reading,
        provide: &mut impl Provide,
    ) -> Result<Scheduler, TaskError> {
        let regions: Vec<usize> = places.iter().map(|place| place.1).collect();
        if let Some(schedule) = &self.follow {
            schedule.check(places.len())?;
            (self.policy, self.capacity) = (Policy::RECORDED, schedule.capacity(self.capacity));
        }
        let queues = Scheduler::queues(&self.policy, &self.topology, &regions);
        self.capacity.check(places.len(), queues)?;
        provide.admits(self.capacity, places.len(), queues)?;
        let arena = Arena::new(provide, self.capacity, places.len(), queues);
        let timed = |schedule: &Schedule| {
            clock == Reading::Simulated && schedule.reading == Reading::Simulated
        };
        let timed = self.follow.as_ref().is_some_and(timed);
        Ok(Scheduler::new(arena, self.policy, self.topology, &regions)
            .following(self.follow.as_ref(), timed))
    }
}
