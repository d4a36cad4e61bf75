//! The instructions that measuring needs, one file for each kind of CPU behind one set of names.
//!
//! `x86_64` is the real thing. `portable` is for all other CPUs: it keeps the crate building
//! there, does in plain Rust what can be done so, and says of the rest that it cannot be done.

#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::*;

// Also compiled into the tests of x86-64 builds: otherwise nobody would ever run it.
#[cfg(any(test, not(target_arch = "x86_64")))]
#[cfg_attr(target_arch = "x86_64", allow(dead_code, reason = "only its tests call it there"))]
mod portable;
#[cfg(not(target_arch = "x86_64"))]
pub(crate) use portable::*;
