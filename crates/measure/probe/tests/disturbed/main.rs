//! Beside somebody else's work intervals still contain what a quiet machine shows, and what is too much
//! disturbed has no number.
//!
//! [`runs`] says what is asked of every experiment, the other modules ask it: [`lines`] of what cores do with lines,
//! [`memory`] of regions and bandwidth, [`block`] of levels and codes, [`shift`] of what no interval can tell.

#![allow(clippy::tests_outside_test_module, reason = "the whole file is tests")]
#![allow(clippy::print_stdout, reason = "docs/method/README.md has the figures")]

mod block;
mod lines;
mod memory;
mod runs;
mod shift;
