//! An allocator over memory larger than fast memory: objects of any size, for all threads of a process.

use std::ffi::{c_int, c_void};
use std::ptr::{self, NonNull};

use isochrone_tier::live::{ALIGN_MOST, FreeError, Kind};

use crate::status::{Failure, Status, told};
use crate::tier::{Area, IsochroneTierArray, IsochroneTierOptions, gone, settings};

/// An allocator, `isochrone_tier_kind` in C.
#[derive(Debug)]
pub struct IsochroneTierKind {
    kind: Kind,
    /// Until it is destroyed.
    _area: Area,
}

/// As `malloc` aligns.
const ALIGN: usize = 16;

impl From<FreeError> for Failure {
    fn from(error: FreeError) -> Self {
        match error {
            FreeError::NoPiece(error) => Self::argument(error.to_string()),
            FreeError::Trouble(trouble) => trouble.into(),
        }
    }
}

/// # Safety
/// `kind` is null or was given by [`isochrone_tier_kind_create`] and not destroyed.
unsafe fn of<'k>(kind: *const IsochroneTierKind) -> Result<&'k Kind, Failure> {
    // SAFETY: the caller vouches for it.
    let kind = unsafe { kind.as_ref() };
    Ok(&kind.ok_or_else(|| Failure::argument("kind is a null pointer"))?.kind)
}

/// The address that some work gives, or null, and why is told.
fn address(found: Result<NonNull<u8>, Failure>) -> *mut c_void {
    match found {
        Ok(at) => at.as_ptr().cast(),
        Err(failure) => {
            told(Err(failure));
            ptr::null_mut()
        }
    }
}

fn object(at: *const c_void) -> Result<NonNull<u8>, Failure> {
    NonNull::new(at.cast_mut().cast()).ok_or_else(|| Failure::argument("at is a null pointer"))
}

fn taken(kind: &Kind, bytes: usize, align: usize, zeroed: bool) -> Result<NonNull<u8>, Failure> {
    let found = kind.malloc(bytes, align, zeroed).map_err(gone)?;
    found.ok_or_else(|| Failure {
        status: Status::Memory,
        words: format!("no {bytes} bytes of the kind are free in one piece: set area_bytes higher"),
    })
}

/// Maps memory for objects.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_tier_kind_create(
    options: *const IsochroneTierOptions,
    kind: *mut *mut IsochroneTierKind,
) -> c_int {
    let create = || {
        if kind.is_null() {
            return Err(Failure::argument("no room for the handle"));
        }
        let area = Area::take()?;
        // SAFETY: the caller vouches for the options.
        let (config, far) = unsafe { settings(options) }?;
        let made = IsochroneTierKind { kind: Kind::new(config, far)?, _area: area };
        // SAFETY: the caller's, and not null.
        unsafe { kind.write(Box::into_raw(Box::new(made))) };
        Ok(())
    };
    told(create())
}

/// Takes it away, with all of its objects.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_tier_kind_destroy(kind: *mut IsochroneTierKind) {
    if !kind.is_null() {
        // SAFETY: a handle of this library, which its caller gives up.
        drop(unsafe { Box::from_raw(kind) });
    }
}

/// Its array.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_tier_kind_array(
    kind: *const IsochroneTierKind,
) -> *const IsochroneTierArray {
    // SAFETY: the caller vouches for the handle.
    unsafe { of(kind) }.map_or(ptr::null(), |kind| IsochroneTierArray::of(kind.array()))
}

/// Memory for an object.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_tier_kind_malloc(
    kind: *const IsochroneTierKind,
    bytes: usize,
) -> *mut c_void {
    // SAFETY: the caller vouches for the handle.
    address(unsafe { of(kind) }.and_then(|kind| taken(kind, bytes, ALIGN, false)))
}

/// Memory for so many, of zeros.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_tier_kind_calloc(
    kind: *const IsochroneTierKind,
    count: usize,
    bytes: usize,
) -> *mut c_void {
    let all = count.checked_mul(bytes).ok_or_else(|| Failure {
        status: Status::Memory,
        words: format!("{count} times {bytes} are more bytes than there are addresses"),
    });
    // SAFETY: the caller vouches for the handle.
    let kind = unsafe { of(kind) };
    address(all.and_then(|all| taken(kind?, all, ALIGN, true)))
}

/// Memory at a multiple of something.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_tier_kind_memalign(
    kind: *const IsochroneTierKind,
    alignment: usize,
    bytes: usize,
) -> *mut c_void {
    // SAFETY: the caller vouches for the handle.
    let kind = unsafe { of(kind) };
    address(kind.and_then(|kind| {
        if !alignment.is_power_of_two() || alignment > ALIGN_MOST {
            return Err(Failure::argument(format!(
                "an alignment of {alignment}; it is a power of two, at most {ALIGN_MOST}"
            )));
        }
        taken(kind, bytes, alignment.max(ALIGN), false)
    }))
}

/// Makes an object longer or shorter.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_tier_kind_realloc(
    kind: *const IsochroneTierKind,
    at: *mut c_void,
    bytes: usize,
) -> *mut c_void {
    let resize = |kind: &Kind| {
        let Some(old) = NonNull::new(at.cast::<u8>()) else {
            return taken(kind, bytes, ALIGN, false);
        };
        let usable = kind.usable(old)?;
        // One that is half as long lets the rest go.
        if (usable / 2..=usable).contains(&bytes) || (bytes > usable && kind.grow(old, bytes)?) {
            return Ok(old);
        }
        let new = taken(kind, bytes, ALIGN, false)?;
        // SAFETY: both are objects of the program's that are at least so long, and not the same.
        unsafe { ptr::copy_nonoverlapping(old.as_ptr(), new.as_ptr(), usable.min(bytes)) };
        kind.free(old)?;
        Ok(new)
    };
    // SAFETY: the caller vouches for the handle.
    address(unsafe { of(kind) }.and_then(resize))
}

/// Gives an object back.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_tier_kind_free(
    kind: *const IsochroneTierKind,
    at: *mut c_void,
) -> c_int {
    // SAFETY: the caller vouches for the handle.
    let kind = unsafe { of(kind) };
    told(kind.and_then(|kind| NonNull::new(at.cast()).map_or(Ok(()), |at| Ok(kind.free(at)?))))
}

/// Bytes of an object that may be used.
///
/// # Safety
/// As `isochrone.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn isochrone_tier_kind_usable(
    kind: *const IsochroneTierKind,
    at: *const c_void,
) -> usize {
    // SAFETY: the caller vouches for the handle.
    let found = unsafe { of(kind) }.and_then(|kind| Ok(kind.usable(object(at)?)?));
    found.unwrap_or_else(|failure| {
        told(Err(failure));
        0
    })
}
