//! A synthetic machine as the ground of experiments: a whole map in virtual time, of which the truth is known.
//!
//! What is timed comes from `isochrone_sim::synthetic` and the modelled targets of `probe`; what a run waits for in
//! between is in [`costs`]. One thread measures at a time, but for what is played together: several cores that decode
//! at once are not modelled, so a pass over memory takes as long as one core does.
//!
//! Memory of block latency and of line transfers lies in the first region, as that of a program does whose one thread
//! maps it.

mod clock;
mod costs;
mod memory;
mod regions;
mod share;
mod stage;
mod triad;
mod truth;

use std::cell::Cell;
use std::collections::BTreeMap;

use isochrone_atlas_store::contents::{Clock, Contents, Fingerprint, LlcShare, Provenance};
use isochrone_host::{Disturbance, fingerprint, reach};
use isochrone_machine::{Machine, MachineState};
use isochrone_probe::bandwidth::{ArraySizes, ModelTriad, TriadTarget};
use isochrone_probe::target::{Target, TargetClock, TargetError};
use isochrone_probe::transfer::Stage;
use isochrone_probe::watch::Watch;
use isochrone_sim::synthetic::{SpecError, SyntheticMemory, SyntheticSpec};
use isochrone_stats::derive_seed;
use isochrone_units::{CoreId, Level, PAGE_BYTES, Reading, RegionId};

use crate::ground::{Buffers, Ground};
use crate::run::{Part, Run};
use crate::size::{Memory, Wishes};
use crate::time::Schedule;

pub use clock::{VirtualClock, VirtualCourse};
pub use truth::Truth;

use costs::{THREAD_S, mapping_s};
use memory::VirtualTarget;
use regions::VirtualBuffers;
use stage::VirtualStage;
use triad::VirtualTriad;

/// Relative standard deviation of a run of the triad.
const TRIAD_SD: f64 = 0.01;
/// Pages in a huge page: a region's share of an arena is a multiple.
const PAGES_PER_HUGE: u64 = 512;

/// A synthetic machine.
#[derive(Debug)]
pub struct SyntheticGround {
    /// All regions.
    spec: SyntheticSpec,
    machine: Machine,
    target: Option<VirtualTarget>,
    /// Memory of the target once it is gone.
    arena: Option<SyntheticMemory>,
    seed: u64,
    clock: VirtualClock,
}

impl SyntheticGround {
    /// A machine in which so many bytes are mapped, whose pages can be timed; that time is not counted.
    ///
    /// # Errors
    /// For a machine that does not fit together.
    pub fn new(
        spec: SyntheticSpec,
        bytes: u64,
        seed: u64,
        clock: VirtualClock,
    ) -> Result<Self, SpecError> {
        let memory = SyntheticMemory::new(near(&spec).with_pages(bytes / PAGE_BYTES as u64))?;
        let target = Some(VirtualTarget::new(memory, clock.clone()));
        Ok(Self { machine: spec.description(), spec, target, arena: None, seed, clock })
    }

    /// The memory whose lines can be timed, or could until it was let go.
    fn memory(&self) -> Option<&SyntheticMemory> {
        self.target.as_ref().map(VirtualTarget::memory).or(self.arena.as_ref())
    }
}

/// The same machine with the memory of its first region alone.
fn near(spec: &SyntheticSpec) -> SyntheticSpec {
    let mut near = spec.clone();
    near.regions.truncate(1);
    near
}

/// A machine with so many bytes of buffer in each region. What flushing costs is counted where lines are flushed.
fn spread(spec: &SyntheticSpec, bytes: u64) -> SyntheticSpec {
    let each = bytes.div_ceil(PAGE_BYTES as u64).next_multiple_of(PAGES_PER_HUGE);
    let mut spread = spec.clone().with_pages(each * spec.regions.len() as u64);
    spread.costs.dram_prepare_cycles = 0.0;
    spread
}

impl Ground for SyntheticGround {
    fn clock(&self) -> TargetClock {
        let timer = &self.spec.timer;
        TargetClock { hz: timer.hz, tick: timer.tick_cycles, overhead: timer.overhead_cycles }
    }

    fn seconds(&self) -> f64 {
        self.clock.seconds()
    }

    fn target(&mut self) -> Option<&mut dyn Target> {
        self.target.as_mut().map(|target| target as &mut dyn Target)
    }

    fn method(&self, _: Level) -> String {
        "synthetic".to_owned()
    }

    fn let_go(&mut self) {
        if let Some(target) = self.target.take() {
            self.arena = Some(target.memory().clone());
        }
    }

    fn llc_shares(
        &mut self,
        cores: &[CoreId],
        sizes: &[u64],
        _: RegionId,
        seed: u64,
        keep_going: &dyn Fn() -> bool,
    ) -> Result<Vec<LlcShare>, TargetError> {
        let clock = self.clock.clone();
        let memory = self.memory().ok_or(TargetError::Stopped)?;
        clock.modelled(|| share::measure(memory, cores, sizes, seed, &clock, keep_going))
    }

    fn stage(
        &mut self,
        cores: &[CoreId],
        bytes: usize,
        seed: u64,
    ) -> Result<Box<dyn Stage>, TargetError> {
        self.clock.pass(mapping_s(bytes as u64) + THREAD_S * cores.len() as f64);
        let clock = self.clock.clone();
        let stage = || VirtualStage::new(near(&self.spec), bytes, seed, clock.clone());
        Ok(Box::new(clock.modelled(stage).map_err(unsound)?))
    }

