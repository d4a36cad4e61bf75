//! The timed loads that every latency stands on: one load at a time between two ordered reads of
//! the counter, after its line was put where it is to be timed.
//!
//! Bounds are checked once for a batch; the loops then hold nothing but what they are for. The
//! figures are raw: they include the timer's own cost ([`crate::clock::Clock::overhead`]), and
//! interrupts are in them too. Judging samples is for the caller, and so are pinning the thread
//! and the order of a batch: lines at one stride, even across pages, are prefetched, and a
//! prefetched line is near whatever was done to it before.

mod ring;

pub use ring::{Cursor, Ring, link};

use crate::arch;
use crate::cache::Features;
use crate::error::OsError;
use crate::frames::page_of;
use crate::mapping::Mapping;
use crate::shared::Shared;
use core::ops::Range;
use core::sync::atomic::Ordering;
use isochrone_units::{Cycles, LINE_BYTES, LineAddr, PageAddr};

/// Words in a line.
const LINE_WORDS: usize = LINE_BYTES / 8;

/// Memory whose lines can be timed: a [`Mapping`], what is memory of a [`crate::reserve::Reservation`], or
/// memory that processes [share](crate::shared::Shared).
pub trait Memory: sealed::Extent {
    /// The virtual page behind page `index`, as [`crate::frames::Pagemap`] wants it.
    fn virtual_page(&self, index: PageAddr) -> PageAddr {
        PageAddr(page_of(self.base().addr()).0 + index.0)
    }
}

pub(crate) mod sealed {
    /// A range of memory that stays where it is.
    pub trait Extent {
        /// Its first byte, at the boundary of a page.
        fn base(&self) -> *const u8;
        /// Lines from there on that may be read for as long as the value is borrowed.
        fn lines(&self) -> u64;
    }
}

impl<M: Memory> Memory for &M {}

impl<M: sealed::Extent> sealed::Extent for &M {
    fn base(&self) -> *const u8 {
        (**self).base()
    }

    fn lines(&self) -> u64 {
        (**self).lines()
    }
}

impl Memory for Mapping {}

impl Memory for Shared {}

impl sealed::Extent for Shared {
    fn base(&self) -> *const u8 {
        self.as_ptr()
    }

    fn lines(&self) -> u64 {
        (self.len() / LINE_BYTES) as u64
    }
}

impl sealed::Extent for Mapping {
    fn base(&self) -> *const u8 {
        self.as_ptr()
    }

    fn lines(&self) -> u64 {
        Self::lines(self)
    }
}

/// Address of a line, not checked here.
#[inline(always)]
fn address_of(memory: &impl Memory, line: LineAddr) -> *const u64 {
    let offset = usize::try_from(line.0).unwrap_or(usize::MAX).wrapping_mul(LINE_BYTES);
    memory.base().wrapping_add(offset).cast()
}

/// Checks once that all `lines` lie inside, so that the loops need not.
fn check_lines(memory: &impl Memory, lines: &[LineAddr]) -> Result<(), OsError> {
    let end = memory.lines();
    if lines.iter().all(|line| line.0 < end) {
        return Ok(());
    }
    Err(OsError::invalid(
        "a line lies outside of the mapping",
        "number lines from 0 to Mapping::lines() - 1",
    ))
}

/// Times one load of each line where it happens to be.
///
/// A batch of more lines than the second-level cache holds, timed over and over in one order, is
/// a measurement of the last-level cache: each line was pushed out by the others. But it waits
/// there for a whole round, and where strangers share that cache it may be gone by then; in
/// [`sample_evicted`] it waits for one sweep.
///
/// # Errors
/// [`OsError`] for a line outside of the mapping, for slices of different lengths, and on a CPU
/// whose counter this crate does not know.
pub fn time_lines(
    memory: &impl Memory,
    lines: &[LineAddr],
    out: &mut [Cycles],
) -> Result<(), OsError> {
    check(memory, lines, out)?;
    time_checked(memory, lines, out);
    Ok(())
}

