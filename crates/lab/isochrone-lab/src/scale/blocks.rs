//! How far the latencies that an atlas tells of lines are from the truth, asked as a program asks them.

use anyhow::{Result, anyhow};
use isochrone_atlas::Atlas;
use isochrone_atlas_store::contents::{Clock, Contents};
use isochrone_atlas_store::encode;
use isochrone_probe::block::{BlockPlan, map_blocks};
use isochrone_probe::synthetic::SyntheticTarget;
use isochrone_probe::watch::Silent;
use isochrone_sim::synthetic::{SyntheticMemory, SyntheticSpec};
use isochrone_stats::{below, derive_seed, median, rng};
use isochrone_survey::synthetic::{Order, Surveyed, Truth};
use isochrone_units::{CoreId, LINES_PER_PAGE, Level, LineAddr, PageAddr, Reading};

use super::errors::{Errors, Seen};

/// Lines that are asked for at each level.
const ASKED: usize = 4000;
/// Cores of which all are learnt in full, and the memory that they decode.
const FULL_CORES: usize = 2;
const FULL_BYTES: u64 = 16 << 20;
/// Half of a 95 % interval, in standard errors.
const Z: f64 = 1.96;

/// Errors of both levels.
pub(super) fn errors(order: &Order, surveyed: &Surveyed) -> Result<Vec<Errors>> {
    let contents = &surveyed.contents;
    if contents.levels.is_empty() {
        return Ok(Vec::new());
    }
    let seed = derive_seed(order.seed, 106);
    let memory = Truth::memory(&order.spec, surveyed.memory_bytes)?;
    let [full, truth] = [(); 2].map(|()| Truth::memory(&few(&order.spec), FULL_BYTES));
    let (full, truth) = (in_full(full?, order.seed)?, truth?);
    let mut all = Vec::new();
    for level in &contents.levels {
        let seen = seen(contents, &level.level, &memory, seed)?;
        let exhaustive = self::seen(&full, &level.level, &truth, seed)?;
        let what = format!("latency of lines, {}", level.level);
        all.push(seen.errors(&what, Some(&exhaustive)));
    }
    Ok(all)
}

/// The same machine with a few of its cores, far apart.
fn few(spec: &SyntheticSpec) -> SyntheticSpec {
    let step = spec.wears.len().div_ceil(FULL_CORES);
    let wears = spec.wears.iter().copied().step_by(step).collect();
    SyntheticSpec { wears, ..spec.clone() }
}

/// A map of all levels with nothing left out.
fn in_full(memory: SyntheticMemory, seed: u64) -> Result<Contents> {
    let timer = memory.timer();
    let clock = Clock {
        hz: timer.hz,
        tick_cycles: timer.tick_cycles,
        overhead_cycles: timer.overhead_cycles,
    };
    let (machine, pages) = (memory.spec().description(), memory.pages());
    let mut target = SyntheticTarget::new(memory);
    let plan = BlockPlan::full(pages, derive_seed(seed, 107));
    let method = |_: Level| "synthetic".to_owned();
    let map = map_blocks(&mut target, &plan, &method, &mut Silent)?;
    let begun = Contents::begun(Reading::Simulated, machine, clock);
    let pages_keyed_by = "host frames".to_owned();
    Ok(Contents { levels: map.levels, pages: map.pages, pages_keyed_by, ..begun })
}

/// Random lines from random cores, as an atlas has them and in truth.
fn seen(contents: &Contents, level: &str, memory: &SyntheticMemory, seed: u64) -> Result<Seen> {
    let bytes = encode(contents)?;
    let atlas = Atlas::open(&bytes).map_err(|error| anyhow!("{error}"))?;
    let at = Level::ALL.into_iter().find(|one| one.as_str() == level);
    let at = at.ok_or_else(|| anyhow!("{level} is no level"))?;
    let mut random = rng(seed);
    let mut draw = |below_this: u64| below(&mut random, below_this);
    let half_width = half_width(contents, level);
    let mut seen = Seen::default();
    for _ in 0..ASKED {
        let core = u16::try_from(draw(memory.cores() as u64)).unwrap_or(0);
        let page = PageAddr(draw(memory.pages()));
        let line = u8::try_from(draw(LINES_PER_PAGE as u64)).unwrap_or(0);
        let physical = memory
            .truth_frame(page)
            .map(|frame| LineAddr(frame * LINES_PER_PAGE as u64 + u64::from(line)));
        let told = physical.and_then(|physical| atlas.latency(CoreId(core), at, physical));
        let truth = memory.truth_latency(CoreId(core), at, page.line(line)).ok();
        let told = told.map(f64::from);
        let interval = told.zip(half_width).map(|(ns, half)| [ns - half, ns + half]);
        seen.add(told, interval, truth);
    }
    Ok(seen)
}

/// Half of the interval of a line of a base, cycles: by the noise of one load and the rounds behind it.
fn half_width(contents: &Contents, level: &str) -> Option<f64> {
    let map = contents.levels.iter().find(|map| map.level == level)?;
    let rounds: Vec<f64> = map.bases.iter().map(|base| f64::from(base.rounds)).collect();
    let rounds = median(&rounds).filter(|rounds| *rounds > 0.0)?;
    Some(Z * map.noise_cycles / rounds.sqrt())
}
