//! The bundled machines against the numbers that the papers print.

#[cfg(test)]
mod tests {
    use isochrone_host::find_machine;
    use isochrone_machine::{Grid, Interconnect, Machine, Place, RegionKind, RingStop};
    use isochrone_units::{CoreId, RegionId};

    fn machine(name: &str) -> Machine {
        find_machine(name).unwrap_or_else(|error| panic!("{error}"))
    }

    fn known(machine: &Machine, name: &str) -> f64 {
        let cost = machine.cost(name).unwrap_or_else(|| panic!("no cost {name}"));
        let known = cost.known();
        known.unwrap_or_else(|| panic!("{name} must be published: {:?}", cost.value)).number
    }

    fn caveat(machine: &Machine, words: &str) -> String {
        let all = machine.caveats();
        all.iter()
            .find(|caveat| caveat.contains(words))
            .unwrap_or_else(|| panic!("no caveat says {words:?} in {all:#?}"))
            .clone()
    }

    fn read(grid: &Grid, core: u16) -> Option<f64> {
        grid.value_of(CoreId(core))
    }

    #[test]
    fn cla_section_2_1_and_table_1() {
        let machine = machine("xeon-e5-2660-2s");
        let latencies = ["R_L", "R_R", "R_Q", "R_I", "R_QI"].map(|name| known(&machine, name));
        assert_eq!(latencies, [2.3, 35.0, 94.0, 70.0, 107.0]);
        let row = |place: &str| {
            ["q", "o", "c", "R2"].map(|name| known(&machine, &format!("{place} {name}")))
        };
        assert_eq!(row("intra"), [63.4, 11.1, 0.0, 0.8]);
        assert_eq!(row("inter"), [180.65, 7.5, 3.0, 0.91]);
        assert_eq!(machine.cores.len(), 16);
        let sizes = [1, 2, 3].map(|level| machine.cache(CoreId(9), level).and_then(|c| c.bytes));
        assert_eq!(sizes, [Some(32 << 10), Some(256 << 10), Some(20 << 20)]);
        let llc = machine.last_level_cache(CoreId(9)).expect("an L3");
        assert_eq!(llc.shared_by, (8..16).collect::<Vec<u16>>());
        caveat(&machine, "size of regions 0-1 is unknown");
        caveat(&machine, "cores 0-7 are on socket 0");
    }

    #[test]
    fn bullion_table_2() {
        let machine = machine("bullion-s-16s");
        let row = |name: &str| {
            let cost = machine.cost(name).expect("in the table");
            let value = cost.known().unwrap_or_else(|| panic!("{name} is published"));
            assert_eq!(value.source, "caheny18, Table 2");
            (value.number, value.interval.low, value.interval.high)
        };
        assert_eq!(row("local latency"), (125.6, Some(124.0), Some(127.0)));
        assert_eq!(row("near latency"), (178.0, Some(177.0), Some(180.0)));
        assert_eq!(row("far latency"), (416.0, Some(410.0), Some(428.0)));
        assert_eq!(row("local bandwidth"), (41.3, Some(41.1), Some(41.6)));
        assert_eq!(row("near bandwidth"), (25.0, Some(24.5), Some(25.1)));
        assert_eq!(row("far bandwidth"), (4.6, Some(4.4), Some(4.8)));
        assert_eq!(known(&machine, "BCS bandwidth"), 275.0);
        assert_eq!((machine.cores.len(), machine.regions.len()), (288, 16));
        assert_eq!(machine.memory_bytes, Some(8 << 40));
        assert_eq!(machine.last_level_cache(CoreId(287)).and_then(|c| c.bytes), Some(45 << 20));
        for (from, to) in (0..16).flat_map(|from| (0..16).map(move |to| (from, to))) {
            let expected = match (from == to, from / 2 == to / 2) {
                (true, _) => 10,
                (false, true) => 15,
                (false, false) => 40,
            };
            assert_eq!(machine.distance(RegionId(from), RegionId(to)), Some(expected));
        }
        let core = machine.core(CoreId(287)).expect("the last core");
        assert_eq!((core.region, core.package, core.module), (15, Some(15), Some(7)));
        assert!(caveat(&machine, "BCS directory").contains("swept from 1300000"));
    }

