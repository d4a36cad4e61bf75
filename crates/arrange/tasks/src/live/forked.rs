//! Workers that are processes, made by fork.

use isochrone_os::affinity::CoreSet;
use isochrone_os::process::{Side, end, fork};
use isochrone_units::CoreId;

use super::hold::settle;
use super::shared::{Shared, block_on};
use super::team::Team;
use crate::driver::work;
use crate::error::TaskError;
use crate::scheduler::Goal;

impl Shared {
    /// Forks a process for each worker but the first, on its core, or all on the cores of `free`. In such
    /// a process this does not return.
    pub(super) fn fork_workers(
        &mut self,
        places: &[(CoreId, usize)],
        free: Option<&CoreSet>,
        seed: u64,
    ) -> Result<(), TaskError> {
        let mut team = Team::new();
        for (seat, (core, _)) in (0_u32..).zip(places).skip(1) {
            match fork() {
                Ok(Side::Parent(worker)) => team.add(worker),
                Ok(Side::Child) => {
                    self.team = Some(team);
                    settle(*core, free);
                    let worker = self.worker(seat, seed);
                    let _ = block_on(work(&self.scheduler, &*self, &worker, Goal::Stop));
                    end(0)
                }
                Err(error) => {
                    team.give_up();
                    return Err(error.into());
                }
            }
        }
        self.team = Some(team);
        Ok(())
    }
}
