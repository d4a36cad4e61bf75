//! A modelled machine for the tests: synthetic memory behind [`Timing`], and an atlas of it made
//! from its truth. The classifier sees samples and that atlas; the tests see the truth.

use super::timing::Timing;
use isochrone_atlas::{Code, PatternTable, Penalties, Period, TABLE_ENTRIES};
use isochrone_atlas_store::contents::{Base, Clock, Contents, Form, LevelMap, PageBlock};
use isochrone_atlas_store::encode;
use isochrone_machine::{Core, Machine};
use isochrone_os::OsError;
use isochrone_sim::synthetic::{SampleError, SyntheticMemory, SyntheticSpec};
use isochrone_units::{CoreId, Cycles, Level, LineAddr, PageAddr, Reading};
use std::boxed::Box;
use std::string::String;
use std::vec;
use std::vec::Vec;

/// Synthetic memory, timed by a thread that is on one core at a time.
#[derive(Debug)]
pub(super) struct Modelled {
    pub(super) memory: SyntheticMemory,
    pub(super) core: CoreId,
}

impl Modelled {
    pub(super) fn new(spec: SyntheticSpec) -> Self {
        Self { memory: SyntheticMemory::new(spec).expect("a sound spec"), core: CoreId(0) }
    }

    /// Mean square error of a prediction for a page, as a share of the variance of all lines.
    pub(super) fn misfit(
        &self,
        level: Level,
        of: PageAddr,
        code: Code,
        base: &[f32; TABLE_ENTRIES],
    ) -> f64 {
        let truth = |line| self.memory.truth_latency(self.core, level, line).unwrap();
        let square: f64 = (0..64_u8)
            .map(|i| {
                let predicted = f64::from(base[usize::from(code.0 ^ u16::from(i))]);
                (predicted - truth(of.line(i))).powi(2) / 64.0
            })
            .sum();
        square / variance(&self.memory.truth_base(self.core, level).unwrap().concat())
    }
}

fn variance(values: &[f64]) -> f64 {
    let count = f64::from(u32::try_from(values.len()).unwrap());
    let mean = values.iter().sum::<f64>() / count;
    values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / count
}

impl Timing for Modelled {
    fn core(&self) -> CoreId {
        self.core
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "virtual time")]
    fn now_ns(&self) -> u64 {
        (self.memory.seconds() * 1e9) as u64
    }

    fn overhead_cycles(&self) -> f32 {
        narrow(self.memory.timer().overhead_cycles)
    }

    fn tick_cycles(&self) -> u32 {
        self.memory.timer().tick_cycles
    }

    fn together(&self, level: Level) -> usize {
        if level == Level::Llc { 4096 } else { 16 }
    }

    fn prepare(&mut self, _: Level, _: &[LineAddr], _: u64) -> Result<bool, OsError> {
        Ok(true)
    }

    fn abandon(&mut self) {}

    fn time(
        &mut self,
        level: Level,
        lines: &[LineAddr],
        out: &mut [Cycles],
    ) -> Result<(), OsError> {
        match self.memory.sample(self.core, level, lines, out) {
            Ok(()) => {}
            Err(SampleError::Moved { found, .. }) => self.core = found,
            Err(error) => panic!("{error}"),
        }
        Ok(())
    }

    fn frames(&self, first: PageAddr, out: &mut [Option<u64>]) {
        for (page, slot) in (first.0..).zip(out) {
            *slot = self.memory.frame(PageAddr(page));
        }
    }
}

#[allow(clippy::cast_possible_truncation, reason = "rounding to f32 is the purpose")]
fn narrow(value: f64) -> f32 {
    value as f32
}

/// The bytes of an atlas of this memory: bases of the physical cores named, in that order, as the
/// dictionary; `pages` puts the codes of all pages into it too.
pub(super) fn atlas_of(memory: &SyntheticMemory, physical: &[u16], pages: bool) -> Vec<u8> {
    let cores: Vec<u16> = (0..u16::try_from(memory.cores()).unwrap()).collect();
    let levels: Vec<LevelMap> =
        Level::ALL.into_iter().map(|level| level_of(memory, level, physical)).collect();
    let timer = memory.timer();
    let contents = Contents {
        complete: true,
        pages_keyed_by: if pages { "guest frames" } else { "none" }.into(),
        pages: if pages { blocks(memory, &levels) } else { Vec::new() },
        levels,
        ..Contents::begun(
            Reading::Simulated,
            Machine {
                cores: cores.iter().map(|id| Core { id: *id, ..Core::default() }).collect(),
                ..Machine::default()
            },
            Clock {
                hz: timer.hz,
                tick_cycles: timer.tick_cycles,
                overhead_cycles: timer.overhead_cycles,
            },
        )
    };
    encode(&contents).expect("contents that agree")
}

fn code_of(memory: &SyntheticMemory, level: Level, page: PageAddr, canonical: &[u8]) -> u16 {
    let code = memory.truth_code(level, page).expect("the form holds");
    let period = u16::try_from(canonical.len()).expect("a period");
    u16::from(code.class) * period + u16::from(canonical[usize::from(code.key)])
}

fn blocks(memory: &SyntheticMemory, levels: &[LevelMap]) -> Vec<PageBlock> {
    let mut blocks = std::collections::BTreeMap::new();
    for page in (0..memory.pages()).map(PageAddr) {
        let frame = memory.truth_frame(page).unwrap();
        let block = blocks.entry(frame / 512).or_insert_with(|| PageBlock {
            first_frame: frame / 512 * 512,
            llc: Box::new([u16::MAX; 512]),
            dram: Box::new([u16::MAX; 512]),
        });
        let place = usize::try_from(frame % 512).unwrap();
        block.llc[place] = code_of(memory, Level::Llc, page, &levels[0].canonical_key);
        block.dram[place] = code_of(memory, Level::Dram, page, &levels[1].canonical_key);
    }
    blocks.into_values().collect()
}

