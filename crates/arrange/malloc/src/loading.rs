//! Libraries that bind to the C library's own `malloc`: those that a program loads with `RTLD_DEEPBIND`.
//!
//! Such a library looks for its symbols in itself and in what it needs first, and in the program's order after
//! that. So it frees by glibc's `free` what the program has from us, and glibc ends the process. Allocators that
//! are preloaded all have this fault, and PHP loads its extensions so. Where anything is placed, or may be, the
//! flag is taken away and the call goes on; where nothing ever is, it stays.
//!
//! The dynamic linker knows by the return address who calls, and looks for libraries along the caller's own path.
//! So the exported `dlopen` asks here and jumps on.

use crate::names::Next;
use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};

/// Nothing is placed in this process, and nothing was.
static NOTHING_PLACED: AtomicBool = AtomicBool::new(false);

/// The flag (bits/dlfcn.h).
const RTLD_DEEPBIND: c_int = 8;

static DLOPEN: Next = Next::new(c"dlopen");

/// How a call of `dlopen(3)` goes on. In two registers, by which the exported function takes it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Onward {
    /// The C library's function, or that of who interposes it behind this library.
    pub function: *mut c_void,
    /// The flags for it.
    pub flags: c_int,
}

/// `dlopen(3)` is about to be called with these flags.
pub extern "C" fn before_dlopen(flags: c_int) -> Onward {
    let found = DLOPEN.find();
    let function = if found.is_null() { unavailable as *mut c_void } else { found };
    let stays = NOTHING_PLACED.load(Ordering::Relaxed);
    Onward { function, flags: if stays { flags } else { flags & !RTLD_DEEPBIND } }
}

/// No object of this process was placed, and none will be: libraries may bind as they like.
pub(crate) fn nothing_is_placed() {
    NOTHING_PLACED.store(true, Ordering::Relaxed);
}

/// Looks it up. Once, from a constructor.
pub(crate) fn resolve() {
    DLOPEN.find();
}

/// Stands for a function that the C library lacks: no library is loaded.
extern "C" fn unavailable() -> *mut c_void {
    ptr::null_mut()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_goes_where_something_may_be_placed_and_others_stay() {
        // This process was told nothing yet, so it may be told to place.
        let flags = libc::RTLD_NOW | libc::RTLD_GLOBAL;
        let onward = before_dlopen(flags | RTLD_DEEPBIND);
        assert_eq!(onward.flags, flags);
        assert_eq!(before_dlopen(libc::RTLD_LAZY).flags, libc::RTLD_LAZY);
        // SAFETY: a constant name; the function is not called.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"dlopen".as_ptr()) };
        assert_eq!(onward.function, found);
    }
}