    #[test]
    fn knights_corner_has_assumed_ring_costs_with_a_range() {
        let machine = machine("xeon-phi-5110p");
        assert_eq!((machine.cores.len(), machine.controllers.len()), (60, 8));
        assert_eq!(machine.directories, Some(64));
        assert_eq!(known(&machine, "clock"), 1.2);
        let sizes = [1, 2].map(|level| machine.cache(CoreId(59), level).and_then(|c| c.bytes));
        assert_eq!(sizes, [Some(32 << 10), Some(512 << 10)]);
        assert_eq!(machine.region(RegionId(0)).and_then(|region| region.bytes), Some(8 << 30));
        for name in ["ring hop", "directory lookup", "memory access"] {
            let cost = machine.cost(name).expect("assumed");
            let (low, high) = cost.sweep().expect("a range");
            assert!(cost.assumed().is_some() && low < high, "{cost:?}");
            assert!(caveat(&machine, name).contains(&format!("swept from {low} to {high}")));
        }
        caveat(&machine, "order of the ring's stops is assumed");
        let Some(Interconnect::Ring { bidirectional: true, stops, .. }) = &machine.interconnect
        else {
            panic!("a bidirectional ring: {:?}", machine.interconnect)
        };
        let count = |kind: fn(&RingStop) -> bool| stops.iter().filter(|stop| kind(stop)).count();
        assert_eq!(count(|stop| matches!(stop, RingStop::Core(_))), 60);
        assert_eq!(count(|stop| matches!(stop, RingStop::Directory(_))), 64);
        assert_eq!(count(|stop| matches!(stop, RingStop::Controller(_))), 8);
    }

    /// Places, unreadable cells and printed labels of one SNC4 picture.
    fn check_snc4(grid: &Grid, unreadable: &[u16], extremes: (f64, f64), delta: f64) {
        assert_eq!((grid.drawn(), grid.columns), (68, Some(12)));
        let mut missing = grid.unreadable();
        missing.sort_unstable();
        assert_eq!(missing, unreadable, "{}", grid.name);
        assert_eq!(grid.extremes(&[]), Some(extremes));
        let labels = &grid.labels[0];
        let (min, max) = (labels.min.expect("printed"), labels.max.expect("printed"));
        assert_eq!(labels.delta, Some(delta));
        // The labels are swapped in print: "min" minus "max" is delta.
        assert!((min - max - delta).abs() < 0.05, "{min} - {max} is not {delta}");
        assert!(labels.are_swapped(None));
    }

    #[test]
    fn snc4_grids_as_the_text_holds_them() {
        let machine = machine("xeon-phi-7285-snc4");
        let mcdram = machine.grid("snc4-mcdram").expect("drawn");
        let ddr4 = machine.grid("snc4-ddr4").expect("drawn");
        let lost_mcdram: Vec<u16> = [8, 9, 14, 15, 18, 19, 20, 26, 27, 34]
            .into_iter()
            .chain(36..=52)
            .chain([54, 56, 66])
            .collect();
        check_snc4(mcdram, &lost_mcdram, (161.2, 176.7), 15.5);
        let lost_ddr4 = [0, 1, 4, 5, 13, 14, 15, 18, 19, 26, 27, 34, 49, 54, 55, 60, 61, 64];
        check_snc4(ddr4, &lost_ddr4, (137.3, 154.4), 17.4);
        assert_eq!((read(mcdram, 4), read(mcdram, 33)), (Some(161.2), Some(170.9)));
        assert_eq!((read(mcdram, 67), read(mcdram, 65)), (Some(176.7), Some(175.7)));
        assert_eq!((read(ddr4, 3), read(ddr4, 38)), (Some(154.4), Some(151.3)));
        assert_eq!((read(ddr4, 51), read(ddr4, 17)), (Some(141.8), Some(137.3)));
        assert!(caveat(&machine, "snc4-mcdram: 30 of 68").contains("36-52"));
        caveat(&machine, "snc4-ddr4: 18 of 68");
        caveat(&machine, "snc4-mcdram: the printed labels min and max are swapped");
        caveat(&machine, "snc4-ddr4: the printed labels min and max are swapped");
    }

    #[test]
    fn every_snc4_core_has_one_place_and_numbers_ascend_by_columns_of_tiles() {
        let machine = machine("xeon-phi-7285-snc4");
        let place = |core| machine.core(CoreId(core)).and_then(|core| core.place);
        assert_eq!(place(33), Some(Place { x: 0.0, y: 0.0 }));
        assert_eq!(place(38), Some(Place { x: 11.0, y: 6.0 }));
        assert!(machine.cores.iter().all(|core| core.place.is_some()));
        let tile = |core| place(core).map(|place| (place.x / 2.0).floor());
        for first in (0..66).filter(|&core| core != 34) {
            assert!(tile(first) >= tile(first + 2) || first + 2 == 36 || first + 2 == 37);
        }
    }

