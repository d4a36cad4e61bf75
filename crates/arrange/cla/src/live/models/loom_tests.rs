//! All interleavings of two and three ranks, with every value that the memory model lets a load return; and
//! that nobody who sleeps is forgotten.

mod apart;

use super::super::pieces::Pieces;
use super::super::sync::{AtomicU32, Ordering};
use super::super::word::{Rest, Word, publish, sleep};
use super::{Memory, rank};
use crate::collectives::{Acks, Collective, Options, Plan, Tree};
use crate::program::{Combine, Compare, Element, Line, Rank};
use loom::cell::UnsafeCell;
use loom::sync::atomic::fence;
use loom::sync::{Arc, Condvar, Mutex};

const SUM: Combine = Combine::Sum(Element::I64);

/// Lines whose payload may be read while nobody writes it: loom fails where that is not so.
struct Loomed {
    words: Vec<Word>,
    payload: Vec<[UnsafeCell<u64>; 8]>,
}

impl Loomed {
    fn new(lines: u32) -> Self {
        let line = |_| std::array::from_fn(|_| UnsafeCell::new(0));
        Self {
            words: (0..lines).map(|_| Word::new()).collect(),
            payload: (0..lines).map(line).collect(),
        }
    }
}

impl Memory for Loomed {
    fn load(&self, line: Line) -> u64 {
        self.words[line.0 as usize].load()
    }

    fn store(&self, line: Line, value: u64) {
        self.words[line.0 as usize].store(value);
    }

    fn add(&self, line: Line, value: u64) {
        self.words[line.0 as usize].add(value);
    }

    fn read(&self, line: Line, at: usize) -> u64 {
        // SAFETY: loom checks that nobody writes meanwhile, and that is what is tested.
        self.payload[line.0 as usize][at].with(|place| unsafe { *place })
    }

    fn write(&self, line: Line, at: usize, value: u64) {
        // SAFETY: as above, nor reads.
        self.payload[line.0 as usize][at].with_mut(|place| unsafe { *place = value });
    }

    fn rest() {
        loom::thread::yield_now();
    }
}

/// All interleavings with at most `switches` forced switches between ranks, or all.
fn everyway(switches: Option<usize>, plan: Plan, calls: u64) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = switches;
    builder.max_branches = 20_000;
    builder.check(move || {
        let memory = Arc::new(Loomed::new(plan.lines()));
        let others: Vec<_> = (1..plan.ranks())
            .map(|other| {
                let (memory, plan) = (Arc::clone(&memory), plan.clone());
                loom::thread::spawn(move || rank(&plan, Rank(other), &*memory, calls))
            })
            .collect();
        rank(&plan, Rank(0), &*memory, calls);
        others.into_iter().for_each(|other| other.join().unwrap());
    });
}

/// A plan with the smallest ring, so that slots are used again at once.
fn plan(collective: Collective, ranks: u16, exchange: bool) -> Plan {
    let bytes = if collective == Collective::Barrier { 0 } else { 8 };
    let options = if exchange {
        Options::exchange(bytes)
    } else {
        Options::tree(Tree::flat(ranks, Rank(0)), bytes)
    };
    Plan::new(collective, ranks, Rank(0), bytes, Options { ring: 2, ..options }).unwrap()
}

#[test]
fn a_ring_between_two_ranks() {
    for collective in [Collective::Broadcast, Collective::Reduce(SUM), Collective::Gather] {
        everyway(Some(3), plan(collective, 2, false), 3);
    }
}

#[test]
fn an_exchange_between_two_ranks() {
    everyway(Some(3), plan(Collective::Barrier, 2, true), 3);
    everyway(Some(3), plan(Collective::Allreduce(SUM), 2, true), 3);
}

