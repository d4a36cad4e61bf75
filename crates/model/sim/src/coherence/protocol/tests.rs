//! All orders of two modules of two sockets; orders at random on larger machines; what is said and counted;
//! latencies.

use super::*;
use crate::coherence::legs::Legs;
use crate::coherence::message::{Class, Direction, Traffic};
use crate::coherence::nodes::NodeSet;
use crate::coherence::spec::{CleanEvictions, MemoryDirectory, Protocol};
use crate::coherence::test_machine::bullion;
use crate::coherence::topology::Topology;
use crate::random::{Random, Stream};

pub(super) fn protocol() -> Protocol {
    Protocol {
        memory_directory: MemoryDirectory::PerSocket,
        directory_lines: None,
        filter: true,
        clean_evictions: CleanEvictions::All,
        exclusive_readers: false,
    }
}

/// The variants of the protocol.
fn variants() -> Vec<Protocol> {
    let mut all = vec![protocol()];
    all.push(Protocol { filter: false, ..protocol() });
    for clean_evictions in [CleanEvictions::Silent, CleanEvictions::Alone] {
        all.push(Protocol { clean_evictions, ..protocol() });
    }
    all.push(Protocol { memory_directory: MemoryDirectory::None, ..protocol() });
    all.push(Protocol { exclusive_readers: true, ..protocol() });
    all
}

fn explored(topology: &Topology, protocol: &Protocol, at_once: usize) -> Explored {
    let line = Line::new(topology, protocol, 0);
    explore(&line, at_once).unwrap_or_else(|broken| {
        let steps: Vec<String> = broken.steps.iter().map(|step| format!("{step:?}")).collect();
        panic!("{:?} after\n{}", broken.violation, steps.join("\n"));
    })
}

#[test]
fn two_at_once_on_two_modules_of_two_sockets_in_all_orders() {
    let found = explored(&Topology::new(vec![0, 0, 1, 1]), &protocol(), 2);
    assert!(found.states > 100_000, "{found:?}");
}

#[test]
#[ignore = "millions of states, minutes in a release build"]
fn everything_on_two_modules_of_two_sockets_in_all_orders() {
    let found = explored(&Topology::new(vec![0, 0, 1, 1]), &protocol(), 4);
    // Eight of requests, snoops and data, and a note of a clean eviction from each socket outside.
    assert_eq!(found.most_messages, 10, "{found:?}");
}

#[test]
fn every_variant_in_all_orders_of_three_sockets() {
    for protocol in variants() {
        for modules in [vec![0, 1, 1], vec![0, 0, 1], vec![0, 1, 2], vec![0, 0, 0]] {
            let found = explored(&Topology::new(modules), &protocol, 2);
            assert!(found.states > 500, "{found:?}");
        }
    }
}

/// Cores use the line, entries leave and messages arrive in a random order, for a while; then everything
/// arrives.
fn random_run(topology: &Topology, protocol: &Protocol, seed: u64) {
    let mut random = Random::new(seed, Stream::Noise);
    let nodes = u64::from(topology.nodes());
    let node = |random: &mut Random| u8::try_from(random.below(nodes)).expect("few nodes");
    let mut line = Line::new(topology, protocol, node(&mut random));
    for step in 0..400 {
        let at = node(&mut random);
        match random.below(8) {
            0 => _ = line.access(at, Access::Read),
            1 => _ = line.access(at, Access::Write),
            2 => _ = line.evict(at),
            3 if random.chance(0.2) => _ = line.evict_entry(),
            _ => {
                let ready: Vec<usize> = line.deliverable().collect();
                if let Some(count) = u64::try_from(ready.len()).ok().filter(|n| *n > 0) {
                    line.deliver(ready[crate::number::index(random.below(count))]);
                }
            }
        }
        assert_eq!(line.check(), Ok(()), "seed {seed}, step {step}");
    }
    line.settle();
    assert_eq!(line.check(), Ok(()), "seed {seed}, at rest");
    conserved(&line, protocol);
}

/// What the counters of all switches must agree on when nothing is under way.
fn conserved(line: &Line<'_>, protocol: &Protocol) {
    let mut all = Traffic::default();
    for traffic in line.traffic() {
        all += traffic;
    }
    assert_eq!(all.lines(Direction::In), all.lines(Direction::Out), "data out is data in");
    let of = |class, way| all[(class, way)];
    assert!(of(Class::Hrsp, Direction::In) == of(Class::Snp, Direction::Out), "{all:?}");
    assert!(of(Class::Hrsp, Direction::Out) == of(Class::Snp, Direction::In), "{all:?}");
    if !protocol.filter {
        assert!(of(Class::Snp, Direction::Out) >= of(Class::Snp, Direction::In), "{all:?}");
    }
}

#[test]
fn random_orders_break_nothing_on_larger_machines() {
    let machines = [vec![0, 0, 1, 1, 2, 2], vec![0, 1, 2, 3], vec![0, 0, 0, 0, 1, 1, 1, 1]];
    for (number, modules) in (0..).zip(machines) {
        let topology = Topology::new(modules);
        for protocol in variants() {
            for seed in 0..150 {
                random_run(&topology, &protocol, seed * 10 + number);
            }
        }
    }
}

