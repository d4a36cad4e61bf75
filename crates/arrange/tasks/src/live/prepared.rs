//! A run whose workers somebody else makes, with data in memory that somebody else owns: as the workers of a
//! pager are made by the pager, since the tables of its pages have to be, too.

use core::ptr::NonNull;
use std::sync::Arc;

use isochrone_units::CoreId;

use super::hold::own_cores;
use super::memory::Memory;
use super::runtime::{Config, Runtime, prepare};
use super::shared::{Shared, block_on};
use super::team::Team;
use crate::driver::work;
use crate::error::TaskError;
use crate::policy::Placement;
use crate::scheduler::Goal;

/// A run that has not begun. It is prepared before its workers are made, so that all of them have it.
#[derive(Debug)]
pub struct Prepared {
    shared: Arc<Shared>,
    places: Vec<(CoreId, usize)>,
    placement: Placement,
    seed: u64,
}

impl Prepared {
    /// Prepares a run of one region. Of `config` nothing counts that is about making workers: who makes them
    /// pins them, and looks after those that end.
    ///
    /// # Errors
    /// [`TaskError`] for a configuration that makes no sense, and where the system refuses.
    pub fn new(config: Config) -> Result<Self, TaskError> {
        config.check()?;
        if config.setup.topology.regions() > 1 || config.check_footprint {
            return Err(TaskError::Config(
                "memory of others is of one region, and its footprints are not checked".to_owned(),
            ));
        }
        let (processes, placement, seed) =
            (config.processes, config.setup.placement, config.setup.seed);
        let (mut shared, places) = prepare(config, &own_cores()?, Memory::of_other())?;
        if processes {
            shared.team = Some(Team::of_others(places.len())?);
        }
        Ok(Self { shared: Arc::new(shared), places, placement, seed })
    }

    /// Works in one of the seats from 1 on, in a thread or process of the caller's, until the program's
    /// [`Runtime`] is dropped; also if it ends otherwise.
    ///
    /// # Errors
    /// [`TaskError`] for a seat that there is not, or that is taken.
    pub fn serve(&self, seat: u32) -> Result<(), TaskError> {
        if seat == 0 || seat as usize >= self.places.len() {
            return Err(TaskError::Config(format!(
                "seat {seat}; the run has seats 1 to {}",
                self.places.len() - 1
            )));
        }
        if let Some(team) = &self.shared.team {
            team.enter(seat)?;
        }
        let shared = &*self.shared;
        let worker = shared.worker(seat, self.seed);
        let _ = block_on(work(&shared.scheduler, shared, &worker, Goal::Stop));
        if let Some(team) = &self.shared.team {
            team.leave();
        }
        Ok(())
    }

    /// The program, in seat 0. Data are taken from `memory`, from the first byte on.
    ///
    /// # Safety
    /// `bytes` bytes from `memory` on are readable and writable at that address in every thread or process that
    /// serves, are zeroes, begin at a page, and are used by nobody else until the [`Runtime`] is dropped and all
    /// that serve have returned.
    ///
    /// # Errors
    /// [`TaskError`] if there was a program before.
    pub unsafe fn program(&self, memory: NonNull<u8>, bytes: usize) -> Result<Runtime, TaskError> {
        if !self.shared.memory.give(memory, bytes) {
            return Err(TaskError::Config("a prepared run has one program".to_owned()));
        }
        if let Some(team) = &self.shared.team {
            team.enter(0)?;
        }
        let (shared, places) = (Arc::clone(&self.shared), self.places.clone());
        Ok(Runtime::first(shared, places, self.placement, self.seed))
    }
}
