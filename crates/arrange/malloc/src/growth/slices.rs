//! Slices of learning, inside of an allocation or for a pool that waits: what is done of what is due, in its order.

use super::counts::LONG_SLICE_NS;
use super::trial::{SLICE_NS, seeks_base};
use super::{Hold, Orders, Work};
use crate::code;
use crate::instance::Instance;
use crate::room::Inside;
use core::sync::atomic::Ordering;
use isochrone_alloc::live::{Event, Slice};
use isochrone_alloc::{Mode, SizeClass, UnitLines};
use isochrone_os::OsError;
use isochrone_os::clock;
use isochrone_os::reserve::Stride;

/// What a slice is given where memory is to come after it.
const SHORT_SLICE_NS: u64 = 20_000;
/// An allocating thread spends one part in so many of its time on slices: 3 %.
const INLINE_PARTS: u64 = 33;
/// What a slice is charged at most: whatever it took longer, somebody else had the core or the kernel was finding
/// memory.
const CHARGED_NS: u64 = 2 * LONG_SLICE_NS;
/// Time between two looks at the base of a core that is in use.
const EPOCH_NS: u64 = 100_000_000;
/// Time after which a machine whose bases fitted none of the atlas is asked again: the first time,
/// and twice as long each time after it, up to so often.
const RETRY_NS: u64 = 100_000_000;
const RETRIES_LONGER: u32 = 6;
/// Events handed on between two looks at the clock.
const EVENTS_TOGETHER: u32 = 8;
/// Free units that are put where they belong after a slice, by class.
const REBINNED_UNITS: usize = 64;

/// Slices of a pool that found nothing, and the time that each is given.
const POOL_SLICES: u32 = 64;
const POOL_SLICE_NS: u64 = 1_000_000;

/// How much pages are needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// An allocation has found nothing.
    Now,
    /// There may be some to prepare.
    Soon,
}

impl Need {
    /// What of an allocation a slice may take.
    const fn slice_ns(self) -> u64 {
        match self {
            Self::Now => SHORT_SLICE_NS,
            Self::Soon => SLICE_NS,
        }
    }
}

