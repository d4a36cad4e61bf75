//! Refill, give back and demotion of a whole heap, on every interleaving of two threads.

use crate::bins::Bins;
use crate::class::SizeClass;
use crate::heap::Heap;
use crate::page::PageCodes;
use crate::policy::Policy;
use crate::rig::Rig;
use isochrone_atlas::{Code, PatternTable, Period};
use loom::sync::Arc;
use loom::thread::{Builder, JoinHandle};
use std::vec::Vec;

/// Two bins: the halves of a page. No core has an order, so that refills sweep both.
fn bins() -> Bins {
    let pattern: Vec<f32> = (0..64).map(|line| if line < 32 { 30.0 } else { 50.0 }).collect();
    let base = PatternTable::new(Period::Lines64, [pattern.as_slice()]).unwrap();
    Bins::new([base].into_iter(), core::iter::empty())
}

const CODES: PageCodes = PageCodes { llc: Code(0), dram: Code::UNKNOWN };

fn started(rig: &Rig, pages: u32) -> Heap<'_> {
    let heap = rig.heap(Policy::default());
    (0..pages).for_each(|page| assert!(heap.page_ready(page, CODES)));
    heap
}

fn draw(heap: &Heap<'_>, class: SizeClass, count: usize) -> Vec<u32> {
    let mut out = [0; 64];
    let drawn = heap.refill(0, class, &mut out[..count]).slots;
    out[..drawn].to_vec()
}

fn check(run: impl Fn(Rig) + Sync + Send + 'static) {
    // Made outside: the stacks of a model are small.
    let bins = std::sync::Arc::new(bins());
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.max_branches = 100_000;
    let run = std::sync::Arc::new(run);
    builder.check(move || {
        let (run, bins) = (run.clone(), bins.clone());
        deep(move || run(Rig::with_bins(1, 0, bins))).join().unwrap();
    });
}

/// A thread with room for a heap: tables of ten-bit codes are more than the stack of a model's first thread.
fn deep<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    Builder::new().stack_size(STACK_WORDS).spawn(run).unwrap()
}

const STACK_WORDS: usize = 1 << 16;

/// Leaves only these slots of a class in the bins, and starts a second thread.
fn race<T: Send + 'static>(
    rig: Rig,
    class: SizeClass,
    left: usize,
    other: impl FnOnce(&Heap<'_>, &[u32]) -> T + Send + 'static,
    mine: impl FnOnce(&Heap<'_>, &[u32]) -> Vec<u32>,
) -> (Arc<Rig>, Vec<u32>, T) {
    let rig = Arc::new(rig);
    let heap = started(&rig, 1);
    let all = draw(&heap, class, 64);
    heap.give_back(class, &all[..left]);
    let taken = all[left..].to_vec();
    let (theirs, their_rig) = (taken.clone(), rig.clone());
    let thread = deep(move || other(&their_rig.heap(Policy::default()), &theirs));
    let drawn = mine(&heap, &taken);
    (rig.clone(), drawn, thread.join().unwrap())
}

/// All of `drawn` and of what is left in the bins is `expected` slots, each once.
fn settle(rig: &Rig, class: SizeClass, mut drawn: Vec<u32>, expected: usize) {
    let heap = rig.heap(Policy::default());
    loop {
        let more = draw(&heap, class, 64);
        if more.is_empty() {
            break;
        }
        drawn.extend(more);
    }
    let count = drawn.len();
    drawn.sort_unstable();
    drawn.dedup();
    assert_eq!((drawn.len(), count), (expected, expected));
}

#[test]
fn two_refills_share_what_is_free() {
    check(|rig| {
        let class = SizeClass::B256;
        let (rig, mut mine, theirs) = race(
            rig,
            class,
            3,
            move |heap, _| draw(heap, class, 2),
            |heap, _| draw(heap, class, 2),
        );
        mine.extend(theirs);
        settle(&rig, class, mine, 3);
    });
}

#[test]
fn a_slot_is_freed_into_a_line_while_the_line_is_drawn() {
    check(|rig| {
        // One slot of the last line is free already; a second one comes.
        let class = SizeClass::B16;
        let rig = Arc::new(rig);
        let heap = started(&rig, 1);
        let mut all = Vec::new();
        while all.len() < 256 {
            all.extend(draw(&heap, class, 64));
        }
        heap.give_back(class, &all[..1]);
        let (freed, theirs) = (all[1], rig.clone());
        let thread =
            deep(move || theirs.heap(Policy::default()).give_back(SizeClass::B16, &[freed]));
        let mine = draw(&heap, class, 4);
        assert_eq!(thread.join().unwrap(), 1);
        settle(&rig, class, mine, 2);
    });
}

#[test]
fn two_threads_free_the_last_two_slots_of_a_line() {
    check(|rig| {
        let class = SizeClass::B32;
        let rig = Arc::new(rig);
        let heap = started(&rig, 1);
        let mut all = Vec::new();
        while all.len() < 128 {
            all.extend(draw(&heap, class, 64));
        }
        let (freed, theirs) = (all[0], rig.clone());
        let thread = deep(move || {
            theirs.heap(Policy::default()).give_back(SizeClass::B32, &[freed]);
        });
        heap.give_back(class, &all[1..2]);
        thread.join().unwrap();
        settle(&rig, class, Vec::new(), 2);
    });
}

#[test]
fn a_page_is_demoted_while_its_units_are_drawn_and_freed() {
    check(|rig| {
        let class = SizeClass::B256;
        let (rig, mine, freed) = race(
            rig,
            class,
            2,
            |heap, taken| {
                heap.demote(0);
                heap.give_back(SizeClass::B256, &taken[..1])
            },
            |heap, _| draw(heap, class, 1),
        );
        assert_eq!(freed, 1);
        settle(&rig, class, mine, 3);
    });
}

#[test]
fn a_page_is_cut_by_one_of_two_that_need_it() {
    check(|rig| {
        let rig = Arc::new(rig);
        let heap = started(&rig, 1);
        let theirs = rig.clone();
        let thread = deep(move || draw(&theirs.heap(Policy::default()), SizeClass::B256, 1));
        let mine = draw(&heap, SizeClass::B128, 1);
        let theirs = thread.join().unwrap();
        assert_eq!(mine.len() + theirs.len(), 1);
        assert_eq!(heap.stats().assigned_bytes, 4096);
        assert_eq!(heap.stats().ready_pages, 0);
        let class = if mine.is_empty() { SizeClass::B256 } else { SizeClass::B128 };
        settle(&rig, class, [mine, theirs].concat(), class.slots_per_page());
    });
}

#[test]
fn a_double_free_on_two_threads_is_one_free() {
    check(|rig| {
        let class = SizeClass::B256;
        let (rig, _, freed) = race(
            rig,
            class,
            0,
            |heap, taken| heap.give_back(SizeClass::B256, &taken[..1]),
            |heap, taken| {
                assert!(heap.give_back(class, &taken[..1]) <= 1);
                Vec::new()
            },
        );
        assert!(freed <= 1);
        let heap = rig.heap(Policy::default());
        assert_eq!(heap.stats().misuses, 1);
        settle(&rig, class, Vec::new(), 1);
    });
}