/// Flushes all lines from all caches, then times one load of each: the latency of memory.
///
/// # Errors
/// As [`time_lines`], and on a CPU without `clflush`.
pub fn sample_flushed(
    memory: &impl Memory,
    lines: &[LineAddr],
    out: &mut [Cycles],
) -> Result<(), OsError> {
    check(memory, lines, out)?;
    Features::tried().require_flush()?;
    flush_checked(memory, lines)?;
    time_checked(memory, lines, out);
    Ok(())
}

/// Loads all lines, moves them from the near caches to the last-level cache, then times one load
/// of each: the latency of the last-level cache.
///
/// # Errors
/// As [`time_lines`], and on a CPU without `cldemote`; that is said before any line is touched.
pub fn sample_demoted(
    memory: &impl Memory,
    lines: &[LineAddr],
    out: &mut [Cycles],
) -> Result<(), OsError> {
    check(memory, lines, out)?;
    demote(memory, lines)?;
    time_checked(memory, lines, out);
    Ok(())
}

/// Loads all lines and moves them from the near caches to the last-level cache. They are there
/// when this returns.
///
/// # Errors
/// [`OsError`] for a line outside of the mapping, and on a CPU without `cldemote`.
pub fn demote(memory: &impl Memory, lines: &[LineAddr]) -> Result<(), OsError> {
    Features::detect().require_demote()?;
    check_lines(memory, lines)?;
    touch_checked(memory, lines);
    for &line in lines {
        // SAFETY: the line was checked to lie inside of the mapping, which is borrowed; the CPU
        // has cldemote.
        unsafe { arch::demote_line(address_of(memory, line)) };
    }
    arch::fence();
    Ok(())
}

/// Loads all lines, then reads `sweep_bytes` of `evictor`, which push them out of the near caches,
/// then times one load of each: the latency of the last-level cache where no instruction demotes
/// lines. A sweep of three times the second-level cache leaves next to none of them in it.
///
/// Lines of more pages than the second-level TLB has entries add page walks to their times. That
/// may be so with huge pages as well: a hypervisor that backs them with small ones splits them.
///
/// # Errors
/// As [`time_lines`], and for a sweep that is longer than the evictor.
pub fn sample_evicted(
    memory: &impl Memory,
    lines: &[LineAddr],
    evictor: &Mapping,
    sweep_bytes: usize,
    out: &mut [Cycles],
) -> Result<(), OsError> {
    check(memory, lines, out)?;
    if sweep_bytes > evictor.len() {
        return Err(OsError::invalid(
            "cannot sweep more memory than the evictor has",
            "map a larger evictor, or sweep less of it",
        ));
    }
    touch_checked(memory, lines);
    sweep_checked(evictor, 0..sweep_bytes);
    time_checked(memory, lines, out);
    Ok(())
}

/// Loads all lines, untimed, in order.
///
/// # Errors
/// [`OsError`] for a line outside of the mapping.
pub fn touch(memory: &impl Memory, lines: &[LineAddr]) -> Result<(), OsError> {
    check_lines(memory, lines)?;
    touch_checked(memory, lines);
    Ok(())
}

/// Puts all lines out of every cache of the machine. They are out when this returns.
///
/// # Errors
/// [`OsError`] for a line outside of the mapping, and on a CPU without `clflush`.
pub fn flush(memory: &impl Memory, lines: &[LineAddr]) -> Result<(), OsError> {
    check_lines(memory, lines)?;
    flush_checked(memory, lines)
}

/// Reads one word of each of `sweep_bytes` of lines of `evictor` (of all of them at most).
pub fn sweep(evictor: &Mapping, sweep_bytes: usize) {
    sweep_checked(evictor, 0..sweep_bytes.min(evictor.len()));
}

