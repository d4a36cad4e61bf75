//! What all actors of a run share: the processor, its tables, who sleeps where, and the account.

use core::sync::atomic::AtomicU32;
use std::collections::{BTreeMap, VecDeque};

use isochrone_sim::paging::{Ended, Hardware, Tables};

use super::case::{Case, Part};
use super::lock::Lock;
use crate::pages::{Event, Wish};

/// A mover looks round by itself after this many cycles.
const IDLE: f64 = 200_000.0;

pub(super) struct World {
    pub(super) hardware: Hardware,
    pub(super) tables: Tables,
    /// Numbers the waits of each thread, so that a call which comes too late is known.
    tokens: Vec<u64>,
    ready: Vec<bool>,
    sleepers: BTreeMap<usize, Vec<(usize, u64)>>,
    wishes: Vec<VecDeque<Wish>>,
    idle: Vec<bool>,
    /// The lock of each list, and that of the one set of tables.
    lists: Vec<Lock>,
    shootdowns: Lock,
    arrived: Vec<usize>,
    /// The sweep that all workers are in.
    pub(super) sweep: u32,
    pub(super) over: bool,
    pub(super) account: Account,
    began: Began,
}

/// What is counted from the first measured sweep on.
#[derive(Clone, Debug, Default)]
pub(super) struct Account {
    pub(super) events: [u64; Event::ALL.len()],
    pub(super) parts: [f64; Part::ALL.len()],
}

/// The processor's own counts when measuring began.
#[derive(Clone, Copy, Debug, Default)]
struct Began {
    now: f64,
    busy: f64,
    interrupts: u64,
}

impl World {
    pub(super) fn new(case: &Case) -> Self {
        let threads = case.places.len();
        let spaces = usize::from(case.shape().spaces);
        let tables = Tables::new(spaces, case.pages() as usize, threads, case.spec.translations);
        Self {
            hardware: Hardware::new(case.spec, &case.places),
            tables,
            tokens: vec![0; threads],
            ready: vec![false; threads],
            sleepers: BTreeMap::new(),
            wishes: vec![VecDeque::new(); usize::from(case.movers)],
            idle: vec![false; usize::from(case.movers)],
            lists: vec![Lock::default(); usize::from(case.workers)],
            shootdowns: Lock::default(),
            arrived: Vec::new(),
            sweep: 0,
            over: false,
            account: Account::default(),
            began: Began::default(),
        }
    }

    /// The number of a wait that begins now.
    pub(super) fn suspend(&mut self, thread: usize) -> u64 {
        self.ready[thread] = false;
        self.tokens[thread] += 1;
        self.tokens[thread]
    }

    pub(super) fn is_ready(&self, thread: usize) -> bool {
        self.ready[thread]
    }

    /// The next thread that goes on.
    pub(super) fn next(&mut self) -> Option<usize> {
        while let Some(ended) = self.hardware.next() {
            let thread = match ended {
                Ended::Work { thread } => thread,
                Ended::Time { thread, token } if self.tokens[thread] == token => thread,
                Ended::Time { .. } => continue,
            };
            self.ready[thread] = true;
            return Some(thread);
        }
        None
    }

    /// A thread takes a turn at a lock that is held for so long; when it begins.
    pub(super) fn list_turn(&mut self, list: usize, thread: usize, held: f64) -> f64 {
        self.lists[list].turn(&self.hardware, thread, held)
    }

    /// The same for the lock under which the one set of tables is changed.
    pub(super) fn shootdown_turn(&mut self, thread: usize, held: f64) -> f64 {
        self.shootdowns.turn(&self.hardware, thread, held)
    }

    pub(super) fn sleep(&mut self, word: &AtomicU32, thread: usize) {
        let token = self.suspend(thread);
        self.sleepers.entry(key(word)).or_default().push((thread, token));
    }

    pub(super) fn wake(&mut self, word: &AtomicU32, after: f64) {
        let time = self.hardware.now() + after;
        for (thread, token) in self.sleepers.remove(&key(word)).unwrap_or_default() {
            self.hardware.tell_at(time, thread, token);
        }
    }

    pub(super) fn wish(&mut self, mover: usize, thread: usize, wish: Wish, after: f64) {
        self.wishes[mover].push_back(wish);
        if std::mem::take(&mut self.idle[mover]) {
            let (time, token) = (self.hardware.now() + after, self.tokens[thread]);
            self.hardware.tell_at(time, thread, token);
        }
    }

    pub(super) fn next_wish(&mut self, mover: usize) -> Option<Wish> {
        self.wishes[mover].pop_front()
    }

    pub(super) fn idle(&mut self, mover: usize, thread: usize) {
        let token = self.suspend(thread);
        self.idle[mover] = true;
        let time = self.hardware.now() + IDLE;
        self.hardware.tell_at(time, thread, token);
    }

    pub(super) fn not_idle(&mut self, mover: usize) {
        self.idle[mover] = false;
    }

    /// A worker came to the end of a sweep; true if it is the last, and all others go on.
    pub(super) fn arrive(&mut self, thread: usize, workers: usize, after: f64) -> bool {
        if self.arrived.len() + 1 < workers {
            self.suspend(thread);
            self.arrived.push(thread);
            return false;
        }
        let time = self.hardware.now() + after;
        for thread in std::mem::take(&mut self.arrived) {
            let token = self.tokens[thread];
            self.hardware.tell_at(time, thread, token);
        }
        self.sweep += 1;
        if self.sweep == 1 {
            self.account = Account::default();
            self.began = Began {
                now: self.hardware.now(),
                busy: self.hardware.copied().1,
                interrupts: self.hardware.interrupts().0,
            };
        }
        true
    }

    pub(super) fn count(&mut self, event: Event, times: u32) {
        self.account.events[event.index()] += u64::from(times);
    }

    /// Cycles since measuring began, those of engines, and interrupts.
    pub(super) fn since(&self) -> (f64, f64, u64) {
        (
            self.hardware.now() - self.began.now,
            self.hardware.copied().1 - self.began.busy,
            self.hardware.interrupts().0 - self.began.interrupts,
        )
    }
}

fn key(word: &AtomicU32) -> usize {
    std::ptr::from_ref(word).addr()
}
