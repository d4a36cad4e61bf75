//! The five benchmarks of the paper on tasks, on a simulated machine of many sockets: the same programs and
//! the same scheduler as live, with footprints priced by the coherence protocol.

pub mod blocked;
mod models;
mod run;
mod size;
pub mod table2;
mod variant;

#[cfg(test)]
mod tests;

pub use models::{Passes, kernels};
pub use run::{Case, Outcome, SPAWN_NS, run};
pub use size::{Bench, Size};
pub use variant::Variant;
