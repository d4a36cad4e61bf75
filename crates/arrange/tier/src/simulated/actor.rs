//! One worker or mover: the operations of a pager, and what each costs on the simulated processor.

use core::sync::atomic::{AtomicU32, Ordering};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::task::Poll;

use isochrone_sim::paging::Way;

use super::case::{Case, Part};
use super::world::World;
use crate::names::{Actor, Group, Run, Space};
use crate::pager::Orders;
use crate::pages::{Event, Fetch, Pages, Trouble, Wish};
use crate::policy::Shard;

pub(super) struct Thread<'w> {
    pub(super) world: &'w RefCell<World>,
    pub(super) case: &'w Case,
    pub(super) number: usize,
    /// Cycles of the fault that is being resolved, by part.
    pub(super) parts: Cell<[f64; Part::ALL.len()]>,
}

impl<'w> Thread<'w> {
    pub(super) fn new(world: &'w RefCell<World>, case: &'w Case, number: usize) -> Self {
        Self { world, case, number, parts: Cell::default() }
    }

    pub(super) fn now(&self) -> f64 {
        self.world.borrow().hardware.now()
    }

    async fn told(&self) {
        let ready = |_: &mut std::task::Context<'_>| {
            if self.world.borrow().is_ready(self.number) { Poll::Ready(()) } else { Poll::Pending }
        };
        poll_fn(ready).await;
    }

    /// Waits to be told while it polls, if this kernel does.
    async fn told_polling(&self) {
        let polls = self.case.spec.polls;
        if polls {
            self.world.borrow_mut().hardware.poll(self.number);
        }
        self.told().await;
        if polls {
            self.world.borrow_mut().hardware.leave(self.number);
        }
    }

    fn spent(&self, part: Part, since: f64) {
        let mut parts = self.parts.get();
        parts[part as usize] += self.now() - since;
        self.parts.set(parts);
    }

    pub(super) async fn work(&self, cycles: f64, part: Part) {
        let begin = self.now();
        {
            let mut world = self.world.borrow_mut();
            world.suspend(self.number);
            world.hardware.work(self.number, cycles);
        }
        self.told().await;
        self.spent(part, begin);
    }

    /// Waits for a time.
    async fn until(&self, time: f64, part: Part) {
        let begin = self.now();
        if time > begin {
            {
                let mut world = self.world.borrow_mut();
                let token = world.suspend(self.number);
                world.hardware.tell_at(time, self.number, token);
            }
            self.told_polling().await;
            self.spent(part, begin);
        }
    }

    /// Waits for all workers.
    pub(super) async fn meet(&self) {
        let workers = usize::from(self.case.workers);
        let last = self.world.borrow_mut().arrive(self.number, workers, self.case.costs.wake);
        if !last {
            self.told().await;
        }
    }

    async fn transfer(&self, pages: u32, way: Way) {
        let end = self.world.borrow_mut().hardware.transfer(pages, way);
        self.until(end, Part::Transfer).await;
    }

    const fn mover(&self) -> usize {
        self.number - self.case.workers as usize
    }

    /// Others whose buffers may have an entry of a space.
    fn targets(&self, space: Space) -> std::ops::Range<usize> {
        if self.case.separated {
            space.index()..space.index() + 1
        } else {
            0..usize::from(self.case.workers)
        }
    }

    /// Unmaps a run and tells every core that may have its entries.
    fn unmap(&self, run: Run, space: Space) -> f64 {
        let mut world = self.world.borrow_mut();
        let targets = self.targets(space);
        for group in run.iter() {
            world.tables.unmap(space.index(), group.0);
            for thread in targets.clone().chain([self.number]) {
                world.tables.invalidate(thread, group.0);
            }
        }
        let me = self.number;
        world.hardware.interrupt(targets.filter(|target| *target != me))
    }
}

impl Pages for Thread<'_> {
    async fn list(&self, shard: Shard) {
        let held = self.case.costs.held;
        let begin = self.world.borrow_mut().list_turn(shard.0 as usize, self.number, held);
        self.until(begin, Part::Lists).await;
        self.work(self.case.costs.list, Part::Lists).await;
    }

    /// The paper's order: the page is unmapped everywhere before it is copied.
    async fn protect(&self, run: Run, space: Space) -> Result<(), Trouble> {
        self.work(f64::from(run.groups) * self.case.costs.entry, Part::Entries).await;
        if !self.case.separated {
            let others = self.targets(space).filter(|target| *target != self.number);
            let begin = {
                let mut world = self.world.borrow_mut();
                let held = world.hardware.round(others);
                world.shootdown_turn(self.number, held)
            };
            self.until(begin, Part::Shootdown).await;
        }
        let end = self.unmap(run, space);
        self.until(end, Part::Shootdown).await;
        Ok(())
    }

    async fn copy_out(&self, run: Run) -> Result<(), Trouble> {
        self.transfer(run.groups, Way::Out).await;
        Ok(())
    }

    /// Nothing is mapped any more, so nobody has to be told.
    async fn punch(&self, run: Run) -> Result<(), Trouble> {
        let world = self.world.borrow();
        let spaces = if self.case.separated { usize::from(self.case.workers) } else { 1 };
        debug_assert!(
            run.iter().all(|g| (0..spaces).all(|space| !world.tables.is_mapped(space, g.0))),
            "a page is freed that somebody maps"
        );
        Ok(())
    }

    async fn fill(&self, run: Run, fetch: Fetch) -> Result<(), Trouble> {
        // What was never stored lies in the host's memory from the beginning.
        self.transfer(run.groups, Way::In).await;
        if let Some(space) = fetch.into {
            self.work(f64::from(run.groups) * self.case.costs.entry, Part::Entries).await;
            let mut world = self.world.borrow_mut();
            for group in run.iter() {
                world.tables.map(space.index(), group.0, !fetch.protect);
            }
        }
        Ok(())
    }

    async fn map(&self, group: Group, space: Space, protect: bool) -> Result<(), Trouble> {
        self.work(self.case.costs.entry, Part::Entries).await;
        self.world.borrow_mut().tables.map(space.index(), group.0, !protect);
        Ok(())
    }

    async fn wait(&self, word: &AtomicU32, value: u32) {
        let begin = self.now();
        if word.load(Ordering::Acquire) == value {
            self.world.borrow_mut().sleep(word, self.number);
            self.told_polling().await;
        }
        self.spent(Part::Other, begin);
    }

    fn wake(&self, word: &AtomicU32) {
        self.world.borrow_mut().wake(word, self.case.costs.wake);
    }

    fn is_dead(&self, _: Actor) -> bool {
        false
    }

    fn somebody_died(&self) -> bool {
        false
    }

    fn wish(&self, wish: Wish) {
        let movers = usize::from(self.case.movers);
        if let Some(mover) = (wish.worker as usize).checked_rem(movers) {
            let thread = usize::from(self.case.workers) + mover;
            self.world.borrow_mut().wish(mover, thread, wish, self.case.costs.wake);
        }
    }

    fn count(&self, event: Event, times: u32) {
        self.world.borrow_mut().count(event, times);
    }
}

impl Orders for Thread<'_> {
    fn next(&self) -> Option<Wish> {
        self.world.borrow_mut().next_wish(self.mover())
    }

    fn is_over(&self) -> bool {
        self.world.borrow().over
    }

    async fn idle(&self) {
        self.world.borrow_mut().idle(self.mover(), self.number);
        self.told().await;
        self.world.borrow_mut().not_idle(self.mover());
    }
}
