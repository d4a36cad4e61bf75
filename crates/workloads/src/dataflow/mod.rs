//! The five benchmarks of the paper on NUMA-aware task runtimes (TPDS 2018, section 5).
//!
//! Each has its arithmetic as plain functions over slices, and a serial reference.

pub mod histogram;
pub mod jacobi;
pub mod streamcluster;
#[cfg(test)]
mod tests;
pub mod tile;
