//! Objects of any size in an area: which bytes are whose. What is known of them lies beside the area, so that asking
//! for memory and giving it back touches no page.
//!
//! Small objects of one size share a slab, which is found by its number of groups; larger ones have whole groups.
//! Groups that are free hold zeros: whoever gives some back forgets first what they hold.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::extents::Extents;

/// Sizes of small objects: four for each doubling, so that at most a fifth of an object is lost.
const SIZES: [usize; 24] = [
    16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 896, 1024,
    1280, 1536, 1792, 2048,
];
/// Bytes of a slab, or of a group where that is longer.
const SLAB_BYTES: usize = 64 << 10;

/// Which bytes are whose.
#[derive(Debug)]
pub(super) struct Objects {
    group_bytes: usize,
    free: Extents,
    /// By its first group.
    pieces: BTreeMap<usize, Piece>,
    /// Slabs of each size that have room, the first of which is used.
    open: [BTreeSet<usize>; SIZES.len()],
}

/// What groups are taken for.
#[derive(Debug)]
enum Piece {
    /// An object of so many groups.
    Whole(usize),
    Slab(Slab),
    /// So many, which somebody gives back.
    Leaving(usize),
}

#[derive(Debug)]
struct Slab {
    /// Its place among the sizes.
    size: usize,
    /// A bit for each object.
    taken: Vec<u64>,
    objects: usize,
    left: usize,
}

impl Slab {
    fn new(size: usize, bytes: usize) -> Self {
        let objects = bytes / SIZES[size];
        let mut taken = vec![0; objects.div_ceil(64)];
        // Bits that stand for no object.
        (objects..taken.len() * 64).for_each(|number| taken[number / 64] |= 1 << (number % 64));
        Self { size, taken, objects, left: objects }
    }

    /// The first free object.
    fn take(&mut self) -> Option<usize> {
        let at = self.taken.iter().position(|bits| *bits != u64::MAX)?;
        let number = at * 64 + self.taken[at].trailing_ones() as usize;
        self.taken[at] |= self.taken[at] + 1;
        self.left -= 1;
        Some(number)
    }

    /// The number of the object that is taken at an offset of the slab.
    fn number_at(&self, offset: usize) -> Option<usize> {
        let number = offset / SIZES[self.size];
        let begins = offset.is_multiple_of(SIZES[self.size]) && number < self.objects;
        (begins && self.taken[number / 64] >> (number % 64) & 1 == 1).then_some(number)
    }
}

/// What was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    /// Its offset in the area.
    pub(super) at: usize,
    /// It holds zeros.
    pub(super) is_new: bool,
}

impl Objects {
    /// All of an area of so many groups is free.
    pub(super) fn new(groups: usize, group_bytes: usize) -> Self {
        let open = core::array::from_fn(|_| BTreeSet::new());
        Self { group_bytes, free: Extents::new(groups), pieces: BTreeMap::new(), open }
    }

    /// Takes so many bytes, at a multiple of `align`, a power of two.
    pub(super) fn take(&mut self, bytes: usize, align: usize) -> Option<Taken> {
        let fits = |size: &usize| *size >= bytes && size.is_multiple_of(align);
        let small = SIZES.iter().position(fits).and_then(|size| self.take_small(size));
        small.map(|at| Taken { at, is_new: false }).or_else(|| {
            let groups = bytes.max(1).div_ceil(self.group_bytes);
            let at = self.take_groups(groups, align)?;
            self.pieces.insert(at, Piece::Whole(groups));
            Some(Taken { at: at * self.group_bytes, is_new: true })
        })
    }

    fn take_groups(&mut self, groups: usize, align: usize) -> Option<usize> {
        self.free.take(groups, align.div_ceil(self.group_bytes).max(1))
    }

    fn slab_groups(&self) -> usize {
        SLAB_BYTES.div_ceil(self.group_bytes)
    }

    fn take_small(&mut self, size: usize) -> Option<usize> {
        if self.open[size].is_empty() {
            let groups = self.slab_groups();
            let first = self.take_groups(groups, 1)?;
            let slab = Slab::new(size, groups * self.group_bytes);
            self.pieces.insert(first, Piece::Slab(slab));
            self.open[size].insert(first);
        }
        let first = *self.open[size].first()?;
        let Some(Piece::Slab(slab)) = self.pieces.get_mut(&first) else { return None };
        let number = slab.take()?;
        if slab.left == 0 {
            self.open[size].remove(&first);
        }
        Some(first * self.group_bytes + number * SIZES[size])
    }

    /// The piece that an offset lies in or behind, and its first group.
    fn piece(&self, at: usize) -> Option<(usize, &Piece)> {
        let (first, piece) = self.pieces.range(..=at / self.group_bytes).next_back()?;
        Some((*first, piece))
    }

    /// Bytes that may be used of the object at an offset; `None` where none begins.
    pub(super) fn usable(&self, at: usize) -> Option<usize> {
        let (first, piece) = self.piece(at)?;
        let offset = at - first * self.group_bytes;
        match piece {
            Piece::Whole(groups) => (offset == 0).then_some(groups * self.group_bytes),
            Piece::Slab(slab) => slab.number_at(offset).map(|_| SIZES[slab.size]),
            Piece::Leaving(_) => None,
        }
    }

