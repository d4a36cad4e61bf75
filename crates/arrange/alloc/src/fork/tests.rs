//! A heap whose tables are those of a parent.

use super::*;
use crate::Magazines;
use crate::page::PageCodes;
use crate::policy::{Mode, Policy};
use crate::rig::{Rig, codes};
use crate::slot::Slot;
use std::collections::BTreeSet;
use std::vec::Vec;

const CORE: u16 = 0;

fn parent(rig: &Rig, pages: u32) -> Heap<'_> {
    rig.started(Policy { mode: Mode::Aware, slack_bytes: 4 << 12, ..Policy::default() }, pages)
}

#[test]
fn a_child_hands_out_no_line_of_its_parent_but_what_is_freed_and_claims_nothing_of_it() {
    let rig = Rig::new(40);
    let heap = parent(&rig, 16);
    let taken: Vec<Slot> = (0..300).map(|_| heap.take_for(CORE, SizeClass::B64).unwrap()).collect();
    assert!(heap.stats().ready_pages > 0 && heap.codes(0) == Some(codes(0)));
    heap.inherit(16);
    assert_eq!((heap.stats().ready_pages, heap.stats().assigned_bytes), (0, heap.live_bytes()));
    for page in 0..16 {
        assert_eq!(heap.codes(page), Some(PageCodes::UNKNOWN));
        assert!(!heap.page_ready(page, codes(page)), "it joined before the fork");
    }
    // Bins and pages are the parent's: there is nothing.
    assert_eq!(heap.take_for(CORE, SizeClass::B64), None);
    assert_eq!(heap.take_for(CORE, SizeClass::B16), None);
    // What the child frees it gets again, as lines of which nothing is known.
    let near = heap.stats().near_slots;
    taken[..128].iter().for_each(|&slot| assert!(heap.put_back(slot).is_ok()));
    let again: BTreeSet<Slot> =
        (0..128).map(|_| heap.take_for(CORE, SizeClass::B64).unwrap()).collect();
    assert_eq!(again, taken[..128].iter().copied().collect());
    assert_eq!(heap.stats().near_slots, near);
    assert!(again.iter().all(|&slot| heap.distance(slot, CORE).llc.is_none()));
    assert_eq!(heap.take_for(CORE, SizeClass::B64), None);
    // Its own pages are known, and near lines are taken first.
    for page in 16..24 {
        assert!(heap.page_ready(page, codes(page)));
    }
    let own: Vec<Slot> = (0..64).map(|_| heap.take_for(CORE, SizeClass::B64).unwrap()).collect();
    assert!(own.iter().all(|slot| (16..24).contains(&slot.page())));
    assert!(heap.stats().near_slots > near);
    assert!(own.iter().all(|&slot| heap.distance(slot, CORE).llc.is_some()));
}

#[test]
fn sums_of_bins_are_those_of_one_bin() {
    let rig = Rig::new(8);
    let heap = parent(&rig, 8);
    let taken: Vec<Slot> = (0..90).map(|_| heap.take_for(1, SizeClass::B128).unwrap()).collect();
    heap.inherit(8);
    for unit in UnitLines::ALL {
        let last = heap.bins.count(unit) - 1;
        let population = heap.population(unit);
        assert_eq!(population[last], 8 * u32::from(unit.per_page()));
        assert_eq!(population.iter().sum::<u32>(), population[last]);
    }
    let used = |heap: &Heap<'_>| -> i32 {
        heap.tables.shared.used[UnitLines::Two as usize].iter().map(|c| c.load(Relaxed)).sum()
    };
    assert_eq!(used(&heap), 90);
    taken.iter().for_each(|&slot| assert!(heap.put_back(slot).is_ok()));
    assert_eq!(used(&heap), 0);
}

#[test]
fn what_a_thread_has_at_hand_stays_its_own() {
    let rig = Rig::new(8);
    let heap = parent(&rig, 4);
    let mut mine = Magazines::new();
    let first = mine.take(&heap, CORE, SizeClass::B32).unwrap();
    let at_hand = mine.at_hand(SizeClass::B32);
    assert!(at_hand > 8);
    heap.inherit(8);
    let more: BTreeSet<Slot> =
        (0..at_hand).map(|_| mine.take(&heap, CORE, SizeClass::B32).unwrap()).collect();
    assert_eq!(more.len(), at_hand);
    assert!(!more.contains(&first));
    for slot in more {
        assert!(mine.put(&heap, CORE, slot).is_ok());
    }
    assert!(mine.put(&heap, CORE, first).is_ok());
    mine.flush(&heap);
    assert_eq!(heap.live_bytes(), 0);
    assert_eq!(heap.class_of(first), Some(SizeClass::B32));
}

#[test]
fn children_of_children_begin_anew_as_well() {
    let rig = Rig::new(24);
    let heap = parent(&rig, 4);
    for generation in 1..4 {
        let before = 4 * generation;
        heap.inherit(24);
        for page in before..before + 4 {
            assert!(heap.page_ready(page, codes(page)));
        }
        let own = heap.take_for(CORE, SizeClass::B256).unwrap();
        assert!(own.page() >= before);
        assert!(heap.distance(own, CORE).llc.is_some());
    }
}
