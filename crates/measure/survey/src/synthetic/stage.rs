//! Scenes of any number of cores in virtual time.
//!
//! What a scene costs in truth is asked of [`ModelStage`], scene by scene and without noise: its directory says whether
//! the plan brought lines into the states that it claims. Noise is drawn here, from a table of the machine's own, since
//! a sweep over all pairs of hundreds of cores has billions of samples. Scenes that are played together take the time
//! of the longest.

use isochrone_probe::target::{TargetClock, TargetError};
use isochrone_probe::transfer::scene::check;
use isochrone_probe::transfer::{Act, ModelStage, Part, Samples, Scene, Stage};
use isochrone_sim::synthetic::{Event, SpecError, SyntheticMemory, SyntheticSpec};
use isochrone_stats::{Rng as _, Xoshiro256PlusPlus, derive_seed, rng};
use isochrone_units::{CoreId, Cycles, LINES_PER_PAGE, PAGE_BYTES};

use super::clock::VirtualClock;
use super::costs::{GATHER_S, HAND_OVER_S, MEETING_S};

/// Errors in the table from which noise is drawn: one for each number of 16 bits.
const NOISES: usize = 1 << 16;
/// Something of this length is disturbed to fill the table, cycles.
const DISTURBED_CYCLES: f64 = 1000.0;

/// Cores of a synthetic machine, and lines in its first region.
#[derive(Debug)]
pub(super) struct VirtualStage {
    /// Without noise; as many cores as a scene has are put to the places of that scene's.
    spec: SyntheticSpec,
    /// For each number of cores that a scene had.
    quiet: Vec<SyntheticMemory>,
    /// Physical core of each core.
    wears: Vec<u16>,
    cores: Vec<CoreId>,
    noises: Vec<i32>,
    random: Xoshiro256PlusPlus,
    /// What each other scene that is played at the same time adds to a sample, cycles.
    parallel_cycles: f64,
    clock: VirtualClock,
    begin_s: f64,
}

/// A scene without others and without noise, two repeats: the second tells of all later ones.
struct Alone {
    /// By part, the samples of both repeats.
    raw: Vec<Vec<Cycles>>,
    /// Seconds of each.
    took_s: Vec<f64>,
}

impl VirtualStage {
    /// A stage of all cores of a machine of which `spec` has one region.
    pub(super) fn new(
        spec: SyntheticSpec,
        bytes: usize,
        seed: u64,
        clock: VirtualClock,
    ) -> Result<Self, SpecError> {
        let spec = spec.with_pages((bytes / PAGE_BYTES) as u64);
        let noises = noises(&spec)?;
        let (begin_s, parallel_cycles) = (clock.seconds(), spec.transfers.parallel_cycles);
        let wears = spec.wears.clone();
        let cores = (0..=u16::MAX).take(wears.len()).map(CoreId).collect();
        let (spec, quiet, random) = (spec.noiseless(), Vec::new(), rng(derive_seed(seed, 1)));
        Ok(Self { spec, quiet, wears, cores, noises, random, parallel_cycles, clock, begin_s })
    }

    /// A memory that so many cores ask.
    fn quiet(&mut self, cores: usize) -> Result<SyntheticMemory, TargetError> {
        while self.quiet.len() <= cores {
            let count = u16::try_from(self.quiet.len().max(1)).unwrap_or(u16::MAX);
            let memory = SyntheticMemory::new(self.spec.clone().with_cores(count));
            self.quiet.push(memory.map_err(|why| unsupported(&why))?);
        }
        Ok(self.quiet[cores].clone())
    }

    fn alone(&mut self, scene: &Scene) -> Result<Alone, TargetError> {
        let mut cores: Vec<CoreId> = scene.parts.iter().map(|part| part.core).collect();
        cores.sort_unstable();
        let mut memory = self.quiet(cores.len())?;
        for (core, asked) in (0..).map(CoreId).zip(&cores) {
            let to = self.wears[usize::from(asked.0)];
            memory.inject(Event::CoreMoves { core, to }).map_err(|why| unsupported(&why))?;
        }
        let seated = |part: &Part| {
            let at = cores.binary_search(&part.core).ok().and_then(|at| u16::try_from(at).ok());
            Part { core: CoreId(at.unwrap_or(0)), acts: part.acts.clone() }
        };
        let scene = Scene { parts: scene.parts.iter().map(seated).collect() };
        let mut stage = ModelStage::new(memory);
        let mut played = stage.play(std::slice::from_ref(&scene), 2)?;
        let parts = played.pop().unwrap_or_default();
        let took_s = parts.first().map(|samples| samples.took_s.clone()).unwrap_or_default();
        Ok(Alone { raw: parts.into_iter().map(|samples| samples.raw).collect(), took_s })
    }

