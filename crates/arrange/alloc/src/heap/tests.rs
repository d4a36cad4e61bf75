//! What a heap gives to whom, in which order, and at what price in memory.

use super::*;
use crate::check::Misuse;
use crate::distance::{DistanceSum, Survey};
use crate::rig::{Rig, codes, current_bases, llc};
use isochrone_units::Level;
use std::collections::BTreeSet;
use std::vec::Vec;

const PAGE: u64 = 4096;

/// A policy that spends nothing on preference but what it is told.
fn policy(mode: Mode, slack_pages: u64) -> Policy {
    Policy { mode, slack_bytes: slack_pages * PAGE, ..Policy::default() }
}

fn take_all(heap: &Heap<'_>, core: u16, class: SizeClass, count: usize) -> Vec<Slot> {
    (0..count).map(|_| heap.take_for(core, class).unwrap()).collect()
}

fn llc_cycles(heap: &Heap<'_>, slot: Slot, core: u16) -> f32 {
    heap.distance(slot, core).llc.unwrap()
}

/// Near lines, of whatever near bin, and then the others nearest first.
fn near_then_sorted(cycles: &[f32]) -> bool {
    let far = cycles.iter().position(|&cycles| cycles > 34.0).unwrap_or(cycles.len());
    cycles[far..].is_sorted() && cycles[far..].iter().all(|&cycles| cycles > 34.0)
}

#[test]
fn near_lines_come_first_then_pages_within_the_waste_then_the_next_nearest() {
    let rig = Rig::new(8);
    let heap = rig.started(policy(Mode::Aware, 2), 8);
    // Two pages may be spent on nearness: 32 near lines of 128.
    for slot in take_all(&heap, 0, SizeClass::B64, 32) {
        assert!(llc_cycles(&heap, slot, 0) <= 34.0);
    }
    assert_eq!(heap.stats().assigned_bytes, 2 * PAGE);
    assert_eq!(heap.stats().near_slots, 32);
    // 2 KiB are live: a third page would pass 1.25 * 2 KiB + 8 KiB. So the next nearest follow,
    // until 12 KiB are within the limit again.
    let mut farthest = 0.0_f32;
    while heap.preference_limit_bytes() < 3 * PAGE {
        let slot = heap.take_for(0, SizeClass::B64).unwrap();
        let cycles = llc_cycles(&heap, slot, 0);
        assert!(cycles > 34.0 && cycles >= farthest, "{cycles} after {farthest}");
        farthest = cycles;
    }
    assert_eq!(heap.stats().assigned_bytes, 2 * PAGE);
    let slot = heap.take_for(0, SizeClass::B64).unwrap();
    assert_eq!((llc_cycles(&heap, slot, 0), heap.stats().assigned_bytes), (32.0, 3 * PAGE));
    assert_eq!(heap.stats().forced_pages, 0);
}

#[test]
fn a_page_beyond_the_waste_is_taken_only_when_nothing_is_free() {
    let rig = Rig::new(4);
    let heap = rig.started(Policy { waste: 0.0, ..policy(Mode::Aware, 0) }, 3);
    take_all(&heap, 0, SizeClass::B64, 64);
    assert_eq!((heap.stats().assigned_bytes, heap.stats().forced_pages), (PAGE, 1));
    take_all(&heap, 0, SizeClass::B64, 1);
    assert_eq!((heap.stats().assigned_bytes, heap.stats().forced_pages), (2 * PAGE, 2));
    take_all(&heap, 1, SizeClass::B64, 63 + 64);
    assert_eq!(heap.take_for(0, SizeClass::B64), None);
    assert_eq!(heap.take_for(0, SizeClass::B16), None);
    assert_eq!(heap.stats().refused, 2);
    assert_eq!(heap.stats().live_bytes, 3 * PAGE);
}

