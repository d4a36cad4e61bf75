//! Where the process's arena is, and what of it the program has: a byte for each granule.
//!
//! Every free looks here first. The mark of a slot says whether an object was handed out there, so a
//! pointer that no object begins at is told from a right one by one load, whatever lies between
//! two frees of it and whoever makes them. It says of which class the object is, too, which spares a free the look at
//! its page. The memory itself is never touched. Two threads that free
//! one object at the very same time are not told apart, as in glibc.

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicUsize, Ordering};
use isochrone_alloc::{GRANULE_BYTES, SizeClass, Slot};

/// Marks; zero where no object ever began.
mod mark {
    use isochrone_alloc::SizeClass;

    pub(super) const FREED: u8 = 1;
    /// That of a held object of the first class; those of the others follow.
    const FIRST_HELD: u8 = 2;

    #[inline(always)]
    pub(super) const fn held(class: SizeClass) -> u8 {
        FIRST_HELD + class as u8
    }

    /// The class of the object that is held there.
    #[inline(always)]
    pub(super) fn class(mark: u8) -> Option<SizeClass> {
        SizeClass::at(mark.wrapping_sub(FIRST_HELD))
    }
}

/// What was wrong with a pointer that was freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// No object ever began there.
    Pointer,
    /// The object there is free.
    Freed,
}

/// No object is held where one was freed. Who ends the process says what is wrong: said here, it would become one table
/// of jumps with the classes, and every free would jump by that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotHeld(u8);

impl NotHeld {
    /// Where no mark is.
    const NOWHERE: Self = Self(0);

    pub(crate) const fn wrong(self) -> Wrong {
        if self.0 == mark::FREED { Wrong::Freed } else { Wrong::Pointer }
    }
}

/// The arena.
#[derive(Debug)]
pub(crate) struct Range {
    start: AtomicUsize,
    bytes: AtomicUsize,
    /// As many as the arena has granules.
    marks: AtomicPtr<AtomicU8>,
}

impl Range {
    pub(crate) const fn new() -> Self {
        Self {
            start: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            marks: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// From now on pointers of an arena that begins there are known, as far as there are marks: one, of zero, for each
    /// of its granules. Once more for the same arena when it has more; one thread at a time.
    pub(crate) fn publish(&self, start: *const u8, marks: &'static [AtomicU8]) {
        self.start.store(start.addr(), Ordering::Relaxed);
        self.marks.store(marks.as_ptr().cast_mut(), Ordering::Relaxed);
        self.bytes.store(marks.len() * GRANULE_BYTES, Ordering::Release);
    }

    /// Whether an arena is known.
    pub(crate) fn is_published(&self) -> bool {
        self.bytes.load(Ordering::Acquire) > 0
    }

    /// How far into the arena a pointer lies; `None` for one that is not of the arena.
    #[inline(always)]
    pub(crate) fn offset(&self, pointer: *const c_void) -> Option<usize> {
        // Acquire: whoever sees the length sees the start, and the marks.
        let bytes = self.bytes.load(Ordering::Acquire);
        let offset = pointer.addr().wrapping_sub(self.start.load(Ordering::Relaxed));
        (offset < bytes).then_some(offset)
    }

    /// The mark of the granule so far into the arena.
    #[inline(always)]
    fn mark(&self, offset: usize) -> Option<&'static AtomicU8> {
        if offset >= self.bytes.load(Ordering::Acquire) {
            return None;
        }
        let mark = self.marks.load(Ordering::Relaxed).wrapping_add(offset / GRANULE_BYTES);
        // SAFETY: there is a mark for each granule of so many bytes, which lives for ever, and it
        // was stored before the length.
        unsafe { mark.as_ref() }
    }

    /// The program gets this slot of a page of this class.
    #[inline(always)]
    pub(crate) fn hand_out(&self, slot: Slot, class: SizeClass) {
        if let Some(mark) = self.mark(slot.offset()) {
            mark.store(mark::held(class), Ordering::Relaxed);
        }
    }

    /// The class of the object that the program has and that begins so far into the arena.
    pub(crate) fn held(&self, offset: usize) -> Option<SizeClass> {
        let mark = self.mark(offset).filter(|_| offset.is_multiple_of(GRANULE_BYTES));
        mark.and_then(|mark| mark::class(mark.load(Ordering::Relaxed)))
    }

    /// The program gives an object back.
    #[inline(always)]
    pub(crate) fn take_back(&self, offset: usize) -> Result<(Slot, SizeClass), NotHeld> {
        let (Some(slot), Some(mark)) = (Slot::at_offset(offset), self.mark(offset)) else {
            return Err(NotHeld::NOWHERE);
        };
        let found = mark.load(Ordering::Relaxed);
        let Some(class) = mark::class(found) else { return Err(NotHeld(found)) };
        mark.store(mark::FREED, Ordering::Relaxed);
        Ok((slot, class))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isochrone_alloc::live::Arena;
    use isochrone_os::boxed::Boxed;
    use isochrone_os::table::Table;

    const BYTES: usize = 1 << 21;

    fn published(range: &Range, arena: &Arena) {
        let marks = Table::zeroed(BYTES / GRANULE_BYTES).expect("address space");
        range.publish(arena.memory().as_ptr(), Boxed::new(marks).expect("a page").leak());
    }

    #[test]
    fn pointers_are_told_apart_by_their_address() {
        let range = Range::new();
        let somewhere = core::ptr::without_provenance(0x5000);
        assert_eq!(range.offset(core::ptr::null()), None);
        assert_eq!(range.offset(somewhere), None);
        let arena = Arena::new(BYTES, false).expect("address space");
        published(&range, &arena);
        let start = arena.memory().as_ptr().cast_const().cast::<c_void>();
        assert_eq!(range.offset(start), Some(0));
        assert_eq!(range.offset(start.wrapping_byte_add(4097)), Some(4097));
        assert_eq!(range.offset(start.wrapping_byte_add(1 << 21)), None);
        assert_eq!(range.offset(start.wrapping_byte_sub(1)), None);
        assert_eq!(range.offset(core::ptr::null()), None);
    }

    #[test]
    fn only_what_was_handed_out_is_taken_back_and_once() {
        let range = Range::new();
        let take = |offset| range.take_back(offset).map_err(NotHeld::wrong);
        assert_eq!(take(0), Err(Wrong::Pointer), "there is no arena yet");
        let arena = Arena::new(BYTES, false).expect("address space");
        published(&range, &arena);
        let slot = Slot(4);
        range.hand_out(slot, SizeClass::B48);
        assert_eq!([64, 80, 65].map(|at| range.held(at)), [Some(SizeClass::B48), None, None]);
        for wrong in [0, 48, 65, 80, 1 << 21, usize::MAX] {
            assert_eq!(take(wrong), Err(Wrong::Pointer), "{wrong}");
        }
        assert_eq!(take(64), Ok((slot, SizeClass::B48)));
        assert_eq!(take(64), Err(Wrong::Freed));
        for class in SizeClass::ALL {
            assert_eq!(range.held(64), None);
            range.hand_out(slot, class);
            assert_eq!(range.held(64), Some(class));
            assert_eq!(take(64), Ok((slot, class)));
        }
    }
}
