//! Memory for data: reserved ranges, handed out in whole pages that nobody has touched yet, so that a task's first
//! touch decides where they live; or a range of somebody else's, who also says where its pages live.
//!
//! Threads reserve as data come, so that a run takes few addresses: valgrind, ThreadSanitizer and `ulimit -v` leave no
//! others. Processes must have all of it before they are made.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use isochrone_os::OsError;
use isochrone_os::space::Space;
use isochrone_units::{PAGE_BYTES, RegionId};

use crate::arena::pieces::pieces;

/// Data of at least this size begin at a huge page.
const HUGE_BYTES: usize = 2 << 20;

/// Addresses that are reserved at once where more can be had.
const GROWTH_BYTES: usize = 64 << 20;
/// Addresses of processes where nobody said how many: of these, or the most that can be had.
const WANTED_BYTES: usize = 1 << 40;
const LEAST_BYTES: usize = 1 << 30;

/// Whose memory it is.
#[derive(Debug)]
enum Owner {
    /// Ours, in the order in which it was reserved; data are taken from the last.
    Us { spaces: Mutex<Vec<Space>>, grows: bool },
    /// Address and length, once they are told.
    Other(OnceLock<(usize, usize)>),
}

/// The memory, and how much of the range that data are taken from is given out.
#[derive(Debug)]
pub(crate) struct Memory {
    owner: Owner,
    used: AtomicUsize,
}

/// What was handed out for a piece of data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    /// Address of the first byte.
    pub(crate) base: usize,
    /// Address of the words that tell where its pages live.
    pub(crate) homes: usize,
}

impl Memory {
    /// Memory that takes addresses when data come.
    pub(crate) fn growing() -> Self {
        Self::of(Vec::new(), true)
    }

    /// Memory that processes which are forked later have too: so many bytes, or as many as can be had.
    ///
    /// # Errors
    /// [`OsError`] where there are not so many addresses.
    pub(crate) fn shared(bytes: Option<usize>) -> Result<Self, OsError> {
        let mut wanted = bytes.unwrap_or(WANTED_BYTES);
        loop {
            match Space::new(wanted, true) {
                Ok(space) => return Ok(Self::of(vec![space], false)),
                Err(error) if bytes.is_some() || wanted <= LEAST_BYTES => return Err(error),
                Err(_) => wanted /= 2,
            }
        }
    }

    const fn of(spaces: Vec<Space>, grows: bool) -> Self {
        Self { owner: Owner::Us { spaces: Mutex::new(spaces), grows }, used: AtomicUsize::new(0) }
    }

    /// A range that [`Self::give`] names later.
    pub(crate) const fn of_other() -> Self {
        Self { owner: Owner::Other(OnceLock::new()), used: AtomicUsize::new(0) }
    }

    /// Names the range of somebody else; false if that was done before.
    pub(crate) fn give(&self, first: NonNull<u8>, bytes: usize) -> bool {
        match &self.owner {
            Owner::Us { .. } => false,
            Owner::Other(range) => range.set((first.expose_provenance().get(), bytes)).is_ok(),
        }
    }

    /// Words that tell where the pages of so many bytes of somebody else's memory live; `None` if there is no room.
    pub(crate) fn homes(&self, bytes: usize) -> Option<usize> {
        let words = pieces(bytes as u64).checked_mul(2)?;
        self.take(words).map(|piece| piece.base)
    }

    /// Untouched memory for `bytes`; `None` if there is not so much left.
    pub(crate) fn take(&self, bytes: usize) -> Option<Piece> {
        match &self.owner {
            Owner::Other(range) => {
                // Of others' pages nobody asks us where they live.
                let (first, length) = range.get().copied().unwrap_or_default();
                self.take_from(first, length, bytes, 0)
            }
            Owner::Us { spaces, grows } => {
                let mut spaces = locked(spaces);
                let words = pieces(bytes as u64).checked_mul(2)?;
                let last =
                    spaces.last().map(|space| (space.as_ptr().expose_provenance(), space.len()));
                let found =
                    last.and_then(|(first, length)| self.take_from(first, length, bytes, words));
                if found.is_some() || !grows {
                    return found;
                }
                let whole = bytes.checked_next_multiple_of(PAGE_BYTES)?.checked_add(words)?;
                let space = Space::new(whole.max(GROWTH_BYTES), false)
                    .or_else(|_| Space::new(whole, false));
                let space = space.ok()?;
                let (first, length) = (space.as_ptr().expose_provenance(), space.len());
                self.used.store(0, Ordering::Relaxed);
                spaces.push(space);
                self.take_from(first, length, bytes, words)
            }
        }
    }

