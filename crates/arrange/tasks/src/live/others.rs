//! Processes that somebody else made: who sits where, and whether they live.

use core::sync::atomic::Ordering;
use std::sync::OnceLock;

use isochrone_os::OsError;
use isochrone_os::area::Words;
use isochrone_os::process::Lights;

use crate::error::TaskError;

/// What a seat's word says once its process has come, and once it has left as it should.
const CAME: u32 = 1;
const LEFT: u32 = 2;

/// As each of the processes sees it.
#[derive(Debug)]
pub(super) struct Others {
    /// One for each process that came, until it ends.
    lights: Lights,
    seats: Words,
    count: usize,
    mine: OnceLock<u32>,
}

impl Others {
    /// Nobody has come yet.
    pub(super) fn new(count: usize) -> Result<Self, OsError> {
        let (lights, seats) = (Lights::new()?, Words::new(count)?);
        Ok(Self { lights, seats, count, mine: OnceLock::new() })
    }

    /// This process takes a seat.
    pub(super) fn enter(&self, seat: u32) -> Result<(), TaskError> {
        let number = u16::try_from(seat).ok().filter(|number| usize::from(*number) < self.count);
        let number = number.filter(|_| self.mine.set(seat).is_ok());
        let number = number.ok_or_else(|| {
            TaskError::Config("a process has one seat, of those that there are".to_owned())
        })?;
        self.lights.light(number)?;
        self.seats.as_slice()[seat as usize].store(CAME, Ordering::Release);
        Ok(())
    }

    /// The seat of this process.
    pub(super) fn mine(&self) -> Option<u32> {
        self.mine.get().copied()
    }

    pub(super) fn leave(&self) {
        if let Some(seat) = self.mine() {
            self.seats.as_slice()[seat as usize].store(LEFT, Ordering::Release);
        }
    }

    /// Whether the process of a seat came and ended before it left. For others' seats: one's own light does
    /// not show.
    pub(super) fn is_lost(&self, seat: u32) -> bool {
        let came = || self.seats.as_slice()[seat as usize].load(Ordering::Acquire) == CAME;
        // It may leave and end between the two looks.
        came() && !self.lights.is_lit(u16::try_from(seat).unwrap_or(u16::MAX)) && came()
    }

    /// The first seat whose process is lost.
    pub(super) fn lost(&self) -> Option<u32> {
        let seats = 1..u32::try_from(self.count).unwrap_or(u32::MAX);
        seats.into_iter().find(|seat| self.is_lost(*seat))
    }
}
