//! Shared libraries that are opened while the program runs: what may be missing must not keep it from
//! starting.

use core::ffi::{CStr, c_void};
use core::ptr::NonNull;

use crate::error::OsError;

/// An open library. It stays open until the process ends, so that what it gave out stays valid.
#[derive(Clone, Copy, Debug)]
pub struct Library(NonNull<c_void>);

// SAFETY: a handle is a number for the dynamic linker, which takes calls from any thread.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl Library {
    /// Opens the library with this name or path, as the dynamic linker finds it. Its constructors run:
    /// only what one would link to may be opened.
    ///
    /// # Errors
    /// [`OsError`] where there is none, or it lacks something itself.
    pub fn open(name: &CStr) -> Result<Self, OsError> {
        // SAFETY: the name ends with a zero; what the library's constructors do is what they do in any
        // program that is linked to it.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        let missing = OsError::new("cannot open a library", libc::ENOENT, "install its package");
        NonNull::new(handle).map(Self).ok_or(missing)
    }

    /// The address of a function or a variable; `None` if the library has none of this name.
    #[must_use]
    pub fn symbol(self, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: the handle came from `dlopen` and is never closed; the name ends with a zero.
        NonNull::new(unsafe { libc::dlsym(self.0.as_ptr(), name.as_ptr()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_name_and_others_are_not() {
        let libc = Library::open(c"libc.so.6").unwrap();
        let address = libc.symbol(c"getpid").unwrap();
        // SAFETY: the C library's getpid has this type.
        let getpid: extern "C" fn() -> i32 = unsafe { core::mem::transmute(address) };
        assert_eq!(u32::try_from(getpid()), Ok(std::process::id()));
        assert!(libc.symbol(c"no_such_function").is_none());
        assert_eq!(Library::open(c"no-such-library.so").unwrap_err().errno, ::libc::ENOENT);
    }
}
