//! Checked: every order in which the ranks of a program can take their operations.
//!
//! A program is finite: each rank has a list of operations, and a wait goes on when its word allows it. So
//! all interleavings over some calls can be visited, and what can go wrong is found with a shortest example:
//!
//! * *deadlock*: ranks wait and nobody can write what they wait for;
//! * *lost wake-up*: the word had the value that a rank waited for, and another rank changed it again
//!   before it was seen;
//! * *reuse*: a rank uses a line that another one still reads or writes, reads what nobody has written, or
//!   reads one thing in one order and another in another.
//!
//! Time plays no role, and neither does the machine: an operation is one step. That steps as small as these
//! are seen in program order by all is what the primitives promise (Release writes, Acquire polls), and the
//! live reading has its own checks for that.

mod contents;
mod explore;
mod fault;
mod independent;
mod state;
#[cfg(test)]
mod tests;

pub use contents::Delivered;
pub use explore::Checked;
pub use fault::{Fault, FaultKind, Step};

use crate::program::Recorded;

/// States that are visited at most, unless something else is asked for.
pub const STATES_MAX: usize = 2_000_000;

/// Visits every order of the operations of these calls, one after the other for each rank; a rank may be
/// in one call while another is in the next.
///
/// # Errors
/// [`Fault`] when something can go wrong, or when there are more than `states_max` states.
///
/// # Panics
/// If the calls have different numbers of ranks.
pub fn check(calls: &[Recorded], states_max: usize) -> Result<Checked, Box<Fault>> {
    let ranks = calls.first().map_or(0, |call| call.ranks.len());
    assert!(calls.iter().all(|call| call.ranks.len() == ranks), "all calls have the same ranks");
    explore::explore(&state::Program::of(calls, ranks)?, states_max, true)
}