/// A part of a sweep, for a caller who may not spend a whole one at once: each line of the part is read once, in no
/// order, the parts as they are asked for. What lies beyond the evictor is left out.
///
/// On an EPYC 9005 guest parts of four pages take a tenth of the time of lines that are scattered over all of a sweep,
/// whose translations miss, and put out as many lines but for one in twenty.
pub fn sweep_part(evictor: &Mapping, bytes: Range<usize>) {
    let end = bytes.end.min(evictor.len());
    sweep_checked(evictor, bytes.start.min(end)..end);
}

/// What all batches have in common.
fn check(memory: &impl Memory, lines: &[LineAddr], out: &[Cycles]) -> Result<(), OsError> {
    if !crate::clock::times_loads() {
        return Err(OsError::unsupported(
            "cannot time single loads: the steps of this CPU's counter are too coarse, or it has none that is known",
            "measure regions by dependent chases instead",
        ));
    }
    if lines.len() != out.len() {
        return Err(OsError::invalid(
            "cannot time a batch of lines",
            "give one slot of `out` for each line",
        ));
    }
    check_lines(memory, lines)
}

/// The timed loop. What is fetched for it (`lines`, `out`) is fetched outside of the timed region.
#[inline(never)]
fn time_checked(memory: &impl Memory, lines: &[LineAddr], out: &mut [Cycles]) {
    for (&line, out) in lines.iter().zip(out) {
        // SAFETY: the line was checked to lie inside of the mapping, which is borrowed, so eight
        // aligned, mapped bytes are read.
        *out = Cycles(unsafe { arch::timed_load(address_of(memory, line)) });
    }
}

fn flush_checked(memory: &impl Memory, lines: &[LineAddr]) -> Result<(), OsError> {
    let features = Features::detect();
    features.require_flush()?;
    if features.clflushopt {
        for &line in lines {
            // SAFETY: the line was checked to lie inside of the mapping, which is borrowed; the
            // CPU has clflushopt.
            unsafe { arch::flush_line_unordered(address_of(memory, line)) };
        }
    } else {
        for &line in lines {
            // SAFETY: the line was checked to lie inside of the mapping, which is borrowed; the
            // CPU has clflush.
            unsafe { arch::flush_line(address_of(memory, line)) };
        }
    }
    arch::fence();
    Ok(())
}

fn touch_checked(memory: &impl Memory, lines: &[LineAddr]) {
    for &line in lines {
        // SAFETY: the line was checked to lie inside of the mapping, which is borrowed.
        unsafe { arch::touch_line(address_of(memory, line)) };
    }
}

/// Reads one word of each line of a part of the evictor, not in their order: on an EPYC 9005 lines that a
/// prefetcher brings are the first to leave the second-level cache again, so that a sweep in order, however
/// long, leaves up to half of what it should put out.
fn sweep_checked(evictor: &Mapping, bytes: Range<usize>) {
    let words = evictor.words();
    let (first, lines) = (bytes.start / LINE_BYTES, bytes.len() / LINE_BYTES);
    let sum = (0..lines)
        .filter_map(|position| words.get((first + scattered(position, lines)) * LINE_WORDS))
        .fold(0_u64, |sum, word| sum.wrapping_add(word.load(Ordering::Relaxed)));
    core::hint::black_box(sum);
}

/// A permutation of the numbers below `count` without a stride that a prefetcher could follow: three
/// bijections of the next power of two (odd factors and a shift that is folded in), done again until the
/// result is below `count` (Black and Rogaway, *Ciphers with arbitrary finite domains*, CT-RSA 2002).
fn scattered(position: usize, count: usize) -> usize {
    let mask = count.next_power_of_two() - 1;
    let half = mask.count_ones() / 2;
    let mut place = position;
    loop {
        // The odd factors are the golden ratio's and another from Steele and others, OOPSLA 2014.
        place = place.wrapping_mul(0x9e37_79b9) & mask;
        place ^= place >> half.max(1);
        place = place.wrapping_mul(0x1ce4_e5b9) & mask;
        if place < count || position >= count {
            return place;
        }
    }
}

#[cfg(test)]
mod tests;
