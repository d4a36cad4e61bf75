//! Machines of many cores, of which a few are learnt and the others verified.

use std::cell::Cell;

use isochrone_atlas_store::contents::{Form, LevelMap};
use isochrone_machine::{Cache, Core, Machine, Region};
use isochrone_sim::synthetic::{
    AddressHash, Geometry, Mesh, SyntheticMachine, SyntheticMemory, SyntheticSpec,
};
use isochrone_stats::pearson;
use isochrone_units::{CoreId, Cycles, Level, PageAddr};

use super::fit::resemblance;
use super::in_the_way::InTheWay;
use super::level::LevelRun;
use super::{BlockMap, BlockPlan, UNKNOWN_CODE, map_blocks};
use crate::sample::Sample;
use crate::synthetic::SyntheticTarget;
use crate::target::Target;
use crate::watch::{Silent, Watch};

const PAGES: u64 = 768;
const CORES: u16 = 64;

fn plan(seed: u64) -> BlockPlan {
    BlockPlan {
        training_pages: [128, 128],
        heldout_pages: 32,
        training_rounds: [64, 64],
        heldout_rounds: [64, 96],
        ..BlockPlan::quick(PAGES, seed)
    }
}

/// So many cores in caches of 16 and regions of 32.
fn machine(cores: u16) -> Machine {
    let of = |size: u16, number: u16| -> Vec<u16> {
        (0..cores).filter(|core| core / size == number).collect()
    };
    let cache = |number: u16| Cache { level: 3, shared_by: of(16, number), ..Cache::default() };
    let region = |id: u16| Region { id, cores: of(32, id), ..Region::default() };
    Machine {
        cores: (0..cores).map(|id| Core { id, region: id / 32, ..Core::default() }).collect(),
        caches: (0..cores.div_ceil(16)).map(cache).collect(),
        regions: (0..cores.div_ceil(32)).map(region).collect(),
        ..Machine::default()
    }
}

fn sampled(plan: BlockPlan, cores: u16) -> BlockPlan {
    let machine = machine(cores);
    let cores: Vec<CoreId> = machine.core_ids().collect();
    plan.learning(Sample::learnt(false), &machine, &cores)
}

fn target(spec: SyntheticSpec) -> SyntheticTarget {
    SyntheticTarget::new(SyntheticMemory::new(spec.with_pages(PAGES)).expect("a valid spec"))
}

/// 64 cores on eight physical ones: the learnt ones wear four of them, and core 37 alone wears another.
fn worn_by_many(seed: u64) -> SyntheticSpec {
    let mut spec = SyntheticSpec::emerald_rapids_like(seed);
    spec.wears = (0..CORES).map(|core| 2 * ((core / 16 + core) % 4)).collect();
    spec.wears[37] = 5;
    spec
}

/// A mesh of 64 cores, each with a slice: no two see lines alike.
fn mesh(seed: u64) -> SyntheticSpec {
    let tiles: Vec<(u16, u16)> = (0..8).flat_map(|y| (0..8).map(move |x| (x, y))).collect();
    let machine = SyntheticMachine {
        geometry: Geometry::Mesh(Mesh {
            cores: tiles.clone(),
            slices: tiles,
            controllers: vec![(0, 0), (7, 0), (0, 7), (7, 7)],
            hop_cycles: 2.0,
        }),
        llc_base_cycles: Some(44.0),
        dram_base_cycles: 180.0,
    };
    SyntheticSpec::from_machine("mesh of 64", seed, machine)
}

/// Pages are of two kinds, which core 41 alone sees: the cores that are learnt cannot tell them apart.
fn with_a_stranger(seed: u64) -> SyntheticSpec {
    let mut spec = worn_by_many(seed);
    let Geometry::Tables(tables) = &mut spec.machine.geometry else { panic!("it has tables") };
    for (core, slices) in tables.llc_cycles.iter_mut().enumerate() {
        let mut second = slices.clone();
        if core == 7 {
            // Another shape, and no permutation by XOR of the first.
            second.rotate_left(21);
        }
        slices.extend(second);
    }
    for slices in tables.dram_cycles.iter_mut().flatten() {
        slices.extend(slices.clone());
    }
    tables.home_cycles.extend(tables.home_cycles.clone());
    spec.regions[0].slices = (0..128).collect();
    let AddressHash::Xor { masks } = &mut spec.slice_hash else { panic!("it is an XOR") };
    masks.push((1 << 6) | (0x5a5a << 8));
    spec.wears[41] = 7;
    spec
}

fn run(target: &mut SyntheticTarget, plan: &BlockPlan) -> BlockMap {
    map_blocks(target, plan, &|_| "synthetic".into(), &mut Silent).expect("nothing is refused")
}

