//! What queues on the ring and at the controllers would add to a run that has none: the same delays below a roof as in
//! the runtime paper ([`Fluid::with_queues`]), over what each core read.
//!
//! A core has one line under way. Its request goes from the core to the directory and on to the controller, the line
//! from there to the core, each the shorter way round.

use isochrone_sim::coherence::{Demand, Fluid, Need};
use isochrone_sim::synthetic::{Ring, SyntheticMemory};

use super::replay::CoreRun;
use crate::number::{real, wide};

/// What parts of the chip pass, and what a line puts there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Roofs {
    /// A controller, bytes a cycle.
    pub(super) controller: f64,
    /// A link of the ring in one direction, bytes a cycle.
    pub(super) link: f64,
    /// A request, bytes.
    pub(super) request: f64,
}

/// Bytes of a line.
const LINE: f64 = 64.0;

impl Roofs {
    /// 64 bytes a cycle on a link, requests of 16 bytes, and so many GB/s of a controller at 1.2 GHz.
    pub(super) fn with_controller(gb_per_s: f64) -> Self {
        Self { controller: gb_per_s / 1.2, link: 64.0, request: 16.0 }
    }
}

/// By canonical index the directory and the controller, as the memory has them.
pub(super) fn units(memory: &SyntheticMemory, ring: &Ring, keys: &[u8]) -> Option<Vec<[u16; 2]>> {
    let spec = memory.spec();
    let key = u64::from(*keys.first()?);
    let first =
        memory.truth_frame(isochrone_units::PageAddr(0))? * wide(isochrone_units::LINES_PER_PAGE);
    let ways = |stops: &[u16]| u16::try_from(stops.len()).ok();
    let (slices, controllers) = (ways(&ring.slices)?, ways(&ring.controllers)?);
    let of = |index: u64| {
        let line = first + (index ^ key);
        [spec.slice_hash.unit(line, slices), spec.controller_hash.unit(line, controllers)]
    };
    Some((0..wide(isochrone_units::LINES_PER_PAGE)).map(of).collect())
}

/// Expansions a cycle of all cores with queues, and the largest part of a controller that is in use.
pub(super) fn queued(
    ring: &Ring,
    units: &[[u16; 2]],
    runs: &[CoreRun],
    roofs: &Roofs,
) -> (f64, f64) {
    let links = usize::from(ring.stops);
    let controllers = ring.controllers.len();
    let limits = [vec![roofs.link; 2 * links], vec![roofs.controller; controllers]].concat();
    let mut fluid = Fluid::new(limits).with_queues();
    for ((name, run), stop) in (0_u32..).zip(runs).zip(&ring.cores) {
        let mut bytes = vec![0.0; 2 * links + controllers];
        for (count, [slice, controller]) in run.read.0.iter().zip(units) {
            let lines = f64::from(*count);
            let directory = ring.slices[usize::from(*slice)];
            let memory = ring.controllers[usize::from(*controller)];
            pass(&mut bytes, links, [*stop, directory], lines * roofs.request);
            pass(&mut bytes, links, [directory, memory], lines * roofs.request);
            pass(&mut bytes, links, [memory, *stop], lines * LINE);
            bytes[2 * links + usize::from(*controller)] += lines * LINE;
        }
        let used = (0_u32..).zip(bytes).filter(|(_, bytes)| *bytes > 0.0);
        let demands = used.map(|(roof, bytes)| Demand { roof, bytes }).collect();
        let need = Need { arithmetic_ns: 1.0, waiting_ns: run.cycles, window: 1.0 };
        fluid.begin(0.0, name, demands, need);
    }
    let rates = (0_u32..)
        .zip(runs)
        .map(|(name, run)| fluid.rate(name).unwrap_or(f64::NAN) * real(run.expansions));
    let rate = rates.sum();
    let busiest = (0..controllers).map(|at| fluid.load(2 * links + at) / roofs.controller);
    (rate, busiest.fold(0.0, f64::max))
}

