//! The model by hand on two slices and two classes of pages, and what must hold of any machine.

use super::*;
use crate::order::Order;
use isochrone_atlas::{PatternTable, Period};
use proptest::prelude::*;
use std::vec::Vec;

const MIB: u64 = 1 << 20;

/// A machine of repeating cache patterns and flat classes of pages.
#[derive(Debug)]
struct Machine {
    bins: Bins,
    current: CurrentBases,
}

impl Machine {
    fn new(llc: &[f32], dram: &[f32]) -> Self {
        let pattern: Vec<f32> = llc.iter().copied().cycle().take(64).collect();
        let llc = PatternTable::new(Period::Lines64, [pattern.as_slice()]).unwrap();
        let classes: Vec<Vec<f32>> = dram.iter().map(|&cycles| std::vec![cycles; 64]).collect();
        let dram = PatternTable::new(Period::Lines64, classes.iter().map(Vec::as_slice)).unwrap();
        let current = CurrentBases::of(Some(&llc), Some(&dram));
        Self { bins: Bins::new([llc].into_iter(), [dram].into_iter()), current }
    }

    fn predict(&self, unit: UnitLines, wish: &Wish) -> Prediction {
        predict(&self.bins, unit, &self.current, wish, None).unwrap()
    }

    fn order(&self, wish: &Wish) -> Order {
        Order::new(&self.bins, UnitLines::One, &self.current, wish, None)
    }

    /// Groups of the near bins that have lines as latencies, cache and memory, whole cycles.
    fn near(&self, wish: &Wish) -> Vec<(f32, f32)> {
        let model = Model::new(&self.bins, UnitLines::One, &self.current, wish).unwrap();
        let shares = shares(&self.bins, UnitLines::One, None);
        let of = |&bin: &u8| {
            let (l, d) = model.of_unit.groups_of(bin);
            (model.llc[usize::from(l)].round(), model.dram[usize::from(d)].round())
        };
        let order = self.order(wish);
        order.near_bins().iter().filter(|bin| shares[usize::from(**bin)] > 0.0).map(of).collect()
    }
}

/// Even lines lie in a slice at 30 cycles, odd ones in another at 50; half of the pages are at
/// 300 cycles, half at 400. The cache has 1 MiB, 512 KiB a slice.
fn two_by_two() -> Machine {
    Machine::new(&[30.0, 50.0], &[300.0, 400.0])
}

fn wish(live_bytes: u64) -> Wish {
    Wish { mode: Mode::Aware, near: 0.5, live_bytes, llc_bytes: MIB, l2_bytes: 0, tlb_bytes: 0 }
}

fn close(a: f32, b: f64) {
    assert!((f64::from(a) - b).abs() < 1e-3 * b, "{a} is not {b}");
}

#[test]
fn what_fits_the_near_slice_lies_there() {
    let machine = two_by_two();
    assert_eq!(machine.near(&wish(MIB / 2)), [(30.0, 300.0), (30.0, 400.0)]);
    let prediction = machine.predict(UnitLines::One, &wish(MIB / 2));
    close(prediction.near_share, 0.5);
    close(prediction.llc_hit_share, 1.0);
    close(prediction.cycles, 30.0);
    close(prediction.oblivious_cycles, 40.0);
    close(prediction.gain(), 4.0 / 3.0);
}

#[test]
fn more_than_fits_takes_as_much_of_the_far_slice_as_it_needs() {
    // 768 KiB: the near slice alone would hit 2/3 and cost 20 + 350 / 3 = 137 cycles. With the
    // near pages of the far slice, a third lies there: (2 * 30 + 50) / 3.
    let machine = two_by_two();
    let prediction = machine.predict(UnitLines::One, &wish(768 << 10));
    assert_eq!(machine.near(&wish(768 << 10)).last(), Some(&(50.0, 300.0)));
    close(prediction.near_share, 0.75);
    close(prediction.llc_hit_share, 1.0);
    close(prediction.cycles, 110.0 / 3.0);
    // A MiB needs both slices whole.
    let prediction = machine.predict(UnitLines::One, &wish(MIB));
    close(prediction.near_share, 1.0);
    close(prediction.cycles, 40.0);
    close(prediction.gain(), 1.0);
}

