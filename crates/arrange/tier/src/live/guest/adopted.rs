//! Memory that a program has already, paged from now on: whole private pages at the address where they are, with what
//! they hold. It is the pager of a process over those pages instead of a window of its own, and its handlers are
//! ordinary threads, which end when the memory is given back.
//!
//! ```text
//!  looked at: private, without a file, not locked, nobody else's     (the kernel's list of mappings)
//!  registered: what is absent is a fault from here on
//!  taken: each page that is there gets a frame; where there is none, others leave for it
//! ```

mod looked_at;

use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use isochrone_os::OsError;
use isochrone_os::affinity::CoreSet;
use isochrone_os::area::{Access, Origin, Told, Window};
use isochrone_os::process;
use isochrone_os::signal::hold;
use isochrone_os::userfault::Userfault;
use isochrone_units::PAGE_BYTES;

use super::actor::Hand;
use super::book::Marks;
use super::ground::{FEATURES_TOLD, GROUPS_MOST, Ground, Parts};
use super::handler;
use super::orders::{Order, run_of};
use super::pagemap::Pagemap;
use super::record::{Tally, WORDS};
use super::settings::FAST_BYTES_MIN;
use super::tiered::Guest;
use crate::live::far::Far;
use looked_at::look;

/// Milliseconds after which a handler looks whether it is over.
const LOOK_MS: i32 = 20;
/// Threads that resolve faults of one adopted range at most.
const HANDLERS_MOST: usize = 4;
/// Tries to give faults back to the kernel, and the time between two.
const TRIES: u32 = 100;
const A_WHILE: Duration = Duration::from_millis(1);

/// What all adopted ranges of a process count together.
static COUNTED: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];
static TALLY: OnceLock<Tally> = OnceLock::new();

/// Why memory is not taken, or not given back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdoptError {
    /// It is not memory that can be.
    #[error("{0}")]
    Range(String),
    /// This process may not be paged, or not by this kernel.
    #[error("{0}")]
    Untiered(OsError),
    /// The system refused something.
    #[error("{0}")]
    System(#[from] OsError),
    /// Not all of it fits into memory.
    #[error("not all of it fits into memory: free some, and try again")]
    Memory,
    /// The far tier does not give it back, or the kernel does not take it.
    #[error("pages cannot be brought back ({}): it stays adopted", isochrone_os::Errno(*.0))]
    Lost(i32),
    /// The memory was adopted by a process that this one was forked from.
    #[error("this process was forked after the memory was adopted, and has none of it")]
    Elsewhere,
}

/// Memory of the program that is paged as long as the value lives.
#[derive(Debug)]
pub struct Adopted {
    guest: Guest,
    range: Range<usize>,
    stop: Arc<AtomicBool>,
    servers: Vec<JoinHandle<()>>,
    is_over: bool,
}

impl Adopted {
    /// Takes whole pages that the program has, of which so many bytes may be in fast memory from now on. They must be
    /// private, without a file, readable and writable, not locked, not a stack, and nobody else's.
    ///
    /// # Errors
    /// [`AdoptError`] where they are not, or the system refuses; they are as they were then.
    ///
    /// # Safety
    /// The memory stays mapped, unlocked, and with the same permissions until the value is gone.
    pub unsafe fn new(
        first: NonNull<u8>,
        bytes: usize,
        fast_bytes: usize,
        far: Box<dyn Far>,
    ) -> Result<Self, AdoptError> {
        let range = pages_of(first, bytes, fast_bytes)?;
        let table = Userfault::open_served(FEATURES_TOLD).map_err(AdoptError::Untiered)?;
        if let Some(why) = look(&range)? {
            return Err(AdoptError::Range(why));
        }
        let cores = CoreSet::of_this_thread().map_or(1, |cores| cores.iter().count());
        let handlers = u16::try_from(cores.clamp(2, HANDLERS_MOST)).unwrap_or(2);
        // SAFETY: the caller vouches for the pages, and that nobody minds their being paged.
        let window = unsafe { Window::over(first, bytes) };
        let parts = Parts::around(window, fast_bytes, far, handlers)?;
        let words: &'static [AtomicU64] = &COUNTED;
        let tally = *TALLY.get_or_init(|| Tally::new(words, process::this().0));
        let origin = Origin::new()?;
        // From here on nobody goes on who touches an absent page, until handlers serve or the table is closed.
        let ground = Arc::new(Ground::over(table, parts, tally)?);
        let pages = ground.pages();
        ground.book.set(0..pages, Marks::USED.and(Marks::of_access(Access::BOTH.0)));
        ground.top.store(pages, Ordering::Release);
        let hands = (0..handlers).map(|number| Hand::new(&ground, number));
        let hands = hands.collect::<Result<Vec<_>, _>>()?;
        let there = present(&range)?;
        let (guest, stop) = (Guest::over(ground, origin), Arc::new(AtomicBool::new(false)));
        let mut adopted = Self { guest, range, stop, servers: Vec::new(), is_over: false };
        if let Err(error) = adopted.serve(hands) {
            // Nothing was taken, and there may be nobody to ask.
            let _ = adopted.let_go();
            return Err(error.into());
        }
        adopted.take(&there)?;
        Ok(adopted)
    }