#[test]
fn a_protocol_that_forgets_exports_is_caught() {
    let topology = Topology::new(vec![0, 0, 1, 1]);
    let mut line = Line::new(&topology, &protocol(), 0);
    line.access(2, Access::Write);
    line.settle();
    line.switch.holders = NodeSet::EMPTY;
    assert_eq!(line.check(), Err(Violation::ExportNotListed));
    line.switch.holders = NodeSet::one(2);
    line.home.exported = agents::Exported::Shared;
    assert_eq!(line.check(), Err(Violation::ExportNotInMemory));
    line.home.exported = agents::Exported::Any;
    line.caches[3].state = State::Shared;
    assert_eq!(line.check(), Err(Violation::WriterNotAlone));
}

#[test]
fn a_remote_read_is_counted_as_the_paper_describes() {
    let topology = Topology::new(vec![0, 0, 1, 1]);
    let mut line = Line::new(&topology, &protocol(), 0);
    line.access(2, Access::Read);
    line.settle();
    let [home, reader] = [line.traffic()[0], line.traffic()[1]];
    assert_eq!((reader[(Class::Hreq, Direction::In)], home[(Class::Hreq, Direction::Out)]), (1, 1));
    assert_eq!((home[(Class::Dtc, Direction::In)], reader[(Class::Dtc, Direction::Out)]), (1, 1));
    // The processor's completion rides on the data; the switch sends its own.
    assert_eq!((home[(Class::Ndr, Direction::In)], reader[(Class::Ndr, Direction::Out)]), (0, 1));
    // A clean eviction tells the switch, and not the home: the home then asks in vain, and the
    // switch answers for the other module.
    line.evict(2);
    line.settle();
    line.access(1, Access::Read);
    line.settle();
    let [home, reader] = [line.traffic()[0], line.traffic()[1]];
    assert_eq!((home[(Class::Snp, Direction::In)], home[(Class::Hrsp, Direction::Out)]), (1, 1));
    assert_eq!(reader[(Class::Snp, Direction::Out)], 0, "filtered");
}

#[test]
fn modified_data_that_move_are_told_to_the_home() {
    let topology = Topology::new(vec![0, 1, 2]);
    let mut line = Line::new(&topology, &protocol(), 0);
    line.access(1, Access::Write);
    line.settle();
    let before = line.traffic()[0][(Class::Hreq, Direction::Out)];
    line.access(2, Access::Write);
    line.settle();
    assert_eq!(line.state(2), State::Modified);
    let [home, from, to] = [line.traffic()[0], line.traffic()[1], line.traffic()[2]];
    assert_eq!(from[(Class::Hrsp, Direction::In)], 1);
    assert_eq!(home[(Class::Hreq, Direction::Out)] - before, 1, "the HRSP in became a HREQ out");
    assert_eq!((from[(Class::Dtc, Direction::In)], to[(Class::Dtc, Direction::Out)]), (1, 1));
    assert_eq!(home[(Class::Dwb, Direction::Out)], 0, "it stays modified");
}

#[test]
fn table_2_comes_out_of_the_protocol() {
    let spec = bullion();
    let (legs, topology) = (Legs::of(&spec), Topology::of(&spec));
    let mut seen = [(f64::INFINITY, 0.0_f64, 0.0, 0.0); 4];
    for node in 0..topology.nodes() {
        for home in 0..topology.nodes() {
            let line = Line::new(&topology, &spec.protocol, home);
            let (ns, _) = Timed::new(line, &legs, home).access(node, Access::Read);
            let at = &mut seen[spec.distance(node.into(), home.into()) as usize];
            *at = (at.0.min(ns), at.1.max(ns), at.2 + ns, at.3 + 1.0);
        }
    }
    let published = [(124.0, 125.6, 127.0), (177.0, 178.0, 180.0), (410.0, 416.0, 428.0)];
    for ((min, max, sum, count), (least, mean, most)) in
        [seen[0], seen[2], seen[3]].into_iter().zip(published)
    {
        let near = |a: f64, b: f64| (a / b - 1.0).abs() < 0.002;
        assert!(near(min, least) && near(max, most) && near(sum / count, mean), "{min} {max}");
    }
}

#[test]
fn what_other_caches_deliver_takes_longer_than_memory_when_it_is_far() {
    let spec = bullion();
    let (legs, topology) = (Legs::of(&spec), Topology::of(&spec));
    let mut line = Line::new(&topology, &spec.protocol, 0);
    line.access(2, Access::Write);
    line.settle();
    let mut timed = Timed::new(line, &legs, 0);
    let (three_hops, trace) = timed.access(4, Access::Read);
    assert_eq!(timed.line.check(), Ok(()));
    assert!(three_hops > 416.0 && three_hops < 900.0, "{three_hops}: {trace:?}");
    assert!(trace.iter().all(|leg| leg.arrived_ns >= leg.left_ns));
}
