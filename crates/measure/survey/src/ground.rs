//! What experiments run on. A ground makes what each of them measures through; it never decides what is measured.

use isochrone_atlas_store::contents::LlcShare;
use isochrone_host::Disturbance;
use isochrone_probe::bandwidth::{ArraySizes, TriadTarget};
use isochrone_probe::region::RegionTarget;
use isochrone_probe::target::{Target, TargetClock, TargetError};
use isochrone_probe::transfer::Stage;
use isochrone_units::{CoreId, Level, LineAddr, RegionId};

/// A machine, or a model of one.
pub trait Ground {
    /// The clock behind the samples.
    fn clock(&self) -> TargetClock;

    /// Seconds since the run began.
    fn seconds(&self) -> f64;

    /// Memory whose lines can be timed; none once it was let go.
    fn target(&mut self) -> Option<&mut dyn Target>;

    /// How lines get into a level.
    fn method(&self, level: Level) -> String;

    /// Gives the measuring thread its cores again. The memory of the target stays, for [`Ground::arena`].
    fn let_go(&mut self);

    /// How much of the last-level cache each of `cores` gets, in memory of `region`, by rings of `sizes` bytes.
    ///
    /// # Errors
    /// [`TargetError`] when memory or a core cannot be had, [`TargetError::Stopped`] where there was not even memory.
    fn llc_shares(
        &mut self,
        cores: &[CoreId],
        sizes: &[u64],
        region: RegionId,
        seed: u64,
        keep_going: &dyn Fn() -> bool,
    ) -> Result<Vec<LlcShare>, TargetError>;

    /// Threads on `cores`, and `bytes` of lines that they exchange.
    ///
    /// # Errors
    /// When there is no memory, or a core may not be used.
    fn stage(
        &mut self,
        cores: &[CoreId],
        bytes: usize,
        seed: u64,
    ) -> Result<Box<dyn Stage>, TargetError>;

    /// A buffer of `bytes` in each of `regions`, mapped while `go_on` says so.
    ///
    /// # Errors
    /// When a region has no memory; [`TargetError::Stopped`] where there was no time.
    fn buffers(
        &mut self,
        regions: &[RegionId],
        bytes: u64,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Box<dyn Buffers>, TargetError>;

    /// The memory of a target that was let go as the buffer of `region`; once, and none where it is not there.
    fn arena(&mut self, region: RegionId) -> Option<Box<dyn Buffers>>;

    /// Arrays of these sizes, bound to regions where there are several.
    fn triad(&mut self, sizes: ArraySizes, bind: bool) -> Box<dyn TriadTarget>;

    /// Begins to look at what others do on `cores`; what it gives says at the end what they did.
    fn disturbance(&self, cores: &[CoreId]) -> Box<dyn FnOnce() -> Disturbance>;

    /// Seconds of processor time that answers took which a real machine gives by itself: a model's, and none of this
    /// machine's.
    fn modelled_cpu_s(&self) -> f64 {
        0.0
    }
}

/// Buffers in regions, not linked yet.
pub trait Buffers {
    /// How many regions have a buffer.
    fn count(&self) -> usize;

    /// Which regions have none, and why, a line each.
    fn missing(&self) -> &[String] {
        &[]
    }

    /// Links each buffer in its order and lets `cores` chase through them as `measure` wants.
    ///
    /// # Errors
    /// For an order that is no ring, or not one for each region; and what `measure` says.
    fn chase(
        &mut self,
        orders: &[Vec<LineAddr>],
        cores: &[CoreId],
        measure: &mut Chased<'_>,
    ) -> Result<(), TargetError>;
}

/// What is done with linked buffers.
pub type Chased<'a> = dyn FnMut(&mut dyn RegionTarget) -> Result<(), TargetError> + 'a;
