//! A function that is called through a word, so that it can be changed while the program runs.
//!
//! A call is one jump through memory, which a processor predicts. Who exports a function under its C name jumps
//! through the word as well. It says nothing of what the functions do.

use core::ffi::c_void;
use core::marker::PhantomData;
use core::mem::transmute_copy;
use core::sync::atomic::{AtomicPtr, Ordering};

/// Takes a size.
pub type Malloc = unsafe extern "C" fn(usize) -> *mut c_void;
/// Takes two sizes, or an alignment and a size.
pub type Two = unsafe extern "C" fn(usize, usize) -> *mut c_void;

/// Takes what it gave before, and a size.
pub type Realloc = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
/// Takes what it gave before.
pub type Free = unsafe extern "C" fn(*mut c_void);

/// One implementation of the functions that allocate: addresses of functions of their signatures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Front {
    pub(crate) malloc: *mut c_void,
    pub(crate) calloc: *mut c_void,
    pub(crate) memalign: *mut c_void,
    pub(crate) aligned_alloc: *mut c_void,
    pub(crate) valloc: *mut c_void,
    pub(crate) pvalloc: *mut c_void,
}

/// One implementation of the functions that take memory back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Back {
    pub(crate) free: *mut c_void,
    pub(crate) realloc: *mut c_void,
}

/// One function of the signature `F`: the one that looks it up, and later itself. A word, the function's address.
#[derive(Debug)]
#[repr(transparent)]
pub struct Entry<F> {
    function: AtomicPtr<c_void>,
    signature: PhantomData<F>,
}

impl<F: Copy> Entry<F> {
    /// An entry that leads to `function`, which has the signature `F`, or is null where [`Entry::call`] is not asked.
    pub(crate) const fn of(function: *const c_void) -> Self {
        Self { function: AtomicPtr::new(function.cast_mut()), signature: PhantomData }
    }

    /// Where it leads. Relaxed: each function was there before the program began, or serves as well.
    #[inline(always)]
    pub(crate) fn address(&self) -> *mut c_void {
        self.function.load(Ordering::Relaxed)
    }

    /// Lets it lead to a function of its signature.
    pub(crate) fn set(&self, function: *mut c_void) {
        self.function.store(function, Ordering::Relaxed);
    }

    /// Its function.
    #[inline(always)]
    pub(crate) fn call(&self) -> F {
        let address = self.address();
        // SAFETY: `F` is the type of a C function, as long as an address, and the entry leads to one of that type:
        // ours, or the one that the C library and its replacements have under this name.
        unsafe { transmute_copy(&address) }
    }

    /// Its function, if it leads to one.
    #[cfg(target_env = "gnu")]
    pub(crate) fn known(&self) -> Option<F> {
        (!self.address().is_null()).then(|| self.call())
    }
}
