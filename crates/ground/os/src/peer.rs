//! Memory of other processes, copied by the kernel in one step: `process_vm_readv` and its counterpart.
//!
//! Whether it may be read the kernel decides at each call, as for a debugger: by users, by namespaces, and by what the
//! other process or a security module says. It never asks for more rights than there are.

use crate::error::OsError;
use crate::process::ProcessId;
use crate::syscall::syscall;
use core::ffi::c_long;

const ADVICE: &str = "copy through memory that both share";

/// One end of a copy, as the kernel takes it.
#[repr(C)]
struct Part {
    first: usize,
    bytes: usize,
}

/// Copies bytes of another process from the address `from` on to `to`.
///
/// # Errors
/// [`OsError`] where that process may not be read, or not all of it is there. Some bytes may have been copied.
///
/// # Safety
/// `to` is valid for writes of so many bytes.
pub unsafe fn read(
    process: ProcessId,
    from: usize,
    to: *mut u8,
    bytes: usize,
) -> Result<(), OsError> {
    // SAFETY: the caller vouches for the memory of this process; the kernel looks after the other's.
    unsafe { moved(libc::SYS_process_vm_readv, process, to.expose_provenance(), from, bytes) }
}

/// Copies `bytes` bytes at `from` to the address `to` of another process.
///
/// # Errors
/// [`OsError`] where that process may not be written, or not all of it is there. Some bytes may have been copied.
///
/// # Safety
/// `from` is valid for reads of so many bytes, and the other process expects them at `to`.
pub unsafe fn write(
    process: ProcessId,
    to: usize,
    from: *const u8,
    bytes: usize,
) -> Result<(), OsError> {
    // SAFETY: the caller vouches for both.
    unsafe { moved(libc::SYS_process_vm_writev, process, from.expose_provenance(), to, bytes) }
}

/// # Safety
/// As for [`read`] or [`write`].
unsafe fn moved(
    number: c_long,
    process: ProcessId,
    here: usize,
    there: usize,
    bytes: usize,
) -> Result<(), OsError> {
    let process = usize::try_from(process.0).unwrap_or(0);
    let mut done = 0;
    // The kernel moves 2 GiB at most at once, and less where a page is missing.
    while done < bytes {
        let part = |first: usize| Part { first: first.wrapping_add(done), bytes: bytes - done };
        let (own, other) = (part(here), part(there));
        let [own, other] = [&raw const own, &raw const other].map(<*const Part>::expose_provenance);
        // SAFETY: one part of each, which live here; the caller vouches for the memory that they name.
        match unsafe { syscall(number, [process, own, 1, other, 1, 0]) } {
            Ok(0) => return Err(refused(libc::EFAULT)),
            Ok(moved) => done += moved,
            Err(errno) => return Err(refused(errno)),
        }
    }
    Ok(())
}

const fn refused(errno: i32) -> OsError {
    OsError::new("cannot copy from process to process", errno, ADVICE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::this;

    #[test]
    fn bytes_move_either_way_and_no_more_than_there_are() {
        let (given, mut got) = ([7_u8; 5000], [0_u8; 5000]);
        let place = got.as_mut_ptr();
        let from = given.as_ptr().expose_provenance();
        // SAFETY: as many bytes on both sides.
        unsafe { read(this(), from, place, 4999) }.expect("its own memory");
        assert_eq!((got[4998], got[4999]), (7, 0));
        let more = [9_u8; 3];
        // SAFETY: as above; nobody else uses them.
        unsafe { write(this(), place.expose_provenance(), more.as_ptr(), 3) }
            .expect("its own memory");
        assert_eq!(got[..4], [9, 9, 9, 7]);
        // SAFETY: nothing lies at the other address.
        let missing = unsafe { read(this(), 64, got.as_mut_ptr(), 8) };
        assert_eq!(missing.map_err(|error| error.errno), Err(libc::EFAULT));
        // SAFETY: no process has that number.
        let nobody = unsafe { read(ProcessId(i32::MAX), from, got.as_mut_ptr(), 8) };
        assert_eq!(nobody.map_err(|error| error.errno), Err(libc::ESRCH));
    }
}
