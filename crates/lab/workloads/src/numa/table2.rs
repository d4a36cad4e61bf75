//! Table 2 of the paper out of the model: reads timed through the protocol, message by message, and STREAM
//! Triad through the engine and its roofs; and STREAM over all switches at once, which is nobody's input.

use isochrone_sim::coherence::engine::{Engine, Placed, RegionId, Touch};
use isochrone_sim::coherence::protocol::{Access, Line, Timed};
use isochrone_sim::coherence::{
    Direction, Distance, Fluid, Legs, Need, NumaSpec, Roofs, Topology, Traffic,
};

/// Least, mean and most of something over all pairs of nodes of one distance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The lowest.
    pub least: f64,
    /// Over all pairs.
    pub mean: f64,
    /// The highest.
    pub most: f64,
}

/// A read of a line that nobody has, ns; `None` where the machine has no such distance.
#[must_use]
pub fn latency_ns(spec: &NumaSpec, distance: Distance) -> Option<Range> {
    let (legs, topology) = (Legs::of(spec), Topology::of(spec));
    over_pairs(spec, distance, |node, home| {
        let line = Line::new(&topology, &spec.protocol, home);
        Timed::new(line, &legs, home).access(node, Access::Read).0
    })
}

/// What STREAM Triad reports for all cores of one node on memory of another, GB/s.
#[must_use]
pub fn triad_gbs(spec: &NumaSpec, distance: Distance) -> Option<Range> {
    over_pairs(spec, distance, |node, home| triad_of(spec, &[node], usize::MAX, home))
}

/// What STREAM Triad reports for so many cores of each of these nodes on memory of one node, GB/s.
#[must_use]
pub fn triad_of(spec: &NumaSpec, nodes: &[u8], cores: usize, home: u8) -> f64 {
    let work: Vec<(u8, Vec<u8>)> = nodes.iter().map(|node| (*node, vec![home])).collect();
    triad(spec, &work, cores).reported
}

fn over_pairs(
    spec: &NumaSpec,
    distance: Distance,
    measure: impl Fn(u8, u8) -> f64,
) -> Option<Range> {
    let nodes = u8::try_from(spec.nodes.len()).unwrap_or(u8::MAX);
    let pairs = (0..nodes).flat_map(|a| (0..nodes).map(move |b| (a, b)));
    let at = |(a, b): &(u8, u8)| spec.distance((*a).into(), (*b).into()) == distance;
    let values: Vec<f64> = pairs.filter(at).map(|(a, b)| measure(a, b)).collect();
    (!values.is_empty()).then(|| Range {
        least: values.iter().copied().fold(f64::INFINITY, f64::min),
        #[allow(clippy::cast_precision_loss, reason = "at most 4096 pairs")]
        mean: values.iter().sum::<f64>() / values.len() as f64,
        most: values.iter().copied().fold(0.0, f64::max),
    })
}

/// What a triad came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Triad {
    /// As STREAM reports it: three lines of each four that move, GB/s.
    pub reported: f64,
    /// All messages into the switches from their sockets, GB/s.
    pub switches_in: f64,
    /// The other way.
    pub switches_out: f64,
}

/// All cores of all nodes on memory of all other modules: what the switches pass together.
#[must_use]
pub fn triad_over_switches(spec: &NumaSpec) -> Triad {
    let nodes = u8::try_from(spec.nodes.len()).unwrap_or(u8::MAX);
    let far = |node: u8| {
        let at = |other: &u8| spec.distance(node.into(), (*other).into()) == Distance::Far;
        (0..nodes).filter(at).collect::<Vec<u8>>()
    };
    let work: Vec<(u8, Vec<u8>)> = (0..nodes).map(|node| (node, far(node))).collect();
    triad(spec, &work, usize::MAX)
}

/// Bytes of each core's part of each array where all of a node's take part: far more than its part of the last level.
const PART_BYTES: u64 = 14 << 20;

/// A core's node, and its part of three arrays, each in pieces.
type Worker = (u8, [Vec<(RegionId, u64)>; 3]);

