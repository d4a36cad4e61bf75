//! Costs of an atlas on machines where latencies and bandwidths disagree: the scheduler's choice follows.

use isochrone_atlas::Atlas;
use isochrone_atlas_store::contents::{Bandwidth, Cell, Clock, Contents, RegionMap};
use isochrone_atlas_store::encode;
use isochrone_distance::Unknown;
use isochrone_machine::{Core, Machine};
use isochrone_units::{CoreId, RegionId};

use super::Measured;
use crate::policy::Steal;
use crate::range::Part;
use crate::simulated::{Flat, Plan, Simulation};
use crate::{Data, Failure, Footprint, Kernel, Mem, Regime, TaskEvent, Tasks, Topology};

/// Two regions of two cores.
fn machine() -> Topology {
    Topology::regular(2, 2, |a, b| if a == b { 10.0 } else { 21.0 })
}

/// Core by region.
fn latencies(ns: [f64; 8]) -> Vec<RegionMap> {
    let cells = ns.map(|ns| Some(Cell::single(ns))).to_vec();
    vec![RegionMap::of_chase("random", 1, (0..4).map(CoreId), (0..2).map(RegionId), cells)]
}

fn bandwidth(cores: &[u16], region: u16, gb_per_s: f64) -> Bandwidth {
    Bandwidth { cores: cores.to_vec(), region, gb_per_s: Cell::single(gb_per_s) }
}

/// Region 0 waits less for a line of region 1 than the other way round, and gets a tenth of the bytes.
fn disagreeing() -> (Vec<RegionMap>, Vec<Bandwidth>) {
    let together = [
        bandwidth(&[0, 1], 0, 40.0),
        bandwidth(&[0, 1], 1, 4.0),
        bandwidth(&[2, 3], 0, 40.0),
        bandwidth(&[2, 3], 1, 40.0),
    ];
    (latencies([100.0, 110.0, 100.0, 130.0, 300.0, 90.0, 300.0, 110.0]), together.to_vec())
}

/// The machine by an atlas with these figures, written and opened as any reader would.
fn by_atlas(latencies: &[RegionMap], bandwidths: &[Bandwidth]) -> (Topology, Measured) {
    let cores = (0..4).map(|id| Core { id, ..Core::default() }).collect();
    let contents = Contents {
        regions: latencies.to_vec(),
        bandwidth: bandwidths.to_vec(),
        ..Contents::begun(
            isochrone_units::Reading::Measured,
            Machine { name: "made".to_owned(), cores, ..Machine::default() },
            Clock { hz: 1e9, tick_cycles: 1, overhead_cycles: 0.0 },
        )
    };
    let bytes = encode(&contents).expect("a sound atlas");
    machine().measured(&Atlas::open(&bytes).expect("just encoded"))
}

fn all(topology: &Topology, of: impl Fn(&Topology, usize, usize) -> f64) -> [f64; 4] {
    [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(from, to)| of(topology, from, to))
}

#[test]
fn latencies_are_means_and_bandwidths_shares_of_a_region_s_cores() {
    let (latencies, mut bandwidths) = disagreeing();
    let (found, how) = by_atlas(&latencies, &bandwidths);
    assert_eq!(how, Measured::Both);
    assert_eq!(how.missing(), None);
    assert_eq!(all(&found, Topology::cost), [100.0, 120.0, 300.0, 100.0]);
    assert_eq!(all(&found, Topology::byte_cost), [0.05, 0.5, 0.05, 0.05]);
    // One group is missing: single cores, if all are there.
    bandwidths.remove(2);
    assert_eq!(by_atlas(&latencies, &bandwidths).1, Measured::Latencies);
    let singles = (0..4).flat_map(|core| [bandwidth(&[core], 0, 16.0), bandwidth(&[core], 1, 8.0)]);
    bandwidths.extend(singles);
    let (found, how) = by_atlas(&latencies, &bandwidths);
    assert_eq!(
        (how, all(&found, Topology::byte_cost)),
        (Measured::Both, [0.0625, 0.125, 0.0625, 0.125])
    );
}

