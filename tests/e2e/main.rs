//! The real binary, run as its user runs it. One quick map serves all tests that only look.

#![allow(clippy::tests_outside_test_module, reason = "this whole binary is tests")]

mod bench;
mod coll;
mod damage;
mod hostile;
mod interrupt;
mod kept;
mod look;
mod privileges;
mod report;
mod run;
mod support;
