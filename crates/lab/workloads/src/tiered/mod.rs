//! Programs on an area that is larger than fast memory, each verified bit for bit against the same program
//! on plain memory. The kernels are those of the plain run; only who owns the memory differs.

pub mod cholesky;
mod notes;
mod on_area;
pub mod spmv;
pub mod stencil;
mod tasks;

pub use notes::Outcome;
pub use on_area::{Ready, Tiered};
