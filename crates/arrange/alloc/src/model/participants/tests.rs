//! Lists of cores by hand, and what must hold of any cores.

use crate::bins::{Bins, MAX_BINS};
use crate::class::{SizeClass, UnitLines};
use crate::model::{Model, shares};
use crate::order::Order;
use crate::page::PageCodes;
use crate::policy::{Mode, Policy};
use crate::rig::{Rig, codes, current_bases};
use crate::wish::{CurrentBases, Wish};
use isochrone_atlas::{Code, PatternTable, Period};
use proptest::prelude::*;
use std::vec::Vec;

/// Memory only, as on a machine without a shared cache: every miss is read there.
const WISH: Wish = Wish {
    mode: Mode::NearestParticipant,
    near: 0.25,
    live_bytes: u64::MAX,
    llc_bytes: 0,
    l2_bytes: 0,
    tlb_bytes: 0,
};

/// Cores that see these latencies of lines in turns.
fn cores(patterns: &[Vec<f32>]) -> (Bins, Vec<CurrentBases>) {
    let table = |pattern: &Vec<f32>| {
        let lines: Vec<f32> = pattern.iter().copied().cycle().take(64).collect();
        PatternTable::new(Period::Lines64, [lines.as_slice()]).unwrap()
    };
    let tables: Vec<PatternTable> = patterns.iter().map(table).collect();
    let bins = Bins::new(core::iter::empty(), tables.iter().cloned());
    (bins, tables.iter().map(|table| CurrentBases::of(None, Some(table))).collect())
}

fn order(bins: &Bins, all: &[CurrentBases], core: usize, unit: UnitLines) -> Order {
    let others = (0..all.len()).filter(|other| *other != core).map(|other| all[other].clone());
    Order::among(bins, unit, &all[core], others, &WISH, None)
}

/// The lines of the first eight that are near for a core, nearest first, and the share of all lines that they are.
fn list(bins: &Bins, all: &[CurrentBases], core: usize) -> (Vec<u8>, f32) {
    let order = order(bins, all, core, UnitLines::One);
    let lines = |bin: &u8| {
        let bin = *bin;
        (0..8).filter(move |line| {
            let codes = PageCodes { llc: Code::UNKNOWN, dram: Code(0) };
            bins.bin(UnitLines::One, codes, *line) == bin
        })
    };
    (order.near_bins().iter().flat_map(lines).collect(), order.near_share())
}

#[test]
fn each_line_is_on_the_list_of_the_core_that_it_is_nearest_to() {
    // By hand: line:      0      1      2      3
    let patterns = [
        std::vec![100.0, 140.0, 180.0, 160.0],
        std::vec![130.0, 110.0, 150.0, 190.0],
        std::vec![170.0, 120.0, 200.0, 150.0],
    ];
    let (bins, all) = cores(&patterns);
    assert_eq!(list(&bins, &all, 0), (std::vec![0, 4], 0.25));
    // Line 1 is nearer to it than line 2.
    assert_eq!(list(&bins, &all, 1), (std::vec![1, 5, 2, 6], 0.5));
    assert_eq!(list(&bins, &all, 2), (std::vec![3, 7], 0.25));
    // Then come the lines of others, nearest first: 3 before 1 before 2 for core 0.
    let order = order(&bins, &all, 0, UnitLines::One);
    let bin =
        |line| bins.bin(UnitLines::One, PageCodes { llc: Code::UNKNOWN, dram: Code(0) }, line);
    assert_eq!(order.bins()[..4], [bin(0), bin(1), bin(3), bin(2)]);
}

#[test]
fn alone_a_core_has_all_lines_and_the_more_cores_the_fewer_each() {
    let patterns = [std::vec![100.0, 140.0, 180.0, 160.0], std::vec![130.0, 110.0, 150.0, 190.0]];
    let (bins, all) = cores(&patterns);
    assert_eq!(list(&bins, &all[..1], 0).1, 1.0);
    assert_eq!(list(&bins, &all, 0), (std::vec![0, 4, 3, 7], 0.5));
    assert_eq!(list(&bins, &all, 1), (std::vec![1, 5, 2, 6], 0.5));
}

