//! `libisochrone_pager.so`: the names by which a program gets, changes and gives back memory, and forks. Its large
//! mappings are cut from a window that `isochrone-tier` pages; everything else goes on as it was called. Load it with
//! `LD_PRELOAD`; `isochrone run --fast-memory` does, and tells it what to do by one variable.
//!
//! It stands above the program's `malloc`, whichever it is: the C library maps memory for large objects where no
//! preload sees it. Without the variable every call goes straight on.

// Functions with the names and contracts of C can be nothing else.
#![allow(unsafe_code)]

#[cfg(not(target_env = "gnu"))]
compile_error!("it stands on glibc");

pub mod forks;
mod heap;
mod kernel;
pub mod mappings;
pub mod objects;
mod process;
pub mod stacks;

use core::ffi::{c_char, c_int};

use isochrone_malloc::environment::variable;
use isochrone_tier::live::guest::told;

/// Run by the dynamic linker when the library is loaded; glibc hands the environment over.
#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn(c_int, *const *const c_char, *const *const c_char) = begin;

/// Run when the process ends by `exit`.
#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = process::end;

extern "C" fn begin(_: c_int, _: *const *const c_char, environment: *const *const c_char) {
    forks::resolve();
    stacks::resolve();
    // SAFETY: glibc passes the environment to constructors (csu/init-first.c, elf/dl-init.c).
    if process::begin(unsafe { variable(environment, told::VARIABLE) }) {
        forks::watch();
    }
}
