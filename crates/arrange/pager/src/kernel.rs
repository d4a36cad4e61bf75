//! System calls as the C library makes them, `errno` included, each argument a machine word: a number that is passed as
//! a shorter one leaves the rest of its word to chance.

use core::ffi::{c_int, c_long, c_void};

/// A call with up to six arguments; -1 where the kernel refuses, and `errno` says why.
///
/// # Safety
/// As of the call.
pub(super) unsafe fn call(number: c_long, arguments: &[usize]) -> isize {
    let mut all = [0; 6];
    all.iter_mut().zip(arguments).for_each(|(to, from)| *to = *from);
    let [a, b, c, d, e, f] = all;
    // SAFETY: the caller vouches for the call.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    isize::try_from(result).unwrap_or(-1)
}

/// A call that gives 0.
///
/// # Safety
/// As of the call.
pub(super) unsafe fn done(number: c_long, arguments: &[usize]) -> c_int {
    // SAFETY: the caller vouches for the call.
    if unsafe { call(number, arguments) } == 0 { 0 } else { -1 }
}

/// A call that gives an address.
///
/// # Safety
/// As of the call.
pub(super) unsafe fn place(number: c_long, arguments: &[usize]) -> *mut c_void {
    // SAFETY: the caller vouches for the call.
    core::ptr::with_exposed_provenance_mut(unsafe { call(number, arguments) }.cast_unsigned())
}

/// A number of C's as a word: the kernel takes what it needs of it.
pub(super) const fn word(number: c_int) -> usize {
    (number as isize).cast_unsigned()
}

/// An offset in a file as a word: both have 64 bits wherever this is built.
pub(super) fn word_of_offset(offset: libc::off_t) -> usize {
    usize::try_from(offset.cast_unsigned()).unwrap_or(usize::MAX)
}

/// New memory that disturbs nobody, which may be read and written.
pub(super) fn memory(bytes: usize, flags: c_int, file: c_int) -> Option<usize> {
    let access = word(libc::PROT_READ | libc::PROT_WRITE);
    // SAFETY: the kernel finds room where nothing is.
    let made = unsafe { call(libc::SYS_mmap, &[0, bytes, access, word(flags), word(file), 0]) };
    usize::try_from(made).ok()
}

/// Why the last call was refused.
pub(super) fn errno() -> c_int {
    let place = place_of_errno();
    // SAFETY: the errno of this thread.
    unsafe { place.read() }
}

fn place_of_errno() -> *mut c_int {
    // SAFETY: asks where this thread has it.
    unsafe { libc::__errno_location() }
}

/// Gives `value`, and says why.
pub(super) fn refuse<T>(errno: c_int, value: T) -> T {
    let place = place_of_errno();
    // SAFETY: the errno of this thread.
    unsafe { place.write(errno) };
    value
}
