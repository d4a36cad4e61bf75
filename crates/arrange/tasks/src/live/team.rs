//! Workers that are processes: made by fork, watched while anybody waits, ended with the run.

use core::sync::atomic::{AtomicU64, Ordering};

use isochrone_os::OsError;
use isochrone_os::affinity::CoreSet;
use isochrone_os::process::{End, ProcessId, Side, end, fork, parent, signal, this, wait};
use isochrone_units::CoreId;

use super::env::{Shared, block_on};
use super::others::Others;
use super::runtime::settle;
use crate::driver::work;
use crate::error::TaskError;
use crate::scheduler::Goal;

/// Code of a worker whose program ended without it.
const ORPHANED: i32 = 82;
const KILL: i32 = 9;
/// Nobody is lost.
const NONE: u64 = 0;

/// The processes of a run, as each of them sees it.
#[derive(Debug)]
pub(crate) struct Team {
    /// The program's own process.
    program: ProcessId,
    /// Workers from seat 1 on; known to the program only.
    workers: Vec<ProcessId>,
    /// Seat of a worker that ended before the run, and how: its signal, or its code above.
    lost: AtomicU64,
    /// Workers that somebody else made and waits for.
    others: Option<Others>,
}

/// A worker that ended before the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lost {
    pub(crate) seat: u32,
    end: End,
}

impl core::fmt::Display for Lost {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.end {
            // Whoever made it knows.
            End::Code(0) => write!(f, "without a word"),
            End::Code(code) => write!(f, "with code {code}"),
            End::Signal(signal) => write!(f, "by signal {signal}"),
        }
    }
}

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
                Ok(Side::Parent(worker)) => team.workers.push(worker),
                Ok(Side::Child) => {
                    self.team = Some(team);
                    settle(*core, free);
                    let worker = self.worker(seat, seed);
                    let _ = block_on(work(&self.scheduler, &*self, &worker, Goal::Stop));
                    end(0)
                }
                Err(error) => {
                    team.note(Lost { seat: u32::MAX, end: End::Code(1) });
                    team.finish();
                    return Err(error.into());
                }
            }
        }
        self.team = Some(team);
        Ok(())
    }
}

impl Team {
    fn new() -> Self {
        Self { program: this(), workers: Vec::new(), lost: AtomicU64::new(NONE), others: None }
    }

    /// Processes that somebody else will make, each of which calls [`Self::enter`].
    pub(super) fn of_others(seats: usize) -> Result<Self, OsError> {
        Ok(Self { others: Some(Others::new(seats)?), ..Self::new() })
    }

    /// This process takes a seat; the first is the program's.
    pub(super) fn enter(&self, seat: u32) -> Result<(), TaskError> {
        self.others.as_ref().map_or(Ok(()), |others| others.enter(seat))
    }

    /// This process leaves its seat, as it should.
    pub(super) fn leave(&self) {
        if let Some(others) = &self.others {
            others.leave();
        }
    }

    /// Whether this worker's program ended without it.
    pub(super) fn is_orphan(&self) -> bool {
        self.others.as_ref().is_some_and(|others| others.mine() != Some(0) && others.is_lost(0))
    }

    /// Whether this process is the program.
    fn is_program(&self) -> bool {
        this() == self.program
    }

    /// Looks after the others, from time to time. A worker whose program has ended ends as well; the
    /// program learns of a worker that has.
    pub(super) fn look(&self) -> Option<Lost> {
        if let Some(others) = &self.others {
            if others.mine() == Some(0)
                && self.lost().is_none()
                && let Some(seat) = others.lost()
            {
                self.note(Lost { seat, end: End::Code(0) });
            }
            return self.lost();
        }
        if !self.is_program() {
            if parent() != self.program {
                end(ORPHANED);
            }
            return None;
        }
        if self.lost().is_none() {
            for (seat, worker) in (1_u32..).zip(&self.workers) {
                if let Ok(Some(end)) = wait(*worker, false) {
                    self.note(Lost { seat, end });
                    break;
                }
            }
        }
        self.lost()
    }

    fn note(&self, lost: Lost) {
        let how = match lost.end {
            End::Signal(signal) => u64::from(signal.unsigned_abs()),
            End::Code(code) => u64::from(code.unsigned_abs()) << 16,
        };
        self.lost.store(u64::from(lost.seat) << 32 | how & 0xffff_ffff, Ordering::Relaxed);
    }

    /// The worker that is gone.
    pub(super) fn lost(&self) -> Option<Lost> {
        let word = self.lost.load(Ordering::Relaxed);
        let number = |bits: u64| i32::try_from(bits & 0xffff).unwrap_or(0);
        let end = match number(word) {
            0 => End::Code(number(word >> 16)),
            signal => End::Signal(signal),
        };
        let seat = u32::try_from(word >> 32).unwrap_or(0);
        (word != NONE).then_some(Lost { seat, end })
    }

    /// Waits until all workers have ended; where one was lost, the others are ended.
    pub(super) fn finish(&self) {
        self.leave();
        if self.others.is_some() || !self.is_program() {
            return;
        }
        let lost = self.lost();
        for (seat, worker) in (1_u32..).zip(&self.workers) {
            match lost {
                Some(lost) if lost.seat == seat => continue,
                Some(_) => {
                    let _ = signal(*worker, KILL);
                }
                None => {}
            }
            let _ = wait(*worker, true);
        }
    }
}
