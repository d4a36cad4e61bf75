//! Which pages of a range the kernel has, in memory or swapped out (proc_pid_pagemap(5)).

use std::fs::File;
use std::os::unix::fs::FileExt;

use isochrone_os::OsError;
use isochrone_units::PAGE_BYTES;

/// Pages that are looked at by one call.
pub(super) const AT_ONCE: usize = 512;
const WORD_BYTES: usize = 8;
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;

/// The kernel's map of this process's pages. A look allocates nothing.
#[derive(Debug)]
pub(super) struct Pagemap(File);

impl Pagemap {
    /// # Errors
    /// [`OsError`] where it cannot be opened.
    pub(super) fn new() -> Result<Self, OsError> {
        File::open("/proc/self/pagemap").map(Self).map_err(|error| refused(&error))
    }

    /// Calls with each of so many pages from an address on, counted from 0, and whether the kernel has it.
    ///
    /// # Errors
    /// [`OsError`] where the map cannot be read; `see` was called for some then.
    pub(super) fn look(
        &self,
        first: usize,
        pages: usize,
        mut see: impl FnMut(usize, bool),
    ) -> Result<(), OsError> {
        let mut buffer = [0; WORD_BYTES * AT_ONCE];
        for done in (0..pages).step_by(AT_ONCE) {
            let words = &mut buffer[..WORD_BYTES * AT_ONCE.min(pages - done)];
            let at = (first / PAGE_BYTES + done) * WORD_BYTES;
            self.0.read_exact_at(words, at as u64).map_err(|error| refused(&error))?;
            for (page, word) in words.as_chunks().0.iter().enumerate() {
                see(done + page, u64::from_le_bytes(*word) & (PRESENT | SWAPPED) != 0);
            }
        }
        Ok(())
    }
}

fn refused(error: &std::io::Error) -> OsError {
    OsError {
        what: "cannot read /proc/self/pagemap",
        errno: error.raw_os_error().unwrap_or(0),
        advice: "mount procfs, and let the process be dumpable (prctl PR_SET_DUMPABLE)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isochrone_os::space::Space;

    #[test]
    fn what_is_there_is_told_from_what_was_never_touched() {
        let space = Space::new(2 * AT_ONCE * PAGE_BYTES, false).unwrap();
        let _ = space.huge(0, space.len(), false);
        let touched = [1, 2, 5, AT_ONCE - 1, AT_ONCE, AT_ONCE + 3];
        for page in touched {
            // SAFETY: inside of the space, and this test's alone.
            unsafe { space.as_ptr().wrapping_add(page * PAGE_BYTES).write(1) };
        }
        let (map, start) = (Pagemap::new().unwrap(), space.as_ptr().expose_provenance());
        let mut found = Vec::new();
        let see = |page, is_there| found.extend(Some(page).filter(|_| is_there));
        map.look(start, AT_ONCE + 4, see).unwrap();
        assert_eq!(found, touched);
    }
}
