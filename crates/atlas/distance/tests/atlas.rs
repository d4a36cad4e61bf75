//! Distances as an atlas file has them: written, opened as any reader would, and asked.

#![allow(clippy::tests_outside_test_module, reason = "an integration test is one")]

use isochrone_atlas::Atlas;
use isochrone_atlas_store::contents::{Bandwidth, Contents, Interaction, RegionMap};
use isochrone_atlas_store::encode;
use isochrone_atlas_store::made::{self, cell, lines};
use isochrone_distance::{
    Described, Distances, FarKind, Fill, Term, bandwidth_of, common_level, groups, latency_of,
    memory, order,
};
use isochrone_machine::{Core, Cost, Grid, Interval, Machine, Region, Value};
use isochrone_units::{CoreId, Reading, RegionId};

const CORES: usize = 8;

/// Eight cores, evens near one another and odds too; the pair of 0 and 2, and that of 0 and 1, were not
/// measured.
fn contents() -> Contents {
    let transfer_ns = |a: u16, b: u16| {
        let missing = [(0, 2), (0, 1)].contains(&(a.min(b), a.max(b)));
        let near = if a % 2 == b % 2 { 30.0 } else { 120.0 };
        (!missing).then_some(near + f64::from(a + b) / 10.0)
    };
    let mut contents = lines(8, transfer_ns, &[("left-shared", -2.5)]);
    let latencies = (0..16).map(|at| Some(cell(if at % 4 < 2 { 90.0 } else { 140.0 }))).collect();
    contents.regions.push(RegionMap::of_chase(
        "random",
        1 << 28,
        (0..8).map(CoreId),
        [0, 1].map(RegionId),
        latencies,
    ));
    let bandwidth =
        |cores: &[u16], gb| Bandwidth { cores: cores.into(), region: 1, gb_per_s: cell(gb) };
    contents.bandwidth = vec![bandwidth(&[4], 12.0), bandwidth(&[0, 1, 2, 3, 4, 5, 6, 7], 40.0)];
    contents
}

#[test]
fn a_measured_pair_is_itself_and_another_costs_what_its_group_does() {
    let bytes = encode(&contents()).unwrap();
    let atlas = Atlas::open(&bytes).unwrap();
    let own = atlas.line_costs(CoreId(3), CoreId(4)).unwrap();
    assert_eq!(
        (own.transfer.reading, own.transfer.lo),
        (Reading::Measured, own.transfer.value - 1.0)
    );
    assert!((own.transfer.value - 120.7).abs() < 1e-4);
    assert_eq!(own.start.unwrap().value, 10.0);
    assert_eq!(own.line.unwrap().reading, Reading::Measured);
    assert!(own.congestion.is_none());
    assert_eq!(
        own.memory.unwrap().value,
        90.0,
        "no page was decoded: a chase in core 4's nearest region"
    );
    for (a, b, ns) in [(0, 2, 30.0), (2, 0, 30.0), (0, 1, 120.0)] {
        let other = atlas.line_costs(CoreId(a), CoreId(b)).unwrap();
        assert_eq!(other.transfer.reading, Reading::Predicted, "{a} {b}");
        assert!((other.transfer.value - ns).abs() < 2.0, "{a} {b}: {:?}", other.transfer);
        assert_eq!(other.line.unwrap().reading, Reading::Predicted);
    }
    assert!(atlas.line_costs(CoreId(1), CoreId(1)).is_none());
    assert!(atlas.line_costs(CoreId(0), CoreId(99)).is_none());
}

#[test]
fn groups_orders_regions_and_terms_come_from_the_file() {
    let bytes = encode(&contents()).unwrap();
    let atlas = Atlas::open(&bytes).unwrap();
    assert_eq!(atlas.levels(), 2);
    assert_eq!(common_level(&atlas, CoreId(1), CoreId(7)), Some(0));
    assert_eq!(common_level(&atlas, CoreId(1), CoreId(6)), Some(1));
    let (cores, mut out) = ([5, 2, 1, 99].map(CoreId), [9; 4]);
    assert_eq!(groups(&atlas, 0, &cores, &mut out), 3);
    assert_eq!(out, [0, 1, 0, 2]);
    assert_eq!(groups(&atlas, 2, &cores, &mut out), 0, "there is no third level");
    let mut cores: Vec<CoreId> = (0..8).map(CoreId).collect();
    order(&atlas, Fill::Compact, &mut cores);
    assert_eq!(cores, [0, 2, 4, 6, 1, 3, 5, 7].map(CoreId));
    let region = atlas.region(CoreId(4), RegionId(1)).unwrap();
    assert!((region.latency_ns.value - 90.0).abs() < 60.0);
    assert_eq!(region.gb_per_s.unwrap().value, 12.0);
    assert_eq!(region.gb_per_s_together.unwrap().value, 40.0);
    assert!(atlas.region(CoreId(3), RegionId(1)).unwrap().gb_per_s.is_none());
    let together = atlas.bandwidth(&[7, 6, 5, 4, 3, 2, 1, 0].map(CoreId), RegionId(1));
    assert_eq!(together.unwrap().value, 40.0);
    assert!(atlas.bandwidth(&[0, 1].map(CoreId), RegionId(1)).is_none());
    assert!(atlas.bandwidth(&[CoreId(4)], RegionId(0)).is_none());
    let far = atlas.far(CoreId(4), FarKind::Region(RegionId(1))).unwrap();
    assert_eq!(far.latency_ns, region.latency_ns);
    assert!(atlas.far(CoreId(4), FarKind::File).is_none());
    assert_eq!(Distances::term(&atlas, Term::LeftShared).unwrap().value, -2.5);
    assert!(Distances::term(&atlas, Term::RfoSharer).is_none());
}

