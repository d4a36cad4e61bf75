//! Stacks of threads: where the one of this thread ends, and how large those of new threads usually are.

use core::mem::MaybeUninit;

/// What a new thread of the C library has where nothing is said, in bytes: what `ulimit -s` was when the program began,
/// usually. `None` where it is not said.
#[must_use]
pub fn usual() -> Option<usize> {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: it has room for the attributes, which are written as a whole.
    if unsafe { libc::pthread_attr_init(attributes.as_mut_ptr()) } != 0 {
        return None;
    }
    let mut bytes = 0;
    // SAFETY: the attributes were made above.
    let told = unsafe { libc::pthread_attr_getstacksize(attributes.as_ptr(), &raw mut bytes) };
    // SAFETY: as above; nobody uses them any more.
    unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
    (told == 0 && bytes > 0).then_some(bytes)
}

/// The lowest address of this thread's stack, and how many bytes lie from there to its other end. `None` where this
/// runs on another stack than the thread's own, as a coroutine does, or the C library does not know.
#[must_use]
pub fn own() -> Option<(usize, usize)> {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: takes nothing.
    let thread = unsafe { libc::pthread_self() };
    // SAFETY: of this thread, and there is room for the attributes.
    let told = unsafe { libc::pthread_getattr_np(thread, attributes.as_mut_ptr()) };
    if told != 0 {
        return None;
    }
    let (mut lowest, mut bytes) = (core::ptr::null_mut(), 0);
    // SAFETY: the attributes were written above.
    let told = unsafe {
        libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut lowest, &raw mut bytes)
    };
    // SAFETY: as above; nobody uses them any more.
    unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
    let lowest = lowest.addr();
    (told == 0 && (lowest..lowest.saturating_add(bytes)).contains(&here()))
        .then_some((lowest, bytes))
}

/// Some address of the frame of the caller, or close to it.
#[inline]
#[must_use]
pub fn here() -> usize {
    let mark = 0_u8;
    core::hint::black_box(&raw const mark).addr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_knows_the_end_of_its_stack() {
        const ASKED: usize = 512 << 10;
        let found = std::thread::Builder::new().stack_size(ASKED).spawn(|| {
            let (lowest, bytes) = own().expect("it runs on its own");
            (here() - lowest, bytes)
        });
        let (left, bytes) = found.expect("a thread").join().expect("it ends");
        assert!(bytes >= ASKED && left < bytes, "{left} of {bytes}");
        assert!(left > ASKED / 2, "it had only begun: {left} of {bytes}");
        assert!(usual().is_some_and(|bytes| bytes >= 16 << 10));
    }
}
