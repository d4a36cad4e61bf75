//! Depots: whoever puts and takes, every slot comes out once, and no batch is lost.

use super::*;
use crate::heap::Heap;
use crate::policy::{Mode, Policy};
use crate::rig::Rig;
use std::vec::Vec;

#[test]
fn batches_come_out_as_they_went_in_class_by_class() {
    let depot = Depot::default();
    assert!(depot.put(SizeClass::B64, &[4, 8, 12]));
    assert!(depot.put(SizeClass::B16, &[1]));
    let mut out = [0; 64];
    assert_eq!(depot.take(SizeClass::B32, &mut out), 0);
    // A batch may be taken by parts.
    assert_eq!((depot.take(SizeClass::B64, &mut out[..2]), &out[..2]), (2, &[8, 12][..]));
    assert_eq!((depot.take(SizeClass::B64, &mut out), out[0]), (1, 4));
    assert_eq!((depot.take(SizeClass::B16, &mut out), out[0]), (1, 1));
    assert_eq!(depot.take(SizeClass::B64, &mut out), 0);
}

#[test]
fn a_full_depot_takes_nothing_until_something_left() {
    let depot = Depot::default();
    let first = |batch: usize| u32::try_from(batch).unwrap() * 64;
    for batch in 0..BATCHES {
        let slots: Vec<u32> = (first(batch)..first(batch + 1)).collect();
        assert!(depot.put(SizeClass::B64, &slots));
    }
    assert!(!depot.put(SizeClass::B16, &[1]));
    let mut out = [0; 64];
    assert_eq!(depot.take(SizeClass::B64, &mut out), 64);
    assert!(depot.put(SizeClass::B16, &[1]));
    assert!(!depot.put(SizeClass::B16, &[2]));
}

#[test]
fn threads_neither_lose_nor_double_a_slot() {
    const SLOTS: u32 = 700;
    let depot = Depot::default();
    let held: Vec<std::sync::Mutex<()>> = (0..SLOTS).map(|_| std::sync::Mutex::new(())).collect();
    let all: Vec<u32> = (0..SLOTS).collect();
    all.chunks(63).for_each(|batch| assert!(depot.put(SizeClass::B64, batch)));
    std::thread::scope(|scope| {
        for thread in 0..4_usize {
            let (depot, held) = (&depot, &held);
            scope.spawn(move || {
                let mut out = [0; 64];
                for round in 0..20_000 {
                    let count =
                        depot.take(SizeClass::B64, &mut out[..1 + (round * 7 + thread) % 64]);
                    let of = |slot: &u32| held[*slot as usize].try_lock().unwrap();
                    let guards: Vec<_> = out[..count].iter().map(of).collect();
                    drop(guards);
                    if count > 0 {
                        // Batches were split, so that there may be more of them than places.
                        while !depot.put(SizeClass::B64, &out[..count]) {
                            std::thread::yield_now();
                        }
                    }
                }
            });
        }
    });
    let mut seen: Vec<u32> = Vec::new();
    let mut out = [0; 64];
    while let taken @ 1.. = depot.take(SizeClass::B64, &mut out) {
        seen.extend(&out[..taken]);
    }
    seen.sort_unstable();
    assert_eq!(seen, all);
}

fn taken(heap: &Heap<'_>, core: u16, count: usize) -> Vec<u32> {
    (0..count).map(|_| heap.take_for(core, SizeClass::B64).unwrap().0).collect()
}

#[test]
fn slots_go_home_to_the_core_that_they_were_taken_for() {
    let rig = Rig::new(16);
    let policy = Policy { mode: Mode::Aware, slack_bytes: 1 << 30, ..Policy::default() };
    let heap = rig.started(policy, 16);
    let (mine, theirs) = (taken(&heap, 0, 10), taken(&heap, 1, 10));
    let mut both: Vec<u32> = mine.iter().zip(&theirs).flat_map(|(a, b)| [*a, *b]).collect();
    heap.give_home(0, SizeClass::B64, &mut both);
    let mut out = [0; 64];
    // What was its own is too far for it by now, and lies in a bin.
    assert_eq!(heap.take_kept(0, SizeClass::B64, &mut out), 0);
    let kept = heap.take_kept(1, SizeClass::B64, &mut out);
    let mut kept = out[..kept].to_vec();
    kept.sort_unstable();
    let mut theirs = theirs;
    theirs.sort_unstable();
    assert_eq!(kept, theirs);
    // Whoever finds nothing else gets what others keep.
    heap.give_to(1, SizeClass::B64, &kept);
    assert_eq!(heap.take_any_kept(SizeClass::B64, &mut out), 10);
}

#[test]
fn a_checked_heap_keeps_nothing_from_its_bins() {
    let rig = Rig::new(4);
    let heap = rig.started(Policy { checked: true, ..Policy::default() }, 4);
    let slots = taken(&heap, 0, 10);
    heap.give_to(0, SizeClass::B64, &slots);
    assert_eq!(heap.take_any_kept(SizeClass::B64, &mut [0; 64]), 0);
    heap.give_to(0, SizeClass::B64, &slots);
    assert_eq!(heap.stats().misuses, 10);
}
