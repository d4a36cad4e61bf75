//! The communicators of this process, each at a place of its own, and who is in a collective on one.
//!
//! A communicator's collectives come one after another, as MPI asks of every program, so what belongs to one is
//! changed by one thread at a time; several threads may be in several communicators. Places are never given back to
//! the system: whoever remembers one finds the handle of another communicator there at worst.

use crate::abi::Handle;
use crate::comm::Comm;
use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where a communicator is.
#[derive(Debug, Default)]
pub(crate) struct Place {
    /// Whose it is; 0: nobody's.
    handle: AtomicUsize,
    /// Whether a thread is in a collective.
    busy: AtomicBool,
    comm: UnsafeCell<Option<Comm>>,
}

// SAFETY: `comm` is touched by whoever has set `busy` alone, or has taken the place out of the table when its
// communicator ended, when no thread is in a collective on it.
unsafe impl Sync for Place {}

/// All places.
#[derive(Debug)]
pub(crate) struct Places {
    /// Where the last collective was.
    last: AtomicPtr<Place>,
    /// Whether several threads may be in the MPI at once.
    several: bool,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    by_handle: HashMap<Handle, &'static Place>,
    free: Vec<&'static Place>,
}

/// One thread's stay in a communicator.
#[derive(Debug)]
pub(crate) struct Inside(&'static Place);

impl Drop for Inside {
    fn drop(&mut self) {
        // Partner: whoever enters next.
        self.0.busy.store(false, Ordering::Release);
    }
}

impl Inside {
    /// What this thread may change now.
    #[inline]
    pub(crate) fn comm(&mut self) -> Option<&mut Comm> {
        // SAFETY: `busy` was set by whoever made this value and is set back when it goes, so there is one value at a
        // time, and it gives its contents to one borrower at a time.
        unsafe { &mut *self.0.comm.get() }.as_mut()
    }
}

impl Places {
    /// None so far.
    pub(crate) fn new(several: bool) -> Self {
        Self { last: AtomicPtr::new(null_mut()), several, table: Mutex::default() }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The place of a communicator that was seen before.
    #[inline]
    pub(crate) fn find(&self, handle: Handle) -> Option<&'static Place> {
        let last = self.last.load(Ordering::Acquire);
        // SAFETY: a place lives for ever; null becomes none.
        match unsafe { last.as_ref() } {
            // A handle means one communicator as long as somebody may call a collective on it.
            Some(place) if place.handle.load(Ordering::Acquire) == handle => Some(place),
            _ => self.look_up(handle),
        }
    }

    #[cold]
    fn look_up(&self, handle: Handle) -> Option<&'static Place> {
        let place = *self.table().by_handle.get(&handle)?;
        self.last.store(std::ptr::from_ref(place).cast_mut(), Ordering::Release);
        Some(place)
    }

    /// Goes in, alone. None where the MPI has called back from within, which none does.
    #[inline]
    pub(crate) fn enter(&self, place: &'static Place) -> Option<Inside> {
        if self.several {
            // Two at once are an error of the program's. They go one after the other.
            while place.busy.swap(true, Ordering::Acquire) {
                std::thread::yield_now();
            }
        } else {
            // Threads that come in turns are ordered by the program.
            if place.busy.load(Ordering::Relaxed) {
                return None;
            }
            place.busy.store(true, Ordering::Relaxed);
        }
        Some(Inside(place))
    }

    /// A communicator comes.
    pub(crate) fn insert(&self, handle: Handle, comm: Comm) -> &'static Place {
        let mut table = self.table();
        if let Some(known) = table.by_handle.get(&handle) {
            return known;
        }
        let place = table.free.pop().unwrap_or_else(|| Box::leak(Box::default()));
        // SAFETY: it is nobody's: nobody goes into a place that is not in the table.
        unsafe { *place.comm.get() = Some(comm) };
        place.handle.store(handle, Ordering::Release);
        table.by_handle.insert(handle, place);
        place
    }

    /// A communicator ends; its handle may mean another one from now on.
    pub(crate) fn remove(&self, handle: Handle) -> Option<Comm> {
        let mut table = self.table();
        let place = table.by_handle.remove(&handle)?;
        place.handle.store(0, Ordering::Release);
        // SAFETY: MPI frees a communicator when its collectives are over, so nobody is in the place, and nobody comes.
        let comm = unsafe { &mut *place.comm.get() }.take();
        table.free.push(place);
        comm
    }

    /// Shows the communicators in which no thread is, one after another.
    pub(crate) fn each_idle(&self, mut see: impl FnMut(&Comm)) {
        for place in self.table().by_handle.values() {
            // Partner: whoever has left it.
            if !place.busy.swap(true, Ordering::Acquire)
                && let Some(comm) = Inside(place).comm()
            {
                see(comm);
            }
        }
    }

    /// The handles of all.
    pub(crate) fn handles(&self) -> Vec<Handle> {
        self.table().by_handle.keys().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn places_are_used_again_and_a_handle_finds_its_own() {
        let places = Places::new(true);
        let ranks = |ranks| Comm::counted(0, ranks, &Config::default());
        let first = places.insert(7, ranks(2));
        let second = places.insert(8, ranks(3));
        let size =
            |handle| places.find(handle).and_then(|p| places.enter(p)?.comm().map(|c| c.size));
        assert_eq!((size(7), size(8), size(7), size(9)), (Some(2), Some(3), Some(2), None));
        assert_eq!(places.remove(7).map(|comm| comm.size), Some(2));
        assert_eq!((size(7), size(8)), (None, Some(3)), "what is remembered is not what it was");
        assert!(std::ptr::eq(places.insert(7, ranks(5)), first) && !std::ptr::eq(first, second));
        assert_eq!(size(7), Some(5));
    }

    #[test]
    fn threads_go_in_one_after_another() {
        let places = Places::new(true);
        places.insert(1, Comm::counted(0, 0, &Config::default()));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        let place = places.find(1).expect("known");
                        let mut inside = places.enter(place).expect("waited for");
                        let size = &mut inside.comm().expect("there").size;
                        *size = std::hint::black_box(*size) + 1;
                    }
                });
            }
        });
        assert_eq!(places.remove(1).map(|comm| comm.size), Some(4000));
    }
}
