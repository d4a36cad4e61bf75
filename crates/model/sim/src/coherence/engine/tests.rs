//! The engine against the protocol message by message, grain against grain, and what must be conserved.

use super::*;
use crate::coherence::message::{Class, Direction};
use crate::coherence::protocol::{Access, Line, State};
use crate::coherence::spec::{CleanEvictions, MemoryDirectory, Protocol};
use crate::coherence::test_machine::bullion;
use crate::random::{Random, Stream};

/// A machine with these modules of nodes, and so many lines in each cache.
fn machine(modules: &[u8], llc_lines: u32, protocol: &Protocol) -> NumaSpec {
    let mut spec = bullion();
    spec.nodes.truncate(modules.len());
    for (node, module) in spec.nodes.iter_mut().zip(modules) {
        (node.module, node.llc_lines) = (*module, llc_lines);
    }
    spec.protocol = protocol.clone();
    spec
}

fn variants() -> Vec<Protocol> {
    let usual = Protocol { directory_lines: None, ..bullion().protocol };
    vec![
        usual.clone(),
        Protocol { filter: false, ..usual.clone() },
        Protocol { clean_evictions: CleanEvictions::Silent, ..usual.clone() },
        Protocol { clean_evictions: CleanEvictions::Alone, ..usual.clone() },
        Protocol { memory_directory: MemoryDirectory::None, ..usual },
    ]
}

fn state(engine: &Engine, node: u8) -> State {
    let unit = &engine.units[0];
    match (unit.holders.has(node), unit.owner == node, unit.dirty, unit.forward == node) {
        (false, ..) => State::Invalid,
        (true, true, true, _) => State::Modified,
        (true, true, false, _) => State::Exclusive,
        (true, false, _, true) => State::Forward,
        (true, false, _, false) => State::Shared,
    }
}

/// Both do the same accesses; after each, every copy has the same state and every switch counted the same.
#[test]
fn one_line_of_the_engine_is_the_protocol() {
    for modules in [vec![0, 0, 1, 1], vec![0, 1, 2], vec![0, 0, 1, 1, 2, 2], vec![0, 0, 0, 0]] {
        for protocol in variants() {
            for seed in 0..40 {
                compare(&modules, &protocol, seed);
            }
        }
    }
}

fn compare(modules: &[u8], protocol: &Protocol, seed: u64) {
    let spec = machine(modules, 1000, protocol);
    let topology = Topology::of(&spec);
    let mut random = Random::new(seed, Stream::Noise);
    let nodes = modules.len() as u64;
    let node = |random: &mut Random| u8::try_from(random.below(nodes)).expect("few nodes");
    let home = node(&mut random);
    let mut line = Line::new(&topology, protocol, home);
    let mut engine = Engine::new(&spec, LINE);
    let data = engine.register(LINE, Placed::At(home));
    for step in 0..120 {
        let at = node(&mut random);
        let what = random.below(8);
        match what {
            0..3 => {
                line.access(at, Access::Read);
                engine.touch(at, data, 0, 1, Touch::Read, 1.0);
            }
            3..5 => {
                line.access(at, Access::Write);
                engine.touch(at, data, 0, 1, Touch::Write, 1.0);
            }
            5..7 if engine.units[0].holders.has(at) => {
                line.evict(at);
                engine.drop_copy(at, 0);
            }
            7 if engine.units[0].modules != 0 && protocol.filter => {
                line.evict_entry();
                engine.evict_entry(0);
            }
            _ => continue,
        }
        line.settle();
        assert_eq!(line.check(), Ok(()));
        let context = format!(
            "{modules:?}, home {home}, {protocol:?}, seed {seed}, step {step}: {what} at {at}"
        );
        for node in 0..topology.nodes() {
            assert_eq!(state(&engine, node), line.state(node), "node {node}, {context}");
        }
        assert_eq!(engine.tally().traffic, line.traffic(), "{context}");
    }
}

