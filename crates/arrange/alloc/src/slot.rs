//! What the allocator hands out: the number of a granule in the arena, never an address.

use isochrone_units::{LINE_BYTES, LINES_PER_PAGE};

/// Bytes of the smallest slot; slots are counted in it.
pub const GRANULE_BYTES: usize = 16;
/// Granules in a line.
pub(crate) const GRANULES_PER_LINE: u32 = 4;
const LINES_IN_PAGE: u32 = 64;
/// Granules in a page.
pub(crate) const GRANULES_PER_PAGE: u32 = GRANULES_PER_LINE * LINES_IN_PAGE;

const _: () = assert!(GRANULES_PER_LINE as usize * GRANULE_BYTES == LINE_BYTES);
const _: () = assert!(LINES_IN_PAGE as usize == LINES_PER_PAGE);

/// A granule of 16 bytes: the slot that begins `16 * slot` bytes into the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Slot(pub u32);

impl Slot {
    /// The slot that begins at this many bytes into the arena. `None` if none can.
    #[inline]
    #[must_use]
    pub fn at_offset(bytes: usize) -> Option<Self> {
        if !bytes.is_multiple_of(GRANULE_BYTES) {
            return None;
        }
        u32::try_from(bytes / GRANULE_BYTES).ok().map(Self)
    }

    /// Bytes into the arena.
    #[inline]
    #[must_use]
    pub const fn offset(self) -> usize {
        self.0 as usize * GRANULE_BYTES
    }

    /// The line of the arena in which it begins.
    #[inline]
    #[must_use]
    pub const fn line(self) -> u32 {
        self.0 / GRANULES_PER_LINE
    }

    /// The page of the arena in which it lies.
    #[inline]
    #[must_use]
    pub const fn page(self) -> u32 {
        self.0 / GRANULES_PER_PAGE
    }

    /// The place of its line in its page, `0..64`.
    #[inline]
    #[must_use]
    pub const fn line_in_page(self) -> u8 {
        (self.line() % LINES_IN_PAGE).to_le_bytes()[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_knows_its_line_and_page() {
        let slot = Slot::at_offset(3 * 4096 + 5 * 64 + 32).unwrap();
        assert_eq!((slot.page(), slot.line(), slot.line_in_page()), (3, 3 * 64 + 5, 5));
        assert_eq!(slot.offset(), 3 * 4096 + 5 * 64 + 32);
        assert_eq!(Slot::at_offset(8), None);
        assert_eq!(Slot::at_offset(usize::MAX - 15), None);
    }
}
