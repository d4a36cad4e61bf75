//! What is said of the described Xeon Phi, and of two synthetic machines whose truth is known, by an atlas that the
//! experiments measured on them.

use isochrone_atlas::Atlas;
use isochrone_atlas_store::contents::{Clock, Contents};
use isochrone_atlas_store::encode;
use isochrone_console::args::ColourChoice;
use isochrone_probe::bandwidth::{BandwidthOptions, BandwidthPlan, ModelTriad};
use isochrone_probe::region::{Mode, ModelRegions, RegionOptions, RegionPlan};
use isochrone_probe::{bandwidth, region};
use isochrone_sim::synthetic::{
    AddressHash, Geometry, RegionUnits, SyntheticMachine, SyntheticMemory, SyntheticSpec, Tables,
};

use super::figures::Number;
use super::*;

const CORES: u16 = 8;
/// Bytes of a line.
const LINE: f64 = 64.0;
const REGIONS: [RegionId; 2] = [RegionId(0), RegionId(1)];

/// What a region of a synthetic machine is in truth.
#[derive(Clone, Copy)]
struct Truth {
    ns: f64,
    gb_per_s: f64,
}

/// MCDRAM beside DDR4: the far one is the wide one.
const NEAR_AND_WIDE: [Truth; 2] =
    [Truth { ns: 147.0, gb_per_s: 90.0 }, Truth { ns: 170.0, gb_per_s: 400.0 }];
/// CXL beside DDR: the near one is the wide one.
const NEAR_IS_WIDE: [Truth; 2] =
    [Truth { ns: 90.0, gb_per_s: 100.0 }, Truth { ns: 200.0, gb_per_s: 60.0 }];

/// Two regions behind a controller each; cores differ by some cycles, and are at the first region.
fn spec(truth: [Truth; 2]) -> SyntheticSpec {
    let cycles = |core: u16, ns: f64| vec![2.0 * ns + f64::from(core); 2];
    let dram = |core: u16| truth.iter().map(|of| cycles(core, of.ns)).collect();
    let machine = SyntheticMachine {
        geometry: Geometry::Tables(Tables {
            llc_cycles: vec![vec![70.0; 2]; usize::from(CORES)],
            dram_cycles: (0..CORES).map(dram).collect(),
            home_cycles: vec![0.0; 2],
        }),
        llc_base_cycles: Some(0.0),
        dram_base_cycles: 0.0,
    };
    let mut spec = SyntheticSpec::from_machine("two regions", 5, machine);
    spec.slice_hash = AddressHash::Interleave;
    spec.controller_hash = AddressHash::Interleave;
    let units = |(unit, of): (u16, &Truth)| RegionUnits {
        slices: vec![unit],
        controllers: vec![unit],
        gb_per_s: Some(of.gb_per_s),
    };
    spec.regions = (0..).zip(&truth).map(units).collect();
    // A core alone fills no region, all of them each.
    spec.transfers.core_gb_per_s = 55.0;
    spec.with_pages(256).with_small_pages()
}

fn cores() -> Vec<CoreId> {
    (0..CORES).map(CoreId).collect()
}

/// What the experiments find on such a machine.
fn measured(spec: &SyntheticSpec) -> Contents {
    let memory = || SyntheticMemory::new(spec.clone()).expect("it is sound");
    let (regions, lines): (Vec<_>, Vec<_>) = ModelRegions::lines(&memory()).into_iter().unzip();
    assert_eq!(regions, REGIONS);
    let options = RegionOptions::new(Mode::OneClass { lines }, 11);
    let plan = RegionPlan::new(regions.len(), options).expect("there are lines");
    let mut target = ModelRegions::new(memory(), &regions, &plan.orders);
    let latency = region::run(&mut target, &plan, &mut || false).expect("it is measured");
    let cores_of = [(REGIONS[0], cores()), (REGIONS[1], Vec::new())];
    let plan = BandwidthPlan::new(&cores_of, BandwidthOptions::new(12));
    let mut triad = ModelTriad::new(memory(), 0.01, 13);
    let found = bandwidth::run(&mut triad, &plan, &mut || false).expect("it is measured");
    let clock = Clock { hz: spec.timer.hz, tick_cycles: 1, overhead_cycles: 0.0 };
    Contents {
        regions: vec![latency.map],
        bandwidth: found.bandwidth,
        ..Contents::begun(Reading::Simulated, spec.description(), clock)
    }
}