    fn serve(&mut self, hands: Vec<Hand>) -> Result<(), OsError> {
        // Signals are the program's, which has threads of its own for them.
        let _held = hold();
        for hand in hands {
            let stop = self.stop.clone();
            let server = std::thread::Builder::new().name("isochrone-fault".to_owned());
            let server = server.spawn(move || {
                hand.settle();
                while !stop.load(Ordering::Acquire) {
                    handler::next(&hand, LOOK_MS);
                }
            });
            self.servers.push(server.map_err(|error| OsError {
                what: "cannot start a thread",
                errno: error.raw_os_error().unwrap_or(0),
                advice: "raise ulimit -u",
            })?);
        }
        Ok(())
    }

    /// Gives pages that are there a frame each, and tells the kernel what children get: nothing.
    fn take(&self, there: &[Range<usize>]) -> Result<(), AdoptError> {
        let _held = hold();
        let calls = self.guest.lock();
        for pages in there {
            self.guest.order(Order::Take, run_of(pages)).map_err(AdoptError::Lost)?;
        }
        drop(calls);
        Ok(self.guest.window().tell(0, self.range.len(), Told::NoFork)?)
    }

    /// The memory.
    #[must_use]
    pub const fn range(&self) -> &Range<usize> {
        &self.range
    }

    /// Whether the program has unmapped or moved all of it: then there is nothing to give back.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        // The kernel lets who unmaps go on as soon as a handler reads of it, which notes it then, under this lock.
        let _noted = self.guest.ground.places.fixed();
        !self.guest.is_alone() && self.guest.used().next().is_none()
    }

    /// What was counted of all adopted ranges of this process.
    #[must_use]
    pub fn counted() -> Option<Tally> {
        TALLY.get().copied()
    }

    /// Brings all of it back, and lets it be the program's alone again, as it was before.
    ///
    /// # Errors
    /// [`AdoptError`] where not all can be had; then it is paged as before.
    pub fn release(&mut self) -> Result<(), AdoptError> {
        if self.guest.is_alone() {
            return Err(AdoptError::Elsewhere);
        }
        if self.is_over {
            return Ok(());
        }
        let _held = hold();
        let calls = self.guest.lock();
        self.guest.fetch_all().map_err(|errno| match errno {
            super::errno::ENOMEM => AdoptError::Memory,
            other => AdoptError::Lost(other),
        })?;
        drop(calls);
        // Nothing leaves from here on: there is a frame for each page.
        self.let_go().map_err(|errno| {
            let _calls = self.guest.lock();
            let _ = self.guest.order(Order::Repay, self.guest.all());
            AdoptError::Lost(errno)
        })
    }

    /// Lets faults of what is left be the kernel's again.
    fn unregister(&self) -> Result<(), i32> {
        let table = &self.guest.ground.table;
        let place = |page: usize| self.range.start + page * PAGE_BYTES;
        self.guest
            .used()
            .try_for_each(|pages| table.unregister(place(pages.start), pages.len() * PAGE_BYTES))
    }

    /// Ends it where all pages are there.
    fn let_go(&mut self) -> Result<(), i32> {
        let mut tries = 0;
        while let Err(errno) = self.unregister() {
            // The program may have unmapped some just now, of which handlers hear soon.
            tries += 1;
            if tries == TRIES {
                return Err(errno);
            }
            std::thread::sleep(A_WHILE);
        }
        self.is_over = true;
        // What is refused here is a child without the memory.
        self.guest.used().for_each(|pages| self.guest.tell(&pages, Told::Fork));
        self.stop.store(true, Ordering::Release);
        self.servers.drain(..).for_each(|server| _ = server.join());
        Ok(())
    }
}