/// Puts bytes on every link from one stop to another; links upward come first.
fn pass(bytes: &mut [f64], links: usize, [from, to]: [u16; 2], amount: f64) {
    let (from, to) = (usize::from(from), usize::from(to));
    let up = (to + links - from) % links;
    let is_up = 2 * up <= links;
    let steps = if is_up { up } else { links - up };
    for step in 0..steps {
        let at = if is_up { (from + step) % links } else { links + (from + links - step) % links };
        bytes[at] += amount;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure4::replay::Read;

    #[test]
    fn a_lines_units_are_those_that_its_latency_comes_from() {
        use isochrone_units::{CoreId, Level, LineAddr};
        let machine = isochrone_host::find_machine("xeon-phi-5110p").unwrap();
        let costs = crate::figure4::Costs::of(&machine).unwrap();
        let chip = crate::figure4::chip::Chip::new(&machine, &costs).unwrap();
        let memory = chip.memory(64, 5).unwrap();
        let map = crate::figure4::map::Map::of(&memory).unwrap();
        let ring = chip.ring().unwrap();
        let units = units(&memory, ring, &map.keys).unwrap();
        let hops = |a: u16, b: u16| f64::from(a.abs_diff(b).min(ring.stops - a.abs_diff(b)));
        for line in (0..4096).step_by(61) {
            let [slice, controller] = units[usize::from(map.index(line))].map(usize::from);
            let (slice, controller) = (ring.slices[slice], ring.controllers[controller]);
            for core in [0, 45] {
                let stop = ring.cores[usize::from(core)];
                let way = hops(stop, slice) + hops(slice, controller) + hops(controller, stop);
                let truth = memory.truth_latency(CoreId(core), Level::Dram, LineAddr(line.into()));
                let ours = costs.memory + costs.directory + way * ring.hop_cycles;
                assert!((truth.unwrap() - ours).abs() < 1e-6, "{line} {core}");
            }
        }
    }

    #[test]
    fn a_message_takes_the_shorter_way_round() {
        let mut bytes = vec![0.0; 20];
        pass(&mut bytes, 10, [8, 1], 4.0);
        pass(&mut bytes, 10, [1, 8], 2.0);
        pass(&mut bytes, 10, [3, 3], 9.0);
        let used = |wanted: f64| (0..20).filter(|at| bytes[*at] == wanted).collect::<Vec<_>>();
        assert_eq!((used(4.0), used(2.0)), (vec![0, 8, 9], vec![10, 11, 19]));
    }

    #[test]
    fn queues_hold_up_who_share_a_controller_and_nobody_else() {
        let ring = Ring {
            stops: 8,
            cores: vec![0, 1],
            slices: vec![2, 3],
            controllers: vec![4, 5],
            hop_cycles: 1.0,
        };
        let run = |index: usize| {
            let mut read = Read::default();
            read.0[index] = 1000;
            CoreRun { expansions: 1000, cycles: 10_000.0, read, ..CoreRun::default() }
        };
        let units: Vec<[u16; 2]> = (0..64).map(|index| [index % 2, index % 2]).collect();
        let roofs = |controller| Roofs { controller, link: 1e9, request: 16.0 };
        // 6.4 bytes a cycle of each.
        let shared = [run(0), run(2)];
        let (free, _) = queued(&ring, &units, &shared, &roofs(1e9));
        assert!((free - 0.2).abs() < 1e-6, "{free}");
        let (held, used) = queued(&ring, &units, &shared, &roofs(16.0));
        assert!(held < 0.99 * free && used > 0.5 && used < 1.0, "{held} {used}");
        let (apart, _) = queued(&ring, &units, &[run(0), run(1)], &roofs(16.0));
        assert!(apart > held, "{apart} {held}");
        // By hand: one core, rho = 6.4 / 16 of the time T, T = 1 + 0.4 rho / (2 (1 - rho)) for each 10 cycles.
        let (one, rho) = queued(&ring, &units, &[run(0)], &roofs(16.0));
        let cycles = 10.0 + 4.0 * rho / (2.0 * (1.0 - rho));
        assert!((one * cycles - 1.0).abs() < 1e-3, "{one} {cycles}");
    }
}
