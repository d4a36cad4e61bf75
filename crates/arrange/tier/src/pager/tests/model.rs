//! A machine with tables, a page cache and a far tier as plain values. Every operation suspends before and
//! after its effect, so that a scheduler can put anything between.

use core::sync::atomic::{AtomicU32, Ordering};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::names::{Access, Actor, Group, Run, Space};
use crate::pager::{Mover, Orders};
use crate::pages::{Event, Fetch, Pages, Trouble, Wish};

/// Suspends once.
struct Step(bool);

impl Future for Step {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) { Poll::Ready(()) } else { Poll::Pending }
    }
}

pub(super) fn step() -> impl Future<Output = ()> {
    Step(false)
}

/// The machine.
#[derive(Default)]
pub(super) struct Machine {
    /// What a table maps: whether it may be written.
    pub(super) tables: RefCell<BTreeMap<(Space, Group), bool>>,
    /// Pages in memory.
    pub(super) cache: RefCell<BTreeMap<Group, u64>>,
    pub(super) far: RefCell<BTreeMap<Group, u64>>,
    /// Groups that their owner will fetch, and what was read of them while something left.
    ahead: RefCell<BTreeMap<Group, Option<u64>>>,
    /// Groups that came from there.
    pub(super) ahead_used: Cell<u64>,
    /// Words that somebody woke, and how often: who sleeps compares.
    wakes: RefCell<BTreeMap<usize, u64>>,
    pub(super) events: RefCell<BTreeMap<Event, u64>>,
    pub(super) dead: RefCell<Vec<Actor>>,
    wishes: RefCell<Vec<Wish>>,
    pub(super) over: Cell<bool>,
    /// Somebody made a step that others may wait for.
    pub(super) progress: Cell<u64>,
    /// One in this many operations of the far tier fails; 0 for none.
    pub(super) failures: u32,
    random: Cell<u64>,
    /// Waits end by themselves after some looks: with deaths nobody may be left to wake.
    pub(super) patience: u64,
}

impl Machine {
    pub(super) fn new(seed: u64, failures: u32, patience: u64) -> Self {
        Self { random: Cell::new(seed | 1), failures, patience, ..Self::default() }
    }

    /// Xorshift: enough for a scheduler.
    pub(super) fn random(&self) -> u64 {
        let mut x = self.random.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.random.set(x);
        x >> 11
    }

    fn fails(&self) -> bool {
        self.failures > 0 && self.random().is_multiple_of(u64::from(self.failures))
    }

    /// One access of a worker, as hardware does it: false is a fault.
    pub(super) fn access(&self, space: Space, group: Group, access: Access) -> Option<u64> {
        let writable = *self.tables.borrow().get(&(space, group))?;
        let mut cache = self.cache.borrow_mut();
        let value = cache.get_mut(&group).expect("what is mapped is in memory");
        match access {
            Access::Read => Some(*value),
            Access::Write if writable => {
                *value += 1;
                Some(*value)
            }
            Access::Write => None,
        }
    }

    /// A process ended: its tables are gone.
    pub(super) fn bury(&self, space: Space) {
        self.tables.borrow_mut().retain(|(of, _), _| *of != space);
    }

    fn key(word: &AtomicU32) -> usize {
        std::ptr::from_ref(word).addr()
    }
}

impl Pages for &Machine {
    async fn protect(&self, run: Run, space: Space) -> Result<(), Trouble> {
        for group in run.iter() {
            step().await;
            if let Some(writable) = self.tables.borrow_mut().get_mut(&(space, group)) {
                *writable = false;
            }
        }
        Ok(())
    }

    /// Every other table loses what leaves, and the others only the permission to write it.
    async fn freeze(&self, run: Run, space: Space) -> Result<(), Trouble> {
        if !space.0.is_multiple_of(2) {
            return self.protect(run, space).await;
        }
        for group in run.iter() {
            step().await;
            self.tables.borrow_mut().remove(&(space, group));
        }
        Ok(())
    }

