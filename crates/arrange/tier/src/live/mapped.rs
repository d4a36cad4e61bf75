//! One large array, as by `mmap`: memory of which a part is in fast memory, for all threads of this process,
//! without a team to write a program for.
//!
//! It is a team of one worker that does nothing: a thread that keeps the area. All others are guests. There are no
//! movers, since they are processes, and a process that may have threads already makes none. A process that is forked
//! from this one has nothing of the array: an access ends it by `SIGSEGV`, and a call is an error.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::ops::Range;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use isochrone_os::process::{ProcessId, this};
use isochrone_os::signal::hold;

use super::config::{Config, Tables, TierError};
use super::far::Far;
use super::report::Report;
use super::statistics::Statistics;
use super::team::Team;
use super::worker::Worker;
use crate::pager::Advice;
use crate::pages::Trouble;

/// What the thread that keeps the array is to do as its worker.
type Order = Box<dyn FnOnce(&Worker<'_>) + Send>;

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
    /// The process that has it.
    home: ProcessId,
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
        // Signals are the program's, which has threads of its own for them.
        let held = hold();
        let keeper =
            std::thread::Builder::new().name("isochrone-array".to_owned()).spawn(move || {
                team.run(|worker| {
                    let (base, bytes) = worker.extent();
                    // Who waits for the address has it, or is gone: then so is the other channel.
                    let _ = tell.send((base.expose_provenance(), bytes));
                    // One order after the other, until there is nobody to give one.
                    let orders = ordered.lock().map_err(|_| "it panicked before")?;
                    orders.iter().for_each(|order: Order| order(worker));
                    Ok(0)
                })
            });
        drop(held);
        let unready = || TierError::Unready("the thread that keeps the array".to_owned());
        let keeper = keeper.map_err(|_| unready())?;
        let told = told.recv().ok();
        let place = told.and_then(|(base, bytes)| {
            NonNull::new(std::ptr::with_exposed_provenance_mut(base)).map(|base| (base, bytes))
        });
        match place {
            Some((base, bytes)) => {
                let (orders, keeper) = (Some(orders), Some(keeper));
                Ok(Self { base, bytes, orders, keeper, home: this(), _one: one })
            }
            None => match keeper.join() {
                Ok(Err(error)) => Err(error),
                _ => Err(unready()),
            },
        }
    }

    /// The first byte. Reading and writing through it is the caller's to justify; a page that cannot be had is a
    /// `SIGBUS`.
    #[must_use]
    pub const fn as_ptr(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// The array as words that all threads share. Who has them gives no address of it to anybody who writes in
    /// another way.
    #[must_use]
    pub const fn words(&self) -> &[AtomicU64] {
        // SAFETY: the array is mapped readable and writable while the value lives, absent pages of it are brought or
        // end the program, its bytes are initialised (zeros or what was written), and it is page-aligned. Who
        // writes through `as_ptr` justifies it, also beside these words.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().cast(), self.bytes / 8) }
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
        self.ask(move |worker| worker.pin(range.start, range.len()))?
    }

    /// Takes a pin of the same range back.
    ///
    /// # Errors
    /// [`Trouble::NotPinned`] where a page of it is not pinned; then nothing is unpinned.
    pub fn unpin(&self, range: Range<usize>) -> Result<(), Trouble> {
        self.ask(move |worker| worker.unpin(range.start, range.len()))?
    }

    /// Says something about a range of bytes.
    ///
    /// # Errors
    /// [`Trouble`] where the far tier or the kernel refuses; what was done stays done.
    pub fn advise(&self, range: Range<usize>, advice: Advice) -> Result<(), Trouble> {
        self.ask(move |worker| worker.advise(range, advice))?
    }

    /// Forgets what whole groups of a range hold, and all of their pins.
    pub(super) fn give_up(&self, range: Range<usize>) -> Result<(), Trouble> {
        self.ask(move |worker| worker.give_up(range))?
    }

    /// Whether this is the process that mapped it, and not one that was forked from it.
    #[must_use]
    pub fn is_here(&self) -> bool {
        this() == self.home
    }

    /// What became of the array's pages until now.
    ///
    /// # Errors
    /// [`Trouble`] in a process that has nothing of the array.
    pub fn statistics(&self) -> Result<Statistics, Trouble> {
        self.ask(|worker| worker.statistics())
    }

    /// Lets the keeper do it, who is a worker as any other.
    fn ask<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Worker<'_>) -> T + Send + 'static,
    ) -> Result<T, Trouble> {
        if !self.is_here() {
            return Err(Trouble::Elsewhere);
        }
        let (tell, told) = channel();
        let order: Order = Box::new(move |worker| _ = tell.send(act(worker)));
        let sent = self.orders.as_ref().map(|orders| orders.send(order));
        debug_assert!(matches!(sent, Some(Ok(()))), "the keeper ends after its last order");
        told.recv().map_err(|_| Trouble::Kernel { what: "keep the array", errno: 0 })
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        if !self.is_here() {
            // The keeper is a thread of the other process, and all that it had stays there.
            std::mem::forget((self.orders.take(), self.keeper.take()));
            return super::handler::abandon();
        }
        self.orders = None;
        if let Some(keeper) = self.keeper.take() {
            let _ = keeper.join();
        }
    }
}
