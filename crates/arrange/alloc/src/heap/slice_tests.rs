//! What is near as live bytes outgrow the slices of the near lines, and how evenly slices fill.

use super::*;
use crate::bins::oracle_rank;
use crate::rig::{Rig, codes, current_bases};
use std::vec::Vec;

/// A policy that may spend so many pages on preference.
fn policy(mode: Mode, slack_pages: u64) -> Policy {
    // No second-level cache: these are about slices of the last-level one.
    Policy { mode, slack_bytes: slack_pages << 12, l2_bytes: 0, ..Policy::default() }
}

fn take_all(heap: &Heap<'_>, core: u16, class: SizeClass, count: usize) -> Vec<Slot> {
    (0..count).map(|_| heap.take_for(core, class).unwrap()).collect()
}

fn llc_cycles(heap: &Heap<'_>, slot: Slot, core: u16) -> f32 {
    heap.distance(slot, core).llc.unwrap()
}

/// Live lines by the eighth of the cache in which they lie, the nearest to core 0 first.
fn slices(heap: &Heap<'_>, slots: &[Slot]) -> [u32; 8] {
    let mut lines = [0; 8];
    for &slot in slots {
        let place = f64::from((llc_cycles(heap, slot, 0) - 32.0) / 2.0);
        lines[(0..8_u8).position(|at| f64::from(at) == place).unwrap()] += 1;
    }
    lines
}

/// The share of lines that a cache of these lines a slice holds.
fn hit_share(slices: [u32; 8], lines: u32) -> f64 {
    let held: u32 = slices.iter().map(|&in_use| in_use.min(lines)).sum();
    f64::from(held) / f64::from(slices.iter().sum::<u32>())
}

/// Takes lines up to what is live, orders being made when they are due.
fn take_up_to(heap: &Heap<'_>, slots: &mut Vec<Slot>, bytes: u64) {
    while heap.live_bytes() < bytes {
        slots.push(heap.take_for(0, SizeClass::B64).unwrap());
        if heap.order_due() {
            heap.reorder();
        }
    }
}

fn free_all(heap: &Heap<'_>, slots: impl Iterator<Item = Slot>) {
    slots.for_each(|slot| assert!(heap.put_back(slot).is_ok()));
    assert!(heap.order_due());
    heap.reorder();
    assert_eq!(heap.near_share(0, UnitLines::One), Some(0.25));
}

/// What must hold as 512 KiB of lines are taken one by one.
fn fills_evenly(heap: &Heap<'_>, slots: &mut Vec<Slot>) {
    for kib in [64_u32, 128, 192, 256, 384, 512] {
        take_up_to(heap, slots, u64::from(kib) << 10);
        let in_use = slices(heap, slots);
        assert!(hit_share(in_use, 1024) > 0.97, "{kib} KiB: {in_use:?}");
        if kib <= 128 {
            // They fit the nearest quarter, and use its two slices alike.
            assert_eq!(in_use[2..], [0; 6], "{kib} KiB");
            assert!(in_use[0].abs_diff(in_use[1]) <= 1, "{in_use:?}");
        } else if kib < 512 {
            // Beyond the cache memory has a say, and the nearest class of pages is enough.
            let share = heap.near_share(0, UnitLines::One).unwrap();
            assert!(f64::from(share) >= f64::from(kib) / 512.0 - 0.01, "{kib} KiB: {share}");
        }
    }
}

#[test]
fn as_live_bytes_grow_slices_fill_evenly_and_none_overflows_while_another_has_room() {
    // A cache of 512 KiB, 1024 lines in each of its eight slices.
    let rig = Rig::new(768);
    let small = Policy { llc_bytes: 512 << 10, ..policy(Mode::Aware, 768) };
    let heap = rig.started(small, 768);
    let mut slots = Vec::new();
    fills_evenly(&heap, &mut slots);
    free_all(&heap, slots.drain(1000..));
}

