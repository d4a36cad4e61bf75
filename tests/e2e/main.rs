//! The real binary, run as its user runs it. One quick map serves all tests that only look.

#![allow(clippy::tests_outside_test_module, reason = "this whole binary is tests")]

mod advise;
mod arguments;
mod damage;
mod fleet;
mod formats;
mod hostile;
mod interrupt;
mod kept;
mod laboratory;
mod line;
mod look;
mod mpi;
mod paged;
mod pin;
mod privileges;
mod reframe;
mod report;
mod run;
mod suits;
#[path = "../support.rs"]
mod support;
mod turn;
#[path = "../words.rs"]
mod words;

use std::path::PathBuf;

/// Where the command of this build is.
fn command() -> PathBuf {
    env!("CARGO_BIN_EXE_isochrone").into()
}
