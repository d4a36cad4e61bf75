//! Machines of several regions: lines of one pattern that are farther from one region's cores than from another's.

use isochrone_atlas_store::contents::LevelMap;
use isochrone_sim::synthetic::{
    FrequencyDrift, Geometry, Scheduled, SyntheticMemory, SyntheticSpec, When,
};
use isochrone_units::{CoreId, Level, PageAddr};

use super::{BlockMap, BlockPlan, UNKNOWN_CODE, map_blocks};
use crate::synthetic::SyntheticTarget;
use crate::watch::Silent;

const PAGES: u64 = 1024;
/// Cores of a region.
const EACH: usize = 4;

fn plan(learnt: &[u16]) -> BlockPlan {
    BlockPlan {
        training_pages: [128, 128],
        heldout_pages: 32,
        training_rounds: [64, 64],
        heldout_rounds: [64, 96],
        learnt_cores: learnt.iter().copied().map(CoreId).collect(),
        ..BlockPlan::quick(PAGES, 3)
    }
}

/// Cores in regions. All see one memory in one pattern, those of each region so many cycles farther.
fn one_pattern(farther: &[f64], seed: u64) -> SyntheticSpec {
    let mut spec = SyntheticSpec::emerald_rapids_like(seed);
    let Geometry::Tables(tables) = &mut spec.machine.geometry else { panic!("it has tables") };
    let (llc, dram) = (tables.llc_cycles[0].clone(), tables.dram_cycles[0].clone());
    let at =
        |by: &f64| dram.iter().map(|of| of.iter().map(|cycles| cycles + by).collect()).collect();
    tables.dram_cycles = farther.iter().map(at).collect();
    tables.llc_cycles = vec![llc; farther.len()];
    spec.wears = (0_u16..).take(farther.len()).flat_map(|region| [region; EACH]).collect();
    spec
}

fn mapped(spec: SyntheticSpec, plan: &BlockPlan) -> (BlockMap, SyntheticTarget) {
    let memory = SyntheticMemory::new(spec.with_pages(PAGES)).expect("a valid spec");
    let mut target = SyntheticTarget::new(memory);
    let map = map_blocks(&mut target, plan, &|_| "synthetic".into(), &mut Silent);
    (map.expect("nothing is refused"), target)
}

fn dram(map: &BlockMap) -> &LevelMap {
    &map.levels[Level::Dram as usize]
}

/// Median of |told / truth - 1| over lines of many pages as a core sees them.
fn error(map: &BlockMap, target: &SyntheticTarget, core: usize, level: Level) -> f64 {
    let found = &map.levels[level as usize];
    let base = found.core_base[core].expect("every core has a base");
    let base = &found.bases[usize::from(base)];
    let core = CoreId(u16::try_from(core).expect("few cores"));
    let mut errors = Vec::new();
    for page in (0..PAGES).step_by(7) {
        let code = map.codes[level as usize][usize::try_from(page).expect("few pages")];
        assert_ne!(code, UNKNOWN_CODE, "page {page}");
        let (class, key) = super::learn::split_code(code, usize::from(found.period));
        for i in 0..64_u8 {
            let line = PageAddr(page).line(i);
            let truth = target.memory().truth_latency(core, level, line).expect("a line");
            let index = usize::try_from(line.0).expect("few lines") % usize::from(found.period);
            let told = f64::from(base.patterns[class][index ^ key]);
            errors.push((told / truth - 1.0).abs());
        }
    }
    isochrone_stats::median(&errors).expect("some lines")
}

/// Every core is told how far lines are from it, but for such a share.
fn told_right(map: &BlockMap, target: &SyntheticTarget, most: f64) {
    for level in Level::ALL {
        for core in 0..target.memory().cores() {
            let error = error(map, target, core, level);
            assert!(error < most, "{level} {core}: {error}");
        }
    }
}

#[test]
fn cores_of_two_regions_see_one_pattern_each_as_far_as_it_is() {
    // Both regions are learnt; then the second one has nothing but verified cores.
    for (learnt, bases) in [(vec![0, 4], 2), (vec![0, 1], 3)] {
        let (map, target) = mapped(one_pattern(&[0.0, 90.0], 3), &plan(&learnt));
        told_right(&map, &target, 0.03);
        assert_eq!(dram(&map).bases.len(), bases, "{:?}", map.missing);
        assert_eq!(map.levels[0].bases.len(), 2, "in the last-level cache nothing is farther");
        assert!(map.drift.is_empty(), "{:?}", map.drift);
    }
}

