//! The live reading: tasks run here, on pinned threads.

// Typed views of registered memory need it; each block says why it is right.
#![allow(unsafe_code)]

mod accumulator;
mod closure;
mod env;
mod foreign;
mod forked;
mod guard;
mod hold;
mod mem;
mod memory;
mod nested;
mod others;
mod places;
mod prepared;
mod register;
mod runtime;
mod shared;
mod shared_tables;
mod table;
mod task;
mod team;
mod watch;

pub use accumulator::Accumulator;
pub use foreign::ForeignKernel;
pub use hold::fitting_workers;
pub use mem::{Mem, View, ViewMut};
pub use places::{Believed, PagePlace};
pub use prepared::Prepared;
pub use runtime::{Canceller, Config, Runtime};
pub use table::{Foreign, ForeignRun};
pub use task::Task;
