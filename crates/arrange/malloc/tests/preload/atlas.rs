//! An atlas in which nothing has to be timed, and what others are made of.

use isochrone_atlas_store::contents::{Base, Clock, Contents, Form, LevelMap};
use isochrone_machine::{Core, Machine};
use isochrone_units::Reading;

/// Cores of the machine.
const CORES: u16 = 64;

/// An atlas of a machine whose lines are all alike: placing by it takes no timing, so that what is
/// tested is the allocator and not the machine.
pub(crate) fn flat_atlas() -> Vec<u8> {
    atlas(level("llc", 40.0))
}

/// A level all of whose lines are so many cycles away.
pub(crate) fn level(level: &str, cycles: f32) -> LevelMap {
    LevelMap {
        level: level.to_owned(),
        form: Form::Flat,
        reason: "made for a test".to_owned(),
        method: "none".to_owned(),
        period: 64,
        classes: 1,
        canonical_key: vec![0; 64],
        bases: vec![Base { core: 0, patterns: vec![vec![cycles; 64]], rounds: 1 }],
        core_base: vec![Some(0); usize::from(CORES)],
        probe_lines: vec![0],
        noise_cycles: 1.0,
        code_share: vec![1.0; 64],
        quality: Vec::new(),
        lines: Vec::new(),
        penalties: None,
    }
}

/// An atlas with this last-level cache.
pub(crate) fn atlas(llc: LevelMap) -> Vec<u8> {
    let cores = (0..CORES).map(|id| Core { id, ..Core::default() }).collect();
    let contents = Contents {
        complete: true,
        levels: vec![llc, level("dram", 340.0)],
        ..Contents::begun(
            Reading::Simulated,
            Machine { name: "made".to_owned(), cores, ..Machine::default() },
            Clock { hz: 1e9, tick_cycles: 1, overhead_cycles: 0.0 },
        )
    };
    isochrone_atlas_store::encode(&contents).expect("a sound atlas")
}