/// Random reads and writes of ranges by random nodes.
fn random_use(
    engine: &mut Engine,
    data: &[RegionId],
    bytes: u64,
    grain: u64,
    seed: u64,
    tasks: u32,
) {
    let mut random = Random::new(seed, Stream::Noise);
    let nodes = u64::from(engine.topology().nodes());
    for _ in 0..tasks {
        engine.begin_task();
        let node = u8::try_from(random.below(nodes)).expect("few nodes");
        for _ in 0..3 {
            let region = data[crate::number::index(random.below(data.len() as u64))];
            let from = random.below(bytes / grain) * grain;
            let touch = if random.chance(0.4) { Touch::Write } else { Touch::Read };
            let length = (1 + random.below(4)) * grain;
            engine.touch(node, region, from, length, touch, 1.0);
        }
    }
}

/// Copies, directories and caches say the same.
fn consistent(engine: &Engine) {
    let mut held = vec![0; engine.caches.len()];
    let mut listed = vec![0; engine.directories.len()];
    for (number, unit) in engine.units.iter().enumerate() {
        for node in unit.holders.iter() {
            held[usize::from(node)] += u64::from(unit.lines);
            let outside = engine.module(node) != engine.module(unit.home);
            let known = unit.modules >> engine.module(node) & 1 == 1;
            assert!(!outside || known, "unit {number} at {node} is not listed");
        }
        assert!(unit.owner == units::NO_NODE || unit.holders == NodeSet::one(unit.owner));
        if unit.modules != 0 {
            listed[usize::from(engine.module(unit.home))] += u64::from(unit.lines);
        }
    }
    let caches: Vec<u64> = engine.caches.iter().map(cache::Cache::held).collect();
    assert_eq!(caches, held);
    assert_eq!(engine.directories().map(|(now, ..)| now).collect::<Vec<_>>(), listed);
}

fn conserved(traffic: &[Traffic]) {
    let mut all = Traffic::default();
    traffic.iter().for_each(|one| all += one);
    assert_eq!(all.lines(Direction::In), all.lines(Direction::Out));
    assert_eq!(all[(Class::Hrsp, Direction::In)], all[(Class::Snp, Direction::Out)]);
    assert_eq!(all[(Class::Hrsp, Direction::Out)], all[(Class::Snp, Direction::In)]);
}

#[test]
fn data_out_is_data_in_and_directories_list_every_copy() {
    for (seed, protocol) in (0..).zip(variants()) {
        let mut spec = machine(&[0, 0, 1, 1, 2, 2], 3000, &protocol);
        spec.protocol.directory_lines = Some(4000);
        let mut engine = Engine::new(&spec, 64 * LINE);
        let placed = [Placed::FirstTouch, Placed::Interleaved, Placed::At(3)];
        let data: Vec<RegionId> =
            placed.into_iter().map(|placed| engine.register(300_000, placed)).collect();
        random_use(&mut engine, &data, 300_000, 5 * LINE, seed, 3000);
        consistent(&engine);
        conserved(&engine.traffic());
    }
}

#[test]
fn a_full_directory_calls_copies_in() {
    let mut spec = bullion();
    spec.protocol.directory_lines = Some(1000);
    let mut engine = Engine::new(&spec, LINE);
    let data = engine.register(LINE * 3000, Placed::At(0));
    engine.touch(2, data, 0, LINE * 3000, Touch::Read, 1.0);
    let (listed, most, evicted) = engine.directories().next().expect("one a module");
    assert_eq!((listed, most, evicted), (1000, 1001, 2000));
    let traffic = engine.traffic();
    assert_eq!(traffic[1][(Class::Snp, Direction::Out)], 2 * 2000, "both sockets are asked");
    assert_eq!(traffic[0][(Class::Snp, Direction::In)], 0, "and nobody asked for that");
    consistent(&engine);
}

