//! The instructions that measuring needs, one file for each kind of CPU behind one set of names.
//!
//! `x86_64` is the real thing, and `aarch64` is as far as an emulator shows it. `portable` is for all other CPUs: it
//! keeps the crate building there, does in plain Rust what can be done so, and says of the rest that it cannot be done.

#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::*;

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::*;

// Also compiled into the tests of other builds: otherwise nobody would ever run it.
#[cfg(any(test, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
#[cfg_attr(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    allow(dead_code, reason = "only its tests call it there")
)]
mod portable;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) use portable::*;