    /// Makes an object of whole groups longer where it is; false where something lies behind it.
    pub(super) fn grow(&mut self, at: usize, bytes: usize) -> bool {
        let first = at / self.group_bytes;
        let Some(Piece::Whole(groups)) = self.pieces.get_mut(&first) else { return false };
        let Some(wanted) = bytes.checked_next_multiple_of(self.group_bytes) else { return false };
        let wanted = (wanted / self.group_bytes).max(*groups);
        let behind = first + *groups..first + wanted;
        let grown = behind.is_empty() || self.free.take_at(behind);
        if grown {
            *groups = wanted;
        }
        grown
    }

    /// Gives an object back; `None` where none begins there. What it says, bytes of the area, holds nothing any more:
    /// it is to be forgotten, and then given back by [`Self::give`].
    pub(super) fn leave(&mut self, at: usize) -> Option<Option<Range<usize>>> {
        self.usable(at)?;
        let (first, _) = self.piece(at)?;
        let (unit, slab_groups) = (self.group_bytes, self.slab_groups());
        let groups = match self.pieces.get_mut(&first)? {
            Piece::Whole(groups) => *groups,
            Piece::Slab(slab) => {
                let number = slab.number_at(at - first * unit)?;
                slab.taken[number / 64] &= !(1 << (number % 64));
                slab.left += 1;
                let open = &mut self.open[slab.size];
                open.insert(first);
                // One that is empty stays for the next object.
                if slab.left < slab.objects || open.len() == 1 {
                    return Some(None);
                }
                open.remove(&first);
                slab_groups
            }
            Piece::Leaving(_) => return None,
        };
        self.pieces.insert(first, Piece::Leaving(groups));
        Some(Some(first * unit..(first + groups) * unit))
    }

    /// Lets bytes be taken again that [`Self::leave`] said, and that hold zeros now.
    pub(super) fn give(&mut self, bytes: &Range<usize>) {
        let first = bytes.start / self.group_bytes;
        if let Some(Piece::Leaving(groups)) = self.pieces.remove(&first) {
            self.free.give(first..first + groups);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GROUPS: usize = 64;

    fn give_back(objects: &mut Objects, at: usize) {
        if let Some(bytes) = objects.leave(at).expect("an object") {
            objects.give(&bytes);
        }
    }

    proptest! {
        /// Objects lie in the area, where they were asked to, and none in another; when all are given back all but a
        /// slab of each size is free.
        #[test]
        fn bytes_have_one_owner(
            steps in prop::collection::vec(
                (1_usize..9000, 0_usize..14, any::<bool>(), any::<prop::sample::Index>()),
                0..200,
            ),
            pages in 0_u32..3,
        ) {
            let unit = 4096 << pages;
            let mut objects = Objects::new(GROUPS, unit);
            let mut owned: Vec<Range<usize>> = Vec::new();
            for (bytes, align, takes, which) in steps {
                if takes || owned.is_empty() {
                    let Some(Taken { at, .. }) = objects.take(bytes, 1 << align) else { continue };
                    prop_assert!(at % (1 << align) == 0 && at + bytes <= GROUPS * unit);
                    let usable = objects.usable(at).expect("an object");
                    prop_assert!(usable >= bytes);
                    let new = at..at + usable;
                    prop_assert!(owned.iter().all(|old| old.end <= new.start || new.end <= old.start));
                    prop_assert_eq!(objects.usable(at + 8), None);
                    owned.push(new);
                } else {
                    let old = owned.swap_remove(which.index(owned.len()));
                    give_back(&mut objects, old.start);
                    prop_assert_eq!(objects.leave(old.start), None);
                }
            }
            owned.into_iter().for_each(|old| give_back(&mut objects, old.start));
            let is_empty_slab =
                |piece: &Piece| matches!(piece, Piece::Slab(slab) if slab.left == slab.objects);
            prop_assert!(objects.pieces.values().all(is_empty_slab));
            prop_assert!(objects.open.iter().all(|open| open.len() <= 1));
            prop_assert_eq!(objects.pieces.len(), objects.open.iter().map(BTreeSet::len).sum::<usize>());
        }
    }

    #[test]
    fn what_is_larger_than_all_that_is_left_is_refused() {
        let mut objects = Objects::new(8, 4096);
        assert_eq!(objects.take(8 * 4096 + 1, 1), None);
        // There is no room for a slab, so a small object has a group.
        assert_eq!(objects.take(16, 16), Some(Taken { at: 0, is_new: true }));
        assert_eq!(objects.take(7 * 4096, 4096).map(|taken| taken.at), Some(4096));
        assert_eq!(objects.take(1, 1), None);
        assert!(!objects.grow(0, 5000));
        assert_eq!(objects.leave(4096), Some(Some(4096..8 * 4096)));
        assert_eq!(
            (objects.leave(4096), objects.take(1, 1)),
            (None, None),
            "it is being given back"
        );
        objects.give(&(4096..8 * 4096));
        assert!(objects.grow(0, 5000) && !objects.grow(0, 9 * 4096) && !objects.grow(8192, 1));
        assert_eq!(objects.usable(0), Some(8192));
    }
}