#[test]
#[ignore = "after minutes of spinning it meets loom's limit of branches; shuttle runs more ranks in the gate"]
fn three_ranks() {
    everyway(Some(2), plan(Collective::Barrier, 3, true), 2);
    everyway(Some(2), plan(Collective::Broadcast, 3, false), 3);
    let counted = plan(Collective::Broadcast, 3, false);
    let options = Options { acks: Acks::Counter, ..counted.options().clone() };
    let counted = Plan::new(Collective::Broadcast, 3, Rank(0), 8, options).unwrap();
    everyway(Some(2), counted, 3);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_slot_that_is_not_acknowledged_is_found() {
    // Without waiting for readers the second call writes where the first is read.
    let builder = loom::model::Builder::new();
    builder.check(|| {
        let memory = Arc::new(Loomed::new(1));
        let reader = Arc::clone(&memory);
        let other = loom::thread::spawn(move || {
            while reader.load(Line(0)) < 1 {
                Loomed::rest();
            }
            reader.read(Line(0), 1);
        });
        for call in 1..=2 {
            memory.write(Line(0), 1, call);
            memory.store(Line(0), call);
        }
        other.join().unwrap();
    });
}

/// A kernel with a futex. `ordered` says whether writers are reached by the sleeper's barrier.
struct Kernel {
    ordered: bool,
    futex: Mutex<()>,
    woken: Condvar,
}

impl Rest for Kernel {
    fn give_way(&self) {
        loom::thread::yield_now();
    }

    fn order_all(&self) -> bool {
        fence(Ordering::SeqCst);
        true
    }

    fn order_self(&self) {
        // Where it is reached, a writer runs as if it had a fence here (membarrier(2)).
        if self.ordered {
            fence(Ordering::SeqCst);
        }
    }

    fn sleep(&self, word: &Word, seen: u64, _long: bool) {
        let guard = self.futex.lock().unwrap();
        if word.load() == seen {
            drop(self.woken.wait(guard).unwrap());
        }
    }

    fn wake(&self, _word: &Word) {
        drop(self.futex.lock().unwrap());
        self.woken.notify_all();
    }
}

/// One rank sleeps until `writers` have each added one.
fn sleepers(writers: u64, ordered: bool) {
    loom::model(move || {
        let kernel = Kernel { ordered, futex: Mutex::new(()), woken: Condvar::new() };
        let all = Arc::new((kernel, AtomicU32::new(0), Word::new()));
        let others: Vec<_> = (0..writers)
            .map(|_| {
                let all = Arc::clone(&all);
                loom::thread::spawn(move || {
                    publish(&all.0, &all.1, &all.2, |word| {
                        if writers == 1 { word.store(1) } else { word.add(1) }
                    });
                })
            })
            .collect();
        let (kernel, count, word) = &*all;
        while word.load() < writers {
            sleep(kernel, count, word, Compare::AtLeast, writers);
        }
        others.into_iter().for_each(|other| other.join().unwrap());
    });
}

#[test]
fn nobody_who_sleeps_is_forgotten() {
    sleepers(1, true);
}

#[test]
#[ignore = "takes many minutes"]
fn nobody_who_sleeps_for_two_is_forgotten() {
    sleepers(2, true);
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_order_somebody_is() {
    sleepers(1, false);
}

/// What is in each granule: loom fails where two have a piece at once, or one does not see what was done to it before.
struct Held {
    pieces: Pieces<4>,
    contents: [UnsafeCell<u64>; 4],
}

impl Held {
    /// Takes a piece, changes it `times` times and gives it back.
    fn turns(&self, times: u64) {
        for _ in 0..times {
            let first = self.pieces.take(0).expect("three of them for two").first;
            // SAFETY: loom checks that nobody else has it, and that is what is tested.
            self.contents[first as usize].with_mut(|place| unsafe { *place += 1 });
            self.pieces.give(first, 0);
        }
    }
}

#[test]
fn a_piece_has_one_owner_who_sees_what_the_last_one_did() {
    loom::model(|| {
        let contents = std::array::from_fn(|_| UnsafeCell::new(0));
        let held = Arc::new(Held { pieces: Pieces::new(), contents });
        // Two that wait in the list, so that who takes the first one looks behind it.
        let two = [held.pieces.take(0), held.pieces.take(0)].map(|piece| piece.expect("room"));
        two.iter().for_each(|piece| held.pieces.give(piece.first, 0));
        let other = {
            let held = Arc::clone(&held);
            loom::thread::spawn(move || held.turns(2))
        };
        held.turns(1);
        other.join().unwrap();
        // SAFETY: both have ended.
        let done = held.contents.iter().map(|place| place.with(|place| unsafe { *place }));
        assert_eq!(done.sum::<u64>(), 3);
        assert_eq!(held.pieces.used(), 2, "what was given back was taken again");
    });
}