#[test]
fn what_an_atlas_lacks_is_said_and_not_made_up() {
    let (mut latencies, bandwidths) = disagreeing();
    let (found, how) = by_atlas(&latencies, &[]);
    assert_eq!(how, Measured::Latencies);
    assert!(how.missing().is_some_and(|words| words.contains("no bandwidths")));
    assert_eq!(all(&found, Topology::byte_cost), all(&found, Topology::cost), "in proportion");
    latencies[0].latency_ns.columns[1] = "region 7".to_owned();
    assert_eq!(by_atlas(&latencies, &bandwidths), (machine(), Measured::Nothing));
    assert_eq!(by_atlas(&[], &bandwidths), (machine(), Measured::Nothing));
    assert_eq!(machine().measured(&Unknown), (machine(), Measured::Nothing));
    assert!(Measured::Nothing.missing().is_some_and(|words| words.contains("firmware")));
}

#[derive(Clone, Copy)]
struct Use {
    parts: [Part<u8>; 2],
    makes: bool,
}

impl Kernel for Use {
    const NAME: &'static str = "use";

    fn declare(&self, footprint: &mut Footprint) {
        for part in self.parts.into_iter().filter(|part| !part.is_empty()) {
            if self.makes {
                footprint.output(part)
            } else {
                footprint.input(part)
            };
        }
    }

    fn run(&self, _: &Mem<'_>) -> Result<(), Failure> {
        Err(Failure::new("a simulated task is not run"))
    }
}

/// The region of a task that reads `bytes` in region 0 and as many in region 1.
fn chosen(topology: &Topology, bytes: usize) -> Option<RegionId> {
    const MIB: usize = 1 << 20;
    let mut plan = Plan::new(Regime::Isochrone, 4, topology.clone());
    plan.setup.capacity.trace = 16;
    // Where it was sent to is asked, not who had nothing else to do.
    plan.setup.policy.steal = Steal::Never;
    let mut simulation = Simulation::new(plan, Flat::new(machine(), 0.01, 10.0)).unwrap();
    let data: Data<u8> = simulation.data(2 * MIB).unwrap();
    for half in 0..2 {
        // They are dealt: the first to region 0, the second to region 1.
        let parts = [data.part(half * MIB, MIB), data.part(0, 0)];
        simulation.spawn(Use { parts, makes: true }).unwrap();
    }
    simulation.wait().unwrap();
    let parts = [data.part(0, bytes), data.part(MIB, bytes)];
    simulation.spawn(Use { parts, makes: false }).unwrap();
    simulation.wait().unwrap();
    let trace = simulation.trace();
    let last = trace.events.iter().max_by_key(|event| event.start_ns);
    last.map(|event: &TaskEvent| event.region)
}

#[test]
fn a_task_goes_where_its_bytes_are_cheapest_by_latency_and_bandwidth_together() {
    let (latencies, bandwidths) = disagreeing();
    let by_latency = by_atlas(&latencies, &[]).0;
    let by_both = by_atlas(&latencies, &bandwidths).0;
    // 120 ns instead of 300 decide where bandwidths are not known, however many bytes there are.
    let (near, wide) = (Some(RegionId(0)), Some(RegionId(1)));
    assert_eq!([64, 1 << 20].map(|bytes| chosen(&by_latency, bytes)), [near, near]);
    // b bytes from each: 220 + 0.55 b ns in region 0, 400 + 0.1 b in region 1, the same at 400 bytes.
    let found = [64, 300, 500, 1 << 20].map(|bytes| chosen(&by_both, bytes));
    assert_eq!(found, [near, near, wide, wide]);
}

#[test]
fn only_the_atlas_changes_and_a_task_goes_elsewhere() {
    // As many bytes in both regions: the region that waits less for the other's memory has the task.
    let nearer = [100.0, 120.0, 100.0, 120.0, 300.0, 100.0, 300.0, 100.0];
    let swapped = [100.0, 300.0, 100.0, 300.0, 120.0, 100.0, 120.0, 100.0];
    let chosen_by = |ns| chosen(&by_atlas(&latencies(ns), &[]).0, 1 << 12);
    assert_eq!(chosen_by(nearer), Some(RegionId(0)));
    assert_eq!(chosen_by(swapped), Some(RegionId(1)));
}
