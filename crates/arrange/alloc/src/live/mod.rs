//! The part of the allocator that looks at the machine: an arena of memory, the codes of its
//! pages, and the current base of each core.
//!
//! Everything here works in small steps that can be put aside, allocates nothing (tables come
//! from the kernel, once) and times loads through one small trait ([`Timing`]), so that the same
//! code runs on this machine and on a simulated one. It never hands out memory: what it finds
//! goes to [`crate::Heap`] by way of its caller.
//!
//! The order of events in a program:
//!
//! 1. [`Arena::grow`] gives pages; [`Classifier::add`] takes note of them.
//! 2. [`Classifier::slice`], again and again, finds the current base of this core, before any page
//!    is known, then decodes pages; [`Classifier::next_event`] yields those whose codes were
//!    confirmed since, level by level.
//! 3. [`Classifier::ask_check`], once an epoch, has the slices notice a vCPU that moved and a
//!    frame that was replaced.

mod answers;
mod arena;
mod batch;
mod classifier;
mod compare;
mod confirm;
mod dice;
mod epoch;
mod eyes;
mod identify;
mod kept;
mod known;
mod ledger;
mod level;
mod look;
mod machine;
mod measure;
mod notes;
mod number;
mod stream;
mod timing;

#[cfg(test)]
mod modelled;
#[cfg(test)]
mod tests;

pub use answers::{Event, Identity, Plan, Slice, Stats};
pub use arena::Arena;
pub use classifier::Classifier;
pub use epoch::Epoch;
pub use machine::Machine;
pub use measure::LineMeans;
pub use timing::Timing;