/// What is said of it, for some cores.
fn set(truth: [Truth; 2], cores: &[CoreId]) -> Set {
    let contents = measured(&spec(truth));
    let bytes = encode(&contents).expect("a sound atlas");
    Set::of(&Atlas::open(&bytes).expect("just encoded"), &contents.machine, cores)
}

/// The same, for whoever shows it.
pub(crate) fn near_and_wide() -> Set {
    set(NEAR_AND_WIDE, &cores())
}

/// The first number of lines with which `other` moves more than each of `these` in truth, found by trying.
fn tried(other: Truth, these: &[Truth]) -> f64 {
    let moves = |of: &Truth, lines: f64| (LINE * lines / of.ns).min(of.gb_per_s);
    let better = |lines: &f64| these.iter().all(|one| moves(&other, *lines) > moves(one, *lines));
    (1..1_000_000).map(|n| f64::from(n) / 100.0).find(better).expect("they cross")
}

/// The truth that cores see, from what the memory says of itself.
fn seen(truth: [Truth; 2]) -> [Truth; 2] {
    let spec = spec(truth);
    let hz = spec.timer.hz;
    let memory = SyntheticMemory::new(spec).expect("it is sound");
    REGIONS.map(|region| {
        let ns = |core| memory.truth_region_latency(core, region).expect("it is there") * 1e9 / hz;
        let gb_per_s = memory.truth_bandwidth(&cores(), region).expect("it is there");
        Truth { ns: cores().into_iter().map(ns).sum::<f64>() / f64::from(CORES), gb_per_s }
    })
}

fn by_turns([one, other]: [Truth; 2]) -> Truth {
    let gb_per_s = 2.0 * one.gb_per_s.min(other.gb_per_s);
    Truth { ns: f64::midpoint(one.ns, other.ns), gb_per_s }
}

fn assert_near(found: Number, truth: f64) {
    assert!((found.value / truth - 1.0).abs() < 0.02, "{found:?}, in truth {truth}");
    assert!(found.lo <= found.value && found.value <= found.hi, "{found:?}");
}

#[test]
fn the_wide_region_takes_over_where_it_does_in_truth() {
    let (found, truth) = (near_and_wide(), seen(NEAR_AND_WIDE));
    assert!((truth[0].ns - 148.75).abs() < 0.1 && truth[1].gb_per_s == 400.0, "cores are 0 to 7");
    assert_eq!((found.latency_bound, found.bandwidth_bound), (Some(0), Some(1)));
    assert_near(found.crossing_lines.expect("they cross"), tried(truth[1], &truth[..1]));
    let regions: Vec<&[u16]> = found.with_turns.iter().map(|step| &step.regions[..]).collect();
    assert_eq!(regions, [&[0][..], &[0, 1], &[1]]);
    let mixed = by_turns(truth);
    assert_near(found.with_turns[1].from_lines, tried(mixed, &truth));
    assert_near(found.with_turns[2].from_lines, tried(truth[1], &[truth[0], mixed]));
}

#[test]
fn where_the_near_region_is_the_wide_one_only_both_together_move_more() {
    let (found, truth) = (set(NEAR_IS_WIDE, &cores()), seen(NEAR_IS_WIDE));
    assert_eq!((found.latency_bound, found.bandwidth_bound), (Some(0), Some(0)));
    assert!(found.crossing_lines.is_none() && found.separate.len() == 1);
    assert_eq!((found.with_turns.len(), &found.with_turns[1].regions[..]), (2, &[0, 1][..]));
    assert_near(found.with_turns[1].from_lines, tried(by_turns(truth), &truth));
}

#[test]
fn a_core_alone_fills_no_region_and_the_near_one_is_for_all() {
    let found = set(NEAR_AND_WIDE, &[CoreId(3)]);
    assert_eq!((found.latency_bound, found.bandwidth_bound), (Some(0), Some(0)));
    // Two cores were not measured together: no more than both do alone.
    let pair = set(NEAR_AND_WIDE, &[CoreId(0), CoreId(5)]);
    let wide = pair.regions[1].gb_per_s.expect("it follows");
    assert!((wide.value / 110.0 - 1.0).abs() < 0.02 && wide.word() == "predicted", "{wide:?}");
}