impl Drop for Adopted {
    fn drop(&mut self) {
        // Threads that still have pages of it go on without the value.
        let _ = self.release();
    }
}

/// A range of whole pages, with so much fast memory that there is something to page.
fn pages_of(
    first: NonNull<u8>,
    bytes: usize,
    fast_bytes: usize,
) -> Result<Range<usize>, AdoptError> {
    let start = first.as_ptr().expose_provenance();
    let refused = |words: &str| Err(AdoptError::Range(words.to_owned()));
    if !start.is_multiple_of(PAGE_BYTES) || !bytes.is_multiple_of(PAGE_BYTES) || bytes == 0 {
        return refused("only whole pages are adopted: address and bytes are multiples of 4096");
    }
    if fast_bytes < FAST_BYTES_MIN {
        return refused("fast memory of less than 1 MiB: set fast_bytes higher");
    }
    let end = start.checked_add(bytes).filter(|_| bytes / PAGE_BYTES <= GROUPS_MOST);
    end.map_or_else(|| refused("more pages than can be counted"), |end| Ok(start..end))
}

/// Pages of a range that are in memory or swapped out, from its first on, in pieces.
fn present(range: &Range<usize>) -> Result<Vec<Range<usize>>, OsError> {
    let mut pieces: Vec<Range<usize>> = Vec::new();
    Pagemap::new()?.look(range.start, range.len() / PAGE_BYTES, |page, is_there| {
        if !is_there {
            return;
        }
        match pieces.last_mut().filter(|piece| piece.end == page) {
            Some(piece) => piece.end += 1,
            None => pieces.push(page..page + 1),
        }
    })?;
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;
    use isochrone_os::space::Space;

    #[test]
    fn what_is_there_is_told_from_what_was_never_touched() {
        let space = Space::new(16 * PAGE_BYTES, false).unwrap();
        let _ = space.huge(0, space.len(), false);
        for page in [1, 2, 5] {
            // SAFETY: inside of the space, and this test's alone.
            unsafe { space.as_ptr().wrapping_add(page * PAGE_BYTES).write(1) };
        }
        let start = space.as_ptr().expose_provenance();
        assert_eq!(present(&(start..start + 16 * PAGE_BYTES)).unwrap(), [1..3, 5..6]);
    }

    #[test]
    fn only_whole_pages_and_enough_fast_memory_will_do() {
        let at = |address: usize| NonNull::new(std::ptr::without_provenance_mut(address)).unwrap();
        assert_eq!(pages_of(at(8192), 4096, FAST_BYTES_MIN), Ok(8192..12288));
        for (address, bytes, fast) in
            [(8193, 4096, FAST_BYTES_MIN), (8192, 4095, FAST_BYTES_MIN), (8192, 0, FAST_BYTES_MIN)]
        {
            let refused = pages_of(at(address), bytes, fast).unwrap_err();
            assert!(refused.to_string().contains("whole pages"), "{refused}");
        }
        assert!(pages_of(at(8192), 4096, 4096).unwrap_err().to_string().contains("fast_bytes"));
        assert!(pages_of(at(usize::MAX / 4096 * 4096), 8192, FAST_BYTES_MIN).is_err());
    }
}
