//! The live reading: tasks run here, on pinned threads.

// Typed views of registered memory need it; each block says why it is right.
#![allow(unsafe_code)]

mod accumulator;
mod closure;
mod env;
mod foreign;
mod guard;
mod hold;
mod mem;
mod memory;
mod others;
mod places;
mod prepared;
mod register;
mod runtime;
mod shared_tables;
mod team;
mod watch;

pub use accumulator::Accumulator;
pub use foreign::{Foreign, ForeignKernel, ForeignRun};
pub use hold::fitting_workers;
pub use mem::{Mem, View, ViewMut};
pub use places::{Believed, PagePlace};
pub use prepared::Prepared;
pub use register::Task;
pub use runtime::{Canceller, Config, Runtime};
