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
use crate::mapping::Mapping;
use core::sync::atomic::Ordering;
use isochrone_units::{Cycles, LINE_BYTES, LineAddr};

/// Words in a line.
const LINE_WORDS: usize = LINE_BYTES / 8;

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
    mapping: &Mapping,
    lines: &[LineAddr],
    out: &mut [Cycles],
) -> Result<(), OsError> {
    check(mapping, lines, out)?;
    time_checked(mapping, lines, out);
    Ok(())
}

/// Flushes all lines from all caches, then times one load of each: the latency of memory.
///
/// # Errors
/// As [`time_lines`], and on a CPU without `clflush`.
pub fn sample_flushed(
    mapping: &Mapping,
    lines: &[LineAddr],
    out: &mut [Cycles],
) -> Result<(), OsError> {
    check(mapping, lines, out)?;
    flush_checked(mapping, lines)?;
    time_checked(mapping, lines, out);
    Ok(())
}

/// Loads all lines, moves them from the near caches to the last-level cache, then times one load
/// of each: the latency of the last-level cache.
///
/// # Errors
/// As [`time_lines`], and on a CPU without `cldemote`; that is said before any line is touched.
pub fn sample_demoted(
    mapping: &Mapping,
    lines: &[LineAddr],
    out: &mut [Cycles],
) -> Result<(), OsError> {
    check(mapping, lines, out)?;
    Features::detect().require_demote()?;
    touch_checked(mapping, lines);
    for &line in lines {
        // SAFETY: the line was checked to lie inside of the mapping, which is borrowed; the CPU
        // has cldemote.
        unsafe { arch::demote_line(mapping.line(line)) };
    }
    arch::fence();
    time_checked(mapping, lines, out);
    Ok(())
}

/// Loads all lines, then reads `sweep_bytes` of `evictor`, which push them out of the near caches,
/// then times one load of each: the latency of the last-level cache where no instruction demotes
/// lines. A sweep of twice the second-level cache leaves next to none of them in it.
///
/// Lines of more pages than the second-level TLB has entries add page walks to their times. That
/// may be so with huge pages as well: a hypervisor that backs them with small ones splits them.
///
/// # Errors
/// As [`time_lines`], and for a sweep that is longer than the evictor.
pub fn sample_evicted(
    mapping: &Mapping,
    lines: &[LineAddr],
    evictor: &Mapping,
    sweep_bytes: usize,
    out: &mut [Cycles],
) -> Result<(), OsError> {
    check(mapping, lines, out)?;
    if sweep_bytes > evictor.len() {
        return Err(OsError::invalid(
            "cannot sweep more memory than the evictor has",
            "map a larger evictor, or sweep less of it",
        ));
    }
    touch_checked(mapping, lines);
    sweep_checked(evictor, sweep_bytes);
    time_checked(mapping, lines, out);
    Ok(())
}

/// Loads all lines, untimed, in order.
///
/// # Errors
/// [`OsError`] for a line outside of the mapping.
pub fn touch(mapping: &Mapping, lines: &[LineAddr]) -> Result<(), OsError> {
    mapping.check_lines(lines)?;
    touch_checked(mapping, lines);
    Ok(())
}

/// Puts all lines out of every cache of the machine. They are out when this returns.
///
/// # Errors
/// [`OsError`] for a line outside of the mapping, and on a CPU without `clflush`.
pub fn flush(mapping: &Mapping, lines: &[LineAddr]) -> Result<(), OsError> {
    mapping.check_lines(lines)?;
    flush_checked(mapping, lines)
}

/// Reads one word of each line of the first `sweep_bytes` of `evictor` (all of it at most).
pub fn sweep(evictor: &Mapping, sweep_bytes: usize) {
    sweep_checked(evictor, sweep_bytes.min(evictor.len()));
}

/// What all batches have in common.
fn check(mapping: &Mapping, lines: &[LineAddr], out: &[Cycles]) -> Result<(), OsError> {
    if !arch::TIMED_LOADS {
        return Err(OsError::unsupported(
            "cannot time single loads: this kind of CPU has no counter that is fine enough",
            "measure regions by dependent chases instead, or run on x86-64",
        ));
    }
    if lines.len() != out.len() {
        return Err(OsError::invalid(
            "cannot time a batch of lines",
            "give one slot of `out` for each line",
        ));
    }
    mapping.check_lines(lines)
}

/// The timed loop. What is fetched for it (`lines`, `out`) is fetched outside of the timed region.
#[inline(never)]
fn time_checked(mapping: &Mapping, lines: &[LineAddr], out: &mut [Cycles]) {
    for (&line, out) in lines.iter().zip(out) {
        // SAFETY: the line was checked to lie inside of the mapping, which is borrowed, so eight
        // aligned, mapped bytes are read.
        *out = Cycles(unsafe { arch::timed_load(mapping.line(line)) });
    }
}

fn flush_checked(mapping: &Mapping, lines: &[LineAddr]) -> Result<(), OsError> {
    let features = Features::detect();
    features.require_flush()?;
    if features.clflushopt {
        for &line in lines {
            // SAFETY: the line was checked to lie inside of the mapping, which is borrowed; the
            // CPU has clflushopt.
            unsafe { arch::flush_line_unordered(mapping.line(line)) };
        }
    } else {
        for &line in lines {
            // SAFETY: the line was checked to lie inside of the mapping, which is borrowed; the
            // CPU has clflush.
            unsafe { arch::flush_line(mapping.line(line)) };
        }
    }
    arch::fence();
    Ok(())
}

fn touch_checked(mapping: &Mapping, lines: &[LineAddr]) {
    let words = mapping.words();
    let index = |line: LineAddr| usize::try_from(line.0).unwrap_or(0) * LINE_WORDS;
    let sum = lines
        .iter()
        .fold(0_u64, |sum, &line| sum.wrapping_add(words[index(line)].load(Ordering::Relaxed)));
    // Somebody wants the sum, so every load is done.
    core::hint::black_box(sum);
}

fn sweep_checked(evictor: &Mapping, sweep_bytes: usize) {
    let words = &evictor.words()[..sweep_bytes / 8];
    let sum = words
        .iter()
        .step_by(LINE_WORDS)
        .fold(0_u64, |sum, word| sum.wrapping_add(word.load(Ordering::Relaxed)));
    core::hint::black_box(sum);
}

#[cfg(test)]
mod tests;
