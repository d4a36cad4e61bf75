//! The report as the process writes it: one word for each count, in memory that may be a shared
//! mapping. Many threads add to it, with relaxed atomics and only now and then.

use crate::report::{
    CLASSES, LIVE_CORES, Lines, MAGIC, REPORT_BYTES, Reason, Report, SIZES, Sampled, Tally, WORDS,
    Word, distance_words,
};
use core::sync::atomic::{AtomicU64, Ordering};
use isochrone_alloc::{DistanceSum, Mode, Survey};
use isochrone_units::{CoreId, Level};

/// The record as the process writes it.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Counters {
    words: [AtomicU64; WORDS],
}

const _: () = assert!(size_of::<Counters>() == REPORT_BYTES);
const _: () =
    assert!(Word::Delegated as usize + 2 * Reason::ALL.len() <= Word::InheritedBytes as usize);
const _: () = assert!(Word::Live as usize + 4 * LIVE_CORES <= Word::Watched as usize);
const _: () = assert!(Sampled::LAST.word() < WORDS);
const _: () = assert!(Word::Placed as usize + 2 * CLASSES <= Word::Delegated as usize);
const _: () = assert!(Word::Distances as usize + 2 * 2 * 2 <= Word::Placed as usize);

impl Counters {
    /// All zero.
    pub(crate) const fn new() -> Self {
        Self { words: [const { AtomicU64::new(0) }; WORDS] }
    }

    pub(crate) fn set(&self, word: Word, value: u64) {
        self.at(word as usize, |place| place.store(value, Ordering::Relaxed));
    }

    pub(crate) fn add(&self, word: Word, value: u64) {
        if value != 0 {
            self.at(word as usize, |place| {
                place.fetch_add(value, Ordering::Relaxed);
            });
        }
    }

    pub(crate) fn raise(&self, word: Word, value: u64) {
        self.at(word as usize, |place| {
            if place.load(Ordering::Relaxed) < value {
                place.fetch_max(value, Ordering::Relaxed);
            }
        });
    }

    pub(crate) fn get(&self, word: Word) -> u64 {
        self.words[word as usize].load(Ordering::Relaxed)
    }

    /// Bytes placed so far.
    pub(crate) fn placed_bytes(&self) -> u64 {
        let words = self.words[Word::Placed as usize..].iter().skip(1).step_by(2);
        words.take(CLASSES).map(|word| word.load(Ordering::Relaxed)).sum()
    }

    pub(crate) fn placed(&self, class: usize, tally: Tally) {
        self.tally(Word::Placed as usize + 2 * class.min(CLASSES - 1), tally);
    }

    pub(crate) fn delegated(&self, reason: Reason, tally: Tally) {
        self.tally(Word::Delegated as usize + 2 * reason as usize, tally);
    }

    /// Counts for a process that is watched.
    pub(crate) fn watched(&self, of: Sampled, value: u64) {
        self.at(of.word(), |place| {
            place.fetch_add(value, Ordering::Relaxed);
        });
    }

    /// Objects that were looked at in a process that is watched.
    pub(crate) fn looked_at(&self) -> u64 {
        let words =
            (0..=SIZES.len()).filter_map(|class| self.words.get(Sampled::Objects(class).word()));
        words.map(|word| word.load(Ordering::Relaxed)).sum()
    }

    /// Adds what a sum of distances has gained since it was as `before`.
    pub(crate) fn distances(
        &self,
        of: Lines,
        level: Level,
        now: &DistanceSum,
        before: &DistanceSum,
    ) {
        let total = |sum: &DistanceSum| sum.mean(level).unwrap_or(0.0) * sum.weight(level);
        let at = distance_words(of, level);
        let gained = [
            rounded(now.weight(level)) - rounded(before.weight(level)),
            rounded(total(now) * 1000.0) - rounded(total(before) * 1000.0),
        ];
        for (at, gained) in (at..).zip(gained).filter(|&(_, gained)| gained > 0) {
            self.at(at, |place| {
                place.fetch_add(gained.cast_unsigned(), Ordering::Relaxed);
            });
        }
    }

    /// Says what is live for a core, in one of [`LIVE_CORES`] places.
    pub(crate) fn live(&self, place: usize, core: CoreId, survey: &Survey) {
        let mean = |level| survey.taken.mean(level).map_or(0, |c| rounded(c * 1000.0) + 1);
        let words = [
            u64::from(core.0) + 1,
            survey.taken_bytes,
            mean(Level::Llc).cast_unsigned(),
            mean(Level::Dram).cast_unsigned(),
        ];
        if place < LIVE_CORES {
            for (at, word) in (Word::Live as usize + 4 * place..).zip(words) {
                self.at(at, |place| place.store(word, Ordering::Relaxed));
            }
        }
    }

    fn tally(&self, at: usize, tally: Tally) {
        if tally.objects != 0 {
            self.at(at, |place| {
                place.fetch_add(tally.objects, Ordering::Relaxed);
            });
            self.at(at + 1, |place| {
                place.fetch_add(tally.bytes, Ordering::Relaxed);
            });
        }
    }

    fn at(&self, at: usize, change: impl FnOnce(&AtomicU64)) {
        if let Some(place) = self.words.get(at) {
            change(place);
        }
    }

    /// Makes it a record of this process that has counted nothing yet.
    pub(crate) fn begin(&self, process: u32, mode: Mode, clock_hz: u64) {
        self.set(Word::Process, u64::from(process));
        self.set(Word::Mode, u64::from(crate::config::mode_tag(mode)));
        self.set(Word::ClockHz, clock_hz);
        self.set(Word::Magic, MAGIC);
    }

    /// Sets everything to zero, as in a child of `fork`.
    pub(crate) fn clear(&self) {
        self.words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }

    /// Adds what another record has counted: a process that gets a file late keeps its past.
    pub(crate) fn absorb(&self, other: &Self) {
        let (first, last) = (Word::Threads as usize, WORDS);
        for (mine, other) in self.words[first..last].iter().zip(&other.words[first..last]) {
            mine.fetch_add(other.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// What was counted so far.
    pub(crate) fn snapshot(&self) -> Report {
        Report { words: core::array::from_fn(|at| self.words[at].load(Ordering::Relaxed)) }
    }
}

/// Sums are far below 2^63.
#[allow(clippy::cast_possible_truncation, reason = "casts of floats saturate")]
fn rounded(sum: f64) -> i64 {
    (sum + 0.5) as i64
}