    async fn copy_out(&self, run: Run) -> Result<(), Trouble> {
        for group in run.iter() {
            let value = self.cache.borrow().get(&group).copied();
            step().await;
            let far = self.far.borrow().clone();
            let foreseen = |(group, read): (&Group, &mut Option<u64>)| {
                *read = read.or_else(|| far.get(group).copied());
            };
            self.ahead.borrow_mut().iter_mut().for_each(foreseen);
            // A hole reads as zeros, and that is what would be stored.
            self.far.borrow_mut().insert(group, value.unwrap_or(0));
        }
        step().await;
        if self.fails() { Err(Trouble::Full) } else { Ok(()) }
    }

    async fn punch(&self, run: Run) -> Result<(), Trouble> {
        step().await;
        for group in run.iter() {
            self.tables.borrow_mut().retain(|(_, of), _| *of != group);
            self.cache.borrow_mut().remove(&group);
            step().await;
        }
        Ok(())
    }

    fn foresee(&self, run: Run) {
        self.ahead.borrow_mut().extend(run.iter().map(|group| (group, None)));
    }

    async fn fill(&self, run: Run, fetch: Fetch) -> Result<(), Trouble> {
        step().await;
        if self.fails() {
            return Err(Trouble::Far(5));
        }
        for group in run.iter() {
            let ahead = self.ahead.borrow_mut().remove(&group).flatten();
            let ahead = ahead.filter(|_| fetch.foreseen);
            self.ahead_used.set(self.ahead_used.get() + u64::from(ahead.is_some()));
            let read = || if fetch.stored { self.far.borrow()[&group] } else { 0 };
            let stored = ahead.unwrap_or_else(read);
            self.cache.borrow_mut().entry(group).or_insert(stored);
            if let Some(space) = fetch.into {
                self.tables.borrow_mut().entry((space, group)).or_insert(!fetch.protect);
            }
            step().await;
        }
        Ok(())
    }

    async fn map(&self, group: Group, space: Space, protect: bool) -> Result<(), Trouble> {
        step().await;
        assert!(self.cache.borrow().contains_key(&group), "{group} is resident but not there");
        self.tables.borrow_mut().insert((space, group), !protect);
        step().await;
        Ok(())
    }

    async fn wait(&self, word: &AtomicU32, value: u32) {
        let key = Machine::key(word);
        let woken = |machine: &Machine| machine.wakes.borrow().get(&key).copied().unwrap_or(0);
        let before = woken(self);
        let mut looks = 0;
        // Like futex(2): only a wake ends it, however the word changes meanwhile.
        while word.load(Ordering::Acquire) == value || looks > 0 {
            if woken(self) != before {
                return;
            }
            looks += 1;
            if looks > self.patience {
                return;
            }
            step().await;
        }
    }

    fn wake(&self, word: &AtomicU32) {
        *self.wakes.borrow_mut().entry(Machine::key(word)).or_default() += 1;
        self.progress.set(self.progress.get() + 1);
    }

    fn is_dead(&self, actor: Actor) -> bool {
        self.dead.borrow().contains(&actor)
    }

    fn somebody_died(&self) -> bool {
        !self.dead.borrow().is_empty()
    }

    fn wish(&self, wish: Wish) {
        self.wishes.borrow_mut().push(wish);
    }

    fn count(&self, event: Event, times: u32) {
        *self.events.borrow_mut().entry(event).or_default() += u64::from(times);
        self.progress.set(self.progress.get() + 1);
    }
}

impl Orders for &Machine {
    fn next(&self) -> Option<Wish> {
        let mut wishes = self.wishes.borrow_mut();
        if wishes.is_empty() { None } else { Some(wishes.remove(0)) }
    }

    fn is_over(&self) -> bool {
        self.over.get()
    }

    async fn idle(&self) {
        step().await;
    }
}

/// What a mover is called by: so that the type is named in one place.
pub(super) async fn move_pages(
    mut mover: Mover,
    pager: &super::Pager<'_>,
    machine: &Machine,
    spaces: u16,
) {
    let space_of = |worker: u32| Space(u16::try_from(worker).unwrap_or(0) % spaces);
    mover.run(pager, &machine, &machine, space_of).await;
}