#[test]
fn equally_near_lines_are_on_both_lists_and_a_core_far_from_all_has_none() {
    let patterns = [std::vec![100.0, 140.0], std::vec![100.3, 120.0], std::vec![160.0, 180.0]];
    let (bins, all) = cores(&patterns);
    let list = |core| list(&bins, &all, core);
    assert_eq!(list(0), (std::vec![0, 2, 4, 6], 0.5));
    assert_eq!(list(1), (std::vec![0, 2, 4, 6, 1, 3, 5, 7], 1.0));
    assert_eq!(list(2), (std::vec![], 0.0));
    // It still takes what is nearest to it first.
    let bin = bins.bin(UnitLines::One, PageCodes { llc: Code::UNKNOWN, dram: Code(0) }, 0);
    assert_eq!(order(&bins, &all, 2, UnitLines::One).bins()[0], bin);
}

#[test]
fn a_heap_hands_out_lists_and_then_the_lists_of_others() {
    // Two cores see eight distances opposed to each other: four lines of eight are nearer to each.
    let pages = 4;
    let rig = Rig::new(pages);
    let policy = Policy {
        mode: Mode::NearestParticipant,
        waste: 100.0,
        slack_bytes: 1 << 20,
        l2_bytes: 0,
        ..Policy::default()
    };
    let heap = rig.heap(policy);
    for page in 0..4 {
        assert!(heap.page_ready(page, codes(page)));
    }
    (0..2).for_each(|core| heap.take_part(core, &current_bases(core)));
    (0..2).for_each(|core| heap.set_bases(core, &current_bases(core)));
    for core in 0..2 {
        assert_eq!(heap.near_share(core, UnitLines::One), Some(0.5));
    }
    let half = pages * 64 / 2;
    let mut taken = [Vec::new(), Vec::new()];
    for _ in 0..half {
        for core in 0..2_u16 {
            let slot = heap.take_for(core, SizeClass::B64).unwrap();
            let far = |core| heap.distance(slot, core).llc.unwrap();
            assert!(far(core) < far(1 - core), "core {core}: {} {}", far(core), far(1 - core));
            taken[usize::from(core)].push(slot);
        }
    }
    assert!(heap.take_for(0, SizeClass::B64).is_none(), "every line is taken");
    // What core 1 gives back core 0 may have, once its own list is empty.
    heap.put_back(taken[1][0]).unwrap();
    assert_eq!(heap.take_for(0, SizeClass::B64), Some(taken[1][0]));
    assert!(heap.predict(0, UnitLines::One, 16 << 20).unwrap().gain() > 1.0);
}

proptest! {
    /// A list has whole bins, of lines that are nearer to no other core than to this one; every bin is on a list; and
    /// the order is one of all bins.
    #[test]
    fn lists_share_out_all_lines(
        patterns in prop::collection::vec(prop::collection::vec(80.0..400.0_f32, 16), 1..8),
        unit in prop::sample::select(UnitLines::ALL.to_vec()),
    ) {
        let (bins, all) = cores(&patterns);
        let known = bins.count(unit) - 1;
        let shares = shares(&bins, unit, None);
        let costs: Vec<[f32; MAX_BINS]> = all.iter().map(|current| {
            let model = Model::new(&bins, unit, current, &WISH).unwrap();
            model.costs([&model.llc, &model.dram], [0.0, 1.0])
        }).collect();
        let mut on_a_list = [false; MAX_BINS];
        for core in 0..all.len() {
            let order = order(&bins, &all, core, unit);
            let mut seen: Vec<u8> = order.bins().to_vec();
            let cost = |bin: &u8| costs[core][usize::from(*bin)];
            let (own, rest) = order.bins()[..known].split_at(order.near_bins().len());
            prop_assert!(own.is_sorted_by_key(cost) && rest.is_sorted_by_key(cost));
            for bin in own {
                on_a_list[usize::from(*bin)] = true;
                let least = costs.iter().map(|of| of[usize::from(*bin)]).fold(f32::MAX, f32::min);
                prop_assert!(cost(bin) < least + 0.5);
            }
            for bin in rest {
                let least = costs.iter().map(|of| of[usize::from(*bin)]).fold(f32::MAX, f32::min);
                prop_assert!(cost(bin) >= least + 0.5);
            }
            let part: f32 = own.iter().map(|bin| shares[usize::from(*bin)]).sum();
            prop_assert!((order.near_share() - part / shares[..known].iter().sum::<f32>()).abs() < 1e-5);
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..=u8::try_from(known).unwrap()).collect::<Vec<u8>>());
        }
        prop_assert!(on_a_list[..known].iter().all(|on| *on));
    }
}
