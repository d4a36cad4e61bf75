//! Page tables and the buffers that cache their entries. A buffer may be stale until its core is told; an
//! access through a stale entry is what a shootdown is there to prevent, so it is counted.

const MAPPED: u8 = 1;
const WRITABLE: u8 = 2;

/// What an access found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Translation {
    /// A valid entry.
    Hit,
    /// No entry, or none that allows it.
    Fault,
}

/// One set of page tables for each space, and one translation buffer for each thread.
#[derive(Clone, Debug)]
pub struct Tables {
    entries: Vec<Vec<u8>>,
    buffers: Vec<Vec<u32>>,
    stale: u64,
    walks: u64,
}

impl Tables {
    /// Empty tables for `spaces`, of `pages` each, and buffers of `translations` entries for `threads`.
    #[must_use]
    pub fn new(spaces: usize, pages: usize, threads: usize, translations: u32) -> Self {
        Self {
            entries: vec![vec![0; pages]; spaces],
            buffers: vec![vec![0; translations.max(1) as usize]; threads],
            stale: 0,
            walks: 0,
        }
    }

    /// An access of a thread, through its buffer.
    pub fn access(&mut self, thread: usize, space: usize, page: u32, write: bool) -> Translation {
        let entry = self.entries[space][page as usize];
        let allowed = entry & MAPPED != 0 && (!write || entry & WRITABLE != 0);
        let buffer = &mut self.buffers[thread];
        let slot = page as usize % buffer.len();
        if buffer[slot] == page + 1 {
            // The core would not look at the table: it is told when an entry goes.
            self.stale += u64::from(entry & MAPPED == 0);
        } else {
            self.walks += 1;
            if allowed {
                buffer[slot] = page + 1;
            }
        }
        if allowed { Translation::Hit } else { Translation::Fault }
    }

    /// Maps a page into a space.
    pub fn map(&mut self, space: usize, page: u32, write: bool) {
        self.entries[space][page as usize] = MAPPED | if write { WRITABLE } else { 0 };
    }

    /// Takes a page out of a space.
    pub fn unmap(&mut self, space: usize, page: u32) {
        self.entries[space][page as usize] = 0;
    }

    /// Whether a space maps a page.
    #[must_use]
    pub fn is_mapped(&self, space: usize, page: u32) -> bool {
        self.entries[space][page as usize] & MAPPED != 0
    }

    /// A thread's buffer forgets a page.
    pub fn invalidate(&mut self, thread: usize, page: u32) {
        let buffer = &mut self.buffers[thread];
        let slot = page as usize % buffer.len();
        if buffer[slot] == page + 1 {
            buffer[slot] = 0;
        }
    }

    /// Accesses through entries that were gone: 0 if every shootdown reached whom it had to.
    #[must_use]
    pub const fn stale(&self) -> u64 {
        self.stale
    }

    /// Accesses that found no entry in the buffer.
    #[must_use]
    pub const fn walks(&self) -> u64 {
        self.walks
    }
}
