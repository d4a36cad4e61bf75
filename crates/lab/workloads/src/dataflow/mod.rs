//! The five benchmarks of the paper on NUMA-aware task runtimes (TPDS 2018, section 5).
//!
//! Each has its arithmetic as plain functions over slices, a serial reference, and the tasks that do it,
//! which run on any [`isochrone_tasks::Tasks`].

pub mod cholesky;
mod first_touch;
pub mod histogram;
pub mod jacobi;
mod kernels;
pub mod lu;
pub mod matrix;
pub mod problem;
pub mod residual;
#[cfg(test)]
mod run_tests;
pub mod smi;
pub mod streamcluster;
#[cfg(test)]
mod tests;
pub mod tile;

pub use first_touch::FirstTouch;
