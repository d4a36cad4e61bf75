//! The real binary, run as its user runs it. One quick map serves all tests that only look.

mod damage;
mod interrupt;
mod look;
mod privileges;
mod report;
mod support;
