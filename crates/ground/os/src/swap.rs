//! Swap areas: switching one on and off, and what the first page of one says.

use core::ffi::CStr;

use isochrone_units::PAGE_BYTES;

use crate::error::OsError;
use crate::syscall::syscall;

/// Before all that is on already (`SWAP_FLAG_PREFER` with the highest priority; include/linux/swap.h).
const FIRST: usize = 0x8000 | 0x7fff;

/// The first page of a swap area of so many pages (`union swap_header`, include/linux/swap.h).
#[must_use]
pub fn header(pages: u32) -> [u8; PAGE_BYTES] {
    const INFO: usize = 1024;
    const MAGIC: &[u8; 10] = b"SWAPSPACE2";
    let mut page = [0; PAGE_BYTES];
    page[INFO..INFO + 4].copy_from_slice(&1_u32.to_ne_bytes());
    page[INFO + 4..INFO + 8].copy_from_slice(&pages.saturating_sub(1).to_ne_bytes());
    page[PAGE_BYTES - MAGIC.len()..].copy_from_slice(MAGIC);
    page
}

/// Lets the kernel swap to a file or a device that begins with a [`header`], before any other.
///
/// # Errors
/// [`OsError`] where it refuses: it takes an administrator, and a file without holes on a file system that
/// knows swap files.
pub fn on(path: &CStr) -> Result<(), OsError> {
    let arguments = [path.as_ptr().expose_provenance(), FIRST, 0, 0, 0, 0];
    // SAFETY: the path ends with a zero, and memory of programs stays what it is, wherever it lies.
    let result = unsafe { syscall(libc::SYS_swapon, arguments) };
    let help = "be root, and choose a folder on a file system that knows swap files (ext4, xfs)";
    result.map(drop).map_err(|errno| OsError::new("cannot switch swap on", errno, help))
}

/// Brings back what was swapped there, and stops using it.
///
/// # Errors
/// [`OsError`] where there is not so much memory, or where it is not on.
pub fn off(path: &CStr) -> Result<(), OsError> {
    let arguments = [path.as_ptr().expose_provenance(), 0, 0, 0, 0, 0];
    // SAFETY: as for `on`.
    let result = unsafe { syscall(libc::SYS_swapoff, arguments) };
    let help = "free memory, then swapoff it by hand";
    result.map(drop).map_err(|errno| OsError::new("cannot switch swap off", errno, help))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_what_mkswap_writes() {
        let page = header(16);
        assert_eq!(&page[1024..1036], [1, 0, 0, 0, 15, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(&page[4086..], b"SWAPSPACE2");
        assert!(page[..1024].iter().chain(&page[1036..4086]).all(|byte| *byte == 0));
    }

    #[test]
    fn what_is_no_swap_is_refused() {
        assert!(on(c"/no/such/file").is_err());
        assert!(off(c"/no/such/file").is_err());
    }
}
