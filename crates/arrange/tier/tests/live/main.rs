//! The area on this machine. Workers are made by fork, so each case runs in a process of one thread that is
//! forked for it; what it prints is in the form of the usual harness.

#![allow(clippy::print_stdout, reason = "a test harness reports on standard output")]
#![allow(
    unsafe_code,
    reason = "a handler of a program's own, and a buffer for the kernel, in the area"
)]

mod adopted;
mod deaths;
mod errors;
mod global;
mod harness;
mod pitfalls;
mod poisons;
mod pool;
mod signals;
mod stopped;
mod stress;

use harness::{Case, case};

fn main() {
    harness::run(&[
        stress::CASES,
        adopted::CASES,
        deaths::CASES,
        stopped::CASES,
        errors::CASES,
        pitfalls::CASES,
        global::CASES,
        pool::CASES,
        signals::CASES,
        poisons::CASES,
    ]);
}
