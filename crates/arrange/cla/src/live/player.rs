//! Programs that were written down, played on real lines: how a program that is text runs.
//!
//! A collective in Rust is compiled into its loads and stores; here each rank follows a list, some nanoseconds
//! for an operation. Lists may come from anybody's text, so nothing is taken on trust: lines and buffers are
//! atomic words throughout. A program without order between two ranks then has a wrong result, not an undefined
//! one.

use super::error::TeamError;
use super::settings::Settings;
use super::team::Team;
use super::waits::{Stopper, Waits};
use super::word::Word;
use crate::program::{Buffer, Combine, Gone, Line, Operation, Place, Rank, Recorded, Span};
use isochrone_os::cache::{Features, fence, flush_line};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a word.
const WORD: usize = size_of::<u64>();
/// Words of a line.
const LINE_WORDS: usize = Line::BYTES as usize / WORD;

/// One rank of a program that was written down.
#[derive(Debug)]
pub struct Player {
    team: Team,
    calls: Arc<[Recorded]>,
    lines: Lines,
    /// `Send` and `Receive`.
    buffers: [Box<[AtomicU64]>; 2],
    /// Both operands of a reduction, or what is copied.
    scratch: [Vec<u8>; 2],
}

/// The lines of a program.
#[derive(Clone, Copy, Debug)]
struct Lines {
    first: NonNull<u8>,
    count: usize,
    /// Bytes from one line to the next.
    stride: usize,
}

// SAFETY: it points into the area of the player's team, which any thread may use; all accesses are atomic.
unsafe impl Send for Lines {}

impl Player {
    /// A team of threads of this process that plays `calls`, in this order or any other.
    ///
    /// # Errors
    /// [`TeamError`] where there is no shared memory.
    pub fn threads(calls: Vec<Recorded>, settings: &Settings) -> Result<Vec<Self>, TeamError> {
        let ranks = calls.first().map_or(0, |call| call.ranks.len());
        let ranks = u16::try_from(ranks).map_err(|_| TeamError::Ranks(u16::MAX))?;
        let lines = calls.iter().map(Recorded::lines).max().unwrap_or(0) as usize;
        let operations = calls.iter().flat_map(|c| &c.ranks).flat_map(|rank| &rank.operations);
        let mut spans = operations.flat_map(Operation::spans);
        let spread = !spans.any(|span| span.shared_lines().count() > 1);
        // Two neighbours may be fetched together. Lines that nobody needs together lie apart.
        let stride = Line::BYTES as usize * if spread { 2 } else { 1 };
        let bytes = Some((lines * stride).max(Line::BYTES as usize));
        let settings = Settings { bytes, ..settings.clone() };
        let size = |buffer| calls.iter().map(|c| c.buffer_bytes(buffer)).max().unwrap_or(0);
        let sizes = [Buffer::Send, Buffer::Receive].map(|buffer| size(buffer) as usize);
        let calls: Arc<[Recorded]> = calls.into();
        let player = |team: Team| {
            let area = team.parts().0;
            let first = area.line(area.lines().start);
            let words = |bytes: usize| (0..bytes.div_ceil(WORD)).map(|_| AtomicU64::new(0));
            Self {
                lines: Lines { first, count: lines, stride },
                calls: Arc::clone(&calls),
                buffers: sizes.map(|bytes| words(bytes).collect()),
                scratch: [Vec::new(), Vec::new()],
                team,
            }
        };
        Ok(Team::threads(ranks, &settings)?.into_iter().map(player).collect())
    }

    /// This rank.
    #[must_use]
    pub const fn rank(&self) -> Rank {
        self.team.rank()
    }

    /// Puts bytes into a buffer of this rank, from its beginning on, as far as there is room.
    pub fn give(&mut self, buffer: Buffer, bytes: &[u8]) {
        let words = &self.buffers[of(buffer)];
        let room = bytes.len().min(words.len() * WORD);
        store(words, 0, &bytes[..room]);
    }

