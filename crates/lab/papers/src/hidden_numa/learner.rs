//! What the probe finds out about the simulated memory, as it would about a live one: the plan of
//! `isochrone map`, its experiment and its decoder, over samples with noise. It is told nothing
//! of the truth.

use isochrone_atlas_store::contents::LevelMap;
use isochrone_machine::{Constant, Value};
use isochrone_probe::block::{BlockPlan, UNKNOWN_CODE, map_blocks};
use isochrone_probe::sample::Sample;
use isochrone_probe::synthetic::SyntheticTarget;
use isochrone_probe::watch::Silent;
use isochrone_sim::synthetic::{SyntheticMemory, SyntheticSpec};
use isochrone_stats::derive_seed;
use isochrone_units::{CoreId, Level};
use isochrone_workloads::figure4::Database;

/// Lines of a page.
const PAGE_LINES: u16 = 64;
/// The seed of the experiment, derived from the memory's.
const SEED: u64 = 1;

/// The same memory, where a sample has the timer and the noise of the preset of this machine.
fn noisy(memory: &SyntheticMemory) -> Option<SyntheticMemory> {
    let spec = memory.spec().clone();
    let SyntheticSpec { timer, noise, .. } = SyntheticSpec::ring_knc(spec.seed);
    SyntheticMemory::new(SyntheticSpec { timer, noise, ..spec }).ok()
}

/// Maps the first `pages` of a memory in full. `None` where nothing can be measured.
pub(super) fn learn(memory: &SyntheticMemory, pages: u64) -> Option<Database> {
    let mut target = SyntheticTarget::new(noisy(memory)?);
    let cores: Vec<CoreId> = (0..=u16::MAX).map(CoreId).take(memory.cores()).collect();
    let plan = BlockPlan {
        // The chip has no cache that cores share.
        levels: vec![Level::Dram],
        ..BlockPlan::full(pages, derive_seed(memory.spec().seed, SEED))
    };
    let plan = plan.learning(Sample::learnt(false), &memory.spec().description(), &cores);
    let map = map_blocks(&mut target, &plan, &|_| "synthetic".to_owned(), &mut Silent).ok()?;
    let level = map.levels.first()?;
    let [_, codes] = &map.codes;
    let code = |(place, code): (u16, &u16)| match *code {
        UNKNOWN_CODE => UNKNOWN_CODE,
        // Where four pages are one block, its code and a page's place in it are the page's code.
        code => code ^ (place * PAGE_LINES),
    };
    let places = (0..level.period / PAGE_LINES).cycle();
    Some(Database { bases: bases(level), codes: places.zip(codes).map(code).collect() })
}

/// What each core was found to see.
fn bases(level: &LevelMap) -> Vec<Option<Vec<Vec<f32>>>> {
    let base = |number: &Option<u16>| {
        let base = level.bases.get(usize::from((*number)?))?;
        Some(base.patterns.clone())
    };
    level.core_base.iter().map(base).collect()
}

/// What the noise is made of, for a table.
pub(super) fn constants() -> Vec<Constant> {
    let SyntheticSpec { timer, noise, .. } = SyntheticSpec::ring_knc(0);
    let why = "the middling noise of synthetic machines, of which no machine is said: fixed before \
               this was first run";
    let of = |name: &str, number: f64, unit: &str| {
        Constant::new(name, Value::assumed(number, unit, why))
    };
    vec![
        of("deviation of one timed load", noise.dram_sd_cycles, "cycles"),
        of("loads that something lengthens", 100.0 * noise.outlier_probability, "%"),
        of("least that they are lengthened by", noise.outlier_cycles, "cycles"),
        of("step of the clock", f64::from(timer.tick_cycles), "cycles"),
        of("cost of timing nothing", timer.overhead_cycles, "cycles"),
    ]
}