#[test]
fn far_beyond_the_cache_pages_decide_and_slices_are_even() {
    // 4 MiB: a quarter hits wherever it lies. All: (40 + 3 * 350) / 4; near pages:
    // (40 + 3 * 300) / 4.
    let machine = two_by_two();
    assert_eq!(machine.near(&wish(4 * MIB)), [(30.0, 300.0), (50.0, 300.0)]);
    let prediction = machine.predict(UnitLines::One, &wish(4 * MIB));
    close(prediction.llc_hit_share, 0.25);
    close(prediction.cycles, 235.0);
    close(prediction.oblivious_cycles, 272.5);
}

#[test]
fn what_fits_the_second_level_cache_gains_nothing_and_loses_nothing() {
    // The L2 has 128 KiB, and all pages have key 0: even lines have half of it. At 128 KiB any
    // lines stay in it, and near ones would have to fetch half from the cache beyond.
    let mut machine = two_by_two();
    machine.bins.llc.keys = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    let small = Wish { l2_bytes: 128 << 10, ..wish(128 << 10) };
    let prediction = machine.predict(UnitLines::One, &small);
    close(prediction.near_share, 1.0);
    close(prediction.gain(), 1.0);
    // The near half alone: half of it at a quarter of 40 cycles, half at 30.
    let model = Model::new(&machine.bins, UnitLines::One, &machine.current, &small).unwrap();
    let shares = shares(&machine.bins, UnitLines::One, None);
    let near = model.sequence([1.0, LITTLE]);
    close(single(model.cost_of(&near[..3], &shares).cycles), 20.0);
    // Where keys differ from page to page, near lines have all of it.
    machine.bins.llc.keys = [0.125; RESIDUES];
    let prediction = machine.predict(UnitLines::One, &small);
    close(prediction.near_share, 0.5);
    close(prediction.cycles, 10.0);
    close(prediction.gain(), 1.0);
    // At 512 KiB a quarter of either stays: (10 + 3 * 30) / 4 against (10 + 3 * 40) / 4.
    let more = Wish { l2_bytes: 128 << 10, ..wish(512 << 10) };
    close(machine.predict(UnitLines::One, &more).gain(), 1.3);
}

#[test]
fn half_of_twice_the_memory_is_better_than_a_quarter_of_four_times_where_translations_miss() {
    // Eight slices at 30 to 58 cycles and one memory; 2 MiB are live, all in the cache, and a core
    // holds the translations of 4 MiB.
    let machine = Machine::new(&[30.0, 34.0, 38.0, 42.0, 46.0, 50.0, 54.0, 58.0], &[330.0]);
    let large = Wish { near: 0.25, llc_bytes: 64 * MIB, ..wish(2 * MIB) };
    close(machine.predict(UnitLines::One, &large).near_share, 0.25);
    close(machine.predict(UnitLines::One, &large).cycles, 32.0);
    let narrow = Wish { tlb_bytes: 4 * MIB, ..large };
    // A quarter lies in 8 MiB of pages: half of the loads wait for a walk, 32 + 45 / 2 = 54.5. Half
    // lies in 4 MiB: (30 + 34 + 38 + 42) / 4 = 36. All of it: 44.
    let model = Model::new(&machine.bins, UnitLines::One, &machine.current, &narrow).unwrap();
    let shares = shares(&machine.bins, UnitLines::One, None);
    let near = model.sequence([1.0, LITTLE]);
    let quarter = cut(&near[..model.known()], &shares, 0.25).0;
    close(single(model.cost_of(&near[..usize::from(quarter)], &shares).cycles), 54.5);
    let prediction = machine.predict(UnitLines::One, &narrow);
    close(prediction.near_share, 0.5);
    close(prediction.cycles, 36.0);
    close(prediction.oblivious_cycles, 44.0);
    // With half of that all the lines of a page must be used; with a quarter they wait as well,
    // and nothing is worth more pages.
    for tlb_bytes in [2 * MIB, MIB] {
        let prediction = machine.predict(UnitLines::One, &Wish { tlb_bytes, ..large });
        close(prediction.near_share, 1.0);
        close(prediction.gain(), 1.0);
    }
    let half = Wish { tlb_bytes: MIB, ..large };
    close(machine.predict(UnitLines::One, &half).cycles, 44.0 + 45.0 / 2.0);
}

#[test]
fn pages_that_are_near_as_a_whole_need_no_more_translations() {
    // Far beyond the cache near pages are taken and every line of them is used: as many pages as
    // any lines need, of which a quarter is reached without a walk.
    let machine = two_by_two();
    let narrow = Wish { tlb_bytes: MIB, ..wish(4 * MIB) };
    assert_eq!(machine.near(&narrow), [(30.0, 300.0), (50.0, 300.0)]);
    let walks = 0.75 * 45.0;
    let prediction = machine.predict(UnitLines::One, &narrow);
    close(prediction.cycles, 235.0 + walks);
    close(prediction.oblivious_cycles, 272.5 + walks);
}

