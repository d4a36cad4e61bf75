//! Collectives, written once over the primitives.

mod figure1;
mod tree;

pub use figure1::Figure1;
pub use tree::{Tree, TreeError};