/// Share of some pages whose code predicts, in the base of a core, the latencies that it truly sees.
fn right(map: &BlockMap, target: &SyntheticTarget, core: u16, at: usize) -> f64 {
    let level = Level::ALL[at];
    let found = &map.levels[at];
    let base = found.core_base[usize::from(core)].expect("every core has a base");
    let base = &found.bases[usize::from(base)];
    let period = usize::from(found.period);
    let pages: Vec<u64> = (0..PAGES).step_by(13).collect();
    let is_right = |page: &&u64| {
        let code = map.codes[at][usize::try_from(**page).unwrap_or(0)];
        if code == UNKNOWN_CODE {
            return false;
        }
        let (class, key) = super::learn::split_code(code, period);
        let lines = (0..64).map(|i| PageAddr(**page).line(i));
        let (truth, predicted): (Vec<f64>, Vec<f64>) = lines
            .map(|line| {
                let truth =
                    target.memory().truth_latency(CoreId(core), level, line).expect("a line");
                let index = usize::try_from(line.0).unwrap_or(0) % period;
                (truth, f64::from(base.patterns[class][index ^ key]))
            })
            .unzip();
        pearson(&truth, &predicted).is_some_and(|r| r >= 0.97)
    };
    pages.iter().filter(is_right).count() as f64 / pages.len() as f64
}

fn verified(map: &LevelMap) -> Vec<u16> {
    let cores = (0..CORES).zip(&map.quality);
    cores.filter(|(_, quality)| quality.verified.is_some()).map(|(core, _)| core).collect()
}

#[test]
fn cores_that_were_verified_have_the_bases_that_they_wear() {
    let plan = sampled(plan(2), CORES);
    assert_eq!(plan.learnt_cores, [0, 32, 16, 48, 8, 40, 24, 56].map(CoreId));
    let mut target = target(worn_by_many(5));
    let map = run(&mut target, &plan);
    let llc = &map.levels[0];
    for (at, level) in map.levels.iter().enumerate() {
        assert_eq!((level.form, level.quality.len()), (Form::Pattern, usize::from(CORES)));
        assert_eq!(verified(level).len(), usize::from(CORES) - 8, "{:?}", map.missing);
        for core in 0..CORES {
            let share = right(&map, &target, core, at);
            assert!(share >= 0.95, "{} core {core}: {share}", level.level);
        }
        for quality in &level.quality {
            let explained = quality.verified.and_then(|verified| verified.explained);
            assert!(quality.r2_heldout.is_some() != explained.is_some(), "scored or verified");
            assert!(explained.is_none_or(|share| share > 0.9), "{explained:?}");
            assert!(quality.mean_ns.is_some());
        }
    }
    // Core 37 wears what no other does; all others wear what was learnt.
    let own: Vec<u16> = (0..CORES)
        .zip(&llc.quality)
        .filter(|(_, quality)| quality.verified.is_some_and(|verified| verified.own_base))
        .map(|(core, _)| core)
        .collect();
    assert_eq!(own, [37]);
    let said = map.missing.iter().find(|line| line.starts_with("LLC latency: 8 of 64 cores"));
    let said = said.expect("it is said");
    assert!(said.contains("(0-56:8), 56 were verified") && said.contains(" 1 of them"), "{said}");
}

#[test]
fn where_no_two_cores_see_alike_each_has_a_base_of_its_own() {
    let mut target = target(mesh(4));
    let map = run(&mut target, &sampled(plan(3), CORES));
    assert_eq!(map.levels[0].form, Form::Pattern, "{}", map.levels[0].reason);
    for core in 0..CORES {
        let share = right(&map, &target, core, 0);
        assert!(share >= 0.95, "core {core}: {share}");
    }
    let own = map.levels[0].quality.iter().filter_map(|quality| quality.verified);
    assert!(own.filter(|verified| verified.own_base).count() > 40);
}

/// On a ring each core sees almost what the next one sees, so bases are found while cores are verified that are more
/// like what earlier ones see.
#[test]
fn a_core_wears_of_all_bases_the_one_that_is_most_like_what_it_sees() {
    for forks in [false, true] {
        let spec = SyntheticSpec::ring_knc(7);
        let cores: Vec<CoreId> = (0..60).map(CoreId).collect();
        let sample = Sample::learnt(false);
        let plan = BlockPlan { levels: vec![Level::Dram], ..plan(7) };
        let plan = plan.learning(sample, &spec.description(), &cores);
        let mut target = target(spec);
        if forks {
            target = target.with_forks();
        }
        let map = run(&mut target, &plan);
        let [dram] = &map.levels[..] else { panic!("one level: {:?}", map.missing) };
        let sees = |core: u16| target.memory().truth_base(CoreId(core), Level::Dram).expect("one");
        let like = |core: u16, base: u16| {
            resemblance(&sees(core), &sees(dram.bases[usize::from(base)].core))
        };
        let bases = u16::try_from(dram.bases.len()).expect("few");
        assert!((8..50).contains(&bases), "some cores share bases, and others found some: {bases}");
        for (core, worn) in (0..60).zip(&dram.core_base) {
            let worn = like(core, worn.expect("every core has a base"));
            let best = (0..bases).map(|base| like(core, base)).fold(0.0, f64::max);
            assert!(worn > best - 0.01, "core {core}: {worn} of {best}");
        }
    }
}

