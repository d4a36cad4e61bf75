//! What was given up (`MADV_DONTNEED`, `MADV_FREE`) and may still be there: the kernel tells of it, lets who gives it
//! up go on when that is heard, and that thread then takes the pages out of the tables. It may be put off its core
//! for as long as the scheduler likes before it does, and nothing tells when it has; and the kernel does not tell
//! which of both it was, of which the first takes what the pages hold away and the second lets it stay, with what is
//! written later.
//!
//! ```text
//!  the thread          asks | tells, and waits ........ | is put off .......... | takes pages out | goes on
//!  a handler                     heard: the mark is up    looks, and looks again ...
//!  the page                 old data, or none             old data                none              new data
//! ```
//!
//! **What holds.** While a page has the mark ([`Marks::EMPTIED`]) nobody fills it and nobody takes it out
//! ([`super::places`]). The mark is put up as it is heard, before anything can be moved again, and is taken down for
//! one of two reasons alone:
//! - *the page was not there*, and what the far tier had of it is forgotten. Then all that it holds later was written
//!   after the giving up had begun: it is never old, and who loses it by the late end of that call wrote while the
//!   call ran.
//! - *the call is over*: each thread of the process has been seen outside of such a call after this one was heard
//!   ([`isochrone_os::others`]), or has had a fault since, which a thread inside of it has not. A page that is there
//!   then is there to stay, with what was written since.
//!
//! So a page that stays (`MADV_FREE`) cannot leave before that, and no longer: who wants it to leave asks for the
//! threads. One that goes (`MADV_DONTNEED`) is counted until a handler has seen it gone, at its next look. Time plays
//! no part. A model goes through every order of the steps (`put_off/model.rs`).
//!
//! [`Marks::EMPTIED`]: super::book::Marks::EMPTIED

use std::ops::Range;

#[cfg(test)]
mod model;

/// Calls of which each is known by itself; of more, neighbours in time are one.
const CALLS_MOST: usize = 64;
/// Threads of which it is known when they had their last fault; of more, those whose fault was the latest.
const THREADS_MOST: usize = 64;

/// What becomes of a page with the mark that is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It may still be taken out.
    Waits,
    /// It is gone, and so is what the far tier has of it.
    Gone,
    /// It stays as it is.
    Stays,
}

impl Fate {
    /// Of a page that is there or not, and of which all calls that gave it up are over or not.
    pub(super) const fn of(is_there: bool, are_over: bool) -> Self {
        match (is_there, are_over) {
            (false, _) => Self::Gone,
            (true, true) => Self::Stays,
            (true, false) => Self::Waits,
        }
    }
}

/// A call by which pages were given up.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(Hash))]
struct Call {
    /// Around all of its pages that have the mark.
    pages: Range<usize>,
    number: u64,
    is_over: bool,
}

/// Calls that were heard, and of which pages have the mark.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone, PartialEq, Eq, Hash))]
pub(super) struct PutOff {
    calls: Vec<Call>,
    /// Calls that were ever heard; the number of the last.
    heard: u64,
    /// Threads, and how many calls had been heard when each was last known to be in none.
    outside: Vec<(i32, u64)>,
    /// Where the next look begins.
    next: usize,
}

