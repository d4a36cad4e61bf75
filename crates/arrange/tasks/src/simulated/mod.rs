//! The simulated reading: the same scheduler and the same driver, on workers that exist in virtual time
//! only. Tasks are not run; a [`Hardware`] says how long their footprints take: [`Flat`] by bytes and
//! distance, [`Coherent`] by the coherence protocol of a large machine and the roofs that tasks share.

// Arguments of tasks are read for their footprints; each block says why it is right.
#![allow(unsafe_code)]

mod coherent;
mod costs;
mod env;
mod hardware;
mod runtime;
mod session;

pub use coherent::{Allocation, Choices, Coherent, Composition, KernelModel, Scratch, Spent};
pub use costs::Costs;
pub use hardware::{Flat, Hardware, Job, Step};
pub use runtime::RuntimeLines;
pub use session::{ASSUMED_SHOWN, Plan, Simulation};