#[test]
fn the_cost_of_a_set_that_is_too_small_is_as_computed_by_hand() {
    let machine = two_by_two();
    let wish = wish(768 << 10);
    let model = Model::new(&machine.bins, UnitLines::One, &machine.current, &wish).unwrap();
    let shares = shares(&machine.bins, UnitLines::One, None);
    let order = model.sequence([1.0, LITTLE]);
    // Between its two bins lies that of units whose memory is not known; there are none.
    let cost = model.cost_of(&order[..3], &shares);
    close(single(cost.hit_share), 2.0 / 3.0);
    close(single(cost.cycles), 20.0 + 350.0 / 3.0);
    // The near slice of the near pages alone: its misses are cheaper.
    close(single(model.cost_of(&order[..1], &shares).cycles), 20.0 + 100.0);
    assert_eq!(model.cost_of(&[], &shares), Cost::default());
}

#[test]
fn a_pair_of_lines_loads_both_slices() {
    let machine = two_by_two();
    let prediction = machine.predict(UnitLines::Two, &wish(MIB));
    close(prediction.near_share, 0.5);
    close(prediction.llc_hit_share, 1.0);
    close(prediction.cycles, 40.0);
}

#[test]
fn the_adversary_takes_the_mirror_image() {
    let machine = two_by_two();
    let adversary = Wish { mode: Mode::Adversarial, ..wish(MIB / 2) };
    assert_eq!(machine.near(&adversary), [(50.0, 400.0), (50.0, 300.0)]);
    let prediction = machine.predict(UnitLines::One, &adversary);
    close(prediction.cycles, 50.0);
    close(prediction.gain(), 0.8);
    let adversary = Wish { mode: Mode::Adversarial, ..wish(768 << 10) };
    close(machine.predict(UnitLines::One, &adversary).near_share, 0.75);
    let oblivious = Wish { mode: Mode::Oblivious, ..wish(MIB / 2) };
    close(machine.predict(UnitLines::One, &oblivious).gain(), 1.0);
    assert_eq!(machine.near(&oblivious), machine.near(&wish(MIB / 2)));
}

#[test]
fn a_level_that_is_not_known_predicts_nothing_that_reaches_it() {
    let machine = two_by_two();
    let half = CurrentBases { dram: None, ..machine.current.clone() };
    let of = |current: &CurrentBases, live| {
        predict(&machine.bins, UnitLines::One, current, &wish(live), None)
    };
    assert!(of(&half, MIB / 2).is_some());
    assert_eq!(of(&half, 2 * MIB), None);
    // It chooses all the same: memory is taken to be far, and alike, so that any third of the
    // lines in the far slice fills it.
    let order = Order::new(&machine.bins, UnitLines::One, &half, &wish(2 * MIB), None);
    close(order.near_share(), 0.75);
    let half = CurrentBases { llc: None, ..machine.current.clone() };
    assert_eq!(of(&half, 2 * MIB), None);
    let order = Order::new(&machine.bins, UnitLines::One, &half, &wish(2 * MIB), None);
    close(order.near_share(), 0.5);
    assert_eq!(of(&CurrentBases::default(), MIB), None);
}

#[test]
fn far_beyond_the_cache_and_flat_memory_everything_is_near() {
    let machine = Machine::new(&[30.0, 34.0, 38.0, 42.0, 46.0, 50.0, 54.0, 58.0], &[330.0]);
    for live in [8 * MIB, 64 * MIB, 1 << 40] {
        close(machine.predict(UnitLines::One, &Wish { near: 0.25, ..wish(live) }).near_share, 1.0);
    }
}

#[test]
fn counted_units_decide_over_expected_ones() {
    // Hardly any page is of the near class.
    let machine = two_by_two();
    let bins = machine.bins.count(UnitLines::One);
    let mut population = [0; MAX_BINS];
    let codes = |class| crate::page::PageCodes {
        llc: isochrone_atlas::Code(0),
        dram: isochrone_atlas::Code(class),
    };
    for (class, units) in [(0, 10), (64, 990)] {
        for line in 0..2 {
            population[usize::from(machine.bins.bin(UnitLines::One, codes(class), line))] = units;
        }
    }
    let wish = wish(4 * MIB);
    let order =
        Order::new(&machine.bins, UnitLines::One, &machine.current, &wish, Some(&population));
    assert_eq!(order.bins().len(), bins);
    assert!(order.near_share() > 0.9, "{}", order.near_share());
}

