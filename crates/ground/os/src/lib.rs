//! The only crate that talks to Linux and to the CPU: the clock, where a thread runs, memory and
//! the frames behind it, the cache, and the timed loads that every measurement stands on.
//!
//! It neither allocates nor needs `std`, because the malloc replacement stands on it too; it never
//! prints, reads no environment, and decides nothing: what to measure, how often, and what a
//! number means is for its callers.

#![no_std]
// This is the one crate in which system calls and instructions are issued; each `unsafe` block
// holds one operation and names what makes it sound, so that no other crate needs any.
#![allow(unsafe_code)]

#[cfg(not(target_os = "linux"))]
compile_error!("isochrone measures Linux machines; build it for a Linux target");

#[cfg(test)]
extern crate std;

mod arch;
mod syscall;

pub mod affinity;
pub mod area;
pub mod boxed;
pub mod cache;
pub mod clock;
pub mod doubles;
pub mod error;
pub mod frames;
pub mod futex;
pub mod library;
pub mod line_transfer;
pub mod mapping;
pub mod others;
pub mod pages;
pub mod pause;
pub mod peer;
pub mod process;
mod processor;
pub mod race;
pub mod reserve;
pub mod ring;
pub mod rseq;
pub mod shared;
pub mod signal;
pub mod space;
mod span;
pub mod stack;
pub mod steps;
pub mod stream;
pub mod swap;
pub mod table;
pub mod thread;
pub mod timed;
pub mod tlb;
pub mod userfault;

pub use error::{Errno, OsError};
