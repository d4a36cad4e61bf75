//! Collectives, written once over the primitives.
//!
//! A collective is a file here, which states what it needs, and a row of the table in `kind.rs`. A [`Plan`] is a
//! collective with its shape: ranks, root, bytes and [`Options`]. It says how many shared lines the program needs and
//! gives each rank its [`Member`], which runs call after call over any [`crate::program::Lines`]. [`Figure1`] is the
//! paper's broadcast to the letter.

mod allgather;
mod allreduce;
mod alltoall;
mod barrier;
mod broadcast;
mod figure1;
mod gather;
mod kind;
mod layout;
mod member;
mod options;
mod pairs;
mod plan;
mod reduce;
mod reduce_scatter;
mod ring;
mod scan;
mod scatter;
#[cfg(test)]
mod tests;
mod tree;
mod way;

pub use figure1::Figure1;
pub use kind::{Amount, Collective, Kind, Touched};
pub use member::Member;
pub use options::{Acks, Options, Shape};
pub use plan::{Plan, PlanError};
pub use tree::{Tree, TreeError};