#[test]
fn four_regions_are_four_distances_of_one_pattern() {
    let (map, target) = mapped(one_pattern(&[60.0, 0.0, 30.0, 90.0], 5), &plan(&[0, 1]));
    told_right(&map, &target, 0.03);
    let dram = dram(&map);
    assert_eq!(dram.bases.len(), 2 + 3, "{:?}", map.missing);
    for region in dram.core_base[EACH..].chunks(EACH) {
        assert!(region.iter().all(|base| *base == region[0]), "{:?}", dram.core_base);
    }
    let of = |core: usize| dram.quality[core].verified.expect("it was not learnt");
    assert!((4..16).all(|core| !of(core).own_base && of(core).explained.is_some_and(|e| e > 0.9)));
    let said = map.missing.iter().find(|line| line.starts_with("DRAM latency: 2 of 16 cores"));
    let said = said.expect("it is said");
    assert!(said.contains("known patterns were seen at 3 more distances"), "{said}");
}

#[test]
fn regions_that_are_as_far_do_not_fall_apart() {
    let (map, target) = mapped(one_pattern(&[0.0, 0.0, 2.0, -2.0], 7), &plan(&[0, 5]));
    told_right(&map, &target, 0.03);
    for level in &map.levels {
        assert_eq!((level.bases.len(), level.classes), (2, 1), "{:?}", map.missing);
    }
    assert!(map.drift.is_empty(), "{:?}", map.drift);
}

#[test]
fn pages_of_several_regions_are_as_far_from_each_core_as_they_are() {
    for (regions, learnt) in [(2_u16, vec![0, 8]), (4, vec![0, 4, 8, 12])] {
        let mut spec = SyntheticSpec::clusters(16, regions, 3);
        spec.arena.huge = false;
        let (map, target) = mapped(spec, &plan(&learnt));
        told_right(&map, &target, 0.03);
        assert!(dram(&map).classes >= 2, "{}", dram(&map).reason);
    }
}

#[test]
fn a_core_that_moves_to_another_region_is_never_told_what_lies_between() {
    let spec = || SyntheticSpec { wears: vec![0, 0], ..one_pattern(&[0.0, 90.0], 3) };
    let mean = |map: &BlockMap| {
        let base = usize::from(dram(map).core_base[0].expect("core 0 has a base"));
        let cycles: Vec<f64> =
            dram(map).bases[base].patterns[0].iter().copied().map(f64::from).collect();
        isochrone_stats::mean(&cycles).expect("a pattern has lines")
    };
    let (quiet, target) = mapped(spec(), &plan(&[]));
    let (near, samples) = (mean(&quiet), target.memory().samples());
    for tenth in 1..10 {
        let at = When::Samples(samples * tenth / 10);
        let moved = spec().with_events([Scheduled::core_moves(at, CoreId(0), 1)]);
        let (map, _) = mapped(moved, &plan(&[]));
        let farther = mean(&map) - near;
        assert!(farther.abs() < 5.0 || (farther - 90.0).abs() < 5.0, "{tenth}: {farther}");
        assert!(dram(&map).bases.len() <= 4, "{tenth}: {:?}", map.drift);
    }
}

#[test]
fn in_one_region_cores_keep_the_bases_of_their_own_looks() {
    let quiet = SyntheticSpec::emerald_rapids_like(9);
    let mut wandering = quiet.clone();
    // Looks are short beside a swing, so each sees another clock.
    wandering.noise.frequency = Some(FrequencyDrift { amplitude: 0.05, period_s: 0.37 });
    for (spec, wanders) in [(quiet, 0.0), (wandering, 0.05)] {
        let (map, target) = mapped(spec, &plan(&[]));
        told_right(&map, &target, 0.03 + wanders);
        for level in &map.levels {
            assert_eq!(level.core_base, [Some(0), Some(1)], "{:?}", map.missing);
            assert_eq!(level.bases.len(), 2, "{:?}", map.drift);
        }
        assert!(map.drift.is_empty(), "{:?}", map.drift);
    }
}
