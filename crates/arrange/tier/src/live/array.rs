//! Arrays of the area that all workers share, and phases: between two meetings of all workers each array
//! is either read by everybody or written in parts that do not overlap. So plain slices can be had without
//! a lock, and without `unsafe` in programs.
//!
//! What the workers declare is compared when they meet: if one declares something else than the others,
//! all panic, and nobody gets a slice.

use core::marker::PhantomData;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};
use std::cell::Cell;

use bytemuck::Pod;

use super::barrier::Gone;
use super::common::DECLARATION_WORDS;
use super::worker::Worker;

/// An array: where it lies, not what it holds. Equal in all workers.
#[derive(Debug)]
pub struct Array<T> {
    /// Its first byte, counted from the start of the area.
    at: usize,
    len: usize,
    of: PhantomData<T>,
}

impl<T> Clone for Array<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Array<T> {}

impl<T: Pod> Array<T> {
    /// How many.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its first byte, counted from the start of the area: for [`Worker::pin`] and its like.
    #[must_use]
    pub const fn at(&self) -> usize {
        self.at
    }

    /// A worker's part if the array is cut into pieces of `unit` that are dealt out evenly, in order.
    #[must_use]
    pub fn band(&self, unit: usize, worker: u16, workers: u16) -> Range<usize> {
        let unit = unit.max(1);
        let pieces = self.len.div_ceil(unit);
        let cut = |worker: u16| {
            (pieces * usize::from(worker) / usize::from(workers.max(1)) * unit).min(self.len)
        };
        cut(worker)..cut(worker + 1)
    }
}

/// Written arrays of one phase.
const WRITTEN_MOST: usize = 3;

/// What a worker will do in a phase.
#[derive(Clone, Debug, Default)]
pub struct Phase {
    read: Vec<Range<usize>>,
    written: Vec<(Range<usize>, Range<usize>)>,
}

impl Phase {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// All of an array is read.
    #[must_use]
    pub fn reads<T: Pod>(mut self, array: &Array<T>) -> Self {
        self.read.push(bytes_of(array, 0..array.len));
        self
    }

    /// A part of an array is written by this worker, and read by nobody else. Parts of workers ascend with
    /// their numbers and do not overlap; they may be empty.
    ///
    /// # Panics
    /// For a part outside of the array, or a fourth array.
    #[must_use]
    pub fn writes<T: Pod>(mut self, array: &Array<T>, part: Range<usize>) -> Self {
        assert!(part.start <= part.end && part.end <= array.len, "a part outside of its array");
        assert!(self.written.len() < WRITTEN_MOST, "a phase writes at most {WRITTEN_MOST} arrays");
        self.written.push((bytes_of(array, 0..array.len), bytes_of(array, part)));
        self
    }

    /// A number that is the same for workers that declare the same arrays.
    fn token(&self) -> u64 {
        // FNV-1a (Fowler, Noll, Vo), by words.
        let mix = |hash: u64, word: usize| (hash ^ word as u64).wrapping_mul(0x0100_0000_01b3);
        let arrays = self.read.iter().chain(self.written.iter().map(|(all, _)| all));
        let edges = arrays.flat_map(|range| [range.start, range.end]);
        edges.chain([self.read.len()]).fold(0xcbf2_9ce4_8422_2325, mix)
    }

    fn check(&self) {
        let overlap = |a: &Range<usize>, b: &Range<usize>| a.start < b.end && b.start < a.end;
        for (number, (all, _)) in self.written.iter().enumerate() {
            let read = self.read.iter().any(|read| overlap(read, all));
            assert!(!read, "an array is read and written in one phase");
            let twice = self.written[..number].iter().any(|(other, _)| overlap(other, all));
            assert!(!twice, "an array is written twice in one phase");
        }
    }
}

fn bytes_of<T>(array: &Array<T>, part: Range<usize>) -> Range<usize> {
    array.at + part.start * size_of::<T>()..array.at + part.end * size_of::<T>()
}

/// The slices of a phase that has begun.
#[derive(Debug)]
pub struct Slices<'p> {
    base: *mut u8,
    phase: &'p Phase,
    taken: Cell<u32>,
}

impl<'p> Slices<'p> {
    /// All of an array that was declared to be read.
    ///
    /// # Panics
    /// If it was not.
    #[must_use]
    pub fn read<T: Pod>(&self, array: &Array<T>) -> &'p [T] {
        let declared = self.phase.read.contains(&bytes_of(array, 0..array.len));
        assert!(declared, "an array that was not declared to be read");
        let first = self.base.wrapping_add(array.at).cast::<T>().cast_const();
        // SAFETY: the array lies in the area, which is mapped while the worker lives and whose bytes are
        // initialised; arrays begin on pages, so it is aligned; any bytes are a `T`; every worker declared
        // the same arrays, so nobody writes this one before all met again, which is after `'p`.
        unsafe { std::slice::from_raw_parts(first, array.len) }
    }

    /// This worker's part of an array that was declared to be written. Once in a phase.
    ///
    /// # Panics
    /// If it was not declared, or was had before.
    #[must_use]
    #[allow(clippy::mut_from_ref, reason = "a part is taken once, which is checked")]
    pub fn write<T: Pod>(&self, array: &Array<T>) -> &'p mut [T] {
        let all = bytes_of(array, 0..array.len);
        let place = self.phase.written.iter().position(|(declared, _)| *declared == all);
        let place = place.expect("an array that was not declared to be written");
        assert!(self.taken.get() >> place & 1 == 0, "a part that was taken before");
        self.taken.set(self.taken.get() | 1 << place);
        let part = &self.phase.written[place].1;
        let first = self.base.wrapping_add(part.start).cast::<T>();
        // SAFETY: as above; parts of workers were compared and do not overlap, nobody reads the array in
        // this phase, and this worker takes its part once.
        unsafe { std::slice::from_raw_parts_mut(first, (part.end - part.start) / size_of::<T>()) }
    }
}