/// So many cores of each node given, or all, add up two arrays into a third; each node's arrays lie in equal parts in
/// the memory of the nodes beside it. They are as large where fewer cores take part, which have the last level for
/// themselves.
fn triad(spec: &NumaSpec, work: &[(u8, Vec<u8>)], most: usize) -> Triad {
    let mut engine = Engine::new(spec, 64 << 10);
    let mut cores: Vec<Worker> = Vec::new();
    let mut counted = 0;
    for (node, homes) in work {
        let all = spec.nodes[usize::from(*node)].cores.len();
        let some = all.min(most);
        let part = PART_BYTES * all as u64 / some.max(1) as u64;
        for _ in 0..some {
            counted += 3 * part;
            let each = part / homes.len().max(1) as u64;
            let mut array = || {
                let at = |home: &u8| (engine.register(each, Placed::At(*home)), each);
                homes.iter().map(at).collect::<Vec<_>>()
            };
            cores.push((*node, [array(), array(), array()]));
        }
    }
    let roofs = Roofs::of(spec, None);
    // The first time through, caches still have room.
    let mut fluid = Fluid::new(roofs.limits());
    let mut before = engine.totals();
    for measured in [false, true] {
        if measured {
            before = engine.totals();
        }
        for (name, (node, arrays)) in (0_u32..).zip(&cores) {
            engine.begin_task();
            for (array, touch) in arrays.iter().zip([Touch::Read, Touch::Read, Touch::Write]) {
                for (region, bytes) in array {
                    engine.touch(*node, *region, 0, *bytes, touch, 1.0);
                }
            }
            if measured {
                let mut demands = fluid.list();
                let floor = roofs.ask(usize::from(*node), engine.tally(), &mut demands);
                let need =
                    Need { arithmetic_ns: 0.0, waiting_ns: floor.lines_ns, window: floor.window };
                fluid.begin(0.0, name, demands, need);
            }
        }
    }
    let mut ns = 0.0_f64;
    while let Some((time, name)) = fluid.next_end() {
        fluid.end(time, name);
        ns = ns.max(time);
    }
    let moved = engine.totals().since(&before);
    let bytes = |way| {
        let of = |one: &Traffic| one.bytes(&spec.bytes, way, |_| true);
        moved.traffic.iter().map(of).sum::<f64>()
    };
    #[allow(clippy::cast_precision_loss, reason = "far below 2^53")]
    let counted = counted as f64;
    Triad {
        reported: counted / ns,
        switches_in: bytes(Direction::In) / ns,
        switches_out: bytes(Direction::Out) / ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isochrone_sim::coherence::FarLink;

    #[test]
    fn bandwidths_come_out_of_the_roofs_as_the_machine_file_has_them() {
        let machine = isochrone_host::find_machine("bullion-s-16s").expect("bundled");
        let spec = NumaSpec::of(&machine).expect("possible");
        for (node, home, gbs) in [(0, 0, 41.3), (1, 0, 25.0), (2, 0, 4.6)] {
            let found = triad_of(&spec, &[node], usize::MAX, home);
            assert!((found / gbs - 1.0).abs() < 0.05, "{node} {home}: {found}");
        }
        assert_eq!(latency_ns(&spec, Distance::Cluster), None);
    }

    #[test]
    fn a_window_of_lines_bounds_a_far_link_as_its_width_does() {
        let machine = isochrone_host::find_machine("bullion-s-16s").expect("bundled");
        let mut spec = NumaSpec::of(&machine).expect("possible");
        let near = triad_of(&spec, &[1], usize::MAX, 0);
        let narrow = triad_of(&spec, &[2], usize::MAX, 0);
        let one = triad_of(&spec, &[2], 1, 0);
        assert!((one / (20.0 * 64.0 / 413.0) - 1.0).abs() < 0.05, "20 lines at once: {one}");
        spec.bandwidth.far = FarLink { width: false, window: Some(30.0) };
        // Thirty lines of 64 bytes in the 413 ns from module 1 to module 0.
        let found = triad_of(&spec, &[2], usize::MAX, 0);
        assert!((found / narrow - 1.0).abs() < 0.05, "{found} {narrow}");
        assert!((triad_of(&spec, &[2], 1, 0) / one - 1.0).abs() < 1e-9, "one core fills neither");
        let both = triad_of(&spec, &[2, 3], usize::MAX, 0);
        assert!((both / found - 1.0).abs() < 0.05, "of two sockets, too: {both}");
        assert!((triad_of(&spec, &[1], usize::MAX, 0) / near - 1.0).abs() < 1e-9);
        spec.bandwidth.far.window = Some(120.0);
        let wide = triad_of(&spec, &[2], usize::MAX, 0);
        assert!((wide / found - 4.0).abs() < 0.1, "four times the lines: {wide}");
        spec.bandwidth.far = FarLink { window: Some(0.0), ..spec.bandwidth.far };
        assert!(spec.validate().is_err(), "no line is under way");
    }

    #[test]
    fn turbo_is_as_fast_as_active_cores_let_it_and_nothing_beside() {
        let machine = isochrone_host::find_machine("bullion-s-16s").expect("bundled");
        let mut spec = NumaSpec::of(&machine).expect("possible");
        assert_eq!(spec.rates_of(16), spec.rates, "off is the default");
        spec.clocks.turbo = true;
        for (threads, faster) in [(16, 1.57), (96, 1.46), (288, 1.19)] {
            let found = spec.rates_of(threads).blocked / spec.rates.blocked;
            assert!((found - faster).abs() < 0.005, "{threads}: {found}");
        }
    }
}
