//! The pager on this machine: an area of files in memory, mapped at one address in every worker, whose
//! faults are resolved in the worker that has them.
//!
//! * [`mod@check`]: what the kernel allows, what is missing, and the way to mend it.
//! * [`Team`]: workers (threads or processes) and movers, made by a process of one thread.
//! * [`far`]: the far tiers.

#![allow(
    unsafe_code,
    reason = "memory that comes and goes under the program is reached by raw pointers"
)]

mod acting;
mod area;
mod array;
mod barrier;
mod blocking;
pub mod check;
mod common;
mod config;
mod context;
mod extents;
pub mod far;
mod global;
pub mod guest;
mod handler;
mod heap;
mod kind;
mod mapped;
mod objects;
mod operations;
mod poison;
mod poisons;
pub mod pool;
mod process;
mod report;
mod serving;
mod spawn;
mod statistics;
mod team;
mod wishes;
mod worker;

pub use array::{Array, Phase, Slices};
pub use barrier::Gone;
pub use check::{Check, Missing, Mode, check};
pub use common::{Counters, NOTES, Timed};
pub use config::{Config, Tables, TierError, Trap};
pub use global::{FreeError, NoPiece};
pub use kind::{ALIGN_MOST, Kind};
pub use mapped::Mapped;
pub use pool::{Host, Member, Pool, Side};
pub use report::{Ended, Report};
pub use statistics::Statistics;
pub use team::Team;
pub use worker::Worker;
