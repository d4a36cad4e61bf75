//! The Knights Corner of the machine file as synthetic memory: its ring, its address hash, and
//! the latency of each line from each core.
//!
//! A load goes from the core to the line's tag directory, on to its memory controller, and back,
//! each leg the shorter way round ("it requests the line from the corresponding DTD and
//! eventually, from the corresponding memory controller", section 2). Links never queue.

use isochrone_machine::{Interconnect, Machine, RingStop};
use isochrone_sim::synthetic::{
    AddressHash, Arena, Geometry, Ring, SyntheticMachine, SyntheticMemory, SyntheticSpec,
};
use isochrone_stats::{rng, shuffle};
use isochrone_units::PAGE_BYTES;

use super::constants::{Costs, NAMED, Spread, spread};
use super::error::Figure4Error;

/// Bits of a physical line number: 8 GiB of lines.
const LINE_BITS: u32 = 27;
/// Chooses the masks of the hash: one chip, whatever the seed of a run. Assumed, as is its form.
const CHIP_SEED: u64 = 2014;

/// The chip.
#[derive(Clone, Debug)]
pub(super) struct Chip {
    silicon: SyntheticMachine,
    name: String,
    memory_pages: u64,
}

impl Chip {
    /// The chip of a machine file with these costs.
    pub(super) fn new(machine: &Machine, costs: &Costs) -> Result<Self, Figure4Error> {
        let lacks = |what| Figure4Error::Machine { name: machine.name.clone(), what };
        let Some(Interconnect::Ring { stops, bidirectional: true, .. }) = &machine.interconnect
        else {
            return Err(lacks("a bidirectional ring"));
        };
        let stops = &in_order(stops, costs.order);
        let mut ring = Ring {
            stops: u16::try_from(stops.len()).map_err(|_| lacks("fewer than 65536 stops"))?,
            cores: places(stops, |stop| matches!(stop, RingStop::Core(_))),
            slices: places(stops, |stop| matches!(stop, RingStop::Directory(_))),
            controllers: places(stops, |stop| matches!(stop, RingStop::Controller(_))),
            hop_cycles: 0.0,
        };
        let counts = (ring.cores.len(), ring.slices.len(), ring.controllers.len());
        if counts.0 == 0 || counts.1 != 64 || counts.2 != 8 {
            return Err(lacks("cores, 64 directories and 8 controllers"));
        }
        let base = costs.memory + costs.directory;
        ring.hop_cycles = match costs.hop {
            Some(hop) => hop,
            None => {
                let spread = spread(machine).ok_or(lacks("the spread"))?;
                hop_of_spread(&ring, base, spread, costs.spread).ok_or(lacks("cores 0 and 45"))?
            }
        };
        Ok(Self {
            silicon: SyntheticMachine {
                geometry: Geometry::Ring(ring),
                llc_base_cycles: None,
                dram_base_cycles: base,
            },
            name: machine.name.clone(),
            memory_pages: machine.regions.iter().filter_map(|region| region.bytes).sum::<u64>()
                / PAGE_BYTES as u64,
        })
    }

    /// Cost of a hop, cycles.
    pub(super) fn hop_cycles(&self) -> f64 {
        match &self.silicon.geometry {
            Geometry::Ring(ring) => ring.hop_cycles,
            Geometry::Mesh(_) | Geometry::Clusters(_) | Geometry::Tables(_) => 0.0,
        }
    }

    /// Its ring, and of a canonical index the stops of directory and controller; `None` without a ring.
    pub(super) fn ring(&self) -> Option<&Ring> {
        match &self.silicon.geometry {
            Geometry::Ring(ring) => Some(ring),
            Geometry::Mesh(_) | Geometry::Clusters(_) | Geometry::Tables(_) => None,
        }
    }

    /// The memory of one run: `pages` pages whose frames the seed draws, 2 MiB at a time.
    pub(super) fn memory(&self, pages: u64, seed: u64) -> Result<SyntheticMemory, Figure4Error> {
        let mut spec =
            SyntheticSpec::from_machine(&self.name, seed, self.silicon.clone()).noiseless();
        let masks = AddressHash::random_xor_masks(6, LINE_BITS, CHIP_SEED);
        let controllers = (0..3).map(|bit| masks[bit] ^ masks[bit + 3]).collect();
        spec.slice_hash = AddressHash::Xor { masks };
        spec.controller_hash = AddressHash::Xor { masks: controllers };
        spec.arena = Arena {
            pages,
            huge: true,
            frames_per_region: self.memory_pages,
            frames_readable: true,
        };
        Ok(SyntheticMemory::new(spec)?)
    }
}

/// The stops in the order of the file, or in one that a seed draws: all of them by themselves.
fn in_order(stops: &[RingStop], seed: Option<u64>) -> Vec<RingStop> {
    let mut stops = stops.to_vec();
    if let Some(seed) = seed {
        shuffle(&mut stops, &mut rng(seed));
    }
    stops
}

/// Stops of one kind, by the number of what stands there.
fn places(stops: &[RingStop], wanted: impl Fn(&RingStop) -> bool) -> Vec<u16> {
    let mut found: Vec<(RingStop, u16)> =
        stops.iter().copied().zip(0..).filter(|(stop, _)| wanted(stop)).collect();
    found.sort_unstable();
    found.into_iter().map(|(_, at)| at).collect()
}