#[test]
fn parts_of_a_chunk_have_states_of_their_own() {
    let mut engine = Engine::new(&bullion(), CHUNK_BYTES);
    let data = engine.register(2 * CHUNK_BYTES, Placed::At(0));
    engine.touch(0, data, 0, 2 * CHUNK_BYTES, Touch::Write, 1.0);
    engine.begin_task();
    // The last ten lines of the first chunk and the first two of the second.
    engine.touch(2, data, CHUNK_BYTES - 10 * LINE, 12 * LINE, Touch::Read, 1.0);
    assert_eq!(engine.tally().waited[0], 12);
    assert_eq!(engine.tally().touches, 2);
    let parts: Vec<u32> = engine.units.iter().map(|unit| unit.next).collect();
    assert_eq!(parts, [2, 3, units::NO_UNIT, units::NO_UNIT]);
    engine.begin_task();
    engine.touch(0, data, 0, 2 * CHUNK_BYTES, Touch::Write, 1.0);
    // Only what was shared is taken back.
    assert_eq!(engine.tally().traffic[1][(Class::Snp, Direction::Out)], 2 * 12);
    consistent(&engine);
    let order = engine.caches[0].order();
    assert_eq!(order, [3, 1, 2, 0], "parts stand beside each other, the last used first");
}

#[test]
fn further_passes_fetch_and_write_again() {
    let mut engine = Engine::new(&bullion(), CHUNK_BYTES);
    let data = engine.register(CHUNK_BYTES, Placed::At(0));
    engine.touch(2, data, 0, CHUNK_BYTES, Touch::Read, 2.5);
    assert_eq!(engine.tally().memory_reads[0], 2560);
    assert_eq!(engine.tally().memory_writes[0], 0);
    engine.begin_task();
    engine.touch(4, data, 0, CHUNK_BYTES, Touch::Write, 3.0);
    let tally = engine.tally();
    assert_eq!((tally.memory_reads[0] + tally.from_caches, tally.memory_writes[0]), (3072, 2048));
    engine.begin_task();
    engine.touch(4, data, 0, CHUNK_BYTES, Touch::Write, 3.0);
    assert_eq!(engine.tally().memory_reads[0], 0, "it is there");
    consistent(&engine);
}

#[test]
fn the_first_to_touch_gets_the_memory() {
    let mut engine = Engine::new(&bullion(), CHUNK_BYTES);
    let data = engine.register(3 * CHUNK_BYTES, Placed::FirstTouch);
    engine.touch(5, data, CHUNK_BYTES, CHUNK_BYTES, Touch::Write, 1.0);
    assert_eq!(engine.tally().first_touched, 1024);
    engine.touch(9, data, 0, 3 * CHUNK_BYTES, Touch::Read, 1.0);
    assert_eq!((engine.units[0].home, engine.units[1].home), (9, 5));
    engine.free(data);
    assert!(engine.units.iter().all(|unit| unit.holders.is_empty()));
    consistent(&engine);
}

/// What all switches counted, class by class.
fn classes(engine: &Engine) -> Vec<u64> {
    let traffic = engine.traffic();
    let both = |class| {
        let of = |one: &Traffic| one[(class, Direction::In)] + one[(class, Direction::Out)];
        traffic.iter().map(of).sum()
    };
    Class::ALL.into_iter().map(both).collect()
}

/// Tiles of a factorisation, each read and written by random nodes: what a cache holds is some tiles, as on
/// the real machine, and the grains must count the same within five in a hundred.
#[test]
fn chunks_count_what_lines_count() {
    let mut spec = machine(&[0, 0, 1, 1], 20_000, &bullion().protocol);
    for (directory, placed) in
        [(None, Placed::Interleaved), (None, Placed::FirstTouch), (Some(9000), Placed::Interleaved)]
    {
        spec.protocol.directory_lines = directory;
        let run = |chunk: u64| {
            let mut engine = Engine::new(&spec, chunk);
            let (tile, tiles) = (256 * 1024, 60);
            let data: Vec<RegionId> = (0..tiles).map(|_| engine.register(tile, placed)).collect();
            random_use(&mut engine, &data, tile, tile / 4, 7, 2500);
            classes(&engine)
        };
        let (lines, chunks) = (run(LINE), run(CHUNK_BYTES / 4));
        for (class, (exact, coarse)) in Class::ALL.iter().zip(lines.iter().zip(&chunks)) {
            let off = crate::number::real(exact.abs_diff(*coarse)) / crate::number::real(*exact);
            assert!(off < 0.05, "{class:?}: {exact} line by line, {coarse} in chunks, {placed:?}");
        }
    }
}