    /// A piece of a range of which some is used, with room for so many bytes of words.
    fn take_from(&self, first: usize, length: usize, bytes: usize, words: usize) -> Option<Piece> {
        let unit = if bytes >= HUGE_BYTES { HUGE_BYTES } else { PAGE_BYTES };
        // Only the program registers data, so nobody else moves the mark meanwhile.
        let start = self.used.load(Ordering::Relaxed).checked_next_multiple_of(unit)?;
        let homes = start.checked_add(bytes)?.checked_next_multiple_of(PAGE_BYTES)?;
        let end = homes.checked_add(words)?;
        if end > length {
            return None;
        }
        self.used.store(end, Ordering::Relaxed);
        Some(Piece { base: first + start, homes: first + homes })
    }

    /// Asks something of our own pages; those of others stay as they are.
    fn ours(
        &self,
        address: usize,
        ask: impl FnOnce(&Space, usize) -> Result<(), OsError>,
    ) -> Result<(), OsError> {
        let Owner::Us { spaces, .. } = &self.owner else { return Ok(()) };
        let spaces = locked(spaces);
        let offset = |space: &Space| address.checked_sub(space.as_ptr().addr());
        let inside = |space: &&Space| offset(space).is_some_and(|offset| offset < space.len());
        match spaces.iter().find(inside) {
            Some(space) => ask(space, offset(space).unwrap_or(0)),
            None => Ok(()),
        }
    }

    /// Spreads pages that nobody has touched over `regions`.
    pub(crate) fn interleave(
        &self,
        base: usize,
        bytes: usize,
        regions: &[RegionId],
    ) -> Result<(), OsError> {
        self.ours(base, |space, offset| space.interleave(offset, bytes, regions))
    }

    /// Forbids huge pages: one lives in one region as a whole, where tasks of several regions may touch its
    /// parts.
    pub(crate) fn small_pages(&self, base: usize, bytes: usize) -> Result<(), OsError> {
        self.ours(base, |space, offset| space.huge(offset, bytes, false))
    }

    /// Gives the pages back to the system.
    pub(crate) fn release(&self, base: usize, bytes: usize) -> Result<(), OsError> {
        self.ours(base, |space, offset| space.release(offset, bytes))
    }

    /// Lets the pages of a part be used, or not at all.
    pub(crate) fn protect(&self, base: usize, bytes: usize, usable: bool) -> Result<(), OsError> {
        self.ours(base, |space, offset| space.protect(offset, bytes, usable))
    }

    /// Where each page from `base` on lives, as the kernel says.
    pub(crate) fn regions_of(
        &self,
        base: usize,
        out: &mut [Option<RegionId>],
    ) -> Result<(), OsError> {
        self.ours(base, |space, offset| space.regions_of(offset, out))
    }
}

/// The list, whoever panicked with it: it is whole at any time.
fn locked(spaces: &Mutex<Vec<Space>>) -> MutexGuard<'_, Vec<Space>> {
    spaces.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_threads_grows_with_data_and_pieces_do_not_overlap() {
        let memory = Memory::growing();
        let sizes = [1, 4096, 1 << 20, 3 << 20, GROWTH_BYTES, 200 << 20, 7, 2 << 20];
        let taken: Vec<(usize, usize)> = sizes
            .iter()
            .map(|bytes| (memory.take(*bytes).expect("addresses").base, *bytes))
            .collect();
        for (at, (base, bytes)) in taken.iter().enumerate() {
            assert!(base.is_multiple_of(PAGE_BYTES));
            assert!(*bytes < HUGE_BYTES || base.is_multiple_of(HUGE_BYTES));
            let apart = |(other, length): &(usize, usize)| {
                base + bytes <= *other || other + length <= *base
            };
            assert!(taken[..at].iter().all(apart));
            memory.small_pages(*base, *bytes).expect("it is ours");
            memory.release(*base, *bytes).expect("it is ours");
        }
        let reserved: usize = locked_bytes(&memory);
        assert!(reserved < 400 << 20, "{reserved}");
        assert!(memory.take(usize::MAX).is_none() && memory.take(1 << 60).is_none());
    }

    fn locked_bytes(memory: &Memory) -> usize {
        let Owner::Us { spaces, .. } = &memory.owner else { return 0 };
        locked(spaces).iter().map(Space::len).sum()
    }

    #[test]
    fn memory_of_processes_has_the_size_that_was_asked_for() {
        let memory = Memory::shared(Some(8 << 20)).expect("addresses");
        assert!(memory.take(6 << 20).is_some() && memory.take(6 << 20).is_none());
        assert!(Memory::shared(Some(1 << 60)).is_err());
        assert!(Memory::shared(None).expect("some").take(512 << 20).is_some());
    }
}
