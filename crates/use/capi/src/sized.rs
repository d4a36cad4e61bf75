//! Structs of C that begin with their own size: so a program that was compiled against an older or newer header than
//! the library's gets what it asked for, or is told.

use crate::status::Failure;
use std::ptr;

/// Numbers, and pointers that may be null, in the order of C; the first is a `u64`, its size in bytes. Members are
/// only ever added at the end, and zeros there ask for nothing.
///
/// # Safety
/// The type is `repr(C)`, all bytes zero are a value of it, it has no padding, and it begins with a `u64`.
pub(crate) unsafe trait OfC: Copy {
    /// What a program that leaves the size at 0 has: the size in version 0.1.
    const FIRST: usize;
}

/// What a program gives; all zeros for a null pointer.
///
/// # Safety
/// `given` is null or points to as many bytes as its first member says, or [`OfC::FIRST`] where that is 0.
#[inline]
pub(crate) unsafe fn read<T: OfC>(given: *const T) -> Result<T, Failure> {
    if given.is_null() {
        // SAFETY: the trait vouches that zeros are a value.
        return Ok(unsafe { std::mem::zeroed::<T>() });
    }
    // SAFETY: the caller vouches for it.
    let bytes = unsafe { size::<T>(given.cast()) }?;
    if bytes == size_of::<T>() {
        // SAFETY: as many bytes are there, and whatever they are is a value.
        return Ok(unsafe { given.read_unaligned() });
    }
    // SAFETY: the trait vouches that zeros are a value.
    let mut ours = unsafe { std::mem::zeroed::<T>() };
    let known = bytes.min(size_of::<T>());
    // SAFETY: as many bytes are there, and ours has room for them.
    unsafe { ptr::copy_nonoverlapping(given.cast::<u8>(), ptr::from_mut(&mut ours).cast(), known) };
    let rest = given.cast::<u8>().wrapping_add(known);
    // SAFETY: the caller vouches for that many bytes, of a struct without padding.
    let rest = unsafe { std::slice::from_raw_parts(rest, bytes - known) };
    if rest.iter().any(|byte| *byte != 0) {
        return Err(Failure::argument(format!(
            "options of {bytes} bytes ask for what this library does not know, which knows {known}: set what is \
             unused to 0, or use a newer library"
        )));
    }
    Ok(ours)
}

/// Writes what a program has room for: its size stays as it is, and what it has beyond ours becomes zeros.
///
/// # Safety
/// As for [`read`]; the bytes may be written.
pub(crate) unsafe fn write<T: OfC>(place: *mut T, ours: &T) -> Result<(), Failure> {
    // SAFETY: the caller vouches for it.
    let bytes = unsafe { size::<T>(place.cast_const().cast()) }?;
    let known = bytes.min(size_of::<T>());
    let (from, head) = (ptr::from_ref(ours).cast::<u8>(), size_of::<u64>());
    let to = place.cast::<u8>();
    // SAFETY: both have so many bytes, and are different objects.
    unsafe {
        ptr::copy_nonoverlapping(from.wrapping_add(head), to.wrapping_add(head), known - head)
    };
    // SAFETY: the caller vouches for that many bytes.
    unsafe { ptr::write_bytes(to.wrapping_add(known), 0, bytes - known) };
    Ok(())
}

/// Bytes of a struct.
///
/// # Safety
/// `given` points to a `u64` that may be read.
unsafe fn size<T: OfC>(given: *const u64) -> Result<usize, Failure> {
    // SAFETY: the caller vouches for it.
    let told = unsafe { given.read() };
    match usize::try_from(told) {
        Ok(0) => Ok(T::FIRST),
        // What no struct has is what was never set.
        Ok(bytes) if (size_of::<u64>()..=MOST).contains(&bytes) => Ok(bytes),
        _ => Err(Failure::argument(format!(
            "a struct of {told} bytes: set its size to sizeof of its type, or all of it to zeros"
        ))),
    }
}

/// Bytes of a struct at most.
const MOST: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    #[repr(C)]
    struct Old([u64; 2]);
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[repr(C)]
    struct Ours([u64; 3]);
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[repr(C)]
    struct New([u64; 4]);

    // SAFETY: numbers only.
    unsafe impl OfC for Ours {
        const FIRST: usize = size_of::<Old>();
    }

    fn taken(given: &[u64]) -> Result<[u64; 3], String> {
        // SAFETY: each test says how many words there are.
        let ours = unsafe { read::<Ours>(given.as_ptr().cast()) };
        ours.map(|ours| ours.0).map_err(|failure| failure.words)
    }

    #[test]
    fn programs_of_older_and_newer_headers_are_understood_or_told() {
        assert_eq!(taken(&[16, 7]), Ok([16, 7, 0]));
        assert_eq!(taken(&[0, 7]), Ok([0, 7, 0]), "the first version");
        assert_eq!(taken(&[24, 7, 8]), Ok([24, 7, 8]));
        assert_eq!(taken(&[32, 7, 8, 0]), Ok([32, 7, 8]));
        assert!(taken(&[32, 7, 8, 1]).unwrap_err().contains("newer library"));
        for wrong in [1, 7, 4097, u64::MAX] {
            assert!(taken(&[wrong, 7]).unwrap_err().contains("sizeof"));
        }
        // SAFETY: null is allowed.
        assert_eq!(unsafe { read::<Ours>(ptr::null()) }.map(|ours| ours.0).ok(), Some([0; 3]));
    }

    #[test]
    fn nothing_is_written_beyond_what_a_program_has() {
        let ours = Ours([99, 5, 6]);
        for (size, wanted) in [(16, [16, 5, 9, 9]), (24, [24, 5, 6, 9]), (32, [32, 5, 6, 0])] {
            let mut new = New([size, 9, 9, 9]);
            // SAFETY: it has as many bytes as it says.
            unsafe { write::<Ours>(ptr::from_mut(&mut new).cast(), &ours) }.expect("room");
            assert_eq!(new.0, wanted);
        }
    }
}