    /// What a buffer of this rank holds: all bytes that the program uses, and up to seven more.
    #[must_use]
    pub fn buffer(&self, buffer: Buffer) -> Vec<u8> {
        let words = &self.buffers[of(buffer)];
        let mut bytes = vec![0; words.len() * WORD];
        load(words, 0, &mut bytes);
        bytes
    }

    /// Sets all lines to 0 and puts them out of all caches. For when no rank is in a call.
    pub fn reset(&mut self) {
        for line in 0..self.lines.count {
            let words = self.lines.words(line, LINE_WORDS);
            words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
            if Features::tried().clflush {
                // SAFETY: the line is mapped, and the CPU has the instruction.
                unsafe { flush_line(words.as_ptr().cast()) };
            }
        }
        fence();
    }

    /// Takes part in call `number` of those that were given.
    ///
    /// # Errors
    /// [`Gone`] when a rank ended, or somebody [stopped](Self::stopper) the play.
    ///
    /// # Panics
    /// If there is no such call.
    #[inline]
    pub fn play(&mut self, number: usize) -> Result<(), Gone> {
        let Self { team, calls, lines, buffers, scratch } = self;
        let waits = team.parts().1;
        let mut stage = Stage { lines: *lines, buffers, scratch, waits };
        let rank = team.rank().index();
        calls[number].ranks[rank].operations.iter().try_for_each(|one| stage.perform(one))
    }

    /// What ends all waits of a play.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        self.team.stopper()
    }
}

/// What an operation is done to.
struct Stage<'a> {
    lines: Lines,
    buffers: &'a [Box<[AtomicU64]>; 2],
    scratch: &'a mut [Vec<u8>; 2],
    waits: &'a Waits,
}

impl Stage<'_> {
    #[inline]
    fn perform(&mut self, operation: &Operation) -> Result<(), Gone> {
        match *operation {
            Operation::Wait { line, compare, value } => {
                let word = self.lines.word(line);
                if !compare.holds(word.load(), value) {
                    self.waits.wait(word, compare, value)?;
                }
            }
            Operation::Write { line, value } => {
                self.waits.publish(self.lines.word(line), |word| word.store(value));
            }
            Operation::Add { line, value } => {
                self.waits.publish(self.lines.word(line), |word| word.add(value));
            }
            Operation::Claim { line, lines } => {
                for n in 0..lines {
                    let first = self.lines.words(line.plus(n).0 as usize, 1);
                    isochrone_os::cache::claim_line(first.as_ptr().cast());
                }
            }
            Operation::Copy { src, dst } => self.copy(src, dst),
            Operation::Reduce { combine, src, dst } => self.reduce(combine, src, dst),
        }
        Ok(())
    }

    /// The words that hold a span, and where in them it begins.
    #[inline]
    fn words(&self, span: Span) -> (&[AtomicU64], usize) {
        let offset = span.offset as usize;
        match span.place {
            Place::Private(buffer) => (&self.buffers[of(buffer)], offset),
            Place::Shared(line) => {
                let end = offset + span.bytes as usize;
                (self.lines.words(line.0 as usize, end.div_ceil(WORD)), offset)
            }
        }
    }

    #[inline]
    fn copy(&mut self, src: Span, dst: Span) {
        let ((from, at), (to, into)) = (self.words(src), self.words(dst));
        let bytes = src.bytes as usize;
        if at % WORD + into % WORD + bytes % WORD == 0 {
            let from = &from[at / WORD..][..bytes / WORD];
            for (to, from) in to[into / WORD..][..bytes / WORD].iter().zip(from) {
                to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            return;
        }
        let mut moved = std::mem::take(&mut self.scratch[0]);
        moved.resize(bytes, 0);
        let (from, at) = self.words(src);
        load(from, at, &mut moved);
        let (to, into) = self.words(dst);
        store(to, into, &moved);
        self.scratch[0] = moved;
    }

    fn reduce(&mut self, combine: Combine, src: Span, dst: Span) {
        let [mut left, mut right] = std::mem::take(self.scratch);
        for (operand, span) in [(&mut left, dst), (&mut right, src)] {
            operand.resize(span.bytes as usize, 0);
            let (words, at) = self.words(span);
            load(words, at, operand);
        }
        combine.combine(&mut left, &right);
        let (words, at) = self.words(dst);
        store(words, at, &left);
        *self.scratch = [left, right];
    }
}

