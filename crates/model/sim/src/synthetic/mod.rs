//! Synthetic memory: a machine whose every latency is known, sampled with chosen noise.
//!
//! A [`SyntheticSpec`] says everything as plain data: where cores, slices and controllers sit
//! ([`machine`]), how addresses spread over them ([`hash`]), how the arena lies in physical
//! memory ([`pages`]), how samples are disturbed ([`noise`]), who else uses the cores
//! ([`neighbours`]), what moves when ([`drift`]), what line transfers cost ([`transfer`]). A
//! [`SyntheticMemory`] made from it answers timed loads in
//! virtual time, and `truth_*` says what an estimator ought to have found.
//!
//! It models latencies, not caches: a line is in the level that the caller asks for. It never
//! looks at real time.
//!
//! ```
//! use isochrone_sim::synthetic::{SyntheticMemory, SyntheticSpec};
//! use isochrone_units::{CoreId, Cycles, Level, LineAddr};
//!
//! let spec = SyntheticSpec::emerald_rapids_like(1).with_pages(512).noiseless();
//! let mut memory = SyntheticMemory::new(spec)?;
//! let mut out = [Cycles(0)];
//! memory.sample(CoreId(0), Level::Llc, &[LineAddr(9)], &mut out)?;
//! let truth = memory.truth_latency(CoreId(0), Level::Llc, LineAddr(9))?;
//! assert!((f64::from(out[0].0) - memory.timer().overhead_cycles - truth).abs() <= 0.5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod clusters;
mod description;
pub mod drift;
pub mod hash;
pub mod machine;
pub mod memory;
pub mod neighbours;
pub mod noise;
pub mod pages;
pub mod presets;
pub mod spec;
pub mod transfer;
pub mod truth;

pub use clusters::{Clusters, Seat};
pub use drift::{Applied, Event, Scheduled, When};
pub use hash::AddressHash;
pub use machine::{Geometry, Mesh, Ring, SyntheticMachine, Tables};
pub use memory::{SampleError, SyntheticMemory};
pub use neighbours::Neighbour;
pub use noise::{Disturbance, FrequencyDrift, Noise, Timer};
pub use pages::Arena;
pub use spec::{Costs, RegionUnits, SpecError, SyntheticSpec};
pub use transfer::{Interaction, InteractionCosts, MultiLine, TermCosts, Transfer, TransferCosts};
pub use truth::Code;
