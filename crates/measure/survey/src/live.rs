//! This machine as the ground of experiments.

use std::sync::Arc;
use std::time::Instant;

use isochrone_atlas_store::contents::LlcShare;
use isochrone_host::{Disturbance, Meter};
use isochrone_os::OsError;
use isochrone_os::mapping::{Backing, Mapping};
use isochrone_probe::bandwidth::{ArraySizes, LiveTriad, TriadTarget};
use isochrone_probe::capacity;
use isochrone_probe::live::LiveTarget;
use isochrone_probe::region::{LiveRegions, RegionBuffers};
use isochrone_probe::target::{Target, TargetClock, TargetError};
use isochrone_probe::transfer::{LiveStage, Stage};
use isochrone_units::{CoreId, Level, LineAddr, RegionId};

use crate::ground::{Buffers, Chased, Ground};

/// This machine.
#[derive(Debug)]
pub struct LiveGround {
    /// Bound to cores; block latency alone needs it.
    target: Option<LiveTarget>,
    methods: [String; 2],
    clock: TargetClock,
    /// Memory of the target, once that is gone.
    arena: Option<Mapping>,
    /// When the run began: experiments have clocks of their own.
    begin: Instant,
}

impl LiveGround {
    /// A run that began then, with memory that is mapped.
    #[must_use]
    pub fn new(target: LiveTarget, begin: Instant) -> Self {
        let methods = Level::ALL.map(|level| target.method(level));
        Self { clock: target.clock(), target: Some(target), methods, arena: None, begin }
    }
}

impl Ground for LiveGround {
    fn clock(&self) -> TargetClock {
        self.clock
    }

    fn seconds(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }

    fn target(&mut self) -> Option<&mut dyn Target> {
        self.target.as_mut().map(|target| target as &mut dyn Target)
    }

    fn method(&self, level: Level) -> String {
        self.methods[level as usize].clone()
    }

    fn let_go(&mut self) {
        if let Some(target) = self.target.take() {
            self.arena = Some(target.into_arena());
        }
    }

    fn llc_shares(
        &mut self,
        cores: &[CoreId],
        sizes: &[u64],
        region: RegionId,
        seed: u64,
        keep_going: &dyn Fn() -> bool,
    ) -> Result<Vec<LlcShare>, TargetError> {
        capacity::measure_live(cores, sizes, region, self.clock, seed, keep_going)
    }

    fn stage(
        &mut self,
        cores: &[CoreId],
        bytes: usize,
        seed: u64,
    ) -> Result<Box<dyn Stage>, TargetError> {
        let arena = Mapping::anonymous(bytes, Backing::Transparent2M).map_err(unmapped)?;
        let TargetClock { hz, tick, .. } = self.clock;
        Ok(Box::new(LiveStage::new(cores, Arc::new(arena), hz, tick, seed)?))
    }

    fn buffers(
        &mut self,
        regions: &[RegionId],
        bytes: u64,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Box<dyn Buffers>, TargetError> {
        let buffers = RegionBuffers::map_while(regions, bytes, go_on)?;
        Ok(Box::new(LiveBuffers { buffers, clock: self.clock }))
    }

    fn arena(&mut self, region: RegionId) -> Option<Box<dyn Buffers>> {
        let buffers = RegionBuffers::of(region, self.arena.take()?);
        Some(Box::new(LiveBuffers { buffers, clock: self.clock }))
    }

    fn triad(&mut self, sizes: ArraySizes, bind: bool) -> Box<dyn TriadTarget> {
        Box::new(LiveTriad::new(sizes, bind))
    }

    fn disturbance(&self, cores: &[CoreId]) -> Box<dyn FnOnce() -> Disturbance> {
        let meter = Meter::on(&cores.iter().map(|core| core.0).collect::<Vec<_>>());
        Box::new(move || Meter::since(meter.as_ref()))
    }
}

/// Mapped buffers, and the clock of whoever chases.
struct LiveBuffers {
    buffers: RegionBuffers,
    clock: TargetClock,
}

impl Buffers for LiveBuffers {
    fn count(&self) -> usize {
        self.buffers.count()
    }

    fn missing(&self) -> &[String] {
        self.buffers.missing()
    }

    fn chase(
        &mut self,
        orders: &[Vec<LineAddr>],
        cores: &[CoreId],
        measure: &mut Chased<'_>,
    ) -> Result<(), TargetError> {
        let rings = self.buffers.link(orders)?;
        measure(&mut LiveRegions::new(&rings, cores, self.clock))
    }
}

/// Lines that cannot be had.
fn unmapped(error: OsError) -> TargetError {
    TargetError::Unsupported(error.to_string())
}