/// What the area is used as, agreed by all.
const AS_WORDS: u64 = 1;
const AS_ARRAYS: u64 = 2;
const AS_PIECES: u64 = 3;

impl<'t> Worker<'t> {
    /// Says what the area is used as; everybody must say the same.
    fn agree(&self, kind: u64) {
        let before = self.kind().compare_exchange(0, kind, Ordering::AcqRel, Ordering::Acquire);
        let agreed = before.map_or_else(|other| other == kind, |_| true);
        assert!(agreed, "the area is used as words, as arrays or as pieces: by all alike");
    }

    /// The area is one of pieces.
    pub(super) fn agree_on_pieces(&self) {
        self.agree(AS_PIECES);
    }

    /// The area, as words that all workers share.
    ///
    /// # Panics
    /// If it is used for arrays.
    #[must_use]
    pub fn words(&self) -> &'t [AtomicU64] {
        self.agree(AS_WORDS);
        let (base, bytes) = self.extent();
        let first = base.cast::<AtomicU64>();
        // SAFETY: the area is mapped readable and writable in this process while the worker lives, faults
        // in it are resolved, its bytes are initialised (zeros or what was written), it is page-aligned,
        // and all workers agreed to have it as atomic words only.
        unsafe { std::slice::from_raw_parts(first, bytes / 8) }
    }

    /// Takes room for an array of zeros, on whole groups of its own. All workers call this in the same
    /// order with the same length.
    ///
    /// # Errors
    /// [`Gone`] if a worker ended.
    ///
    /// # Panics
    /// If workers differ, the area is full, or it is used as words.
    pub fn array<T: Pod>(&mut self, len: usize) -> Result<Array<T>, Gone> {
        self.agree(AS_ARRAYS);
        let at = self.used();
        let bytes = len.checked_mul(size_of::<T>()).expect("an array that fits an address space");
        let end = at.checked_add(bytes).expect("an array that fits an address space");
        assert!(end <= self.extent().1, "the area is full: {end} bytes are asked for");
        let mine = [at as u64, end as u64, size_of::<T>() as u64, 0, 0, 0, 0, 0];
        let agreed = self.compare(mine, |theirs, mine, _| theirs == mine)?;
        assert!(agreed, "workers ask for different arrays");
        self.use_up_to(end);
        Ok(Array { at, len, of: PhantomData })
    }

    /// Meets all others, lets `act` read and write what was declared, and meets them again.
    ///
    /// # Errors
    /// [`Gone`] if a worker ended.
    ///
    /// # Panics
    /// If workers declare different arrays, or parts that overlap.
    pub fn phase<R>(
        &mut self,
        phase: &Phase,
        act: impl FnOnce(&Slices<'_>) -> R,
    ) -> Result<R, Gone> {
        phase.check();
        let mut mine = [0; DECLARATION_WORDS];
        mine[0] = phase.token();
        for (pair, (_, part)) in mine[1..].chunks_mut(2).zip(&phase.written) {
            pair.copy_from_slice(&[part.start as u64, part.end as u64]);
        }
        let (parts, me) = (phase.written.len(), self.index());
        let apart = |theirs: &[u64], mine: &[u64], other: u16| {
            (0..parts).all(|part| {
                let (from, to) = (theirs[1 + 2 * part], theirs[2 + 2 * part]);
                let (begin, end) = (mine[1 + 2 * part], mine[2 + 2 * part]);
                if other < me { to <= begin } else { end <= from }
            })
        };
        let agreed = self.compare(mine, |theirs, mine, other| {
            theirs[0] == mine[0] && (other == me || apart(theirs, mine, other))
        })?;
        assert!(agreed, "workers declare different phases");
        let result = act(&Slices { base: self.extent().0, phase, taken: Cell::new(0) });
        self.barrier()?;
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_cover_an_array_once() {
        for (len, unit, workers) in [(10, 1, 3), (4096, 512, 4), (7, 3, 5), (0, 8, 2), (100, 7, 16)]
        {
            let array: Array<f64> = Array { at: 0, len, of: PhantomData };
            let mut next = 0;
            for worker in 0..workers {
                let band = array.band(unit, worker, workers);
                assert_eq!(band.start, next);
                assert!(band.start.is_multiple_of(unit) || band.start == len);
                next = band.end;
            }
            assert_eq!(next, len);
        }
    }

    #[test]
    #[should_panic(expected = "read and written")]
    fn what_is_read_is_not_written() {
        let array: Array<u32> = Array { at: 4096, len: 10, of: PhantomData };
        Phase::new().reads(&array).writes(&array, 0..5).check();
    }

    #[test]
    fn phases_differ_by_their_arrays_and_not_by_their_parts() {
        let array = |at| Array::<u32> { at, len: 10, of: PhantomData };
        let token =
            |from, to, part| Phase::new().reads(&array(from)).writes(&array(to), part).token();
        assert_eq!(token(0, 4096, 0..5), token(0, 4096, 5..10));
        assert_ne!(token(0, 4096, 0..5), token(4096, 0, 0..5));
        let read = Phase::new().reads(&array(0)).token();
        assert_ne!(read, Phase::new().writes(&array(0), 0..1).token());
    }
}
