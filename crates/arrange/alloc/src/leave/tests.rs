//! What leaves, what stays, and what comes again.

use crate::class::SizeClass;
use crate::heap::Heap;
use crate::magazine::Magazines;
use crate::page::PageCodes;
use crate::policy::Policy;
use crate::rig::{Rig, codes};
use crate::slot::Slot;
use std::vec::Vec;

/// All slots of the first page, whose class this is.
fn all_of(heap: &Heap<'_>, class: SizeClass) -> Vec<u32> {
    let mut out = [0; 256];
    let mut all = Vec::new();
    while all.len() < class.slots_per_page() {
        let room = (class.slots_per_page() - all.len()).min(out.len());
        let drawn = heap.refill(0, class, &mut out[..room]).slots;
        assert!(drawn > 0, "{class:?}: {} of {}", all.len(), class.slots_per_page());
        all.extend_from_slice(&out[..drawn]);
    }
    all
}

#[test]
fn a_page_leaves_when_its_last_object_is_freed_and_comes_when_one_is_taken() {
    for class in SizeClass::ALL {
        let rig = Rig::new(1);
        let heap = rig.started(Policy::default(), 1);
        assert!(!heap.begin_leave(0), "it is of no class");
        let all = all_of(&heap, class);
        heap.give_back(class, &all[1..]);
        assert!(!heap.begin_leave(0), "{class:?}: a slot is in use");
        heap.give_back(class, &all[..1]);
        assert!(heap.begin_leave(0) && !heap.begin_leave(0), "{class:?}: once");
        heap.end_leave(0, true);
        assert!(heap.is_away(0) && !heap.begin_leave(0));
        let stats = heap.stats();
        assert_eq!((stats.assigned_bytes, stats.away_pages), (0, 1));
        assert_eq!(heap.codes(0), Some(PageCodes::UNKNOWN));
        assert!(!heap.recode(0, codes(0)), "it has no lines");
        let mut again = all_of(&heap, class);
        again.sort_unstable();
        again.dedup();
        assert_eq!(again.len(), all.len(), "{class:?}: each slot once");
        let stats = heap.stats();
        assert_eq!((stats.assigned_bytes, stats.away_pages), (4096, 0));
        assert!(!heap.is_away(0) && heap.pages_come_again() == 1);
        assert!(heap.recode(0, codes(0)) && heap.codes(0) == Some(codes(0)));
    }
}

#[test]
fn nothing_is_taken_of_a_page_that_is_about_to_leave_and_nothing_is_lost() {
    let rig = Rig::new(1);
    let heap = rig.started(Policy::default(), 1);
    for class in [SizeClass::B48] {
        let all = all_of(&heap, class);
        heap.give_back(class, &all);
        for is_gone in [false, true, false] {
            assert!(heap.begin_leave(0));
            assert_eq!(heap.refill(0, class, &mut [0; 64]).slots, 0);
            assert_eq!(heap.refill(9, class, &mut [0; 1]).slots, 0);
            heap.end_leave(0, is_gone);
            let again = all_of(&heap, class);
            assert_eq!(again.len(), all.len());
            heap.give_back(class, &again);
        }
    }
}

#[test]
fn what_a_thread_has_at_hand_keeps_its_page() {
    let rig = Rig::new(1);
    let heap = rig.started(Policy::default(), 1);
    let mut magazines = Magazines::new();
    let slot = magazines.take(&heap, 0, SizeClass::B64).expect("a page");
    magazines.put(&heap, 0, slot).expect("it was taken");
    assert!(!heap.begin_leave(0));
    magazines.leave(&heap);
    // What the depot has keeps it as well; what is left of it goes to its bins.
    let mut kept = [0; 64];
    while let taken @ 1.. = heap.take_any_kept(SizeClass::B64, &mut kept) {
        heap.give_back(SizeClass::B64, &kept[..taken]);
    }
    assert!(heap.begin_leave(0));
    heap.end_leave(0, false);
    assert_eq!(heap.codes(0), Some(codes(0)), "it stayed");
    assert_eq!(heap.class_of(Slot(0)), Some(SizeClass::B64));
}

#[test]
fn a_child_of_fork_has_no_page_that_leaves_or_is_away() {
    let rig = Rig::new(2);
    let heap = rig.started(Policy::default(), 2);
    let class = SizeClass::B256;
    let first = all_of(&heap, class);
    let second = all_of(&heap, class);
    heap.give_back(class, &first);
    heap.give_back(class, &second);
    assert!(heap.begin_leave(0) && heap.begin_leave(1));
    heap.end_leave(1, true);
    heap.inherit(2);
    assert!(!heap.is_away(1) && heap.stats().away_pages == 0);
    heap.give_back(class, &[]);
    assert!(heap.begin_leave(0), "it is free, and nobody is about it any more");
    heap.end_leave(0, false);
}