    #[test]
    fn all2all_and_quadrant_are_mostly_unreadable_and_say_so() {
        let all2all = machine("xeon-phi-7285-all2all");
        let mcdram = all2all.grid("all2all-mcdram").expect("drawn");
        assert_eq!((mcdram.drawn(), mcdram.unreadable().len(), mcdram.columns), (68, 58, None));
        assert_eq!((read(mcdram, 53), read(mcdram, 0)), (Some(170.2), Some(170.3)));
        let ddr4 = all2all.grid("all2all-ddr4").expect("drawn");
        assert_eq!(ddr4.unreadable().len(), 56);
        assert_eq!((read(ddr4, 53), read(ddr4, 28)), (Some(147.5), Some(143.6)));
        for (grid, min, max, delta) in [
            (mcdram, 170.317_558, 167.061_677, 3.255_881),
            (ddr4, 147.669_091, 143.260_333, 4.408_758),
        ] {
            let labels = &grid.labels[0];
            assert_eq!((labels.min, labels.max, labels.delta), (Some(min), Some(max), Some(delta)));
            assert!((min - max - delta).abs() < 2e-6);
        }
        caveat(&all2all, "all2all-mcdram: 58 of 68");
        assert_eq!((ddr4.region, mcdram.region), (Some(0), Some(1)));
        for (name, number) in [("region 0 bandwidth", 90.0), ("region 1 bandwidth", 400.0)] {
            let cost = all2all.cost(name).expect("it is there");
            let assumed = cost.assumed().expect("the poster does not say it");
            let (low, high) = cost.sweep().expect("it has a range");
            assert!(low < number && number < high && assumed.number == number, "{cost:?}");
            caveat(&all2all, &format!("{name} (triad of all cores together"));
        }
        let quadrant = machine("xeon-phi-7285-quadrant");
        for grid in &quadrant.grids {
            assert_eq!((grid.drawn(), grid.unreadable().len()), (68, 68));
            caveat(&quadrant, &format!("{}: 68 of 68", grid.name));
            caveat(&quadrant, &format!("{}: the printed min is unreadable", grid.name));
        }
        assert_eq!(quadrant.grids.len(), 2);
        for machine in [all2all, quadrant] {
            assert_eq!(machine.regions.iter().filter(|r| r.kind == RegionKind::Mcdram).count(), 1);
            assert!(machine.cores.iter().all(|core| core.place.is_none()));
        }
    }

    #[test]
    fn epyc_has_96_of_128_cells() {
        let machine = machine("epyc-7702-2s-nps4");
        let grid = machine.grid("nps4-ddr4").expect("drawn");
        assert_eq!((grid.drawn(), grid.unreadable().len()), (128, 32));
        let missing = caveat(&machine, "nps4-ddr4: 32 of 128");
        assert!(missing.ends_with("0-7,16-23,64-71,80-87"), "{missing}");
        assert_eq!((read(grid, 9), read(grid, 104)), (Some(140.7), Some(250.2)));
        assert_eq!((read(grid, 127), read(grid, 46)), (Some(276.3), Some(164.6)));
        let sockets: Vec<Vec<u16>> = vec![(0..64).collect(), (64..128).collect()];
        assert_eq!(grid.extremes(&sockets[0]), Some((140.7, 171.0)));
        assert_eq!(grid.extremes(&sockets[1]), Some((250.2, 276.7)));
        let printed = grid.labels.iter().map(|labels| (labels.min, labels.max, labels.delta));
        let expected = [(Some(170.9), None, Some(30.2)), (Some(286.1), None, Some(35.8))];
        assert_eq!(printed.collect::<Vec<_>>(), expected);
        caveat(&machine, "the printed labels min and max of cores 0-63 are swapped");
        caveat(&machine, "the printed max of cores 64-127 is unreadable");
        assert_eq!(machine.region_of(CoreId(127)), Some(RegionId(7)));
        assert_eq!(known(&machine, "socket crossing"), 110.0);
    }

    #[test]
    fn every_number_of_every_machine_names_a_listed_source() {
        for name in isochrone_host::bundled_names() {
            let machine = machine(name);
            let listed = |source: &str| {
                machine.sources.iter().any(|known| source.split(',').next() == Some(&known.id))
            };
            for cost in &machine.costs {
                if let Some(known) = cost.known() {
                    assert!(listed(&known.source), "{name}: {cost:?}");
                }
            }
            assert!(machine.grids.iter().all(|grid| listed(&grid.source)), "{name}");
            assert!(machine.origins.iter().all(|origin| listed(&origin.source)), "{name}");
            let caches = machine.caches.iter().all(|c| c.source.as_deref().is_some_and(listed));
            assert!(caches, "{name}");
            assert!(!machine.caveats().is_empty(), "{name} has no caveat; no paper says it all");
        }
    }
}
