//! A process that is only watched: every allocation is the next allocator's, and one of some hundred is looked at, with
//! its size and how long it lives.
//!
//! A call counts down a word of its thread; a call that frees compares one word. Nothing is placed, no lock is taken
//! and no memory is asked for: objects that are followed have places in a table of fixed size, and one whose place is
//! taken is counted with its size alone.

use crate::counters::Counters;
use crate::entry::{Back, Front};
use crate::process::{PROCESS, lacks_report, phase, report_late};
use crate::report::{SIZES, Sampled, lives, size_class};
use crate::thread::{self, ThreadSlot};
use crate::{front, loading, next};
use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use isochrone_os::clock;

/// All objects of more bytes are looked at: they are few, and of a few hundred that are not met much memory is missed.
const LARGE: usize = SIZES[SIZES.len() - 1];

/// Objects that are followed at most.
const PLACES: usize = 1024;
const PLACES_BITS: u32 = PLACES.trailing_zeros();
/// No object, and one that somebody writes down right now: addresses of none.
const FREE: usize = 0;
const CLAIMED: usize = 1;

/// Where objects lie that are followed. By itself, so that a call that frees touches little.
static ADDRESSES: [AtomicUsize; PLACES] = [const { AtomicUsize::new(FREE) }; PLACES];
/// When they came, and what they are, by the same places.
static BIRTHS: [Birth; PLACES] = [const { Birth::new() }; PLACES];
/// A child of `fork` has what its parent followed, and its parent follows that on.
static GENERATION: AtomicU32 = AtomicU32::new(0);
/// Objects after which a child of `fork` has something to say.
const WORTH_A_REPORT: u64 = 16;

#[derive(Debug)]
struct Birth {
    ns: AtomicU64,
    class: AtomicU32,
    generation: AtomicU32,
}

impl Birth {
    const fn new() -> Self {
        Self { ns: AtomicU64::new(0), class: AtomicU32::new(0), generation: AtomicU32::new(0) }
    }

    fn is_ours(&self) -> bool {
        self.generation.load(Ordering::Relaxed) == GENERATION.load(Ordering::Relaxed)
    }
}

/// The process is watched from now on. Who calls this has children noticed.
pub(crate) fn begin() {
    let allocates = Front {
        malloc: malloc as *mut c_void,
        calloc: calloc as *mut c_void,
        memalign: memalign as *mut c_void,
        aligned_alloc: aligned_alloc as *mut c_void,
        valloc: valloc as *mut c_void,
        pvalloc: pvalloc as *mut c_void,
    };
    loading::nothing_is_placed();
    PROCESS.phase.store(phase::DELEGATING, Ordering::Release);
    front::lead_all_to(
        &allocates,
        &Back { free: free as *mut c_void, realloc: realloc as *mut c_void },
    );
}

/// This is a child of `fork` now.
pub(crate) fn forked() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    thread::slot().until_looked.clear();
}

/// The process ends, in this thread: what it has allocated since its last look counts as well.
pub(crate) fn end(slot: &ThreadSlot) {
    if is_watched() {
        PROCESS.counters().watched(Sampled::Calls, slot.until_looked.gone().into());
        slot.until_looked.clear();
    }
}

/// Whether this process is.
pub(crate) fn is_watched() -> bool {
    PROCESS.config().is_some_and(|config| config.watches)
}

