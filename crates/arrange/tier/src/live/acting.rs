//! The operations of an actor on this machine, which the pager's drivers are written over.

use core::sync::atomic::{AtomicU32, Ordering};
use std::future::Future;
use std::pin::pin;
use std::task::{Context as Polling, Poll, Waker};

use isochrone_os::futex::{self, Scope};

use super::common::Timed;
use super::context::Context;
use super::far::Part;
use super::operations;
use super::process::timed;
use super::wishes;
use crate::names::{Actor, Group, Run, Space};
use crate::pager::Orders;
use crate::pages::{Event, Fetch, Pages, Trouble, Wish};
use crate::streams::CLUSTER_MOST;

/// A wait ends by itself after this, so that a dead owner is noticed.
const WAIT_NS: u64 = 20_000_000;
/// A mover looks round by itself after this.
const IDLE_NS: u64 = 5_000_000;

/// Runs a driver whose operations all block: it is ready after the first poll.
pub(super) fn at_once<T>(driver: impl Future<Output = T>) -> T {
    let mut driver = pin!(driver);
    loop {
        if let Poll::Ready(result) = driver.as_mut().poll(&mut Polling::from_waker(Waker::noop())) {
            return result;
        }
    }
}

impl Pages for Context<'_> {
    async fn protect(&self, run: Run, space: Space) -> Result<(), Trouble> {
        self.time(Timed::Protect, || operations::protect(self.process, run, space))
    }

    async fn freeze(&self, run: Run, space: Space) -> Result<(), Trouble> {
        self.time(Timed::Protect, || operations::freeze(self.process, run, space))
    }

    async fn copy_out(&self, run: Run) -> Result<(), Trouble> {
        self.time(Timed::CopyOut, || operations::copy_out(self, run))
    }

    fn foresee(&self, run: Run) {
        let mut ahead = self.ahead.borrow_mut();
        (ahead.wanted, ahead.here) = (Some(run), None);
    }

    async fn punch(&self, run: Run) -> Result<(), Trouble> {
        self.time(Timed::Punch, || operations::punch(self.process, run))
    }

    async fn fill(&self, run: Run, fetch: Fetch) -> Result<(), Trouble> {
        for piece in self.process.area.pieces(run) {
            let (source, cycles) = timed(|| operations::source(self, &piece, run, fetch));
            let source = source?;
            if source.is_bounced() {
                self.process.common.time(self.caller.actor, Timed::Read, cycles);
            }
            self.time(Timed::Fill, || operations::put(self.process, &piece, &source, fetch))?;
        }
        Ok(())
    }

    async fn map(&self, group: Group, space: Space, protect: bool) -> Result<(), Trouble> {
        self.time(Timed::Map, || operations::map(self.process, group, space, protect))
    }

    async fn wait(&self, word: &AtomicU32, value: u32) {
        self.time(Timed::Wait, || self.sleep(word, value, WAIT_NS));
    }

    fn wake(&self, word: &AtomicU32) {
        // Who sleeps wakes by itself in the end.
        let _ = futex::wake(word, u32::MAX >> 1, Scope::Shared);
    }

    fn is_dead(&self, actor: Actor) -> bool {
        self.process.is_dead(actor)
    }

    fn somebody_died(&self) -> bool {
        let config = &self.process.config;
        (0..config.workers + config.movers).any(|actor| self.is_dead(Actor(actor)))
    }

    fn forget(&self, run: Run) {
        for piece in self.process.area.pieces(run) {
            self.process.far.forget(&Part::owned(piece.at, piece.bytes));
        }
    }

    fn wish(&self, wish: Wish) {
        let follows = self.follows.replace(Group(wish.group.0 + 1));
        // With a fault others may have come that follow it.
        if wish.group.0.wrapping_sub(follows.0) < CLUSTER_MOST {
            self.count(Event::Followed, 1);
        }
        let Some(mover) = self.process.mover_of(wish.worker) else { return };
        wishes::push(self.process.common.wishes(mover), wish);
        let doorbell = self.process.common.doorbell(mover);
        // SeqCst: partner of `idle`. Either this sees that the mover lies down, or the mover sees the wish.
        if doorbell.swap(0, Ordering::SeqCst) != 0 {
            self.wake(doorbell);
        }
    }

    fn count(&self, event: Event, times: u32) {
        self.process.common.count(self.caller.actor, event, times);
    }
}

impl Context<'_> {
    const fn mover(&self) -> u16 {
        self.caller.actor.0 - self.process.config.workers
    }
}

impl Orders for Context<'_> {
    fn next(&self) -> Option<Wish> {
        wishes::pop(self.process.common.wishes(self.mover()))
    }

    fn is_over(&self) -> bool {
        self.process.common.over().load(Ordering::Acquire) != 0
    }

    async fn idle(&self) {
        let doorbell = self.process.common.doorbell(self.mover());
        doorbell.store(1, Ordering::SeqCst);
        let ring = self.process.common.wishes(self.mover());
        if ring[0].load(Ordering::SeqCst) == ring[8].load(Ordering::Relaxed) && !self.is_over() {
            self.sleep(doorbell, 1, IDLE_NS);
        }
        doorbell.store(0, Ordering::Release);
        // A team whose workers are all gone, its parent too, has nobody who says that it is over.
        let workers = 0..self.process.config.workers;
        if workers.into_iter().all(|worker| self.process.is_dead(Actor(worker))) {
            self.process.common.over().store(1, Ordering::Release);
        }
    }
}
