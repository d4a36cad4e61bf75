//! The host of a pool: the program itself, which is worker 0.

use std::ops::Deref;

use isochrone_cla::live::{Settings, Team};

use super::call::{CallError, PartId, Side};
use super::member::{Body, run, team, words};
use super::orders::{ARGUMENTS, END, Order, Orders};
use crate::live::worker::Worker;

/// The program's side. It is a worker, too: pieces of the area, pins and advice are those of [`Worker`].
pub struct Host<'h, 't> {
    worker: &'h mut Worker<'t>,
    orders: &'h Orders,
    parts: &'h [Box<Body<'h>>],
    /// Of all, and of the host alone.
    all: Team,
    alone: Team,
}

impl std::fmt::Debug for Host<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").field("worker", &self.worker).finish_non_exhaustive()
    }
}

/// Tells all workers that it is over, also when the host could not begin.
struct Ending<'h>(&'h Orders);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.give(Order { part: END, with_host: false, arguments: [0; ARGUMENTS] });
    }
}

impl<'h, 't> Host<'h, 't> {
    pub(super) fn new(
        worker: &'h mut Worker<'t>,
        orders: &'h Orders,
        parts: &'h [Box<Body<'h>>],
    ) -> Result<Self, String> {
        let ending = Ending(orders);
        let workers = worker.workers();
        let all = team(orders, 0, 0, workers, || (1..workers).any(|other| worker.is_gone(other)))?;
        let mut alone = Team::threads(1, &Settings::default()).map_err(words)?;
        let alone = alone.pop().ok_or("a team of one")?;
        std::mem::forget(ending);
        Ok(Self { worker, orders, parts, all, alone })
    }

    /// Runs a part where it is preferred; what it gave there, in the order of the workers. Returns when all
    /// are done. After an error barriers and reductions of that side fail.
    ///
    /// # Errors
    /// [`CallError`] of the first that failed.
    pub fn call(
        &mut self,
        part: PartId,
        arguments: [u64; ARGUMENTS],
        side: Side,
    ) -> Result<Vec<u64>, CallError> {
        let part = part.0 as u64;
        let workers = self.worker.workers();
        if side == Side::Host || workers == 1 {
            let mine = run(self.worker, &mut self.alone, self.parts, part, arguments);
            let failed = |words| CallError::Failed { worker: 0, words };
            return mine.map(|value| vec![value]).map_err(failed);
        }
        let with_host = side == Side::All;
        let number = self.orders.give(Order { part, with_host, arguments });
        let mut results = Vec::new();
        if with_host {
            let mine = run(self.worker, &mut self.all, self.parts, part, arguments);
            results.push((0, Some(mine)));
        }
        for worker in 1..workers {
            let gone = || self.worker.is_gone(worker);
            results.push((worker, self.orders.await_result(worker, number, gone)));
        }
        // Who ended comes before those who only could not go on without it.
        if let Some((worker, _)) = results.iter().find(|(_, result)| result.is_none()) {
            return Err(CallError::Gone(*worker));
        }
        let value = |(worker, result): (u16, Option<Result<u64, String>>)| match result {
            Some(Ok(value)) => Ok(value),
            Some(Err(words)) => Err(CallError::Failed { worker, words }),
            None => Err(CallError::Gone(worker)),
        };
        results.into_iter().map(value).collect()
    }
}

impl<'t> Deref for Host<'_, 't> {
    type Target = Worker<'t>;

    fn deref(&self) -> &Worker<'t> {
        self.worker
    }
}

impl Drop for Host<'_, '_> {
    fn drop(&mut self) {
        drop(Ending(self.orders));
    }
}
