//! `libisochrone_mpi.so`: collectives of unmodified MPI programs in cache lines.
//!
//! Preloaded into a program, it takes the names of blocking collectives. On a communicator whose
//! ranks share memory it does them by [`isochrone_cla::live`]; everything else it hands to the MPI, by the
//! profiling names that every MPI has for this. It is built without any MPI's headers and serves Open MPI
//! and MPICH alike: which one is there, it asks the process.
//!
//! `isochrone run --mpi -- mpirun ...` sets it up; `LD_PRELOAD` alone is enough.

// An interface of C, by the rules of C, is `unsafe` by nature; each block holds one operation and names
// what makes it sound.
#![allow(unsafe_code)]
#![allow(non_snake_case, reason = "the names are MPI's")]

pub mod abi;
mod across;
mod among;
mod arenas;
mod atlas;
mod call;
mod collectives;
mod comm;
mod config;
mod devices;
pub mod exports;
mod fortran;
pub mod large;
mod leaders;
mod limits;
mod payload;
mod places;
mod process;
mod tally;
mod terms;
mod watched;
mod why;
mod world;
mod worth;

pub use config::{
    BYTES_MOST, COLLECTIVES, CONFIG_VARIABLE, ChosenShape, Config, Counts, Details, LEADERS_MOST,
    LeftCalls, Refusal, Report, SeenCalls, SeenSize, SizedCalls,
};
pub use process::{Buffers, By, Process, What};