/// Where an object of this address would be followed.
#[inline(always)]
const fn place(address: usize) -> usize {
    // Objects lie at multiples of 16.
    (address >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (usize::BITS - PLACES_BITS)
}

/// Hands an object on, and looks at it where that is due.
#[inline(always)]
fn handed_on(size: usize, object: *mut c_void) -> *mut c_void {
    if size > LARGE || thread::slot().until_looked.is_due() {
        looked_at(size, object);
    }
    object
}

#[cold]
#[inline(never)]
fn looked_at(size: usize, object: *mut c_void) {
    let (now, counters) = (clock::monotonic_ns(), PROCESS.counters());
    if size <= LARGE {
        let bits = now ^ (object.addr() as u64).rotate_left(32);
        let Some(calls) = thread::slot().until_looked.draw(bits) else { return };
        counters.watched(Sampled::Calls, calls.into());
    }
    if object.is_null() {
        return;
    }
    let class = size_class(size);
    counters.watched(Sampled::Objects(class), 1);
    counters.watched(Sampled::Bytes(class), size as u64);
    follow(object.addr(), class, now, counters);
    if lacks_report()
        && counters.looked_at() >= WORTH_A_REPORT
        && let Some(mut inside) = PROCESS.room.enter()
    {
        report_late(&mut inside);
    }
}

/// Writes an object down, where its place is free.
fn follow(address: usize, class: usize, now: u64, counters: &Counters) {
    let at = place(address);
    let (word, birth) = (&ADDRESSES[at], &BIRTHS[at]);
    let before = word.load(Ordering::Acquire);
    // What a parent had followed is gone here, whatever becomes of it.
    if before == CLAIMED || (before != FREE && birth.is_ours()) {
        return;
    }
    // Acquire: who was there before has read its birth.
    if word.compare_exchange(before, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_err() {
        return;
    }
    birth.ns.store(now, Ordering::Relaxed);
    birth.class.store(u32::try_from(class).unwrap_or(0), Ordering::Relaxed);
    birth.generation.store(GENERATION.load(Ordering::Relaxed), Ordering::Relaxed);
    counters.watched(Sampled::Followed(class), 1);
    // Release: who finds the address finds the birth.
    word.store(address, Ordering::Release);
}

/// An object is about to be freed: notes how long it lived, where it is followed.
#[inline(always)]
fn about_to_go(object: *mut c_void) {
    let at = place(object.addr());
    if ADDRESSES[at].load(Ordering::Relaxed) == object.addr() && !object.is_null() {
        gone(at);
    }
}

#[cold]
#[inline(never)]
fn gone(at: usize) {
    let (word, birth) = (&ADDRESSES[at], &BIRTHS[at]);
    // Partner: the store of the address.
    let _object = word.load(Ordering::Acquire);
    if birth.is_ours() {
        let class = birth.class.load(Ordering::Relaxed) as usize;
        let lived = clock::monotonic_ns().saturating_sub(birth.ns.load(Ordering::Relaxed));
        PROCESS.counters().watched(Sampled::Gone(class, lives(lived)), 1);
    }
    // Before the next allocator has it back, and another thread has an object of this address.
    word.store(FREE, Ordering::Release);
}

unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    handed_on(size, next::malloc(size))
}

unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    handed_on(count.saturating_mul(size), next::calloc(count, size))
}

unsafe extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
    handed_on(size, next::memalign(align, size))
}

unsafe extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    handed_on(size, next::aligned_alloc(align, size))
}

unsafe extern "C" fn valloc(size: usize) -> *mut c_void {
    handed_on(size, next::valloc(size))
}

unsafe extern "C" fn pvalloc(size: usize) -> *mut c_void {
    handed_on(size, next::pvalloc(size))
}

/// What is reallocated is another object, wherever it lies.
unsafe extern "C" fn realloc(old: *mut c_void, size: usize) -> *mut c_void {
    about_to_go(old);
    // SAFETY: the caller's contract is the same.
    handed_on(size, unsafe { next::realloc(old, size) })
}

unsafe extern "C" fn free(old: *mut c_void) {
    about_to_go(old);
    // SAFETY: the caller's contract is the same.
    unsafe { next::free(old) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_followed_to_its_end_and_a_place_has_one() {
        let counters = Counters::new();
        let address = 0x7f00_1234_5670_usize;
        let other = (1_usize..)
            .map(|step| address + 16 * step)
            .find(|other| place(*other) == place(address))
            .expect("places are few");
        follow(address, 2, 5, &counters);
        follow(other, 3, 5, &counters);
        let watched = counters.snapshot().watched();
        assert_eq!((watched.sizes[2].followed, watched.sizes[3].followed), (1, 0));
        about_to_go(core::ptr::without_provenance_mut(other));
        assert_eq!(ADDRESSES[place(address)].load(Ordering::Relaxed), address);
        about_to_go(core::ptr::without_provenance_mut(address));
        assert_eq!(ADDRESSES[place(address)].load(Ordering::Relaxed), FREE);
        follow(other, 3, 5, &counters);
        assert_eq!(counters.snapshot().watched().sizes[3].followed, 1);
        // Of a child it is not.
        GENERATION.fetch_add(1, Ordering::Relaxed);
        follow(address, 4, 5, &counters);
        assert_eq!(counters.snapshot().watched().sizes[4].followed, 1);
    }
}
