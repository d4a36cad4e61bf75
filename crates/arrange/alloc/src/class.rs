//! Size classes: how large a slot is, where slots begin in a page, and how many lines are placed together for one.
//!
//! There are four classes in each doubling, and slots of a page lie back to back: so no object from 64 bytes up takes
//! more than 1.28 times what it asked for. A class is the whole truth about the shape of a page that belongs to it.
//! It knows no distances.
//!
//! Slots that begin in one line are one unit, which is known by that line: they leave and come back to a bin
//! together. What a unit is ranked by is the line, or the aligned lines, in which the middle of its first slot lies.

use crate::slot::{GRANULE_BYTES, GRANULES_PER_LINE, GRANULES_PER_PAGE, Slot};
use isochrone_units::{LINE_BYTES, LINES_PER_PAGE, PAGE_BYTES};

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

    /// Groups of so many lines in a page.
    #[must_use]
    pub const fn per_page(self) -> u8 {
        64 >> self as u8
    }
}

/// Sizes of slots. A slot lies on a multiple of its size, counted from the beginning of its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum SizeClass {
    /// 16 bytes, four to a line.
    B16,
    /// 32 bytes, two to a line.
    B32,
    /// 48 bytes.
    B48,
    /// 64 bytes, one line.
    B64,
    /// 80 bytes.
    B80,
    /// 96 bytes.
    B96,
    /// 112 bytes.
    B112,
    /// 128 bytes, two lines.
    B128,
    /// 160 bytes.
    B160,
    /// 192 bytes, three lines.
    B192,
    /// 224 bytes.
    B224,
    /// 256 bytes, four lines.
    B256,
}

/// Slots of a class in its page.
#[derive(Clone, Copy)]
struct Shape {
    /// Bit by granule of a line, for each line: a slot begins there.
    begins: [u8; LINES_PER_PAGE],
    /// Bit by line: some slot begins in it.
    units: u64,
    /// By line in which slots begin: the one in which the middle of the first lies.
    middles: [u8; LINES_PER_PAGE],
}

impl Shape {
    const fn of(class: SizeClass) -> Self {
        let mut shape =
            Self { begins: [0; LINES_PER_PAGE], units: 0, middles: [0; LINES_PER_PAGE] };
        let mut slot = 0;
        while slot < class.slots_per_page() {
            let line = slot * class.bytes() / LINE_BYTES;
            if shape.begins[line] == 0 {
                let middle = (slot * class.bytes() + class.bytes() / 2 - 1) / LINE_BYTES;
                shape.middles[line] = middle.to_le_bytes()[0];
            }
            shape.begins[line] |= 1 << (slot * class.bytes() % LINE_BYTES / GRANULE_BYTES);
            shape.units |= 1 << line;
            slot += 1;
        }
        shape
    }
}

static SHAPES: [Shape; SizeClass::COUNT] = {
    let mut shapes = [Shape::of(SizeClass::B16); SizeClass::COUNT];
    let mut place = 0;
    while place < shapes.len() {
        shapes[place] = Shape::of(SizeClass::ALL[place]);
        place += 1;
    }
    shapes
};

