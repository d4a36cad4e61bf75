//! Pages that could not be had, where threads of ours resolve faults: who touches one is sent `SIGBUS`, and a system call
//! fails. The kernel does that by a poison in this process's tables, and tells us of no access to it any more. So a
//! poison does not stay: it is taken out again after a while, and as soon as the program gives something back; then the
//! next access is tried as any other.
//!
//! A poison is put in and taken out by who owns the entry of an absent group, so it never lies on what somebody has
//! brought meanwhile.

use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use isochrone_os::clock;
use isochrone_os::userfault::{Features, Userfault};
use isochrone_units::PAGE_BYTES;

use super::context::{Context, at_once};
use crate::names::Access;

/// Poisons at once. Where there are more the oldest goes: who touches that page has it tried again.
const MOST: usize = 64;
/// A poison stays so long: long enough for whoever waits for the page to be sent the signal. One who was not sees that
/// it is tried again.
const STAYS_NS: u64 = 20_000_000;
/// In the address of a page: the poison is there.
const THERE: usize = 1;

/// What became of a page that could not be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Put {
    /// Whoever touches it is sent `SIGBUS`.
    Poisoned,
    /// Somebody else brought it, or is about to: the access is tried again.
    Brought,
    /// This kernel cannot.
    Refused,
}

/// The poisons of one process.
#[derive(Debug)]
pub(super) struct Poisons {
    slots: [Slot; MOST],
    there: AtomicU32,
    turn: AtomicUsize,
}

#[derive(Debug)]
struct Slot {
    /// The page that was poisoned last, and [`THERE`].
    page: AtomicUsize,
    since: AtomicU64,
}

impl Default for Poisons {
    fn default() -> Self {
        let slot = || Slot { page: AtomicUsize::new(0), since: AtomicU64::new(0) };
        let slots = core::array::from_fn(|_| slot());
        Self { slots, there: AtomicU32::new(0), turn: AtomicUsize::new(0) }
    }
}

impl Poisons {
    /// Whether a page was poisoned lately: then the program was told.
    pub(super) fn had(&self, page: usize) -> bool {
        self.slots.iter().any(|slot| slot.page.load(Ordering::Relaxed) & !THERE == page)
    }

    /// Poisons a page that could not be had.
    pub(super) fn put(&self, context: &Context<'_>, table: &Userfault, page: usize) -> Put {
        let Some(group) = context.process.area.group_at(page) else { return Put::Refused };
        if !table.features().has(Features::POISON) {
            return Put::Refused;
        }
        // Refused where there is one already, or a page, of a group that came in part.
        let poison = || table.poison(page, PAGE_BYTES).is_ok();
        match context.process.pager().while_absent(context, context.caller, group, poison) {
            None => return Put::Brought,
            Some(false) => return if self.had(page) { Put::Poisoned } else { Put::Brought },
            Some(true) => {}
        }
        let at = self.slots.iter().position(|slot| slot.page.load(Ordering::Relaxed) == page);
        let at = at.unwrap_or_else(|| self.turn.fetch_add(1, Ordering::Relaxed) % MOST);
        let slot = &self.slots[at];
        slot.since.store(clock::monotonic_ns(), Ordering::Relaxed);
        self.there.fetch_add(1, Ordering::SeqCst);
        let before = slot.page.swap(page | THERE, Ordering::SeqCst);
        if before & THERE != 0 {
            self.took(context, before & !THERE);
        }
        Put::Poisoned
    }

    /// Takes out those that have been there for a while.
    pub(super) fn age(&self, context: &Context<'_>) {
        if self.there.load(Ordering::Relaxed) > 0 {
            self.lift(context, clock::monotonic_ns().saturating_sub(STAYS_NS));
        }
    }

    /// Takes all of them out: the program gave something back.
    pub(super) fn clear(&self, context: &Context<'_>) {
        if self.there.load(Ordering::SeqCst) > 0 {
            self.lift(context, u64::MAX);
        }
    }

    fn lift(&self, context: &Context<'_>, before: u64) {
        for slot in &self.slots {
            let page = slot.page.load(Ordering::SeqCst);
            if page & THERE == 0 || slot.since.load(Ordering::Relaxed) > before {
                continue;
            }
            let order = (Ordering::SeqCst, Ordering::Relaxed);
            if slot.page.compare_exchange(page, page & !THERE, order.0, order.1).is_ok() {
                self.took(context, page & !THERE);
            }
        }
    }

    /// Takes one out whose slot has forgotten it.
    fn took(&self, context: &Context<'_>, page: usize) {
        self.there.fetch_sub(1, Ordering::SeqCst);
        let process = context.process;
        let Some(group) = process.area.group_at(page) else { return };
        let pager = process.pager();
        let unmap = || process.area.unmap_page(page);
        while pager.while_absent(context, context.caller, group, unmap).is_none() {
            // It came, perhaps into no table or another one: mapped here the poison is written over. Where that fails it
            // is absent again.
            let came = at_once(pager.fault(context, context.caller, group, Access::Read));
            if came.is_ok()
                || pager.directory().look(group).state() != crate::directory::State::Absent
            {
                return;
            }
        }
    }
}
