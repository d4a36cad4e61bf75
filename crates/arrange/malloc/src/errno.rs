//! `errno` across work that may change it: `free` must keep it, and an allocation that succeeds
//! should not surprise anybody. Only slow paths that call into libc need this.

use core::ffi::c_int;

/// Sets `errno` back when dropped.
#[derive(Debug)]
pub(crate) struct Kept {
    value: c_int,
}

impl Kept {
    pub(crate) fn new() -> Self {
        Self { value: get() }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        set(self.value);
    }
}

pub(crate) fn get() -> c_int {
    // SAFETY: takes nothing; gives the address of this thread's errno.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: the address is valid for as long as the thread runs.
    unsafe { place.read() }
}

pub(crate) fn set(value: c_int) {
    // SAFETY: as in `get`.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: as in `get`.
    unsafe { place.write(value) };
}
