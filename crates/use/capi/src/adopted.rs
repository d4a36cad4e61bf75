//! Memory that a program has already, paged from now on.

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

use isochrone_tier::live::guest::{AdoptError, Adopted};

use crate::status::{Failure, Status, told};
use crate::tier::{IsochroneTierOptions, adopting};

/// What is adopted.
static ADOPTED: Mutex<Vec<Adopted>> = Mutex::new(Vec::new());

fn all() -> MutexGuard<'static, Vec<Adopted>> {
    ADOPTED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl From<AdoptError> for Failure {
    fn from(error: AdoptError) -> Self {
        let status = match error {
            AdoptError::Range(_) => Status::Argument,
            AdoptError::Untiered(_) => Status::State,
            AdoptError::System(_) | AdoptError::Lost(_) => Status::System,
            AdoptError::Memory => Status::Memory,
            AdoptError::Elsewhere => Status::Gone,
        };
        Self { status, words: error.to_string() }
    }
}

/// Pages memory that the program has.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_tier_adopt(
    options: *const IsochroneTierOptions,
    at: *mut c_void,
    bytes: usize,
) -> c_int {
    let adopt = || {
        let first = NonNull::new(at.cast::<u8>());
        let first = first.ok_or_else(|| Failure::argument("at is a null pointer"))?;
        if bytes > isize::MAX.unsigned_abs() >> 16 {
            return Err(Failure::argument("more bytes than there are addresses"));
        }
        // SAFETY: the caller vouches for the options.
        let (fast_bytes, far) = unsafe { adopting(options, bytes.max(1)) }?;
        // Nothing is allocated that could lie in the memory while it is on its way.
        let mut all = all();
        all.reserve(1);
        // What was unmapped without a word ends here at last.
        all.retain(|adopted| !adopted.is_gone());
        // SAFETY: the caller vouches for the memory.
        all.push(unsafe { Adopted::new(first, bytes, fast_bytes, far) }?);
        Ok(())
    };
    told(adopt())
}

/// Gives memory back to the program.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_tier_release(at: *mut c_void) -> c_int {
    let release = || {
        let mut all = all();
        let found = all.iter().position(|adopted| adopted.range().start == at.addr());
        let found = found.ok_or_else(|| {
            Failure::argument(
                "nothing is adopted that begins there: give the address that was adopted",
            )
        })?;
        all[found].release()?;
        drop(all.swap_remove(found));
        Ok(())
    };
    told(release())
}