fn described(name: &str, cores: Option<&[u16]>) -> Result<Figures> {
    let machine = find_machine(name).expect("it is bundled");
    let asked = cores.map(|cores| cores.iter().copied().map(CoreId).collect());
    told(asked.is_some(), figures(&Described(&machine), &machine, asked)?, NOT_DESCRIBED)
}

#[test]
fn on_the_xeon_phi_ddr_is_for_latency_and_mcdram_for_bandwidth() {
    let found = described("xeon-phi-7285-all2all", None).expect("it is described");
    let set = &found.sets[0];
    assert_eq!((found.sets.len(), set.cores.len()), (1, 68));
    let of = |at: usize| (set.regions[at].latency_ns, set.regions[at].gb_per_s);
    let ((Some(ddr_ns), Some(ddr_gb)), (Some(mcdram_ns), Some(_))) = (of(0), of(1)) else {
        panic!("{set:?}")
    };
    // As the poster prints them, from 143.3 to 147.7 and from 167.1 to 170.3.
    assert!(143.2 < ddr_ns.lo && ddr_ns.hi < 147.7 && mcdram_ns.lo > 167.0 && mcdram_ns.hi < 170.4);
    assert_eq!((set.latency_bound, set.bandwidth_bound), (Some(0), Some(1)));
    let crossing = set.crossing_lines.expect("they cross");
    assert!((crossing.value - ddr_gb.value * mcdram_ns.value / LINE).abs() < 1e-9);
    assert!((crossing.lo - 70.0 * mcdram_ns.lo / LINE).abs() < 1e-9, "{crossing:?}");
    assert!((crossing.hi - 115.2 * mcdram_ns.hi / LINE).abs() < 1e-9, "{crossing:?}");
    assert_eq!(crossing.word(), "predicted");
    let terminal = Terminal { width: 200, ..Terminal::detect(ColourChoice::Never) };
    let text = words::text(&found, terminal);
    for words in [
        "wait for one another: region 0\n",
        "region 1 from 237 lines [18",
        "a core",
        "assumed: region 0 bandwidth: 90 GB/s, 70 to 115.2; not in the poster",
        "assumed: region 1 bandwidth: 400 GB/s, 300 to 500",
        "assumed: region 0 is all of DDR4",
        "Little's law",
    ] {
        assert!(text.contains(words), "no {words:?} in\n{text}");
    }
}

#[test]
fn a_machine_of_many_sockets_is_asked_for_each() {
    let found = described("bullion-s-16s", None).expect("it is described");
    assert_eq!(found.sets.len(), 17);
    let [_, (what, regions), _] = found.sets[0].unknown();
    assert_eq!(regions, (0..16).collect::<Vec<u16>>(), "nobody published {what}");
    let socket = &found.sets[3];
    assert_eq!((socket.latency_bound, socket.bandwidth_bound), (Some(2), Some(2)));
    // Its own memory and that of the other socket of its module.
    assert_eq!(socket.with_turns[1].regions, [2, 3]);
    let text = words::text(&found, Terminal::detect(ColourChoice::Never));
    assert!(text.contains("--cores LIST, or --json"), "{text}");
    let left_out = "left out, since what these cores move together is not known: regions 0-15";
    assert!(text.replace("\n  ", " ").contains(left_out), "{text}");
    let some = described("bullion-s-16s", Some(&[0, 1, 2])).expect_err("no such triad").to_string();
    assert!(some.contains("name all cores of a region"), "{some}");
}

#[test]
fn what_cannot_be_said_is_said_with_its_reason() {
    let one = described("xeon-phi-5110p", None).expect("one line");
    let text = words::text(&one, Terminal::detect(ColourChoice::Never));
    assert!(text.ends_with(ONE_REGION) && !text.contains('\n') && one.sets.is_empty(), "{text}");
    for name in ["xeon-e5-2660-2s", "xeon-phi-7285-quadrant", "xeon-phi-7285-snc4"] {
        let refused = described(name, None).expect_err("no bandwidth is described").to_string();
        assert!(refused.contains("`region 0 latency`"), "{refused}");
    }
    let refused = described("xeon-phi-7285-all2all", Some(&[0, 70])).expect_err("no such core");
    assert!(refused.is::<WrongUsage>() && refused.to_string().contains("no cores 70, it has 0-67"));
}
