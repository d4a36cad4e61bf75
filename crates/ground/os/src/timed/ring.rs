//! A dependent chase: lines that hold one another's addresses, and a walk in which each load has
//! to wait for the one before. What a load costs in such a walk is what a program feels.
//!
//! A ring has its mapping to itself, since safe code that wrote over a link would send the walk
//! anywhere; any number of threads may walk one ring at once.

use super::LINE_WORDS;
use crate::arch;
use crate::cache::Features;
use crate::error::OsError;
use crate::mapping::Mapping;
use core::sync::atomic::Ordering;
use isochrone_units::{LINE_BYTES, LineAddr};

/// Lines linked into one ring: the first word of each holds the address of the next.
#[derive(Debug)]
pub struct Ring<'m> {
    mapping: &'m Mapping,
    first: LineAddr,
    length: u64,
}

/// Links the lines of `order` into one ring, each to the next and the last to the first.
/// Everything else that the mapping holds is lost.
///
/// # Errors
/// [`OsError`] for an empty order, a line outside of the mapping, a line named twice (which would
/// cut the ring short), and for shared memory, where another process could write over a link.
pub fn link<'m>(mapping: &'m mut Mapping, order: &[LineAddr]) -> Result<Ring<'m>, OsError> {
    let mapping = &*mapping;
    if mapping.memfd().is_some() {
        return Err(OsError::invalid(
            "cannot link lines of shared memory into a ring",
            "chase through private memory",
        ));
    }
    mapping.check_lines(order)?;
    let (Some(&first), Some(&last)) = (order.first(), order.last()) else {
        return Err(OsError::invalid("cannot link no lines into a ring", "give at least one line"));
    };
    let words = mapping.words();
    let word = |line: LineAddr| &words[usize::try_from(line.0).unwrap_or(0) * LINE_WORDS];
    for &line in order {
        word(line).store(0, Ordering::Relaxed);
    }
    let next = order[1..].iter().chain([&first]);
    for (&line, &next) in order.iter().zip(next) {
        let address = mapping.line(next).expose_provenance() as u64;
        // An address is never 0, so a link that is there already is a line that came before.
        if word(line).swap(address, Ordering::Relaxed) != 0 {
            return Err(OsError::invalid("a line is named twice in a ring", "give each line once"));
        }
    }
    debug_assert_eq!(word(last).load(Ordering::Relaxed), mapping.line(first).addr() as u64);
    Ok(Ring { mapping, first, length: order.len() as u64 })
}

impl Ring<'_> {
    /// Lines in the ring.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Whether the ring has no line, which is never the case.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Puts lines of the ring's memory out of every cache, so that a walk over them reads memory
    /// even where the whole ring would fit into the caches.
    ///
    /// # Errors
    /// As [`super::flush`].
    pub fn flush(&self, lines: &[LineAddr]) -> Result<(), OsError> {
        Features::tried().require_flush()?;
        super::flush(self.mapping, lines)
    }

    /// A walker that stands at the first line.
    #[must_use]
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor { ring: self, at: self.mapping.line(self.first) }
    }

    /// The line that the ring visits after `steps` steps from the first, without a clock.
    #[must_use]
    pub fn line_after(&self, steps: u64) -> LineAddr {
        let mut cursor = self.cursor();
        cursor.walk(steps % self.length);
        cursor.line()
    }
}

/// A walker on a ring, which goes on where it stopped.
#[derive(Clone, Debug)]
pub struct Cursor<'r> {
    ring: &'r Ring<'r>,
    at: *const u64,
}

// SAFETY: a cursor points into memory that its ring keeps mapped, unwritten and shared, so it may
// walk on any thread.
unsafe impl Send for Cursor<'_> {}

impl Cursor<'_> {
    /// The line on which it stands.
    #[must_use]
    pub fn line(&self) -> LineAddr {
        let offset = self.at.addr() - self.ring.mapping.as_ptr().addr();
        LineAddr((offset / LINE_BYTES) as u64)
    }

    /// Goes `steps` links further without a clock.
    pub fn walk(&mut self, steps: u64) {
        if steps >= 8 {
            // SAFETY: `at` is a line of the ring. The ring has its mapping to itself, so each link
            // still holds what `link` wrote: the address of another line of the ring.
            self.at = unsafe { arch::follow_eights(self.at, steps / 8) };
        }
        for _ in 0..steps % 8 {
            // SAFETY: as above; the read is of eight aligned, mapped bytes.
            let next = unsafe { self.at.read_volatile() };
            self.at = core::ptr::with_exposed_provenance(usize::try_from(next).unwrap_or(0));
        }
    }

    /// Goes `steps` links further and returns the cycles that took, the timer's own cost included.
    #[inline(never)]
    pub fn chase(&mut self, steps: u64) -> u64 {
        let begin = crate::clock::start();
        self.walk(steps);
        // The place where the walk ended is needed before the clock is read again.
        core::hint::black_box(self.at);
        crate::clock::stop().saturating_sub(begin)
    }

    /// Chases once for each slot of `out`, `steps` links each, every chase from where the last
    /// one ended.
    pub fn chase_many(&mut self, steps: u64, out: &mut [u64]) {
        for out in out {
            *out = self.chase(steps);
        }
    }
}