#[test]
fn what_one_more_reader_costs_comes_from_the_most_that_read_a_line_at_once() {
    let together = |n: u32, ns: Option<f64>| Interaction {
        kind: "contention".into(),
        n,
        ns: ns.map(cell),
        note: String::new(),
    };
    let asked = |interactions: Vec<Interaction>| {
        let bytes = encode(&Contents { interactions, ..contents() }).unwrap();
        Distances::term(&Atlas::open(&bytes).unwrap(), Term::Reader).map(|cost| cost.value)
    };
    // One of five waits for two others in the mean.
    let measured = [(1, Some(100.0)), (2, Some(180.0)), (5, Some(140.0)), (8, None)];
    assert_eq!(asked(measured.map(|(n, ns)| together(n, ns)).into()), Some(20.0));
    assert_eq!(asked(vec![together(1, Some(100.0)), together(2, None)]), None);
    assert_eq!(asked(vec![together(4, Some(100.0))]), None, "nothing to hold it against");
    assert_eq!(asked(Vec::new()), None);
}

#[test]
fn only_the_atlas_changes_and_the_order_does() {
    let mut other = contents();
    for (at, cell) in other.transfers[0].latency_ns.cells.iter_mut().enumerate() {
        let near = at / CORES / 4 == at % CORES / 4;
        *cell = cell.map(|_| made::cell(if near { 30.0 } else { 120.0 }));
    }
    let bytes = encode(&other).unwrap();
    let atlas = Atlas::open(&bytes).unwrap();
    let mut cores: Vec<CoreId> = (0..8).map(CoreId).collect();
    order(&atlas, Fill::Spread, &mut cores);
    assert_eq!(cores, [0, 4, 1, 5, 2, 6, 3, 7].map(CoreId));
}

#[test]
fn a_described_machine_says_what_its_text_says() {
    let core = |id, package| Core { id, package: Some(package), ..Core::default() };
    let mut machine =
        Machine { cores: vec![core(0, 0), core(1, 1), core(2, 0)], ..Machine::default() };
    let described = Described(&machine);
    assert!(described.line_costs(CoreId(0), CoreId(1)).is_none(), "it states no costs");
    assert_eq!(described.levels(), 2);
    assert_eq!(common_level(&described, CoreId(0), CoreId(2)), Some(0));
    assert_eq!(common_level(&described, CoreId(0), CoreId(1)), Some(1));
    machine.costs.push(isochrone_machine::Cost {
        name: "R_Q".into(),
        what: "x".into(),
        value: Ok(Value::assumed(94.0, "ns", "x").within(Interval::between(80.0, 120.0))),
    });
    let described = Described(&machine);
    let costs = described.line_costs(CoreId(0), CoreId(1)).unwrap().transfer;
    assert_eq!((costs.value, costs.lo, costs.hi), (94.0, 80.0, 120.0));
    assert_eq!(costs.reading, Reading::Predicted, "nobody published an assumed number");
    assert!(described.line_costs(CoreId(0), CoreId(2)).is_none());
}

