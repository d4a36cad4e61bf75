//! Collectives, written once over the primitives.
//!
//! A [`Plan`] is a collective with its shape: ranks, root, bytes and [`Options`]. It says how many shared
//! lines the program needs and gives each rank its [`Member`], which runs call after call over any
//! [`crate::program::Lines`]. [`Figure1`] is the paper's broadcast to the letter.

mod allgather;
mod allreduce;
mod barrier;
mod broadcast;
mod figure1;
mod gather;
mod layout;
mod member;
mod options;
mod plan;
mod reduce;
mod ring;
mod scatter;
#[cfg(test)]
mod tests;
mod tree;

pub use figure1::Figure1;
pub use member::Member;
pub use options::{Acks, Options, Shape};
pub use plan::{Collective, Plan, PlanError};
pub use tree::{Tree, TreeError};
