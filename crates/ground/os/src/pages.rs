//! The kernel's pages: 4 KiB on x86-64; 4, 16 or 64 KiB on AArch64, as the kernel was built.
//!
//! Patterns, frames and arenas are counted in pages of [`PAGE_BYTES`] whatever the kernel has: a kernel's page is a
//! whole number of those. Where it is told of a range, that is rounded to what it can do.

use core::sync::atomic::{AtomicUsize, Ordering};
use isochrone_units::PAGE_BYTES;

/// Bytes of a page of this kernel, a multiple of [`PAGE_BYTES`].
#[must_use]
pub fn kernel_page_bytes() -> usize {
    /// 0: not asked yet. Relaxed: a number that means nothing else, and the same whenever it is asked for.
    static BYTES: AtomicUsize = AtomicUsize::new(0);
    match BYTES.load(Ordering::Relaxed) {
        0 => {
            let bytes = told();
            BYTES.store(bytes, Ordering::Relaxed);
            bytes
        }
        bytes => bytes,
    }
}

/// What the system says; a page where it says what cannot be.
fn told() -> usize {
    // SAFETY: sysconf(3) takes a number and returns one.
    let told = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let is_page = |bytes: &usize| bytes.is_power_of_two() && *bytes >= PAGE_BYTES;
    usize::try_from(told).ok().filter(is_page).unwrap_or(PAGE_BYTES)
}

/// How many pages of [`PAGE_BYTES`] one of this kernel's holds.
#[must_use]
pub fn pages_in_kernel_page() -> usize {
    kernel_page_bytes() / PAGE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_says_how_long_its_pages_are() {
        let bytes = kernel_page_bytes();
        assert!([4, 16, 64].contains(&(bytes >> 10)), "{bytes}");
        assert!(!cfg!(target_arch = "x86_64") || bytes == PAGE_BYTES);
        assert_eq!(pages_in_kernel_page() * PAGE_BYTES, bytes);
    }
}
