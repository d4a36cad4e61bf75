//! What a process of `isochrone run --fast-memory` leaves: words in a file that is mapped from the start, so that also
//! one that is killed has left what it had counted.

use core::sync::atomic::{AtomicU64, Ordering};

/// Words of a record.
pub const WORDS: usize = 32;
/// Bytes of a record.
pub const BYTES: usize = WORDS * 8;
/// The first word: the form of the others.
const FORM: u64 = u64::from_le_bytes(*b"ISO-PGR\x01");

/// What is counted, by its place in the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// [`FORM`].
    Form,
    /// The process.
    Process,
    /// [`State`], as a number.
    State,
    /// The kernel's error number where it is not tiered.
    Errno,
    /// Bytes that may be in fast memory.
    Limit,
    /// Faults that were resolved.
    Faults,
    /// Pages that were fetched from the far tier.
    Fetched,
    /// Pages that were new.
    Zeroed,
    /// Pages that left.
    Evicted,
    /// Most bytes in fast memory.
    Peak,
    /// Most bytes beyond the limit.
    Over,
    /// Forks that were tried with all in memory.
    Forks,
    /// Forks that failed, since not all fitted into memory.
    Refused,
    /// Bytes of the program's mappings now.
    Mapped,
    /// Most bytes of the program's mappings.
    MappedPeak,
    /// Bytes that the far tier takes of its medium, at most.
    Far,
    /// Frames that were lent since nothing could leave.
    Lent,
    /// Large mappings that were left to the kernel, since the window was full.
    Left,
    /// Pages that were to leave and could not, each as often as that was tried.
    Vain,
}

/// How far a process came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It had no large mapping yet.
    Idle,
    /// It is tiered.
    Tiered,
    /// It could not be tiered.
    Untiered,
}

impl State {
    const ALL: [Self; 3] = [Self::Idle, Self::Tiered, Self::Untiered];

    const fn code(self) -> u64 {
        self as u64
    }
}

/// Added to the state's number when the process ends by itself.
const ENDED: u64 = 1 << 8;

/// The words, while they are counted in.
#[derive(Clone, Copy, Debug)]
pub struct Tally(&'static [AtomicU64]);

impl Tally {
    /// Over zeroed words.
    ///
    /// # Panics
    /// If there are fewer than [`WORDS`].
    #[must_use]
    pub fn new(words: &'static [AtomicU64], process: i32) -> Self {
        assert!(words.len() >= WORDS, "a record has {WORDS} words");
        let tally = Self(words);
        tally.set(Word::Form, FORM);
        tally.set(Word::Process, u64::try_from(process).unwrap_or(0));
        tally
    }

    pub(super) fn add(self, word: Word, more: u64) {
        self.0[word as usize].fetch_add(more, Ordering::Relaxed);
    }

    pub(super) fn less(self, word: Word, less: u64) {
        self.0[word as usize].fetch_sub(less, Ordering::Relaxed);
    }

    pub(super) fn raise(self, word: Word, least: u64) {
        self.0[word as usize].fetch_max(least, Ordering::Relaxed);
    }

    /// Sets a word.
    pub fn set(self, word: Word, value: u64) {
        self.0[word as usize].store(value, Ordering::Relaxed);
    }

    /// The word now.
    #[must_use]
    pub fn get(self, word: Word) -> u64 {
        self.0[word as usize].load(Ordering::Relaxed)
    }

    /// Says how far the process came.
    pub fn come(self, state: State) {
        self.set(Word::State, state.code());
    }

    /// Says that it ends by itself.
    pub fn end(self) {
        self.0[Word::State as usize].fetch_or(ENDED, Ordering::Relaxed);
    }
}

/// A record that was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record([u64; WORDS]);

impl Record {
    /// Reads one; `None` for bytes of another form, or too few.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut words = [0; WORDS];
        for (word, bytes) in words.iter_mut().zip(bytes.get(..BYTES)?.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().ok()?);
        }
        let known =
            State::ALL.iter().any(|state| state.code() == words[Word::State as usize] & !ENDED);
        (words[0] == FORM && known).then_some(Self(words))
    }

    /// A word.
    #[must_use]
    pub const fn get(&self, word: Word) -> u64 {
        self.0[word as usize]
    }

    /// How far it came.
    #[must_use]
    pub fn state(&self) -> State {
        let code = self.get(Word::State) & !ENDED;
        State::ALL.into_iter().find(|state| state.code() == code).unwrap_or(State::Idle)
    }

    /// It ended by itself; else it was killed, or became another program.
    #[must_use]
    pub const fn ended(&self) -> bool {
        self.get(Word::State) & ENDED != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_is_read_and_what_is_not_a_record_is_not() {
        let words: Vec<AtomicU64> = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
        let tally = Tally::new(words.leak(), 77);
        tally.come(State::Tiered);
        tally.add(Word::Faults, 5);
        tally.raise(Word::Peak, 9);
        tally.raise(Word::Peak, 3);
        let bytes = || tally.0.iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes());
        let record = Record::from_bytes(&bytes().collect::<Vec<_>>()).unwrap();
        assert_eq!((record.state(), record.ended()), (State::Tiered, false));
        let read = [Word::Process, Word::Faults, Word::Peak].map(|word| record.get(word));
        assert_eq!(read, [77, 5, 9]);
        tally.end();
        let record = Record::from_bytes(&bytes().collect::<Vec<_>>()).unwrap();
        assert_eq!((record.state(), record.ended()), (State::Tiered, true));
        assert_eq!(Record::from_bytes(&[0; BYTES]), None);
        assert_eq!(Record::from_bytes(&bytes().take(BYTES - 1).collect::<Vec<_>>()), None);
        tally.set(Word::State, 9);
        assert_eq!(Record::from_bytes(&bytes().collect::<Vec<_>>()), None);
    }
}
