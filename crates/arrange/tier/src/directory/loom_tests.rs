//! The protocol on every interleaving of a few actors, over a model of what page tables and a futex do.
//!
//! The model has a page, its far copy, and a table for each worker; an access through a table is one step,
//! as in hardware. Loom fails if an increment is lost, if a sleeper is never woken, or on a data race.

use super::*;
use loom::sync::{Arc, Condvar, Mutex};

const GROUP: Group = Group(0);

/// What one table says of the page.
#[derive(Clone, Copy, Default)]
struct Entry {
    mapped: bool,
    writable: bool,
}

struct Machine {
    words: Vec<AtomicU32>,
    tables: Vec<Mutex<Entry>>,
    /// The page if it is in fast memory, and the far copy.
    page: Mutex<(Option<u32>, u32)>,
    futex: Mutex<()>,
    woken: Condvar,
}

impl Machine {
    fn new(spaces: u16) -> Arc<Self> {
        Arc::new(Self {
            words: (0..Directory::words(1, spaces)).map(|_| AtomicU32::new(0)).collect(),
            tables: (0..spaces).map(|_| Mutex::new(Entry::default())).collect(),
            page: Mutex::new((None, 0)),
            futex: Mutex::new(()),
            woken: Condvar::new(),
        })
    }

    fn directory(&self) -> Directory<'_> {
        let spaces = u16::try_from(self.tables.len()).unwrap();
        Directory::new(&self.words, 1, spaces)
    }

    /// futex(2): sleeps only if the word still holds what was seen.
    fn wait(&self, seen: Word) {
        let directory = self.directory();
        let Ok(announced) = directory.announce(GROUP, seen) else { return };
        let mut guard = self.futex.lock().unwrap();
        while directory.word(GROUP).load(Ordering::Acquire) == announced.0 {
            guard = self.woken.wait(guard).unwrap();
        }
    }

    fn release(&self, state: State, flags: Flags) {
        if self.directory().release(GROUP, state, flags) {
            drop(self.futex.lock().unwrap());
            self.woken.notify_all();
        }
    }

    /// One access that adds one; false is a fault.
    fn increment(&self, space: Space) -> bool {
        let entry = self.tables[space.index()].lock().unwrap();
        if !(entry.mapped && entry.writable) {
            return false;
        }
        let mut page = self.page.lock().unwrap();
        *page.0.as_mut().expect("a mapped page is there") += 1;
        true
    }

    fn map(&self, space: Space) {
        *self.tables[space.index()].lock().unwrap() = Entry { mapped: true, writable: true };
    }

    /// What a worker's handler does.
    fn fault(&self, me: Actor, space: Space) {
        let directory = self.directory();
        let seen = directory.look(GROUP);
        match seen.state() {
            State::Absent => {
                if directory.claim(GROUP, seen, State::Filling, me).is_ok() {
                    directory.join(GROUP, space);
                    {
                        let mut page = self.page.lock().unwrap();
                        page.0 = Some(page.1);
                    }
                    self.map(space);
                    self.release(State::Resident, Flags::default());
                }
            }
            State::Resident => {
                if directory.claim(GROUP, seen, State::Mapping, me).is_ok() {
                    directory.join(GROUP, space);
                    self.map(space);
                    self.release(State::Resident, Flags::default());
                }
            }
            _ => self.wait(seen),
        }
    }

    fn work(&self, me: Actor, space: Space) {
        while !self.increment(space) {
            self.fault(me, space);
        }
    }

    /// One attempt to evict.
    fn evict(&self, me: Actor, protect_first: bool) {
        let directory = self.directory();
        let seen = directory.look(GROUP);
        if seen.state() != State::Resident
            || directory.claim(GROUP, seen, State::Evicting, me).is_err()
        {
            return;
        }
        if directory.is_pinned(GROUP) {
            return self.release(State::Resident, Flags::default());
        }
        if protect_first {
            for space in directory.sharers(GROUP) {
                self.tables[space.index()].lock().unwrap().writable = false;
            }
        }
        let copy = self.page.lock().unwrap().0;
        loom::thread::yield_now();
        self.page.lock().unwrap().1 = copy.expect("a resident page is there");
        directory.advance(GROUP, State::Punching, Flags { stored: true, ..Flags::default() }, me);
        for table in &self.tables {
            *table.lock().unwrap() = Entry::default();
        }
        self.page.lock().unwrap().0 = None;
        directory.part(GROUP);
        self.release(State::Absent, Flags { stored: true, ..Flags::default() });
    }

    fn value(&self) -> u32 {
        let page = self.page.lock().unwrap();
        page.0.unwrap_or(page.1)
    }
}

fn check(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(run);
}

/// Two workers with tables of their own increment while a third actor evicts; the first has the page
/// already. Returns what the page holds in the end.
fn race(protect_first: bool) -> u32 {
    let machine = Machine::new(2);
    machine.work(Actor(0), Space(0));
    let threads: Vec<_> = [0_u16, 1]
        .into_iter()
        .map(|worker| {
            let machine = machine.clone();
            loom::thread::spawn(move || machine.work(Actor(worker), Space(worker)))
        })
        .collect();
    machine.evict(Actor(2), protect_first);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    machine.value()
}

#[test]
fn no_increment_is_lost_when_a_page_is_protected_before_it_is_copied() {
    check(|| assert_eq!(race(true), 3));
}

#[test]
#[should_panic(expected = "lost")]
fn the_wrong_order_is_seen_to_lose() {
    check(|| assert_eq!(race(false), 3, "an increment is lost"));
}

#[test]
fn who_waits_for_an_owner_is_woken() {
    check(|| {
        let machine = Machine::new(2);
        machine.work(Actor(0), Space(0));
        let other = machine.clone();
        let waiter = loom::thread::spawn(move || other.work(Actor(1), Space(1)));
        machine.evict(Actor(2), true);
        machine.work(Actor(0), Space(0));
        waiter.join().unwrap();
        assert_eq!(machine.value(), 3);
    });
}

#[test]
fn a_page_that_was_pinned_and_then_fetched_stays() {
    check(|| {
        let machine = Machine::new(1);
        let other = machine.clone();
        let evictor = loom::thread::spawn(move || other.evict(Actor(1), true));
        machine.directory().pin(GROUP);
        machine.work(Actor(0), Space(0));
        // Whatever the evictor did, the page is there from now on: a second round must not fault.
        loop {
            let seen = machine.directory().look(GROUP);
            if !seen.state().is_owned() {
                break;
            }
            machine.wait(seen);
        }
        machine.work(Actor(0), Space(0));
        evictor.join().unwrap();
        machine.evict(Actor(1), true);
        assert!(machine.page.lock().unwrap().0.is_some());
        assert_eq!(machine.value(), 2);
    });
}
