//! One large array, as by `mmap`: memory of which a part is in fast memory, for all threads of this process,
//! without a team to write a program for.
//!
//! It is a team of one worker that does nothing: a thread that keeps the area. All others are guests, whose
//! faults are resolved in the thread that has them, one at a time. There are no movers, since they are processes,
//! and a process that may have threads already makes none.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use isochrone_os::signal::hold;

use super::far::Far;
use super::team::{Config, Report, Tables, Team, TierError};
use super::worker::Worker;
use crate::pager::Advice;
use crate::pages::Trouble;

/// What the thread that keeps the array is asked for.
#[derive(Debug)]
enum Act {
    Pin,
    Unpin,
    Advise(Advice),
}

/// What to do, with which bytes, and where the answer goes.
type Order = (Act, Range<usize>, Sender<Result<(), Trouble>>);

/// One at a time: faults of guests belong to one area.
static TAKEN: AtomicU32 = AtomicU32::new(0);

/// The array; gone with the value.
#[derive(Debug)]
pub struct Mapped {
    base: NonNull<u8>,
    bytes: usize,
    /// The keeper ends when this does.
    orders: Option<Sender<Order>>,
    keeper: Option<JoinHandle<Result<Report, TierError>>>,
    _one: Arc<One>,
}

// SAFETY: the area belongs to the value, not to a thread.
unsafe impl Send for Mapped {}
// SAFETY: through a shared reference the address is given only; who reads or writes through it answers for it.
unsafe impl Sync for Mapped {}

#[derive(Debug)]
struct One;

impl Drop for One {
    fn drop(&mut self) {
        TAKEN.store(0, Ordering::Release);
    }
}

impl Mapped {
    /// Maps an array of zeros. Of `config` counts what is about memory; there are one worker and no movers.
    ///
    /// # Errors
    /// [`TierError`] where the kernel lacks something, or another array is mapped.
    pub fn new(config: Config, far: Box<dyn Far>) -> Result<Self, TierError> {
        if TAKEN.swap(1, Ordering::AcqRel) != 0 {
            return Err(TierError::Config("one array is mapped at a time"));
        }
        let one = Arc::new(One);
        let tables = Tables::Shared;
        let config = Config { workers: 1, movers: 0, tables, parent_works: false, ..config };
        let team = Team::new(config, far)?;
        let (tell, told) = channel();
        let (orders, ordered) = channel();
        let ordered = Mutex::new(ordered);
        let keeper = std::thread::spawn(move || {
            // Those are the program's, which has threads of its own for them.
            let _held = hold();
            team.run(|worker| {
                let (base, bytes) = worker.extent();
                // Who waits for the address has it, or is gone: then so is the other channel.
                let _ = tell.send((base.expose_provenance(), bytes));
                keep(worker, &*ordered.lock().map_err(|_| "it panicked before")?);
                Ok(0)
            })
        });
        let told = told.recv().ok();
        let place = told.and_then(|(base, bytes)| {
            NonNull::new(std::ptr::with_exposed_provenance_mut(base)).map(|base| (base, bytes))
        });
        match place {
            Some((base, bytes)) => {
                Ok(Self { base, bytes, orders: Some(orders), keeper: Some(keeper), _one: one })
            }
            None => match keeper.join() {
                Ok(Err(error)) => Err(error),
                _ => Err(TierError::Unready("the thread that keeps the array".to_owned())),
            },
        }
    }

    /// The first byte. Reading and writing through it is the caller's to justify; a page that cannot be had is a
    /// `SIGBUS`.
    #[must_use]
    pub const fn as_ptr(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// How many bytes it has.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "never empty")]
    pub const fn len(&self) -> usize {
        self.bytes
    }

    /// Fetches what is absent of a range of bytes and keeps it in fast memory until [`Self::unpin`]: for buffers
    /// given to system calls, which fail with `EFAULT` on a page that is not mapped.
    ///
    /// # Errors
    /// [`Trouble`] where a page cannot be had; then nothing is pinned.
    pub fn pin(&self, range: Range<usize>) -> Result<(), Trouble> {
        self.order(Act::Pin, range)
    }

    /// Takes a pin of the same range back.
    ///
    /// # Errors
    /// [`Trouble::NotPinned`] where a page of it is not pinned; then nothing is unpinned.
    pub fn unpin(&self, range: Range<usize>) -> Result<(), Trouble> {
        self.order(Act::Unpin, range)
    }

    /// Says something about a range of bytes.
    ///
    /// # Errors
    /// [`Trouble`] where the far tier or the kernel refuses; what was done stays done.
    pub fn advise(&self, range: Range<usize>, advice: Advice) -> Result<(), Trouble> {
        self.order(Act::Advise(advice), range)
    }

    /// Lets the keeper do it, who is a worker as any other.
    fn order(&self, act: Act, range: Range<usize>) -> Result<(), Trouble> {
        let (tell, told) = channel();
        let sent = self.orders.as_ref().map(|orders| orders.send((act, range, tell)));
        debug_assert!(matches!(sent, Some(Ok(()))), "the keeper ends after its last order");
        told.recv().unwrap_or(Err(Trouble::Kernel { what: "keep the array", errno: 0 }))
    }
}

/// The keeper's life: one order after the other, until there is nobody to give one.
fn keep(worker: &Worker<'_>, orders: &Receiver<Order>) {
    for (act, range, told) in orders {
        let done = match act {
            Act::Pin => worker.pin(range.start, range.len()),
            Act::Unpin => worker.unpin(range.start, range.len()),
            Act::Advise(advice) => worker.advise(range, advice),
        };
        let _ = told.send(done);
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(keeper) = self.keeper.take() {
            let _ = keeper.join();
        }
    }
}