#[test]
fn cores_that_were_not_measured_together_move_no_more_than_all_do_and_than_each_alone() {
    let mut contents = contents();
    let alone = |core| Bandwidth { cores: vec![core], region: 1, gb_per_s: cell(12.0) };
    contents.bandwidth.extend([1, 2, 3].map(alone));
    let bytes = encode(&contents).unwrap();
    let atlas = Atlas::open(&bytes).unwrap();
    let of = |cores: &[u16]| {
        let cores: Vec<CoreId> = cores.iter().copied().map(CoreId).collect();
        bandwidth_of(&atlas, &cores, RegionId(1)).map(|found| (found.value, found.reading))
    };
    assert_eq!(of(&[4]), Some((12.0, Reading::Measured)));
    assert_eq!(of(&[0, 1, 2, 3, 4, 5, 6, 7]), Some((40.0, Reading::Measured)));
    assert_eq!(of(&[1, 2]), Some((24.0, Reading::Predicted)));
    assert_eq!(of(&[1, 2, 3, 4]), Some((40.0, Reading::Predicted)));
    assert_eq!(of(&[0, 1]), Some((40.0, Reading::Predicted)), "nobody measured core 0 alone");
    assert_eq!(of(&[]), None);
    let mean = latency_of(&atlas, &[CoreId(0), CoreId(1)], RegionId(1)).unwrap();
    assert!((mean.value - 115.0).abs() < 1.0, "90 and 140: {mean:?}");
    assert!(memory(&atlas, &[CoreId(0)], RegionId(0)).is_none(), "its bandwidth is not known");
}

fn known(name: &str, number: f64) -> Cost {
    Cost { name: name.into(), what: "x".into(), value: Ok(Value::published(number, "x", "x")) }
}

#[test]
fn a_region_is_described_by_its_number_and_by_a_grid() {
    let core = |id| Core { id, ..Core::default() };
    let region = |id| Region { id, cores: vec![0, 1, 2], ..Region::default() };
    let grid = Grid {
        unit: "ns".into(),
        region: Some(12),
        cores: vec![Some(0), Some(1), Some(2)],
        cells: vec![Some(160.0), Some(170.0), None],
        ..Grid::default()
    };
    let machine = Machine {
        cores: [0, 1, 2].map(core).to_vec(),
        regions: [0, 12].map(region).to_vec(),
        costs: [
            ("region 0 latency", 100.0),
            ("region 0 bandwidth", 90.0),
            ("region 12 bandwidth", 300.0),
        ]
        .map(|(name, number)| known(name, number))
        .to_vec(),
        grids: vec![grid],
        ..Machine::default()
    };
    let described = Described(&machine);
    let ns = |core, region| {
        described.region(CoreId(core), RegionId(region)).map(|found| found.latency_ns)
    };
    assert_eq!(ns(1, 0).map(|ns| (ns.value, ns.reading)), Some((100.0, Reading::Published)));
    assert_eq!(ns(1, 12).map(|ns| (ns.value, ns.reading)), Some((170.0, Reading::Published)));
    let unreadable = ns(2, 12).unwrap();
    assert_eq!((unreadable.value, unreadable.lo, unreadable.hi), (165.0, 160.0, 170.0));
    assert_eq!(unreadable.reading, Reading::Predicted);
    assert!(ns(1, 1).is_none() && ns(3, 0).is_none(), "neither is there");
    let all = [2, 1, 0].map(CoreId);
    assert_eq!(described.bandwidth(&all, RegionId(12)).map(|found| found.value), Some(300.0));
    assert!(described.bandwidth(&all[1..], RegionId(12)).is_none(), "that is of all cores");
    let part = bandwidth_of(&described, &all[1..], RegionId(12)).unwrap();
    assert_eq!((part.value, part.reading), (300.0, Reading::Predicted));
}

#[test]
fn a_region_is_described_by_how_far_its_cores_are() {
    let at = |id: u16| Core { id, region: id / 2, module: Some(id / 4), ..Core::default() };
    let region = |id: u16| Region { id, cores: vec![2 * id, 2 * id + 1], ..Region::default() };
    let names = ["local", "near", "far"];
    let costs = (0..).zip(names).flat_map(|(nth, name)| {
        let number = f64::from(nth + 1) * 100.0;
        [
            known(&format!("{name} latency"), number),
            known(&format!("{name} bandwidth"), 1e4 / number),
        ]
    });
    let machine = Machine {
        cores: (0..8).map(at).collect(),
        regions: (0..4).map(region).collect(),
        costs: costs.collect(),
        ..Machine::default()
    };
    let described = Described(&machine);
    let (socket, apart) = ([2, 3].map(CoreId), [1, 2].map(CoreId));
    for (region, ns, gb) in [(1, 100.0, 100.0), (0, 200.0, 50.0), (2, 300.0, 1e4 / 300.0)] {
        let found = memory(&described, &socket, RegionId(region)).unwrap();
        assert_eq!((found.latency_ns.value, found.gb_per_s.value), (ns, gb), "{region}");
    }
    assert!(
        memory(&described, &apart, RegionId(1)).is_none(),
        "nobody published it of two sockets"
    );
    assert!(memory(&described, &socket[..1], RegionId(1)).is_none(), "nor of one core");
}