#[test]
fn opposed_cores_do_not_take_each_others_lines() {
    let rig = Rig::new(16);
    let heap = rig.started(policy(Mode::Aware, 16), 16);
    for _ in 0..100 {
        for core in 0..2 {
            let slot = heap.take_for(core, SizeClass::B64).unwrap();
            assert!(llc_cycles(&heap, slot, core) <= 34.0);
        }
    }
}

#[test]
fn groups_of_lines_are_placed_by_their_mean() {
    let rig = Rig::new(32);
    let heap = rig.started(policy(Mode::Aware, 32), 32);
    for class in [SizeClass::B128, SizeClass::B256] {
        let drawn = take_all(&heap, 0, class, 16);
        let mut sum = DistanceSum::default();
        drawn.iter().for_each(|&slot| sum.add(heap.distance(slot, 0)));
        // Pairs have means 38, 38, 38, 42; fours 38 and 40.
        assert_eq!(sum.mean(Level::Llc), Some(38.0));
        assert!(drawn.iter().all(|slot| class.begins_at(*slot)));
    }
}

fn mean_drawn(mode: Mode, seed: u64) -> (f64, f64) {
    let rig = Rig::new(256);
    let heap = rig.started(Policy { seed, ..policy(mode, 256) }, 256);
    let mut sum = DistanceSum::default();
    for slot in take_all(&heap, 0, SizeClass::B64, 4000) {
        sum.add(heap.distance(slot, 0));
    }
    (sum.mean(Level::Llc).unwrap(), sum.mean(Level::Dram).unwrap())
}

#[test]
fn modes_differ_in_distance_and_in_nothing_else() {
    let mean = f64::from(crate::rig::EIGHT.iter().sum::<f32>()) / 8.0;
    assert!((mean_drawn(Mode::Aware, 1).0 - 33.0).abs() < 0.2);
    assert!((mean_drawn(Mode::Adversarial, 1).0 - 45.0).abs() < 0.2);
    for seed in 0..4 {
        let (llc, _) = mean_drawn(Mode::Oblivious, seed);
        assert!((llc - mean).abs() < 0.8, "{llc} {mean}");
    }
}

#[test]
fn a_seed_decides_which_lines_are_oblivious() {
    let drawn = |seed| {
        let rig = Rig::new(16);
        let heap = rig.started(Policy { seed, ..policy(Mode::Oblivious, 16) }, 16);
        take_all(&heap, 0, SizeClass::B64, 200)
    };
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1), drawn(2));
}

#[test]
fn oblivious_lines_are_any_lines() {
    // Over many pages each place in a page is near about equally often.
    let rig = Rig::new(1024);
    let heap = rig.started(policy(Mode::Oblivious, 1024), 1024);
    let mut places = [0_u32; 64];
    for slot in take_all(&heap, 0, SizeClass::B64, 1024 * 16) {
        places[usize::from(slot.line_in_page())] += 1;
    }
    // 256 of each expected, with a standard deviation of 14.
    assert!(places.iter().all(|count| (186..=326).contains(count)), "{places:?}");
}

#[test]
fn oblivious_pages_have_as_many_near_lines_as_aware_ones() {
    let (rig, other) = (Rig::new(64), Rig::new(64));
    let aware = rig.started(policy(Mode::Aware, 64), 64);
    let oblivious = other.started(policy(Mode::Oblivious, 64), 64);
    for heap in [&aware, &oblivious] {
        for _ in 0..16 {
            heap.take_for(0, SizeClass::B64).unwrap();
        }
        // One page has 16 near lines in every mode.
        assert_eq!(heap.stats().assigned_bytes, PAGE);
        assert_eq!(heap.stats().near_slots, 16);
    }
    for page in 0..64 {
        let (aware, oblivious) = (aware.word(page), oblivious.word(page));
        assert_eq!(aware.codes(), oblivious.codes());
        for unit in UnitLines::ALL {
            let bins = |seen: PageCodes| -> Vec<u8> {
                // The class of memory is drawn anew; lines of the cache only change places.
                let seen = PageCodes { dram: Code::UNKNOWN, ..seen };
                let of = |place: u8| rig.bins().bin(unit, seen, place << unit as u8);
                let mut bins: Vec<u8> = (0..unit.per_page()).map(of).collect();
                bins.sort_unstable();
                bins
            };
            assert_eq!(bins(aware.seen()), bins(oblivious.seen()));
        }
    }
}

