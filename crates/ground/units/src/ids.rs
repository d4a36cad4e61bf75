//! Who is where: cores, regions, pages and lines.

use core::fmt;

/// Bytes in one cache line; every machine of this project has 64.
pub const LINE_BYTES: usize = 64;
/// Bytes in one base page.
pub const PAGE_BYTES: usize = 4096;
/// Lines in one base page.
pub const LINES_PER_PAGE: usize = PAGE_BYTES / LINE_BYTES;

/// A logical processor, numbered as the operating system numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CoreId(pub u16);

/// A memory region (a NUMA node), numbered as the operating system numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegionId(pub u16);

/// A cache line: a byte address divided by [`LINE_BYTES`]. Whether the address is virtual,
/// physical or an offset into an arena is said by whoever hands it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineAddr(pub u64);

/// A base page: a byte address divided by [`PAGE_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageAddr(pub u64);

impl LineAddr {
    /// The page that holds this line.
    #[must_use]
    pub const fn page(self) -> PageAddr {
        PageAddr(self.0 / LINES_PER_PAGE as u64)
    }

    /// The index of this line in its page, `0..64`.
    #[must_use]
    pub const fn index_in_page(self) -> u8 {
        (self.0 % LINES_PER_PAGE as u64).to_le_bytes()[0]
    }
}

impl PageAddr {
    /// Line `index` of this page.
    #[must_use]
    pub const fn line(self, index: u8) -> LineAddr {
        LineAddr(self.0 * LINES_PER_PAGE as u64 + index as u64 % LINES_PER_PAGE as u64)
    }
}

impl fmt::Display for CoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "core {}", self.0)
    }
}

impl fmt::Display for RegionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "region {}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_and_an_index_name_a_line_and_back() {
        for page in [0, 1, 12345] {
            for index in 0..64 {
                let line = PageAddr(page).line(index);
                assert_eq!((line.page(), line.index_in_page()), (PageAddr(page), index));
            }
        }
    }
}