#[test]
fn a_core_that_the_codes_do_not_hold_for_is_learnt() {
    let mut target = target(with_a_stranger(5));
    let map = run(&mut target, &sampled(plan(2), CORES));
    let llc = &map.levels[0];
    assert_eq!((llc.form, llc.classes), (Form::Pattern, 2), "{}: {:?}", llc.reason, map.missing);
    let quality = &llc.quality[41];
    assert!(
        quality.verified.is_none() && quality.r2_heldout.is_some_and(|r2| r2 > 0.9),
        "{quality:?}"
    );
    for core in [0, 5, 37, 41, 63] {
        let share = right(&map, &target, core, 0);
        assert!(share >= 0.95, "core {core}: {share}");
    }
    assert!(
        map.missing.iter().any(|line| line.contains("9 of 64 cores were learnt")),
        "{:?}",
        map.missing
    );
}

/// Wants an end once it was asked so often after it was wound up.
struct Wound<'c>(&'c Cell<u32>);

impl Watch for Wound<'_> {
    fn step(&mut self, _words: &str) {}

    fn keep_going(&self) -> bool {
        let left = self.0.get();
        self.0.set(if left == u32::MAX { left } else { left.saturating_sub(1) });
        left > 0
    }
}

/// Runs `then` on a level whose form was learnt from the sample.
fn learnt<T>(
    target: &mut dyn Target,
    watch: &mut dyn Watch,
    then: impl FnOnce(&mut LevelRun<'_>) -> T,
) -> T {
    let plan = sampled(plan(2), CORES);
    let mut run = LevelRun::new(target, &plan, Level::Llc, watch);
    let learners = run.learners.clone();
    run.look_and_learn(&learners).expect("nothing is refused");
    then(&mut run)
}

#[test]
fn cores_without_a_base_are_named() {
    let left = Cell::new(u32::MAX);
    learnt(&mut target(with_a_stranger(5)), &mut Wound(&left), |run| {
        let mut quality = vec![Default::default(); usize::from(CORES)];
        let strangers = run.verify_others(&mut quality).expect("nothing is refused");
        assert_eq!(strangers, [CoreId(41)]);
        assert_eq!((run.current[41], run.cut_short), (None, false));
        run.note_verified(&quality);
        let [all, unlike] = &run.notes[..] else { panic!("{:?}", run.notes) };
        assert!(all.contains("8 of 64 cores") && all.contains("55 were verified"), "{all}");
        assert!(unlike.starts_with("LLC latency: core 41 has no base: "), "{unlike}");
        run.notes.clear();
        let learners = run.learners.clone();
        for (core, base) in (0..CORES).zip(&mut run.current) {
            *base = base.filter(|_| learners.contains(&CoreId(core)));
        }
        // Caches and regions take turns, so it is not the last cores that there is no time for.
        left.set(20);
        let mut quality = vec![Default::default(); usize::from(CORES)];
        run.verify_others(&mut quality).expect("nothing is refused");
        assert!(run.cut_short);
        let bases = run.current.iter().filter(|base| base.is_some()).count();
        assert_eq!(bases, 8 + 20, "learnt, and verified in time");
        run.note_verified(&quality);
        let late = run.notes.iter().find(|line| line.ends_with("no time to verify them"));
        assert!(late.is_some_and(|line| line.contains("cores ")), "{:?}", run.notes);
    });
}

#[test]
fn where_all_cores_are_of_the_sample_nothing_is_changed_by_it() {
    for cores in [1, 2, 4] {
        let of = |plan: &BlockPlan| {
            let mut target = target(SyntheticSpec::emerald_rapids_like(12).with_cores(cores));
            let map = run(&mut target, plan);
            (map, target.seconds())
        };
        let (all, all_s) = of(&plan(9));
        let (found, found_s) = of(&sampled(plan(9), cores));
        assert_eq!(
            (&all.levels, &all.codes, &all.drift),
            (&found.levels, &found.codes, &found.drift)
        );
        assert_eq!((all.missing, all_s.to_bits()), (found.missing, found_s.to_bits()));
    }
}

#[test]
fn a_flat_machine_is_flat_for_all() {
    let mut spec = SyntheticSpec::flat(8);
    spec.wears = vec![0; usize::from(CORES)];
    let mut target = target(spec);
    let map = run(&mut target, &sampled(plan(5), CORES));
    for level in &map.levels {
        assert_eq!(level.form, Form::Flat, "{}", level.reason);
        assert!(level.core_base.iter().all(Option::is_some), "{:?}", map.missing);
        let truth = if level.level == "llc" { 70.0 } else { 300.0 };
        for base in level.core_base.iter().flatten() {
            let mean = level.bases[usize::from(*base)].patterns[0][0];
            assert!((f64::from(mean) - truth).abs() < 2.0, "{mean} instead of {truth}");
        }
    }
}

#[test]
fn where_no_form_holds_others_have_no_base_and_it_is_said() {
    let mut spec = SyntheticSpec::irregular(7);
    spec.wears = (0..CORES).map(|core| core % 28).collect();
    let map = run(&mut target(spec), &BlockPlan { max_seconds: 0.05, ..sampled(plan(4), CORES) });
    let llc = &map.levels[0];
    assert_eq!(llc.form, Form::PerLine, "{}", llc.reason);
    assert_eq!(llc.core_base.iter().filter(|base| base.is_some()).count(), 8);
    assert!(
        map.missing.iter().any(|line| line.contains("56") || line.contains("1-7")),
        "{:?}",
        map.missing
    );
}

#[test]
fn cores_at_the_same_time_get_the_bases_that_one_after_the_other_get() {
    let bases = |forks: bool| {
        let mut target = target(worn_by_many(5));
        if forks {
            target = target.with_forks();
        }
        learnt(&mut target, &mut Silent, |run| {
            let mut quality = vec![Default::default(); usize::from(CORES)];
            assert!(run.verify_others(&mut quality).expect("nothing is refused").is_empty());
            assert!(run.notes.is_empty(), "{:?}", run.notes);
            let base = |number: &Option<u16>| {
                run.bases[usize::from(number.expect("every core has a base"))].1.clone()
            };
            (run.width, run.current.iter().map(base).collect::<Vec<_>>())
        })
    };
    let ((one, alone), (width, together)) = (bases(false), bases(true));
    assert_eq!((one, width), (Some(1), Some(4)), "each has 32 pages of 128");
    // Two cores that were learnt may wear one base: it is twice in the dictionary.
    for (core, (alone, together)) in alone.iter().zip(&together).enumerate() {
        let alike = resemblance(alone, together);
        assert!(alike >= 0.98, "core {core}: {alike}");
    }
}

#[test]
fn cores_that_disturb_each_other_are_verified_one_after_the_other() {
    let inner = Box::new(target(worn_by_many(5)).with_forks());
    // Cores are slower while others time lines too.
    let slower = |cycles: Cycles| Cycles(cycles.0 + cycles.0 / 16);
    learnt(&mut InTheWay::of(inner, |line| line, slower), &mut Silent, |run| {
        let mut quality = vec![Default::default(); usize::from(CORES)];
        run.verify_others(&mut quality).expect("nothing is refused");
        assert_eq!((run.width, run.notes.len()), (Some(1), 1), "it is said: {:?}", run.notes);
        assert!(run.current.iter().all(Option::is_some));
    });
}

/// What a map of many cores costs, in virtual seconds of a machine whose loads take what they take on a Xeon.
#[allow(clippy::print_stdout, reason = "docs/method/block-latency.md has the figures")]
#[test]
#[ignore = "half a billion loads take minutes"]
fn what_many_cores_cost() {
    let print = |name: &str, cores: u16, plan: &BlockPlan| {
        let mut spec = SyntheticSpec::emerald_rapids_like(5);
        spec.wears = (0..cores).map(|core| core % 8).collect();
        let memory = SyntheticMemory::new(spec.with_pages(4096)).expect("a valid spec");
        let mut target = SyntheticTarget::new(memory);
        let map = run(&mut target, plan);
        let bases = map.levels.iter().flat_map(|level| &level.core_base);
        let without = bases.filter(|base| base.is_none()).count();
        let seconds = target.seconds();
        println!("{name}: {seconds:.1} s, {without} bases are missing; {:?}", map.missing);
    };
    for (name, plan) in [("full", BlockPlan::full(4096, 1)), ("quick", BlockPlan::quick(4096, 1))] {
        for cores in [2, 8] {
            print(&format!("{name}, {cores} cores, all learnt"), cores, &plan);
        }
        for cores in [64, 384] {
            let quick = name == "quick";
            let (machine, plan) = (machine(cores), plan.clone());
            let all: Vec<CoreId> = machine.core_ids().collect();
            let plan = plan.learning(Sample::learnt(quick), &machine, &all);
            let learnt = plan.learnt_cores.len();
            print(&format!("{name}, {cores} cores, {learnt} learnt"), cores, &plan);
        }
    }
}