#[test]
fn live_bytes_beyond_the_cache_are_placed_by_memory() {
    let rig = Rig::new(256);
    let small_cache = Policy { llc_bytes: 4096, ..policy(Mode::Aware, 256) };
    let heap = rig.started(small_cache, 256);
    assert!(!heap.order_due());
    take_all(&heap, 0, SizeClass::B256, 1);
    assert_eq!(heap.dram_share(), 0.0);
    heap.sums().live_bytes.store(1 << 22, Relaxed);
    assert!(heap.order_due() && heap.dram_share() > 0.99);
    heap.set_bases(0, &current_bases(0));
    assert!(!heap.order_due());
    for slot in take_all(&heap, 0, SizeClass::B128, 400) {
        assert_eq!(heap.distance(slot, 0).dram, Some(337.0));
    }
}

#[test]
fn a_core_that_moved_takes_other_lines_of_the_same_lists() {
    let rig = Rig::new(8);
    let heap = rig.started(policy(Mode::Aware, 8), 8);
    let before = heap.take_for(0, SizeClass::B64).unwrap();
    assert_eq!(llc_cycles(&heap, before, 0), 32.0);
    heap.set_bases(0, &current_bases(1));
    assert_eq!(llc_cycles(&heap, before, 0), 46.0);
    let after = heap.take_for(0, SizeClass::B64).unwrap();
    assert_eq!(llc_cycles(&heap, after, 0), 32.0);
    assert_eq!(before.page(), after.page());
}

#[test]
fn demoted_lines_come_last_and_come_back_when_coded() {
    let rig = Rig::new(2);
    let heap = rig.started(policy(Mode::Aware, 2), 2);
    let first = heap.take_for(0, SizeClass::B64).unwrap();
    assert!(heap.demote(first.page()));
    assert_eq!(heap.codes(first.page()), Some(PageCodes::UNKNOWN));
    assert_eq!(heap.distance(first, 0).llc, None);
    // Of the other page first, all of it.
    let other = take_all(&heap, 0, SizeClass::B64, 64);
    assert!(other.iter().all(|slot| slot.page() != first.page()));
    let of_demoted = take_all(&heap, 0, SizeClass::B64, 13);
    assert!(of_demoted.iter().all(|slot| slot.page() == first.page()));
    assert!(heap.recode(first.page(), codes(first.page())));
    // 50 lines are free; those freed while nothing was known move when asked to.
    for slot in of_demoted {
        heap.put_back(slot).unwrap();
    }
    while heap.rebin_unknown(SizeClass::B64, 64) > 0 {}
    let cycles: Vec<f32> = take_all(&heap, 0, SizeClass::B64, 63)
        .iter()
        .map(|&slot| llc_cycles(&heap, slot, 0))
        .collect();
    assert!(near_then_sorted(&cycles), "{cycles:?}");
    assert_eq!(heap.stats().demoted_pages, 1);
    assert!(!heap.demote(77));
}

#[test]
fn lines_freed_while_nothing_was_known_are_found_by_the_next_refill() {
    for core in [0, 9] {
        let rig = Rig::new(1);
        let heap = rig.started(policy(Mode::Aware, 1), 1);
        let all = take_all(&heap, core, SizeClass::B64, 64);
        heap.demote(0);
        all.iter().for_each(|&slot| assert!(heap.put_back(slot).is_ok()));
        heap.recode(0, codes(0));
        // They lie in the last bin and belong to earlier ones.
        let again = take_all(&heap, core, SizeClass::B64, 64);
        let cycles: Vec<f32> = again.iter().map(|&slot| llc_cycles(&heap, slot, 0)).collect();
        assert_eq!(core == 0, near_then_sorted(&cycles), "{cycles:?}");
        assert_eq!(heap.take_for(core, SizeClass::B64), None);
    }
}