fn machine() -> impl Strategy<Value = Machine> {
    let llc = prop::collection::vec(20.0..60.0_f32, 8);
    let dram = prop::collection::vec(150.0..500.0_f32, 1..=4);
    (llc, dram).prop_map(|(llc, dram)| Machine::new(&llc, &dram))
}

fn population() -> impl Strategy<Value = Option<[u32; MAX_BINS]>> {
    let counts = prop::collection::vec(0..5000_u32, MAX_BINS);
    prop::option::of(counts.prop_map(|counts| core::array::from_fn(|bin| counts[bin])))
}

fn units() -> impl Strategy<Value = UnitLines> {
    prop::sample::select(UnitLines::ALL.to_vec())
}

proptest! {
    #[test]
    fn no_set_that_is_chosen_costs_more_than_everything(
        machine in machine(),
        population in population(),
        unit in units(),
        near in 0.01..1.0_f32,
        llc_kib in 0..65536_u64,
        live_kib in 0..262_144_u64,
        tlb_kib in 0..65536_u64,
    ) {
        let (live_bytes, llc_bytes) = (live_kib << 10, llc_kib << 10);
        let (l2_bytes, tlb_bytes) = (llc_bytes / 4, tlb_kib << 10);
        let wish = Wish { mode: Mode::Aware, near, live_bytes, llc_bytes, l2_bytes, tlb_bytes };
        let aware = predict(&machine.bins, unit, &machine.current, &wish, population.as_ref()).unwrap();
        prop_assert!(aware.cycles <= aware.oblivious_cycles * 1.000_001, "{aware:?}");
        prop_assert!(aware.near_share >= near - SHARE_TOLERANCE - 1e-5, "{aware:?}");
        prop_assert!((0.0..=1.0).contains(&aware.llc_hit_share));
        // All bins are there once, whatever is near.
        let order = Order::new(&machine.bins, unit, &machine.current, &wish, population.as_ref());
        let mut bins = order.bins().to_vec();
        prop_assert_eq!(usize::from(*bins.last().unwrap()), bins.len() - 1);
        bins.sort_unstable();
        prop_assert!(bins.iter().enumerate().all(|(at, &bin)| usize::from(bin) == at));
        let adversarial = Wish { mode: Mode::Adversarial, ..wish };
        let far = predict(&machine.bins, unit, &machine.current, &adversarial, population.as_ref());
        prop_assert!(far.unwrap().near_share >= aware.near_share - SHARE_TOLERANCE - 1e-5);
    }

    #[test]
    fn what_fits_the_near_part_of_the_cache_lies_on_the_pure_quantile(
        machine in machine(),
        eighths in 1..=8_u8,
        filled in 0.0..0.98_f64,
    ) {
        let near = f32::from(eighths) / 8.0;
        let live_bytes = crate::policy::scaled(MIB, near * single(filled));
        let wish = Wish { mode: Mode::Aware, near, live_bytes, llc_bytes: MIB, l2_bytes: 0, tlb_bytes: 0 };
        let order = machine.order(&wish);
        let model = Model::new(&machine.bins, UnitLines::One, &machine.current, &wish).unwrap();
        let shares = shares(&machine.bins, UnitLines::One, None);
        let nearest = model.sequence([1.0 - LITTLE, LITTLE]);
        let (count, share) = cut(&nearest[..model.known()], &shares, near);
        let pure = model.cost_of(&nearest[..usize::from(count)], &shares);
        let chosen = model.cost_of(order.near_bins(), &shares);
        prop_assert!(chosen.hit_share > 0.999 && pure.hit_share > 0.999);
        prop_assert!(chosen.cycles <= pure.cycles * (1.0 + 1e-9));
        prop_assert!(order.near_share() <= share + 1e-5, "{} {share}", order.near_share());
    }

    #[test]
    fn more_live_bytes_never_predict_more_hits(machine in machine(), near in 0.05..1.0_f32) {
        let hits = (1..64_u64).map(|live| {
            let wish = Wish { near, ..wish(live * MIB / 8) };
            let model = Model::new(&machine.bins, UnitLines::One, &machine.current, &wish).unwrap();
            let shares = shares(&machine.bins, UnitLines::One, None);
            model.cost_of(&model.sequence([1.0, 0.0])[..model.known()], &shares).hit_share
        });
        let hits: Vec<f64> = hits.collect();
        prop_assert!(hits.is_sorted_by(|a, b| a + 1e-9 >= *b), "{hits:?}");
    }
}
