//! Latency from every core to every memory region, by dependent chase.
//!
//! [`plan`] says which lines are chased through in which order, [`run`](mod@run) runs that on a
//! [`RegionTarget`]: [`live`] buffers or a [`model`].

pub mod live;
pub mod model;
pub mod plan;
pub mod run;

pub use live::{LiveRegions, RegionBuffers, RegionRings};
pub use model::ModelRegions;
pub use plan::{BUFFER_BYTES, Mode, RegionOptions, RegionPlan, RegionPlanError, budget_s};
pub use run::{RegionReport, RegionTarget, run};
