//! Memory of the area for who asks for it, as in the paper: `malloc_global` and `free_global`, and what a
//! program may say about a range.
//!
//! The addresses are the same in every worker, so a pointer may be handed from one to another. An area is
//! used either by these calls, or as arrays, or as words.

use core::ptr::NonNull;
use core::sync::atomic::AtomicU64;
use std::ops::Range;

use isochrone_os::signal::hold;

use super::acting::at_once;
use super::context::Context;
use super::poison;
use super::worker::Worker;
use crate::names::{Actor, Group, Run};
use crate::pager::Advice;
use crate::pages::Trouble;

/// An address that no piece begins at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nothing that is taken of the area begins at {0:#x}: give back what was taken, and once")]
pub struct NoPiece(pub usize);

/// Why a piece could not be given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FreeError {
    /// There is none.
    #[error(transparent)]
    NoPiece(#[from] NoPiece),
    /// The kernel refused; the piece stays with nobody.
    #[error(transparent)]
    Trouble(#[from] Trouble),
}

impl Context<'_> {
    fn is_dead_number(&self, holder: u32) -> bool {
        // Locks hold one more than the actor's number.
        let actor = u16::try_from(holder.saturating_sub(1)).unwrap_or(u16::MAX);
        self.process.is_dead(Actor(actor))
    }

    fn number(&self) -> u32 {
        u32::from(self.caller.actor.0) + 1
    }

    /// See [`Worker::malloc_global`].
    pub(super) fn malloc_global(&self, bytes: usize) -> Option<NonNull<u8>> {
        let _held = hold();
        let unit = self.process.area.group_bytes();
        let groups = u32::try_from(bytes.max(1).div_ceil(unit)).ok()?;
        let heap = self.process.common.heap();
        let first = heap.take(groups, self.number(), |holder| self.is_dead_number(holder))?;
        NonNull::new(self.process.area.base().wrapping_add(first as usize * unit))
    }

    /// See [`Worker::free_global`].
    pub(super) fn free_global(&self, at: NonNull<u8>) -> Result<(), FreeError> {
        let _held = hold();
        let none = NoPiece(at.addr().get());
        let area = &self.process.area;
        let first = area.group_at(at.addr().get()).ok_or(none)?;
        if area.address_of(first) != at.addr().get() {
            return Err(none.into());
        }
        let heap = self.process.common.heap();
        let length = heap.leave(first.0, self.number(), |holder| self.is_dead_number(holder));
        let run = Run { first, groups: length.ok_or(none)? };
        at_once(self.process.pager().give_up(self, self.caller, run))?;
        heap.give(first.0);
        poison::clear(self);
        Ok(())
    }

    /// Forgets what whole groups of a range hold, and all of their pins.
    fn give_up(&self, range: &Range<usize>) -> Result<(), Trouble> {
        let _held = hold();
        let unit = self.process.area.group_bytes();
        let number = |group: usize| u32::try_from(group).unwrap_or(u32::MAX);
        let groups = range.start.div_ceil(unit)..range.end / unit;
        let run = Run { first: Group(number(groups.start)), groups: number(groups.len()) };
        at_once(self.process.pager().give_up(self, self.caller, run))?;
        poison::clear(self);
        Ok(())
    }

    /// See [`Worker::advise`].
    pub(super) fn advise(&self, range: Range<usize>, advice: Advice) -> Result<(), Trouble> {
        let _held = hold();
        let unit = self.process.area.group_bytes();
        let end = range.end.min(self.process.area.bytes());
        // What is only touched in part must not lose the rest.
        let groups = match advice {
            Advice::Discard => range.start.div_ceil(unit)..end / unit,
            Advice::WillNeed | Advice::Cold => range.start / unit..end.div_ceil(unit),
        };
        let number = |group: usize| u32::try_from(group).unwrap_or(u32::MAX);
        let run = Run { first: Group(number(groups.start)), groups: number(groups.len()) };
        let done = at_once(self.process.pager().advise(self, self.caller, run, advice));
        poison::clear(self);
        done
    }
}

impl<'t> Worker<'t> {
    /// Takes a piece of the area, of zeros, for arrays: whole groups, at the same address in every worker.
    /// `None` where no such piece is free. Reading and writing through the pointer is the caller's to
    /// justify; [`Self::global_words`] needs no justification.
    ///
    /// # Panics
    /// If the area is used as arrays or as words.
    #[must_use]
    pub fn malloc_global(&self, bytes: usize) -> Option<NonNull<u8>> {
        self.agree_on_pieces();
        self.context().malloc_global(bytes)
    }

    /// Gives a piece back that any worker took. Its memory and its room in the far tier are free at once, and all pins
    /// of it end, whoever has them.
    ///
    /// # Errors
    /// [`FreeError`] where no piece begins there, or the kernel refuses.
    ///
    /// # Panics
    /// If the area is used as arrays or as words.
    pub fn free_global(&self, at: NonNull<u8>) -> Result<(), FreeError> {
        self.agree_on_pieces();
        self.context().free_global(at)
    }

    /// Words of the area from an address on that [`Self::malloc_global`] gave. They stay words for all time:
    /// given back, they are zeros or what others write.
    ///
    /// # Panics
    /// If they do not lie in the area, or it is used as arrays.
    #[must_use]
    pub fn global_words(&self, at: NonNull<u8>, words: usize) -> &'t [AtomicU64] {
        self.agree_on_pieces();
        let (base, bytes) = self.extent();
        let offset = at.addr().get().checked_sub(base.addr()).expect("an address in the area");
        let end = words.checked_mul(8).and_then(|length| length.checked_add(offset));
        assert!(end.is_some_and(|end| end <= bytes), "words outside of the area");
        assert!(offset.is_multiple_of(8), "words begin on eight bytes");
        let first = base.wrapping_add(offset).cast::<AtomicU64>();
        // SAFETY: inside of the area, which is mapped readable and writable while the worker lives and whose
        // bytes are initialised; aligned; in an area of pieces safe code has nothing but atomic words.
        unsafe { std::slice::from_raw_parts(first, words) }
    }

    /// Forgets what whole groups of a range of bytes hold, and all of their pins: it is given back.
    pub(super) fn give_up(&self, range: Range<usize>) -> Result<(), Trouble> {
        self.context().give_up(&range)
    }

    /// Says something about a range of bytes of the area.
    ///
    /// # Errors
    /// [`Trouble`] where the far tier or the kernel refuses; what was done stays done.
    pub fn advise(&self, range: Range<usize>, advice: Advice) -> Result<(), Trouble> {
        self.context().advise(range, advice)
    }
}