#[test]
fn population_follows_codes() {
    let rig = Rig::new(3);
    let heap = rig.started(policy(Mode::Aware, 3), 3);
    for unit in UnitLines::ALL {
        let units: u32 = heap.population(unit).iter().sum();
        assert_eq!(units, 3 * u32::from(unit.per_page()));
    }
    heap.demote(1);
    let last = heap.bins.count(UnitLines::One) - 1;
    assert_eq!(heap.population(UnitLines::One)[last], 64);
    heap.demote(0);
    heap.demote(2);
    assert_eq!(heap.population(UnitLines::One)[last], 3 * 64);
    assert_eq!(heap.population(UnitLines::One).iter().sum::<u32>(), 3 * 64);
}

#[test]
fn a_page_joins_once_and_only_within_the_tables() {
    let rig = Rig::new(2);
    let heap = rig.heap(Policy::default());
    assert_eq!(heap.state(1), PageState::Absent);
    assert!(heap.page_ready(1, PageCodes::UNKNOWN));
    assert!(!heap.page_ready(1, codes(1)));
    assert!(!heap.page_ready(2, codes(2)));
    assert!(!heap.recode(0, codes(0)));
    assert_eq!((heap.state(1), heap.stats().ready_pages), (PageState::Ready, 1));
    // Nothing is known of it, nor of the core: it is handed out all the same.
    let slot = heap.take_for(9, SizeClass::B32).unwrap();
    assert_eq!(heap.state(1), PageState::Assigned(SizeClass::B32));
    assert_eq!((heap.class_of(slot), heap.class_of(Slot(0))), (Some(SizeClass::B32), None));
    assert_eq!(heap.wants_pages(), 16);
}

#[test]
fn who_asks_for_nothing_costs_nothing() {
    let rig = Rig::new(2);
    let heap = rig.started(policy(Mode::Aware, 2), 2);
    assert_eq!(heap.refill(0, SizeClass::B64, &mut []).slots, 0);
    assert_eq!((heap.stats().assigned_bytes, heap.stats().refused), (0, 0));
}

#[test]
fn misuse_is_told_and_does_no_harm() {
    let rig = Rig::new(4);
    let heap = rig.started(policy(Mode::Aware, 4), 2);
    let slot = heap.take_for(0, SizeClass::B128).unwrap();
    assert_eq!(heap.put_back(Slot(3 * 256)), Err(Misuse::Foreign));
    assert_eq!(heap.put_back(Slot(u32::MAX)), Err(Misuse::Foreign));
    assert_eq!(heap.put_back(Slot(slot.0 + 4)), Err(Misuse::Inside));
    assert_eq!(heap.put_back(slot), Ok(SizeClass::B128));
    assert_eq!(heap.put_back(slot), Err(Misuse::DoubleFree));
    assert_eq!(heap.stats().misuses, 4);
    assert_eq!(heap.first_misuse(), Some((Misuse::Foreign, Slot(3 * 256))));
    let mut seen = BTreeSet::new();
    while let Some(slot) = heap.take_for(0, SizeClass::B128) {
        assert!(seen.insert(slot));
    }
    assert_eq!(seen.len(), 2 * 32);
}

#[test]
fn slots_that_share_a_line_are_freed_one_by_one() {
    let rig = Rig::new(1);
    let heap = rig.started(policy(Mode::Aware, 1), 1);
    let slots = take_all(&heap, 0, SizeClass::B16, 256);
    let distinct: BTreeSet<Slot> = slots.iter().copied().collect();
    assert_eq!(distinct.len(), 256);
    assert_eq!(heap.take_for(0, SizeClass::B16), None);
    // Two slots of one line, one of another.
    for &slot in &[slots[0], slots[1], slots[8]] {
        heap.put_back(slot).unwrap();
    }
    let again: BTreeSet<Slot> = take_all(&heap, 0, SizeClass::B16, 3).into_iter().collect();
    assert_eq!(again, [slots[0], slots[1], slots[8]].into_iter().collect());
    assert_eq!(heap.take_for(0, SizeClass::B16), None);
}

