//! Stacks that a program makes itself. The C library keeps what it knows of a thread at the end of its stack, and the
//! kernel writes there when the thread ends, for whoever joins it; a page that is not there is not waited for then.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};

use isochrone_tier::live::guest::Ask;

use super::kernel::refuse;
use super::process::here;

type Set = unsafe extern "C" fn(*mut libc::pthread_attr_t, *mut c_void, usize) -> c_int;

/// Bytes at the end of a stack that stay: more than `struct pthread` and the thread-local storage of most programs.
const KEPT_BYTES: usize = 16 << 10;

static SET: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// Looks up the C library's function.
pub(super) fn resolve() {
    // SAFETY: a constant name; which library comes next the linker knows by who calls.
    let set = unsafe { libc::dlsym(libc::RTLD_NEXT, c"pthread_attr_setstack".as_ptr()) };
    SET.store(set, Ordering::Release);
}

/// `pthread_attr_setstack(3)`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_attr_setstack(
    attributes: *mut libc::pthread_attr_t,
    stack: *mut c_void,
    bytes: usize,
) -> c_int {
    if let Some(guest) = here().filter(|guest| !guest.is_alone()) {
        let kept = bytes.min(KEPT_BYTES);
        let part = guest.part(stack.addr().wrapping_add(bytes - kept), kept);
        if !part.is_empty() {
            // Where that fails the thread is as it would have been.
            let _ = guest.ask(&part, Ask::Keep);
        }
    }
    let set = SET.load(Ordering::Acquire);
    if set.is_null() {
        return refuse(libc::ENOSYS, libc::ENOSYS);
    }
    // SAFETY: the C library's function of this name and signature.
    let set: Set = unsafe { core::mem::transmute::<*mut c_void, Set>(set) };
    // SAFETY: the caller's contract is the same.
    unsafe { set(attributes, stack, bytes) }
}