impl Lines {
    /// The first `count` words from a line on; several lines lie together where a program needs them so.
    #[inline]
    fn words(&self, line: usize, count: usize) -> &[AtomicU64] {
        let last = line + count.div_ceil(LINE_WORDS).max(1);
        assert!(last <= self.count, "line {} of {}", last - 1, self.count);
        assert!(count <= LINE_WORDS || self.stride == Line::BYTES as usize, "lines lie apart");
        let first = self.first.as_ptr().wrapping_add(line * self.stride).cast::<AtomicU64>();
        // SAFETY: the area has `count` lines at this stride from `first` on (it was made for them), which are
        // zeroed by the kernel and aligned to 64 bytes; these words lie within them, as was just checked. The area
        // lives as long as the player's team, and its lines are accessed by atomics of eight bytes alone.
        unsafe { std::slice::from_raw_parts(first, count) }
    }

    /// The word of a line.
    #[inline]
    fn word(&self, line: Line) -> &Word {
        let first = (&raw const self.words(line.0 as usize, 1)[0]).cast::<Word>();
        // SAFETY: a `Word` is an atomic of eight bytes, and this is one that lives as long as the area.
        unsafe { first.as_ref_unchecked() }
    }
}

const fn of(buffer: Buffer) -> usize {
    match buffer {
        Buffer::Send => 0,
        Buffer::Receive => 1,
    }
}

/// Reads bytes out of words, from byte `at` on.
fn load(words: &[AtomicU64], at: usize, bytes: &mut [u8]) {
    let mut done = 0;
    while done < bytes.len() {
        let (word, within) = ((at + done) / WORD, (at + done) % WORD);
        let count = (WORD - within).min(bytes.len() - done);
        let value = words[word].load(Ordering::Relaxed).to_ne_bytes();
        bytes[done..done + count].copy_from_slice(&value[within..within + count]);
        done += count;
    }
}

/// Writes bytes into words, from byte `at` on. What lies beside them in a word stays as it is.
fn store(words: &[AtomicU64], at: usize, bytes: &[u8]) {
    let mut done = 0;
    while done < bytes.len() {
        let (word, within) = ((at + done) / WORD, (at + done) % WORD);
        let count = (WORD - within).min(bytes.len() - done);
        let piece = &bytes[done..done + count];
        let changed = |value: u64| {
            let mut value = value.to_ne_bytes();
            value[within..within + count].copy_from_slice(piece);
            u64::from_ne_bytes(value)
        };
        if count == WORD {
            words[word].store(changed(0), Ordering::Relaxed);
        } else {
            let change = |value| Some(changed(value));
            // It never refuses.
            let _before = words[word].fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
        }
        done += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_go_into_words_and_beside_them_nothing_changes() {
        for at in 0..17 {
            for count in 0..24 {
                let words: Vec<AtomicU64> = (0..6).map(|_| AtomicU64::new(u64::MAX)).collect();
                let bytes: Vec<u8> = (1..=count).collect();
                store(&words, at, &bytes);
                let mut all = vec![0; 48];
                load(&words, 0, &mut all);
                let mut wanted = vec![u8::MAX; 48];
                wanted[at..at + bytes.len()].copy_from_slice(&bytes);
                assert_eq!(all, wanted);
                let mut back = vec![0; bytes.len()];
                load(&words, at, &mut back);
                assert_eq!(back, bytes);
            }
        }
    }
}
