//! Memory never goes while a slot of it is somebody's, on every interleaving of who sends a page away and who takes or
//! frees.

use crate::bins::Bins;
use crate::class::SizeClass;
use crate::heap::Heap;
use crate::page::PageCodes;
use crate::policy::Policy;
use crate::rig::Rig;
use isochrone_atlas::{Code, PatternTable, Period};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering::Relaxed};
use loom::thread::{Builder, JoinHandle};
use std::vec::Vec;

const CLASS: SizeClass = SizeClass::B256;
const SLOTS: usize = CLASS.slots_per_page();
const STACK_WORDS: usize = 1 << 16;
/// What the page holds, in one word: without any order of its own.
const WRITTEN: u32 = 7;
const GONE: u32 = 0;

fn bins() -> Bins {
    let base = PatternTable::new(Period::Lines64, [[40.0; 64].as_slice()]).unwrap();
    Bins::new([base].into_iter(), core::iter::empty())
}

fn heap(rig: &Rig) -> Heap<'_> {
    rig.heap(Policy::default())
}

/// A thread with room for a heap.
fn deep<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    Builder::new().stack_size(STACK_WORDS).spawn(run).unwrap()
}

fn draw(heap: &Heap<'_>, count: usize) -> Vec<u32> {
    let mut out = [0; 64];
    let drawn = heap.refill(0, CLASS, &mut out[..count]).slots;
    out[..drawn].to_vec()
}

/// Sends the page away, if all of it is free.
fn send_away(rig: &Rig, memory: &AtomicU32) {
    if heap(rig).begin_leave(0) {
        memory.store(GONE, Relaxed);
        heap(rig).end_leave(0, true);
    }
}

/// All slots are there, each once.
fn settle(rig: &Rig, mut drawn: Vec<u32>) {
    loop {
        let more = draw(&heap(rig), 64);
        if more.is_empty() {
            break;
        }
        drawn.extend(more);
    }
    drawn.sort_unstable();
    drawn.dedup();
    assert_eq!(drawn.len(), SLOTS);
}

/// A page of which `held` slots are in use, and one thread that sends it away while the other does `mine`.
fn check(held: usize, mine: fn(&Heap<'_>, &AtomicU32, &[u32]) -> Vec<u32>) {
    // Made outside: the stacks of a model are small.
    let bins = std::sync::Arc::new(bins());
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.max_branches = 100_000;
    builder.check(move || {
        let bins = bins.clone();
        let model = move || {
            let (rig, memory) =
                (Arc::new(Rig::with_bins(1, 0, bins)), Arc::new(AtomicU32::new(GONE)));
            let codes = PageCodes { llc: Code(0), dram: Code::UNKNOWN };
            assert!(heap(&rig).page_ready(0, codes));
            let all = draw(&heap(&rig), SLOTS);
            heap(&rig).give_back(CLASS, &all[held..]);
            let theirs = (rig.clone(), memory.clone());
            let thread = deep(move || send_away(&theirs.0, &theirs.1));
            let drawn = mine(&heap(&rig), &memory, &all[..held]);
            thread.join().unwrap();
            if !drawn.is_empty() {
                assert_eq!(memory.load(Relaxed), WRITTEN, "what an object held is gone");
            } else if heap(&rig).is_away(0) {
                assert_eq!(memory.load(Relaxed), GONE, "what was freed came after its memory went");
            }
            settle(&rig, drawn);
        };
        deep(model).join().unwrap();
    });
}

#[test]
fn a_slot_is_taken_while_its_page_leaves() {
    check(0, |heap, memory, _| {
        let drawn = draw(heap, 1);
        if !drawn.is_empty() {
            memory.store(WRITTEN, Relaxed);
        }
        drawn
    });
}

#[test]
fn the_last_object_is_freed_while_its_page_leaves() {
    check(1, |heap, memory, held| {
        memory.store(WRITTEN, Relaxed);
        heap.give_back(CLASS, held);
        Vec::new()
    });
}
