//! What ThreadSanitizer is told of, where a program runs under it: an order of events that comes about by words of
//! memory and sleeping in the kernel, which it cannot see in a library that was not compiled for it.
//!
//! Elsewhere each call is a look at one word.

use core::ffi::{CStr, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

/// Its functions (`sanitizer/tsan_interface.h`), or 0. `RELEASE` is the last to be set, and the one that is looked at.
static RELEASE: AtomicUsize = AtomicUsize::new(0);
static ACQUIRE: AtomicUsize = AtomicUsize::new(0);

/// Finds it, if this process has it. Calls before do nothing.
pub fn look() {
    let wanted: [(&AtomicUsize, &CStr); 2] =
        [(&ACQUIRE, c"__tsan_acquire"), (&RELEASE, c"__tsan_release")];
    for (word, name) in wanted {
        // SAFETY: the name ends with a zero; a look at what is loaded changes nothing.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        if found.is_null() {
            return;
        }
        word.store(found.expose_provenance(), Ordering::Release);
    }
}

/// Whether there is somebody to tell.
#[inline]
#[must_use]
pub fn is_there() -> bool {
    RELEASE.load(Ordering::Acquire) != 0
}

/// What this thread did comes before what follows a later [`acquire`] of the same place.
#[inline]
pub fn release<T>(place: &T) {
    if is_there() {
        tell(&RELEASE, core::ptr::from_ref(place).cast());
    }
}

/// What came before each [`release`] of the same place comes before what this thread does now.
#[inline]
pub fn acquire<T>(place: &T) {
    if is_there() {
        tell(&ACQUIRE, core::ptr::from_ref(place).cast());
    }
}

#[cold]
fn tell(word: &AtomicUsize, place: *const c_void) {
    type Tell = extern "C" fn(*mut c_void);
    // SAFETY: `look` stored the address of a function of this type before `is_there` said so.
    let function = unsafe { core::mem::transmute::<usize, Tell>(word.load(Ordering::Relaxed)) };
    function(place.cast_mut());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_nobody_is_to_be_told_nothing_happens() {
        look();
        release(&1);
        acquire(&1);
        assert!(!is_there());
    }
}
