//! Size classes: how large a slot is, and how many lines are placed together for it.
//!
//! A class is the whole truth about the shape of a page that belongs to it. It knows no
//! distances.

use crate::slot::{GRANULE_BYTES, Slot};
use isochrone_units::{LINE_BYTES, LINES_PER_PAGE};

/// Lines that are placed together, at one mean distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum UnitLines {
    /// One line, 64 bytes.
    One,
    /// Two adjacent lines.
    Two,
    /// Four adjacent lines.
    Four,
}

impl UnitLines {
    /// All of them, smallest first.
    pub const ALL: [Self; 3] = [Self::One, Self::Two, Self::Four];

    /// How many lines.
    #[must_use]
    pub const fn count(self) -> u8 {
        1 << self as u8
    }

    /// Units in a page.
    #[must_use]
    pub const fn per_page(self) -> u8 {
        64 >> self as u8
    }
}

/// Sizes of slots. A slot lies on a multiple of its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum SizeClass {
    /// 16 bytes, four to a line.
    B16,
    /// 32 bytes, two to a line.
    B32,
    /// 64 bytes, one line.
    B64,
    /// 128 bytes, two lines.
    B128,
    /// 256 bytes, four lines.
    B256,
}

impl SizeClass {
    /// All classes, smallest first.
    pub const ALL: [Self; 5] = [Self::B16, Self::B32, Self::B64, Self::B128, Self::B256];
    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();
    /// Bytes of the largest class.
    pub const LARGEST_BYTES: usize = 256;

    /// The smallest class that holds `size` bytes on a multiple of `align`. `None` where it is
    /// larger than the largest class, or `align` is not a power of two. Size 0 is one granule.
    #[inline]
    #[must_use]
    pub const fn of(size: usize, align: usize) -> Option<Self> {
        if !align.is_power_of_two() {
            return None;
        }
        let need = if size > align { size } else { align };
        if need > Self::LARGEST_BYTES {
            return None;
        }
        let bits = usize::BITS - (need - 1).leading_zeros();
        Some(Self::ALL[bits.saturating_sub(GRANULE_BYTES.ilog2()) as usize])
    }

    /// The same for a size alone, by a table: what most allocations ask.
    #[inline(always)]
    #[must_use]
    pub const fn of_size(size: usize) -> Option<Self> {
        if size > Self::LARGEST_BYTES {
            return None;
        }
        // Entries beyond the largest class are never read; with them an index needs no check.
        const BY_GRANULES: [SizeClass; 32] = {
            let mut classes = [SizeClass::B256; 32];
            let mut granules = 0;
            while granules <= SizeClass::LARGEST_BYTES / GRANULE_BYTES {
                if let Some(class) = SizeClass::of(granules * GRANULE_BYTES, 1) {
                    classes[granules] = class;
                }
                granules += 1;
            }
            classes
        };
        Some(BY_GRANULES[size.div_ceil(GRANULE_BYTES) % BY_GRANULES.len()])
    }

    /// Its place in [`Self::ALL`].
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Bytes of one slot.
    #[inline]
    #[must_use]
    pub const fn bytes(self) -> usize {
        GRANULE_BYTES << self as u8
    }

    /// Granules of one slot.
    #[inline]
    #[must_use]
    pub const fn granules(self) -> u32 {
        1 << self as u8
    }

    /// Lines that one unit takes.
    #[inline]
    #[must_use]
    pub const fn lines(self) -> u8 {
        self.unit().count()
    }

    /// The unit by which the class is placed.
    #[inline]
    #[must_use]
    pub const fn unit(self) -> UnitLines {
        match self {
            Self::B16 | Self::B32 | Self::B64 => UnitLines::One,
            Self::B128 => UnitLines::Two,
            Self::B256 => UnitLines::Four,
        }
    }

    /// Slots that share one unit.
    #[inline]
    #[must_use]
    pub const fn slots_per_unit(self) -> usize {
        if self.bytes() >= LINE_BYTES { 1 } else { LINE_BYTES / self.bytes() }
    }

    /// Slots of one page.
    #[must_use]
    pub const fn slots_per_page(self) -> usize {
        LINES_PER_PAGE * LINE_BYTES / self.bytes()
    }

    /// True if a slot of this class can begin there.
    #[inline]
    #[must_use]
    pub const fn begins_at(self, slot: Slot) -> bool {
        slot.0 & (self.granules() - 1) == 0
    }

    /// The bit of a slot in the mask of its unit.
    #[inline]
    pub(crate) const fn slot_bit(self, slot: Slot) -> u8 {
        match self {
            Self::B16 => 1 << (slot.0 & 3),
            Self::B32 => 1 << (slot.0 >> 1 & 1),
            Self::B64 | Self::B128 | Self::B256 => 1,
        }
    }

    /// The mask of a unit of which every slot is free.
    #[inline]
    pub(crate) const fn full_mask(self) -> u8 {
        match self {
            Self::B16 => 0b1111,
            Self::B32 => 0b11,
            Self::B64 | Self::B128 | Self::B256 => 1,
        }
    }

    /// The slot of a bit in the mask of the unit that begins at `line`.
    #[inline]
    pub(crate) const fn slot_of_bit(self, line: u32, bit: u32) -> Slot {
        Slot(line * 4 + (bit << self as u8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_and_alignment_gets_the_smallest_class_that_fits() {
        for size in 0..=300 {
            for align in [1_usize, 2, 4, 8, 16, 32, 64, 128, 256, 512] {
                let fits = |class: &SizeClass| class.bytes() >= size && class.bytes() >= align;
                let expected = SizeClass::ALL.into_iter().find(fits);
                assert_eq!(SizeClass::of(size, align), expected, "{size} {align}");
            }
            assert_eq!(SizeClass::of_size(size), SizeClass::of(size, 1), "{size}");
        }
        assert_eq!(SizeClass::of(8, 0), None);
        assert_eq!(SizeClass::of(8, 24), None);
        assert_eq!(SizeClass::of(usize::MAX, 1), None);
        assert_eq!(SizeClass::of_size(usize::MAX), None);
    }

    #[test]
    fn units_and_slots_fill_a_page_exactly() {
        for class in SizeClass::ALL {
            let units = usize::from(class.unit().per_page());
            assert_eq!(units * usize::from(class.lines()), LINES_PER_PAGE);
            assert_eq!(units * class.slots_per_unit(), class.slots_per_page());
            assert_eq!(u32::from(class.full_mask()).count_ones() as usize, class.slots_per_unit());
        }
    }

    #[test]
    fn a_bit_names_a_slot_and_back() {
        for class in SizeClass::ALL {
            let mut mask = 0;
            for bit in 0..u32::try_from(class.slots_per_unit()).unwrap() {
                let slot = class.slot_of_bit(8, bit);
                assert!(class.begins_at(slot));
                assert_eq!(class.slot_bit(slot), 1 << bit);
                assert_eq!(slot.line(), 8);
                mask |= class.slot_bit(slot);
            }
            assert_eq!(mask, class.full_mask());
        }
        assert!(!SizeClass::B128.begins_at(Slot(4)));
    }
}
