//! The five benchmarks of the paper on NUMA-aware task runtimes (TPDS 2018, section 5).
//!
//! Each has its arithmetic as plain functions over slices, a serial reference, and the tasks that do it,
//! which run on any [`Tasks`].

pub mod cholesky;
pub mod histogram;
pub mod jacobi;
mod kernels;
pub mod matrix;
mod program;
pub mod residual;
#[cfg(test)]
mod run_tests;
pub mod smi;
pub mod streamcluster;
#[cfg(test)]
mod tests;
pub mod tile;

pub use program::{FirstTouch, Tasks};