    fn buffers(
        &mut self,
        regions: &[RegionId],
        bytes: u64,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Box<dyn Buffers>, TargetError> {
        for _ in regions {
            if !go_on() {
                return Err(TargetError::Stopped);
            }
            self.clock.pass(mapping_s(bytes));
        }
        let clock = self.clock.clone();
        let memory = clock.modelled(|| SyntheticMemory::new(spread(&self.spec, bytes)));
        let memory = memory.map_err(unsound)?;
        Ok(Box::new(VirtualBuffers::new(memory, regions.to_vec(), clock)))
    }

    fn arena(&mut self, region: RegionId) -> Option<Box<dyn Buffers>> {
        let memory = self.arena.take()?;
        Some(Box::new(VirtualBuffers::new(memory, vec![region], self.clock.clone())))
    }

    fn triad(&mut self, sizes: ArraySizes, _: bool) -> Box<dyn TriadTarget> {
        // A sound machine stays sound with less memory.
        let memory = SyntheticMemory::new(self.spec.clone().with_pages(PAGES_PER_HUGE));
        let memory = memory.unwrap_or_else(|why| unreachable!("{why}"));
        Box::new(VirtualTriad {
            inner: ModelTriad::new(memory, TRIAD_SD, derive_seed(self.seed, 2)),
            present: BTreeMap::new(),
            region: None,
            sizes,
            region_bytes: self.machine.regions.first().and_then(|region| region.bytes),
            clock: self.clock.clone(),
            begin_s: self.clock.seconds(),
        })
    }

    fn disturbance(&self, _: &[CoreId]) -> Box<dyn FnOnce() -> Disturbance> {
        let nobody = || Disturbance {
            others: Some(0.0),
            steal: Some(0.0),
            waits: Some(0.0),
            ..Disturbance::default()
        };
        Box::new(nobody)
    }

    fn modelled_cpu_s(&self) -> f64 {
        self.clock.modelled_s()
    }
}

fn unsound(why: SpecError) -> TargetError {
    TargetError::Unsupported(why.to_string())
}

/// What is surveyed.
#[derive(Clone, Debug)]
pub struct Order {
    /// The machine.
    pub spec: SyntheticSpec,
    /// How much of everything.
    pub wishes: Wishes,
    /// Which experiments, and until when.
    pub schedule: Schedule,
    /// Seed of every random order.
    pub seed: u64,
    /// Tells seconds of processor time of the calling thread.
    pub cpu_s: fn() -> f64,
}

/// A map that was made in virtual time.
#[derive(Clone, Debug)]
pub struct Surveyed {
    /// What was found.
    pub contents: Contents,
    /// What each experiment took.
    pub parts: Vec<Part>,
    /// Virtual seconds of all.
    pub seconds: f64,
    /// Bytes whose pages could be timed.
    pub memory_bytes: u64,
}

/// Makes a whole map of a synthetic machine, as `isochrone map` does of this one. `here` is told what is under way, and
/// may want an end.
///
/// # Errors
/// For a machine that does not fit together.
pub fn survey(order: Order, here: &mut dyn Watch) -> Result<Surveyed, SpecError> {
    let Order { spec, wishes, schedule, seed, cpu_s } = order;
    let clock = VirtualClock::default();
    let machine = spec.description();
    let total_bytes = machine.memory_bytes;
    let wanted = Memory::of(&wishes, total_bytes);
    let mapped = mapped(wanted.bytes, &schedule);
    clock.pass(mapping_s(mapped));
    let mut ground = SyntheticGround::new(spec, mapped, seed, clock.clone())?;
    let (words, hash) = fingerprint(&machine, &MachineState::default());
    let TargetClock { hz, tick, overhead } = ground.clock();
    let left_out = (wanted.bytes - mapped) >> 20;
    let short = (left_out > 0).then(|| {
        format!("memory: {left_out} MiB were left out, since there was no time to map more")
    });
    let atlas_clock = Clock { hz, tick_cycles: tick, overhead_cycles: overhead };
    let cores: Vec<CoreId> = machine.cores.iter().map(|core| CoreId(core.id)).collect();
    let mut contents = Contents {
        fingerprint: Fingerprint { words, hash },
        pages_keyed_by: "host frames".to_owned(),
        provenance: Provenance {
            version: env!("CARGO_PKG_VERSION").into(),
            seed,
            missing: wanted.note.into_iter().chain(short).collect(),
            ..Provenance::default()
        },
        ..Contents::begun(Reading::Simulated, machine, atlas_clock)
    };
    let (planned_s, clock_of) = (Cell::new(0.0), atlas_clock);
    let reach = reach(&contents.machine, &MachineState::default());
    let run = Run {
        wishes,
        schedule,
        seed,
        cores,
        reach,
        clock: clock_of,
        total_bytes,
        cpu_s,
        planned_s,
    };
    let mut course = VirtualCourse::new(clock.clone(), here);
    let parts = crate::all(&run, &mut ground, &mut contents, &mut course, &mut |_| ());
    contents.complete = here.keep_going();
    contents.provenance.seconds = clock.seconds();
    Ok(Surveyed { contents, parts, seconds: clock.seconds(), memory_bytes: mapped })
}

/// Bytes that are mapped in the time that there is for it, whole huge pages.
fn mapped(wanted: u64, schedule: &Schedule) -> u64 {
    let huge = PAGES_PER_HUGE * PAGE_BYTES as u64;
    let fits = |bytes: u64| {
        schedule.memory_ends().is_none_or(|ends| mapping_s(bytes) <= ends.as_secs_f64())
    };
    let mut mapped = wanted;
    while mapped > huge && !fits(mapped) {
        mapped -= huge;
    }
    mapped
}