fn level_of(memory: &SyntheticMemory, level: Level, physical: &[u16]) -> LevelMap {
    let base = |core: &u16| {
        let patterns = memory.truth_base_of(*core, level).expect("the level is there");
        let single = patterns.iter().map(|p| p.iter().map(|v| narrow(*v)).collect()).collect();
        Base { core: *core, patterns: single, rounds: 9 }
    };
    let bases: Vec<Base> = physical.iter().map(base).collect();
    let period = bases[0].patterns[0].len();
    let canonical = canonical_keys(&bases, period);
    let mut share = vec![0.0_f32; bases[0].patterns.len() * period];
    for page in (0..memory.pages()).map(PageAddr) {
        share[usize::from(code_of(memory, level, page, &canonical))] += 1.0;
    }
    let core_base = |core| {
        let now = memory.truth_wears(CoreId(core))?;
        let place = physical.iter().position(|p| *p == now)?;
        u16::try_from(place).ok()
    };
    let (penalties, noise) = density(memory, level);
    LevelMap {
        level: level.as_str().into(),
        form: Form::Pattern,
        reason: String::new(),
        method: String::new(),
        period: u16::try_from(period).unwrap(),
        classes: u8::try_from(bases[0].patterns.len()).unwrap(),
        canonical_key: canonical,
        bases,
        core_base: (0..u16::try_from(memory.cores()).unwrap()).map(core_base).collect(),
        probe_lines: vec![0, 9, 18, 27, 36, 45, 54, 63, 4, 14, 40, 50],
        noise_cycles: noise,
        code_share: share,
        quality: Vec::new(),
        lines: Vec::new(),
        penalties: Some(penalties),
    }
}

/// For every key the smallest that all bases call alike.
fn canonical_keys(bases: &[Base], period: usize) -> Vec<u8> {
    let kind = Period::from_lines(u16::try_from(period).unwrap()).unwrap();
    let tables: Vec<PatternTable> = bases
        .iter()
        .map(|b| PatternTable::new(kind, b.patterns.iter().map(Vec::as_slice)).unwrap())
        .collect();
    let alike = |a, b| tables.iter().all(|t| t.key_correlation(a, b) >= 0.98);
    (0..=u8::MAX)
        .take(period)
        .map(|key| (0..key).find(|other| alike(*other, key)).unwrap_or(key))
        .collect()
}

/// What residuals cost, from many of them, as the probe finds it; and their deviation.
fn density(memory: &SyntheticMemory, level: Level) -> (Penalties, f64) {
    let mut memory = memory.clone();
    let lines: Vec<LineAddr> =
        (0..64).flat_map(|i| (0..memory.pages()).map(move |p| PageAddr(p).line(i))).collect();
    let overhead = memory.timer().overhead_cycles;
    let mut all: Vec<f64> = Vec::new();
    for _ in 0..4 {
        let mut out = vec![Cycles(0); lines.len()];
        memory.sample(CoreId(0), level, &lines, &mut out).expect("lines of the arena");
        all.extend(lines.iter().zip(&out).map(|(line, sample)| {
            let truth = memory.truth_latency(CoreId(0), level, *line).unwrap();
            f64::from(sample.0) - overhead - truth
        }));
    }
    let kept: Vec<f64> = all.iter().copied().filter(|r| r.abs() < 160.0).collect();
    let count = f64::from(u32::try_from(kept.len()).unwrap());
    let shift = kept.iter().sum::<f64>() / count;
    let sd = (kept.iter().map(|r| (r - shift).powi(2)).sum::<f64>() / count).sqrt();
    let step = 5.0 * sd / 128.0;
    let tick = f64::from(memory.timer().tick_cycles);
    let cells = Cells::new(kept.iter().map(|r| r - shift));
    let mut nats = [0.0; 256];
    for (entry, nat) in (0_u16..).zip(&mut nats) {
        let share = cells.tooth_share((f64::from(entry) - 128.0) * step, tick);
        *nat = narrow(-(0.97 * share + 0.03 / 256.0).ln());
    }
    (Penalties { step_cycles: narrow(step), nats }, sd)
}

/// Residuals within 256 cycles, counted in quarters of one.
struct Cells(Vec<f64>);

impl Cells {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    fn new(residuals: impl Iterator<Item = f64>) -> Self {
        let mut cells = vec![0.0; 2048];
        residuals.for_each(|r| cells[((r + 256.0) * 4.0).clamp(0.0, 2047.0) as usize] += 1.0);
        Self(cells)
    }

    /// How likely a residual near `at` is, of those that the clock can show. Readings are whole
    /// ticks: of a line with a given latency, residuals lie on a comb, and only which tooth says
    /// anything.
    fn tooth_share(&self, at: f64, tick: f64) -> f64 {
        let width = if tick < 8.0 { 1.0 } else { 2.5 };
        let kernel = |d: f64| (-0.5 * (d / width).powi(2)).exp();
        let (mut here, mut any) = (1e-9, 1e-6);
        for (place, count) in (0_u32..).zip(&self.0).filter(|(_, count)| **count > 0.0) {
            let distance = f64::from(place) / 4.0 - 256.0 - at;
            here += count * kernel(distance);
            // The same reading, whichever tooth it fell on.
            any += count * kernel(distance - tick * (distance / tick).round());
        }
        here / any
    }
}
