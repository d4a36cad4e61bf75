//! Which pages, or groups, of a range are free: pieces in ascending order, no two of them neighbours.

use std::ops::Range;

/// The free pieces.
#[derive(Debug)]
pub(super) struct Extents(Vec<Range<usize>>);

impl Extents {
    /// All of so many pages.
    pub(super) fn new(pages: usize) -> Self {
        let mut all = Vec::with_capacity(1024);
        all.push(0..pages);
        Self(all)
    }

    /// Takes so many pages, the first that fit, beginning at a multiple of `align`.
    pub(super) fn take(&mut self, pages: usize, align: usize) -> Option<usize> {
        let (at, first) = self.0.iter().enumerate().find_map(|(at, piece)| {
            let first = piece.start.checked_next_multiple_of(align)?;
            (first.checked_add(pages)? <= piece.end).then_some((at, first))
        })?;
        self.cut(at, first..first + pages);
        Some(first)
    }

    /// Takes these very pages; false where one of them is not free.
    pub(super) fn take_at(&mut self, pages: Range<usize>) -> bool {
        let holds = |piece: &Range<usize>| piece.start <= pages.start && pages.end <= piece.end;
        let Some(at) = self.0.iter().position(holds) else { return false };
        self.cut(at, pages);
        true
    }

    fn cut(&mut self, at: usize, taken: Range<usize>) {
        let piece = self.0[at].clone();
        let (before, behind) = (piece.start..taken.start, taken.end..piece.end);
        match (before.is_empty(), behind.is_empty()) {
            (true, true) => _ = self.0.remove(at),
            (true, false) => self.0[at] = behind,
            (false, true) => self.0[at] = before,
            (false, false) => {
                self.0[at] = before;
                self.0.insert(at + 1, behind);
            }
        }
    }

    /// Gives pages back that were taken.
    pub(super) fn give(&mut self, pages: Range<usize>) {
        if pages.is_empty() {
            return;
        }
        let at = self.0.partition_point(|piece| piece.end < pages.start);
        let (mut start, mut end, mut last) = (pages.start, pages.end, at);
        while let Some(piece) = self.0.get(last).filter(|piece| piece.start <= end) {
            (start, end) = (start.min(piece.start), end.max(piece.end));
            last += 1;
        }
        self.0.splice(at..last, std::iter::once(start..end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// What is taken is nobody else's, and what is given back can be taken again.
        #[test]
        fn pages_have_one_owner(steps in prop::collection::vec((1_usize..9, 0_usize..4, any::<bool>()), 0..60)) {
            let mut extents = Extents::new(64);
            let mut owned: Vec<Range<usize>> = Vec::new();
            for (pages, align, takes) in steps {
                if takes || owned.is_empty() {
                    let Some(first) = extents.take(pages, 1 << align) else { continue };
                    prop_assert_eq!(first % (1 << align), 0);
                    let new = first..first + pages;
                    prop_assert!(new.end <= 64);
                    prop_assert!(owned.iter().all(|old| old.end <= new.start || new.end <= old.start));
                    owned.push(new);
                } else {
                    extents.give(owned.swap_remove(pages % owned.len()));
                }
            }
            owned.into_iter().for_each(|pages| extents.give(pages));
            prop_assert_eq!(extents.0, vec![0..64]);
        }
    }

    #[test]
    fn pages_behind_others_are_had_where_they_are_free() {
        let mut extents = Extents::new(16);
        assert_eq!(extents.take(4, 1), Some(0));
        assert!(extents.take_at(4..6));
        assert!(!extents.take_at(5..7) && !extents.take_at(15..17));
        assert_eq!(extents.take(11, 1), None);
        extents.give(2..5);
        assert_eq!(extents.0, vec![2..5, 6..16]);
    }
}