#[test]
fn a_rank_is_the_share_of_nearer_units() {
    let rig = Rig::new(8);
    let heap = rig.started(policy(Mode::Aware, 8), 8);
    let near = heap.take_for(0, SizeClass::B64).unwrap();
    assert!(heap.rank(near, 0).unwrap() < 0.05);
    let far = heap.rank(near, 1).unwrap();
    assert!(far > 0.8 && far < 1.0, "{far}");
    assert_eq!(heap.rank(near, 7), None);
}

#[test]
fn a_survey_tells_what_is_taken_from_what_could_be() {
    let rig = Rig::new(64);
    let heap = rig.started(policy(Mode::Aware, 64), 64);
    let mine = take_all(&heap, 0, SizeClass::B64, 100);
    take_all(&heap, 1, SizeClass::B16, 10);
    heap.put_back(mine[99]).unwrap();
    let survey = heap.survey(0);
    assert_eq!(survey.taken_bytes, 99 * 64);
    let expected: f64 =
        mine[..99].iter().map(|&slot| f64::from(llc_cycles(&heap, slot, 0))).sum::<f64>() / 99.0;
    assert!((survey.taken.mean(Level::Llc).unwrap() - expected).abs() < 1e-9);
    assert!((survey.pool.mean(Level::Llc).unwrap() - 39.0).abs() < 1e-6);
    assert_eq!(heap.survey(1).taken_bytes, 160);
    assert_eq!(heap.survey(5).taken.mean(Level::Llc), None);
    // One walk finds the same for both, and a core beyond the list is left out.
    let mut all = [Survey::default(); 2];
    heap.survey_owners(1000, 1, &mut all[..1]);
    assert_eq!((all[0].taken_bytes, all[1].taken_bytes), (99 * 64, 0));
    assert_eq!(all[0].taken, survey.taken);
    let mut all = [Survey::default(); 2];
    heap.survey_owners(heap.stats().pages, 1, &mut all);
    assert_eq!(all[1].taken_bytes, 160);
}

#[test]
fn an_oracle_takes_what_was_measured_near() {
    use crate::bins::oracle_rank;
    use crate::order::Order;
    let rig = Rig::new(4);
    let heap = rig.heap(policy(Mode::Oracle, 4));
    for page in 0..4 {
        let ranks = core::array::from_fn(|line| {
            let line = line_in_page(u32::try_from(line).unwrap());
            oracle_rank(line / 4, 15 - line / 4)
        });
        assert!(heap.page_measured(page, codes(page), &ranks));
    }
    for unit in UnitLines::ALL {
        for side in 0..2 {
            let population = heap.population(unit);
            let order = Order::oracle(unit, side, 0.25, Some(&population));
            heap.set_order(u16::try_from(side).unwrap(), &order);
        }
    }
    for _ in 0..32 {
        assert!(heap.take_for(0, SizeClass::B64).unwrap().line_in_page() < 16);
        assert!(heap.take_for(1, SizeClass::B64).unwrap().line_in_page() >= 48);
    }
    assert_eq!(heap.stats().near_slots, 64);
}

#[test]
fn an_unknown_level_does_not_decide() {
    let rig = Rig::new(8);
    let heap = rig.heap(policy(Mode::Aware, 8));
    for page in 0..8 {
        heap.page_ready(page, PageCodes { dram: Code::UNKNOWN, ..codes(page) });
    }
    heap.set_bases(0, &CurrentBases::of(Some(&llc(0)), None));
    for slot in take_all(&heap, 0, SizeClass::B64, 64) {
        assert!(llc_cycles(&heap, slot, 0) <= 34.0);
    }
}
