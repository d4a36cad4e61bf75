//! Programs over linked nodes: what the allocator is measured with.
//!
//! Each is written once, over [`Nodes`], and run with any allocator, or with memory that only
//! exists in a simulation. Nodes are exactly one cache line, and every program gives a checksum
//! that is the same in all arms, so an arm that computes something else is found out. Nothing
//! here reads a clock, pins a thread or prints: whoever calls does the timing.

pub mod astar;
mod at_once;
pub mod dataflow;
pub mod figure4;
pub mod nodes;
pub mod numa;
mod number;
pub mod pspt;
pub mod structures;
pub mod taskbench;
pub mod tiered;

pub use nodes::{Boxed, BoxedPtr, Chest, Nodes, Shape, Slab, SlabPtr, is_one_line};