impl SizeClass {
    /// All classes, smallest first.
    pub const ALL: [Self; 12] = [
        Self::B16,
        Self::B32,
        Self::B48,
        Self::B64,
        Self::B80,
        Self::B96,
        Self::B112,
        Self::B128,
        Self::B160,
        Self::B192,
        Self::B224,
        Self::B256,
    ];
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
        if align <= GRANULE_BYTES { Self::of_size(size) } else { Self::smallest(size, align) }
    }

    /// The smallest class of at least `size` bytes that is a multiple of `align`.
    const fn smallest(size: usize, align: usize) -> Option<Self> {
        let mut place = 0;
        while place < Self::COUNT {
            let bytes = Self::ALL[place].bytes();
            if bytes >= size && bytes.is_multiple_of(align) {
                return Some(Self::ALL[place]);
            }
            place += 1;
        }
        None
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
                if let Some(class) = SizeClass::smallest(granules * GRANULE_BYTES, 1) {
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

    /// The class at a place of [`Self::ALL`]. A match of numbers onto the same numbers takes no table, as that would.
    #[inline(always)]
    #[must_use]
    pub const fn at(place: u8) -> Option<Self> {
        Some(match place {
            0 => Self::B16,
            1 => Self::B32,
            2 => Self::B48,
            3 => Self::B64,
            4 => Self::B80,
            5 => Self::B96,
            6 => Self::B112,
            7 => Self::B128,
            8 => Self::B160,
            9 => Self::B192,
            10 => Self::B224,
            11 => Self::B256,
            _ => return None,
        })
    }

    /// Bytes of one slot.
    #[inline]
    #[must_use]
    pub const fn bytes(self) -> usize {
        self.granules() as usize * GRANULE_BYTES
    }

    /// Granules of one slot.
    #[inline]
    #[must_use]
    pub const fn granules(self) -> u32 {
        const GRANULES: [u8; SizeClass::COUNT] = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16];
        GRANULES[self as usize] as u32
    }

    /// The lines by whose mean distance the class is placed.
    #[inline]
    #[must_use]
    pub const fn unit(self) -> UnitLines {
        match self {
            Self::B16 | Self::B32 | Self::B48 | Self::B64 | Self::B80 | Self::B96 | Self::B112 => {
                UnitLines::One
            }
            Self::B128 | Self::B160 | Self::B192 | Self::B224 => UnitLines::Two,
            Self::B256 => UnitLines::Four,
        }
    }

    /// Slots that share one unit, at most.
    #[inline]
    #[must_use]
    pub const fn slots_per_unit(self) -> usize {
        if self.bytes() >= LINE_BYTES { 1 } else { LINE_BYTES.div_ceil(self.bytes()) }
    }

    /// Slots of one page.
    #[must_use]
    pub const fn slots_per_page(self) -> usize {
        PAGE_BYTES / self.bytes()
    }

    /// Units of a page: a bit for each of its lines.
    #[inline]
    pub(crate) fn units(self) -> u64 {
        SHAPES[self as usize].units
    }

    /// The line of a page by which the unit that begins in `line` of it is ranked.
    #[inline(always)]
    pub(crate) fn middle(self, line: u8) -> u8 {
        SHAPES[self as usize].middles[usize::from(line) % LINES_PER_PAGE]
    }

    /// True if a slot of this class can begin there.
    #[inline(always)]
    #[must_use]
    pub fn begins_at(self, slot: Slot) -> bool {
        self.full_mask(slot.line_in_page()) & self.slot_bit(slot) != 0
    }

    /// The slot of a page of this class in which a granule lies; the last one for what is left over at the end.
    #[must_use]
    pub const fn slot_over(self, granule: Slot) -> Slot {
        let first = granule.page() * GRANULES_PER_PAGE;
        let place = (granule.0 - first) / self.granules();
        let last = GRANULES_PER_PAGE / self.granules() - 1;
        Slot(first + if place < last { place } else { last } * self.granules())
    }

    /// The lines that a slot touches: how many from its first on.
    #[inline]
    pub(crate) const fn lines_of(self, slot: Slot) -> u8 {
        let last = (slot.0 + self.granules() - 1) / GRANULES_PER_LINE;
        (last - slot.line() + 1).to_le_bytes()[0]
    }

    /// The bit of a slot in the mask of its unit.
    #[inline(always)]
    pub(crate) const fn slot_bit(self, slot: Slot) -> u8 {
        1 << (slot.0 % GRANULES_PER_LINE)
    }

    /// The mask of a unit of which every slot is free, by the line of its page; empty where none begins.
    #[inline(always)]
    pub(crate) fn full_mask(self, line: u8) -> u8 {
        SHAPES[self as usize].begins[usize::from(line) % LINES_PER_PAGE]
    }
}

/// The slot of a bit in the mask of the unit that begins in `line`.
#[inline]
pub(crate) const fn slot_of_bit(line: u32, bit: u32) -> Slot {
    Slot(line * GRANULES_PER_LINE + bit)
}