#[test]
fn slices_fill_evenly_where_near_lines_are_free_in_plenty() {
    // It was four times as large as the cache, so that two near slices could take everything.
    let rig = Rig::new(768);
    let small = Policy { llc_bytes: 512 << 10, ..policy(Mode::Aware, 768) };
    let heap = rig.started(small, 768);
    let mut slots = Vec::new();
    take_up_to(&heap, &mut slots, 2 << 20);
    free_all(&heap, slots.drain(..));
    fills_evenly(&heap, &mut slots);
}

#[test]
fn units_in_use_are_counted_through_frees_and_new_codes() {
    let rig = Rig::new(8);
    let heap = rig.started(policy(Mode::Aware, 8), 8);
    let used = |class: SizeClass| -> i32 {
        let bins = &heap.tables.shared.used[class.unit() as usize];
        assert!(bins.iter().all(|used| used.load(Relaxed) >= 0));
        bins.iter().map(|used| used.load(Relaxed)).sum()
    };
    for class in [SizeClass::B16, SizeClass::B64, SizeClass::B256] {
        let before = used(class);
        let slots = take_all(&heap, 0, class, 16);
        let lines = i32::try_from(16 / class.slots_per_unit()).unwrap();
        assert_eq!(used(class) - before, lines, "{class:?}");
        heap.demote(slots[0].page());
        assert_eq!(used(class) - before, lines, "{class:?}");
        heap.recode(slots[0].page(), codes(slots[0].page()));
        slots.iter().for_each(|&slot| assert!(heap.put_back(slot).is_ok()));
        assert_eq!(used(class), before, "{class:?}");
    }
}

#[test]
fn a_prediction_is_made_of_what_the_heap_has() {
    let rig = Rig::new(64);
    let heap = rig.started(Policy { llc_bytes: 1 << 20, ..policy(Mode::Aware, 64) }, 64);
    let near = heap.predict(0, UnitLines::One, 1 << 18).unwrap();
    assert!((near.cycles - 33.0).abs() < 0.1 && (near.oblivious_cycles - 39.0).abs() < 0.1);
    assert_eq!(near.llc_hit_share, 1.0);
    let all = heap.predict(0, UnitLines::One, 1 << 20).unwrap();
    assert!(all.near_share > 0.99 && (all.gain() - 1.0).abs() < 0.01, "{all:?}");
    assert_eq!(heap.predict(9, UnitLines::One, 1 << 18), None);
}

#[test]
fn an_oracle_has_as_much_near_as_an_aware_core() {
    let rig = Rig::new(64);
    let heap = rig.heap(Policy { llc_bytes: 1 << 20, ..policy(Mode::Oracle, 64) });
    for page in 0..64 {
        let ranks = core::array::from_fn(|line| {
            let line = line_in_page(u32::try_from(line).unwrap());
            oracle_rank(line / 4, 15 - line / 4)
        });
        assert!(heap.page_measured(page, PageCodes::UNKNOWN, &ranks));
    }
    heap.set_bases(0, &current_bases(0));
    let unit = UnitLines::One;
    heap.set_order(0, &Order::oracle(unit, 0, 0.25, Some(&heap.population(unit))));
    // Near bins that have lines; there are sixteen of these.
    let near = || {
        let (order, population) = (heap.order(0, unit).unwrap(), heap.population(unit));
        let near = order.bins.iter().take(usize::from(order.near.load(Relaxed)));
        near.filter(|bin| population[usize::from(bin.load(Relaxed))] > 0).count()
    };
    assert_eq!((heap.near_share(0, unit), near()), (Some(0.25), 4));
    heap.sums().live_bytes.store(1 << 19, Relaxed);
    assert!(heap.order_due());
    heap.reorder();
    let share = heap.near_share(0, unit).unwrap();
    assert!((0.55..0.7).contains(&share), "{share}");
    assert!((9..=11).contains(&near()), "{}", near());
}