impl Instance<'_> {
    /// Does a piece of what is due, in a thread that is allocating.
    pub(crate) fn grow(&self, inside: &mut Inside<'_>, need: Need) {
        let now = clock::monotonic_ns();
        let core = self.current_core();
        self.forgive(now);
        let visits = self.is_epoch_due(core, now);
        let (learns, returns) = (visits || self.wants_work(), self.is_return_due(now));
        let is_due =
            (learns || returns) && now >= self.growth.rest_until_ns.load(Ordering::Relaxed);
        let hold = if is_due { self.growth.try_hold() } else { None };
        let Some(mut hold) = hold else { return };
        inside.run(|| {
            if returns {
                self.return_pages(&mut hold, now.saturating_add(need.slice_ns()));
            }
            if !learns {
                self.end_slice(now);
                return;
            }
            if visits {
                self.ask_visit(&mut hold, core, now);
            }
            let Work { machine, pace, .. } = &mut *hold.work;
            machine.bound(pace.loads_in(need.slice_ns()), need.slice_ns());
            self.slice(&mut hold, need.slice_ns(), Stride::Part);
            // A pool that waits for pages, or has them learnt beforehand, is bound by time alone.
            hold.work.machine.bound(u64::MAX, 0);
            let took = self.end_slice(now);
            self.weigh(&mut hold, took);
        });
        drop(hold);
        if self.is_process() && self.is_over() {
            // Nobody learns any more.
            inside.give_stack_back();
            code::give_back();
        }
    }

    /// A rest after a slice inside of an allocation. What the slice is charged, nanoseconds.
    fn end_slice(&self, begin: u64) -> u64 {
        let end = self.count_slice(begin);
        let took = end.saturating_sub(begin).min(CHARGED_NS);
        self.growth.rest_until_ns.store(end + took * (INLINE_PARTS - 1), Ordering::Relaxed);
        took
    }

    /// Learns until a page has joined, for a pool that found nothing. False if it is full.
    pub(crate) fn grow_now(&self) -> bool {
        if self.heap().policy().mode.is_oracle() {
            // It has what was measured beforehand.
            return false;
        }
        for _ in 0..POOL_SLICES {
            if self.heap().stats().ready_pages > 0 || !self.wants_work() {
                break;
            }
            self.slice(&mut self.growth.hold(), POOL_SLICE_NS, Stride::Whole);
        }
        self.join_unknown(u64::MAX)
    }

    /// Has it looked whether this core still has its base.
    fn ask_visit(&self, hold: &mut Hold<'_>, core: u16, now: u64) {
        if self.arena.pages() > 0
            && let Some(core) = self.cores().nth(usize::from(core))
        {
            hold.work.classifier.ask_check(core);
        }
        if let Some(at) = self.growth.epoch_at_ns.get(usize::from(core)) {
            at.store(now + EPOCH_NS, Ordering::Relaxed);
        }
        self.growth.has_backlog.store(true, Ordering::Relaxed);
    }

    /// A slice of learning. False if there is nothing left to do for now.
    pub(crate) fn slice(&self, hold: &mut Hold<'_>, budget_ns: u64, stride: Stride) -> bool {
        let until = clock::monotonic_ns().saturating_add(budget_ns);
        let busy = self.take_events(hold, until)
            || self.make_orders(hold, until)
            || self.take_pages_back(hold, until)
            || self.add_memory(hold, until, stride);
        let left = until.saturating_sub(clock::monotonic_ns());
        let mut more = if busy || left == 0 { true } else { self.learn(hold, left) };
        // New pages first, however often it forks.
        if !more && self.growth.was_shared.swap(false, Ordering::Relaxed) {
            hold.work.classifier.recheck();
            more = true;
        }
        let all_given = hold.work.noted >= self.pages_learnt(hold.work.first);
        let waits = hold.work.orders.done.is_some() || hold.work.classifier.has_events();
        let more_come = !self.growth.is_full.load(Ordering::Relaxed);
        let seeks = more_come && seeks_base(&hold.work.classifier.stats());
        let backlog = more || waits || !all_given || seeks;
        self.growth.has_backlog.store(backlog, Ordering::Relaxed);
        self.note_work(hold);
        backlog
    }

    /// Identifies, decodes and confirms. False if there is nothing left to do for now.
    fn learn(&self, hold: &mut Hold<'_>, budget_ns: u64) -> bool {
        self.look_ahead(hold);
        let Work { machine, classifier, .. } = &mut *hold.work;
        let found = classifier.slice(machine, budget_ns);
        self.note_found(found)
    }

    /// Whether there is more to do, by how a slice ended.
    fn note_found(&self, found: Result<Slice, OsError>) -> bool {
        match found {
            Ok(Slice::Paused) => true,
            Ok(Slice::Idle) => {
                self.growth.retries.store(0, Ordering::Relaxed);
                false
            }
            // No base fits, or loads cannot be timed: nothing is to be learnt here for now.
            Ok(Slice::Unknown) | Err(_) => {
                let retries = self.growth.retries.load(Ordering::Relaxed);
                self.growth.retries.store((retries + 1).min(RETRIES_LONGER), Ordering::Relaxed);
                let again = clock::monotonic_ns() + (RETRY_NS << retries);
                self.growth.retry_at_ns.store(again, Ordering::Relaxed);
                self.growth.is_unknown.store(true, Ordering::Relaxed);
                false
            }
        }
    }

    /// Whether distances in memory matter: only where what is live misses the last-level cache.
    pub(crate) fn look_ahead(&self, hold: &mut Hold<'_>) {
        let live = self.heap().live_bytes().max(hold.work.expected_bytes);
        hold.work.classifier.want_memory(live > self.heap().policy().llc_bytes);
    }

    /// Hands decoded pages to the heap. True if there was no time for all.
    pub(crate) fn take_events(&self, hold: &mut Hold<'_>, until: u64) -> bool {
        let mut count = 0;
        while let Some(event) = hold.work.classifier.next_event() {
            match event {
                Event::Ready(page, codes) => {
                    let Some(page) = hold.work.in_arena(page) else { continue };
                    if !self.heap().page_ready(page, codes) && self.heap().recode(page, codes) {
                        hold.work.rebinned = 0;
                    }
                }
                Event::Replaced(page) => {
                    let Some(page) = hold.work.in_arena(page) else { continue };
                    self.heap().demote(page);
                }
            }
            count += 1;
            if count % EVENTS_TOGETHER == 0 && clock::monotonic_ns() >= until {
                return true;
            }
        }
        while let Some(class) = SizeClass::ALL.get(hold.work.rebinned) {
            self.heap().rebin_unknown(*class, REBINNED_UNITS);
            hold.work.rebinned += 1;
            if clock::monotonic_ns() >= until {
                return true;
            }
        }
        false
    }

    /// Gives cores whose base is known their orders, where that has changed or what is
    /// live has grown. True if there was no time for all.
    fn make_orders(&self, hold: &mut Hold<'_>, until: u64) -> bool {
        let Work { classifier, orders, expected_bytes, .. } = &mut *hold.work;
        let changes = classifier.changes();
        if orders.changes != changes || orders.done.is_none() && self.heap().order_due() {
            // A pool that was told what it will hold is not filled by orders for less.
            let for_bytes = self.heap().order_bytes().max(*expected_bytes);
            *orders = Orders { changes, for_bytes, done: Some(0) };
            if self.heap().policy().mode == Mode::NearestParticipant {
                for (place, core) in (0..).zip(self.cores()) {
                    self.heap().take_part(place, &classifier.current_bases(core));
                }
            }
        }
        let units = UnitLines::ALL.len();
        while let Some(done) = orders.done {
            let Some(core) = self.cores().nth(done / units) else {
                self.heap().note_orders(orders.for_bytes);
                orders.done = None;
                break;
            };
            let current = classifier.current_bases(core);
            if !current.is_unknown()
                && let Ok(place) = u16::try_from(done / units)
            {
                let unit = UnitLines::ALL[done % units];
                self.heap().set_bases_for(place, unit, &current, orders.for_bytes);
            }
            orders.done = Some(done + 1);
            if clock::monotonic_ns() >= until {
                return true;
            }
        }
        false
    }

    /// Makes all orders at once.
    pub(crate) fn make_all_orders(&self, hold: &mut Hold<'_>) {
        hold.work.orders.changes = hold.work.classifier.changes().wrapping_sub(1);
        self.make_orders(hold, u64::MAX);
    }
}