/// The places of the bits of a mask, lowest first.
pub(crate) fn bits(mask: u64) -> impl Iterator<Item = u8> {
    let mut left = mask;
    core::iter::from_fn(move || {
        let place = u8::try_from(left.trailing_zeros()).ok().filter(|_| left != 0)?;
        left &= left - 1;
        Some(place)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// What an object of a size takes of its page, bytes.
    fn taken(size: usize) -> f64 {
        let class = SizeClass::of_size(size).expect("small");
        f64::from(u32::try_from(PAGE_BYTES).unwrap())
            / f64::from(u32::try_from(class.slots_per_page()).unwrap())
    }

    #[test]
    fn every_size_and_alignment_gets_the_smallest_class_that_fits() {
        for size in 0..=300 {
            for align in [1_usize, 2, 4, 8, 16, 32, 64, 128, 256, 512] {
                let fits = |class: &SizeClass| {
                    class.bytes() >= size && class.bytes().is_multiple_of(align)
                };
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
    fn little_is_wasted_at_any_size() {
        for size in 1..=SizeClass::LARGEST_BYTES {
            let asked = f64::from(u32::try_from(size).unwrap());
            assert!(taken(size) <= asked + 16.5 || taken(size) <= 1.28 * asked, "{size}");
        }
        // Sizes of the issue that wanted this.
        assert!(taken(65) < 81.0 && taken(129) < 164.0);
        let doublings = [(16, 32), (32, 64), (64, 128), (128, 256)];
        let classes = doublings.map(|(above, to)| {
            SizeClass::ALL.iter().filter(|class| (above + 1..=to).contains(&class.bytes())).count()
        });
        assert_eq!(classes, [1, 2, 4, 4], "by granules of 16 bytes where these are coarser");
    }

    #[test]
    fn slots_of_a_page_begin_back_to_back_and_stay_within_it() {
        for class in SizeClass::ALL {
            let begin = |granule: &u32| class.begins_at(Slot(7 * GRANULES_PER_PAGE + granule));
            let begins: Vec<u32> = (0..GRANULES_PER_PAGE).filter(begin).collect();
            assert_eq!(begins.len(), class.slots_per_page(), "{class:?}");
            assert!(
                begins.iter().zip(0..).all(|(granule, slot)| *granule == slot * class.granules())
            );
            assert!(begins.last().is_some_and(|last| last + class.granules() <= GRANULES_PER_PAGE));
            for granule in 0..GRANULES_PER_PAGE {
                let over = class.slot_over(Slot(7 * GRANULES_PER_PAGE + granule));
                assert!(class.begins_at(over), "{class:?} {granule}");
                let holds = (over.0..over.0 + class.granules()).contains(&(7 * 256 + granule));
                let left = GRANULES_PER_PAGE % class.granules();
                assert!(holds || granule >= GRANULES_PER_PAGE - left);
            }
        }
    }

    #[test]
    fn a_unit_is_the_slots_that_begin_in_a_line() {
        for class in SizeClass::ALL {
            let mut slots = 0;
            for line in bits(class.units()) {
                let mask = class.full_mask(line);
                let of = |bit: u32| slot_of_bit(3 * 64 + u32::from(line), bit);
                let here: Vec<Slot> = (0..4).filter(|bit| mask >> bit & 1 == 1).map(of).collect();
                assert!(!here.is_empty() && here.len() <= class.slots_per_unit(), "{class:?}");
                for slot in &here {
                    assert!(class.begins_at(*slot) && slot.line_in_page() == line);
                    assert_eq!(class.slot_bit(*slot) & mask, class.slot_bit(*slot));
                    assert!(usize::from(line + class.lines_of(*slot)) <= LINES_PER_PAGE);
                }
                let (first, lines) = (here[0], class.lines_of(here[0]));
                assert_eq!(first.page(), 3);
                assert!((line..line + lines).contains(&class.middle(line)), "{class:?} {line}");
                slots += here.len();
            }
            assert_eq!(slots, class.slots_per_page());
            let others = bits(!class.units()).all(|line| class.full_mask(line) == 0);
            assert!(others, "{class:?}");
        }
        assert!(!SizeClass::B128.begins_at(Slot(4)) && SizeClass::B192.begins_at(Slot(12)));
    }
}