impl PutOff {
    /// With room for what it can hold: handlers allocate nothing.
    pub(super) fn with_room() -> Self {
        let (calls, outside) = (Vec::with_capacity(CALLS_MOST), Vec::with_capacity(THREADS_MOST));
        Self { calls, outside, ..Self::default() }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// A call was heard by which these pages are given up.
    pub(super) fn hear(&mut self, pages: Range<usize>) {
        if pages.is_empty() {
            return;
        }
        self.heard += 1;
        let mut call = Call { pages, number: self.heard, is_over: false };
        if self.calls.len() >= CALLS_MOST
            && let Some(last) = self.calls.pop()
        {
            call.pages = last.pages.start.min(call.pages.start)..last.pages.end.max(call.pages.end);
        }
        self.calls.push(call);
    }

    /// How many calls were heard.
    pub(super) const fn heard(&self) -> u64 {
        self.heard
    }

    /// A fault of a thread was heard now, so it is in none of the calls that were heard before.
    pub(super) fn is_outside(&mut self, thread: i32) {
        if self.is_empty() {
            return;
        }
        let latest = (thread, self.heard);
        if let Some(known) = self.outside.iter_mut().find(|(known, _)| *known == thread) {
            *known = latest;
        } else if self.outside.len() < THREADS_MOST {
            self.outside.push(latest);
        } else if let Some(oldest) = self.outside.iter_mut().min_by_key(|(_, heard)| *heard) {
            *oldest = latest;
        }
    }

    /// The last call of which it is known that a thread is not in it, nor in an earlier one.
    pub(super) fn outside_of(&self, thread: i32) -> u64 {
        self.outside.iter().find(|(known, _)| *known == thread).map_or(0, |(_, heard)| *heard)
    }

    /// All calls up to a number are over; all pages are looked at from the first on.
    pub(super) fn end(&mut self, number: u64) {
        self.next = 0;
        self.calls.iter_mut().for_each(|call| call.is_over |= call.number <= number);
    }

    /// Whether all calls by which a page was given up are over.
    pub(super) fn are_over(&self, page: usize) -> bool {
        self.calls.iter().all(|call| call.is_over || !call.pages.contains(&page))
    }

    /// The next pages to look at, at most so many; none where the last were looked at, and then the first come again.
    pub(super) fn piece(&mut self, most: usize) -> Option<Range<usize>> {
        let next = self.next;
        let rest = |call: &Call| call.pages.start.max(next)..call.pages.end;
        let rest = self.calls.iter().map(rest).filter(|rest| !rest.is_empty());
        let piece = rest.min_by_key(|rest| rest.start);
        let piece = piece.map(|rest| rest.start..rest.end.min(rest.start + most));
        self.next = piece.as_ref().map_or(0, |piece| piece.end);
        piece
    }

    /// Forgets of each call what has no mark any more at its ends, and those of which nothing has.
    pub(super) fn trim(&mut self, has_mark: impl Fn(usize) -> bool) {
        self.calls.retain_mut(|call| {
            while !call.pages.is_empty() && !has_mark(call.pages.start) {
                call.pages.start += 1;
            }
            while !call.pages.is_empty() && !has_mark(call.pages.end - 1) {
                call.pages.end -= 1;
            }
            !call.pages.is_empty()
        });
        if self.is_empty() {
            self.outside.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_stays_when_all_calls_that_gave_it_up_are_over() {
        let mut put_off = PutOff::with_room();
        assert!(put_off.are_over(5), "nobody gave it up");
        put_off.hear(4..6);
        put_off.hear(9..9);
        put_off.hear(5..9);
        assert_eq!(put_off.heard(), 2);
        put_off.end(1);
        assert!(put_off.are_over(4) && !put_off.are_over(5) && !put_off.are_over(8));
        put_off.end(2);
        assert!(put_off.are_over(5) && put_off.are_over(8));
        put_off.hear(5..6);
        assert!(!put_off.are_over(5) && put_off.are_over(6));
    }

    #[test]
    fn who_has_a_fault_is_in_no_call_heard_before() {
        let mut put_off = PutOff::with_room();
        put_off.is_outside(7);
        assert_eq!(put_off.outside_of(7), 0, "there is no call to be in");
        put_off.hear(0..1);
        put_off.is_outside(7);
        put_off.hear(0..1);
        assert_eq!((put_off.outside_of(7), put_off.outside_of(8)), (1, 0));
        put_off.is_outside(7);
        assert_eq!(put_off.outside_of(7), 2);
        // The oldest makes room.
        (100..).take(THREADS_MOST - 1).for_each(|thread| put_off.is_outside(thread));
        put_off.hear(0..1);
        put_off.is_outside(100);
        put_off.is_outside(200);
        assert_eq!((put_off.outside_of(7), put_off.outside_of(200)), (0, 3));
    }

    #[test]
    fn pieces_go_over_all_that_has_a_mark_again_and_again() {
        let mut put_off = PutOff::with_room();
        for pages in [20..25, 3..9, 7..11] {
            put_off.hear(pages);
        }
        let mut round = || -> Vec<_> { std::iter::from_fn(|| put_off.piece(4)).collect() };
        assert_eq!(round(), [3..7, 7..9, 9..11, 20..24, 24..25]);
        assert_eq!(round().len(), 5);
        put_off.trim(|page| page == 8 || page == 22);
        let left: Vec<_> = put_off.calls.iter().map(|call| call.pages.clone()).collect();
        assert_eq!(left, [22..23, 8..9, 8..9]);
        put_off.is_outside(1);
        put_off.trim(|_| false);
        assert!(put_off.is_empty() && put_off.outside.is_empty());
    }

    #[test]
    fn more_calls_than_can_be_told_apart_are_one_that_is_over_when_the_last_is() {
        let mut put_off = PutOff::with_room();
        (0..CALLS_MOST + 3).for_each(|page| put_off.hear(page..page + 1));
        assert_eq!(put_off.calls.len(), CALLS_MOST);
        put_off.end(CALLS_MOST as u64 + 2);
        assert!(put_off.are_over(0) && !put_off.are_over(CALLS_MOST - 1));
        put_off.end(CALLS_MOST as u64 + 3);
        assert!(put_off.are_over(CALLS_MOST - 1));
    }
}