    /// The samples of one part: the truth of each, and noise as long as what is timed.
    fn disturbed(&mut self, part: &Part, truth: &[Cycles], added: i64, repeats: u32) -> Samples {
        let scales: Vec<i64> = part.acts.iter().flat_map(scales).collect();
        let each = scales.len();
        let mut raw = Vec::with_capacity(each * repeats as usize);
        let (mut bits, mut left) = (0_u64, 0_u32);
        for repeat in 0..repeats as usize {
            let truth = truth.iter().skip(each * repeat.min(1));
            for (truth, scale) in truth.zip(&scales) {
                if left == 0 {
                    (bits, left) = (self.random.next_u64(), 4);
                }
                let drawn = usize::try_from(bits).unwrap_or(usize::MAX) % NOISES;
                let noise = i64::from(self.noises[drawn]);
                (bits, left) = (bits >> 16, left - 1);
                let cycles = i64::from(truth.0) + scale * (noise + added);
                raw.push(Cycles(u32::try_from(cycles.max(0)).unwrap_or(u32::MAX)));
            }
        }
        Samples { per_repeat: each, raw, overhead: None, took_s: Vec::new() }
    }

    fn played(&mut self, scenes: &[Scene], repeats: u32) -> Result<Vec<Vec<Samples>>, TargetError> {
        let others = scenes.len().saturating_sub(1) as f64;
        let added = rounded(self.parallel_cycles * others);
        let mut played = Vec::with_capacity(scenes.len());
        let mut took_s = [0.0_f64; 2];
        for scene in scenes {
            let alone = self.alone(scene)?;
            let steps = scene.parts.first().map_or(0, |part| part.acts.len()) as f64;
            for (longest, took_s) in took_s.iter_mut().zip(&alone.took_s) {
                *longest = longest.max(took_s + steps * MEETING_S);
            }
            let parts = scene.parts.iter().zip(&alone.raw);
            played
                .push(parts.map(|(part, raw)| self.disturbed(part, raw, added, repeats)).collect());
        }
        let each: Vec<f64> = (0..repeats as usize).map(|repeat| took_s[repeat.min(1)]).collect();
        let parts: usize = scenes.iter().map(|scene| scene.parts.len()).sum();
        let samples: usize =
            played.iter().flatten().map(|samples: &Samples| samples.raw.len()).sum();
        self.clock.pass(HAND_OVER_S * parts as f64 + each.iter().sum::<f64>());
        self.clock.pass(GATHER_S * samples as f64);
        let all = played.iter_mut().flatten();
        all.for_each(|samples: &mut Samples| samples.took_s.clone_from(&each));
        Ok(played)
    }
}

impl Stage for VirtualStage {
    fn cores(&self) -> &[CoreId] {
        &self.cores
    }

    fn lines(&self) -> u64 {
        self.spec.arena.pages * LINES_PER_PAGE as u64
    }

    fn clock(&self) -> TargetClock {
        let timer = &self.spec.timer;
        TargetClock { hz: timer.hz, tick: timer.tick_cycles, overhead: timer.overhead_cycles }
    }

    fn play(&mut self, scenes: &[Scene], repeats: u32) -> Result<Vec<Vec<Samples>>, TargetError> {
        let clock = self.clock.clone();
        clock.modelled(|| {
            check(scenes, &self.cores, self.lines())?;
            self.played(scenes, repeats)
        })
    }

    fn seconds(&mut self) -> f64 {
        self.clock.seconds() - self.begin_s
    }
}

/// How many single transfers each sample of an act holds.
fn scales(act: &Act) -> Vec<i64> {
    let scale = match act {
        Act::Ping { trips, .. } => 2 * i64::from(*trips),
        _ => 1,
    };
    vec![scale; act.samples()]
}

/// By how much samples of the machine differ from the truth, cycles.
fn noises(spec: &SyntheticSpec) -> Result<Vec<i32>, SpecError> {
    let mut memory = SyntheticMemory::new(spec.clone().with_cores(1))?;
    let truth = DISTURBED_CYCLES + spec.timer.overhead_cycles;
    let mut one = || {
        let cycles = memory.sample_cycles(CoreId(0), DISTURBED_CYCLES);
        i32::try_from(rounded(f64::from(cycles.0) - truth)).unwrap_or(i32::MAX)
    };
    Ok((0..NOISES).map(|_| one()).collect())
}

#[allow(clippy::cast_possible_truncation, reason = "cycles of one sample, far below 2^53")]
fn rounded(cycles: f64) -> i64 {
    cycles.round() as i64
}

fn unsupported(why: &SpecError) -> TargetError {
    TargetError::Unsupported(why.to_string())
}
