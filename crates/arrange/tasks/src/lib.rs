//! Dataflow tasks that run where their data live (Caheny et al., "Reducing Cache Coherence Traffic
//! with a NUMA-Aware Runtime Approach", IEEE TPDS 2018).
//!
//! A [`Kernel`] says which byte ranges of registered data it reads and writes; the runtime orders tasks
//! by that alone and runs them where most of their bytes are. What decides is one passive object
//! (`scheduler`), what drives it one `async fn` (`driver`): [`live`] on this machine, where every
//! operation blocks inside of the first poll, or in virtual time on a simulated one.

mod arena;
mod driver;
mod error;
mod failure;
mod footprint;
mod graph;
mod kernel;
pub mod live;
mod measured;
mod partition;
pub mod policy;
mod range;
mod reduce;
mod report;
mod schedule;
mod scheduler;
mod session;
mod setup;
pub mod simulated;
mod sync;
mod topology;
mod trace;
mod trace_file;

pub use arena::{ARGUMENT_BYTES, Came, Capacity, WORKERS_MAX};
pub use error::TaskError;
pub use failure::Failure;
pub use footprint::{Access, Footprint, Mode, Op};
pub use kernel::Kernel;
pub use live::Mem;
pub use measured::Measured;
pub use policy::{Placement, Policy, Regime};
pub use range::{Data, DataId, Element, Part, Range};
pub use reduce::Reducible;
pub use report::Report;
pub use schedule::{Schedule, Turn, Wait};
pub use session::Tasks;
pub use setup::Setup;
pub use topology::Topology;
pub use trace::{TaskEvent, Trace};
pub use trace_file::TraceFile;
