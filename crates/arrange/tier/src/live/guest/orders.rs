//! How a thread of the program has a handler do something: it writes what, and touches the bell, a page that is never
//! there; the handler that is told of this fault does it and lets the page come. So the program's threads need neither
//! the descriptor nor anything that handlers have.
//!
//! One thread at a time, with its signals held: but a thread may be stopped and go on, and then touches the bell again
//! for the same order. So an order has a state of its own, and is done once.

use core::ops::Range;
use core::sync::atomic::{AtomicU32, Ordering};

use isochrone_os::area::Window;
use isochrone_os::futex::{self, Scope};
use isochrone_units::PAGE_BYTES;

use crate::names::{Group, Run};

/// What is to be done to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// What it holds is worth nothing.
    Discard,
    /// It leaves.
    Cool,
    /// It comes.
    Fetch,
    /// It is in memory, and was not the pager's yet.
    Take,
    /// It comes and stays.
    Hold,
    /// What is in memory of it stays.
    Keep,
    /// It need not stay.
    Release,
    /// Frames for all there are, so that nobody has to evict.
    Lend,
    /// These frames are given back.
    Repay,
}

impl Order {
    const ALL: [Self; 9] = [
        Self::Discard,
        Self::Cool,
        Self::Fetch,
        Self::Take,
        Self::Hold,
        Self::Keep,
        Self::Release,
        Self::Lend,
        Self::Repay,
    ];
}

/// Pages as the pager counts them.
pub(super) fn run_of(pages: &Range<usize>) -> Run {
    let number = |page: usize| u32::try_from(page).unwrap_or(u32::MAX);
    Run { first: Group(number(pages.start)), groups: number(pages.len()) }
}

const NONE: u32 = 0;
const WAITING: u32 = 1;
const BUSY: u32 = 2;
const DONE: u32 = 3;
/// Who waits for an order that another one does looks again after this.
const LOOK_NS: u64 = 1_000_000;

/// One order at a time.
#[derive(Debug)]
pub(super) struct Mailbox {
    bell: usize,
    state: AtomicU32,
    order: AtomicU32,
    first: AtomicU32,
    groups: AtomicU32,
    outcome: AtomicU32,
}

impl Mailbox {
    pub(super) const fn new(bell: usize) -> Self {
        Self {
            bell,
            state: AtomicU32::new(NONE),
            order: AtomicU32::new(0),
            first: AtomicU32::new(0),
            groups: AtomicU32::new(0),
            outcome: AtomicU32::new(0),
        }
    }

    pub(super) const fn bell(&self) -> usize {
        self.bell
    }

    /// Has an order done, and waits for it: for who has the lock of the program's calls, and holds signals.
    ///
    /// # Errors
    /// The error number of what could not be done.
    pub(super) fn give(&self, window: &Window, order: Order, run: Run) -> Result<(), i32> {
        let relaxed = Ordering::Relaxed;
        self.order.store(order as u32, relaxed);
        self.first.store(run.first.0, relaxed);
        self.groups.store(run.groups, relaxed);
        self.state.store(WAITING, Ordering::Release);
        let at = self.bell - window.as_ptr().addr();
        let bell = window.as_ptr().wrapping_add(at);
        while self.state.load(Ordering::Acquire) != DONE {
            // SAFETY: a page behind the area, readable, which a handler lets come.
            unsafe { bell.read_volatile() };
            if self.state.load(Ordering::Acquire) != DONE {
                // SAFETY: zeros that nobody needs.
                let _ = unsafe { window.empty(at, PAGE_BYTES) };
            }
        }
        // SAFETY: as above.
        let _ = unsafe { window.empty(at, PAGE_BYTES) };
        self.state.store(NONE, relaxed);
        match self.outcome.load(relaxed) {
            0 => Ok(()),
            errno => Err(errno.cast_signed()),
        }
    }

    /// Does the order that waits, if it waits; for the handler that was told of the bell. Does not return before the
    /// order is done, whoever does it.
    pub(super) fn answer(&self, act: impl FnOnce(Order, Run) -> Result<(), i32>) {
        let taken = self.state.compare_exchange(WAITING, BUSY, Ordering::AcqRel, Ordering::Acquire);
        if taken.is_err() {
            while self.state.load(Ordering::Acquire) == BUSY {
                let _ = futex::wait(&self.state, BUSY, Some(LOOK_NS), Scope::Process);
            }
            return;
        }
        let number = self.order.load(Ordering::Relaxed);
        let order = Order::ALL.into_iter().find(|order| *order as u32 == number);
        let first = Group(self.first.load(Ordering::Relaxed));
        let run = Run { first, groups: self.groups.load(Ordering::Relaxed) };
        let outcome = order.map_or(Ok(()), |order| act(order, run));
        let errno = outcome.err().map_or(0, i32::cast_unsigned);
        self.outcome.store(errno, Ordering::Relaxed);
        self.state.store(DONE, Ordering::Release);
        let _ = futex::wake(&self.state, u32::MAX >> 1, Scope::Process);
    }
}