/// The cost of a hop at which the largest latency of one block from one core over that from
/// another is `spread`, over all pairs of a directory and a controller: infinite where nothing is so far apart, `None`
/// where the ring lacks the cores.
fn hop_of_spread(ring: &Ring, base: f64, spread: f64, of_cores: Spread) -> Option<f64> {
    let hops = |a: u16, b: u16| f64::from(a.abs_diff(b).min(ring.stops - a.abs_diff(b)));
    let mut ways = Vec::new();
    for directory in &ring.slices {
        for controller in &ring.controllers {
            let between = hops(*directory, *controller);
            let of = |core: &u16| hops(*core, *directory) + between + hops(*controller, *core);
            ways.push(match of_cores {
                Spread::AllPairs => {
                    let all = ring.cores.iter().map(of);
                    (all.clone().fold(f64::INFINITY, f64::min), all.fold(0.0, f64::max))
                }
                Spread::NamedPair => {
                    let [slow, fast] = NAMED.map(|core| ring.cores.get(core).map(of));
                    (fast?, slow?)
                }
            });
        }
    }
    // base + h * most = spread * (base + h * least), solved for h; the widest pair needs least.
    let hop = |(least, most): &(f64, f64)| base * (spread - 1.0) / (most - spread * least);
    Some(ways.iter().map(hop).filter(|hop| *hop > 0.0).fold(f64::INFINITY, f64::min))
}

#[cfg(test)]
mod tests {
    use isochrone_units::{CoreId, Level, LineAddr};

    use super::*;
    use crate::figure4::map::Map;

    fn chip() -> Chip {
        let machine = isochrone_host::find_machine("xeon-phi-5110p").unwrap();
        Chip::new(&machine, &Costs::of(&machine).unwrap()).unwrap()
    }

    #[test]
    fn the_largest_difference_between_cores_is_the_published_one() {
        let chip = chip();
        let mut largest: f64 = 0.0;
        for (slice, controller) in (0..64).flat_map(|s| (0..8).map(move |m| (s, m))) {
            let of = |core| chip.silicon.latency(core, Level::Dram, slice, controller).unwrap();
            let nearest = (0..60).map(of).fold(f64::INFINITY, f64::min);
            largest = largest.max((0..60).map(of).fold(0.0, f64::max) / nearest);
        }
        assert!((largest - 1.6).abs() < 1e-9, "{largest}");
    }

    #[test]
    fn the_named_pair_is_as_far_apart_as_published_and_others_go_beyond() {
        let machine = isochrone_host::find_machine("xeon-phi-5110p").unwrap();
        let costs = Costs { spread: Spread::NamedPair, ..Costs::of(&machine).unwrap() };
        for order in [None, Some(1), Some(2)] {
            let chip = Chip::new(&machine, &Costs { order, ..costs }).unwrap();
            let (mut named, mut any): (f64, f64) = (0.0, 0.0);
            for (slice, controller) in (0..64).flat_map(|s| (0..8).map(move |m| (s, m))) {
                let of = |core| chip.silicon.latency(core, Level::Dram, slice, controller).unwrap();
                let [slow, fast] = NAMED.map(|core| of(u16::try_from(core).unwrap()));
                named = named.max(slow / fast);
                let nearest = (0..60).map(of).fold(f64::INFINITY, f64::min);
                any = any.max((0..60).map(of).fold(0.0, f64::max) / nearest);
            }
            assert!((named - 1.6).abs() < 1e-9 && any >= named, "{order:?}: {named} {any}");
        }
        let hop = Chip::new(&machine, &costs).unwrap().hop_cycles();
        assert!((hop - 2.29).abs() < 0.01, "the file's order: {hop}");
    }

    #[test]
    fn an_order_that_is_drawn_has_every_stop_once() {
        let machine = isochrone_host::find_machine("xeon-phi-5110p").unwrap();
        let Some(Interconnect::Ring { stops, .. }) = &machine.interconnect else { panic!() };
        let sorted = |mut stops: Vec<RingStop>| {
            stops.sort_unstable();
            stops
        };
        assert_eq!(in_order(stops, None), *stops);
        let drawn = in_order(stops, Some(1));
        assert!(drawn != *stops && drawn != in_order(stops, Some(2)));
        assert_eq!(sorted(drawn), sorted(stops.clone()));
    }

    #[test]
    fn the_form_fits_and_the_map_is_the_memory() {
        let memory = chip().memory(1024, 5).unwrap();
        let map = Map::of(&memory).expect("one key of six bits serves both hashes");
        for line in (0..65_536).step_by(97) {
            for core in [0, 17, 59] {
                let truth =
                    memory.truth_latency(CoreId(core), Level::Dram, LineAddr(line)).unwrap();
                let ours = map.latency(usize::from(core), u32::try_from(line).unwrap());
                assert!((truth - ours).abs() < 1e-3);
            }
        }
        assert_eq!(map.physical(64 * 3 + 9) % 64, 9);
    }

    #[test]
    fn a_machine_without_a_ring_is_refused() {
        let machine = isochrone_host::find_machine("xeon-phi-7285-snc4").unwrap();
        let costs = Costs {
            memory: 1.0,
            directory: 1.0,
            ..Costs::of(&isochrone_host::find_machine("xeon-phi-5110p").unwrap()).unwrap()
        };
        assert!(Chip::new(&machine, &costs).unwrap_err().to_string().contains("ring"));
    }
}
