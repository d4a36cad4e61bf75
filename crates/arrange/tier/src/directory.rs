//! Who has which group of pages, and what is being done to it. All workers and movers share one
//! directory; it is nothing but words of memory, so they may be threads or processes.
//!
//! A group has one entry on cache lines of its own: a state word, which is a futex too, a count of pins,
//! the list that it stands on, and the sharers: a bit for every set of page tables that maps it. The bits
//! are what the paper calls the address-range CPU mask. They are a superset of the truth: a table may have
//! lost its mapping, but none that has one is missing.
//!
//! ```text
//!    claim (a mover, which has a frame)
//!     +------------------+
//!     |  claim   advance v   release                  claim
//!  ABSENT --> SEEKING --> FILLING --> RESIDENT -------------------> MAPPING -> RESIDENT
//!     ^        (no frame yet)            |  claim                    (one more table)
//!     |                                  +--------> WRITING -> RESIDENT, clean
//!     |            release               |  claim    (an early write-back)
//!     +------- PUNCHING <---- EVICTING <-+
//!                   advance
//! ```
//!
//! Every state in capitals with an arrow out of it that says "release" or "advance" has one *owner*, and
//! only the owner leaves it; all others wait for the word to change. So nobody maps a page while its owner
//! takes it away:
//!
//! ```text
//!  evictor   claim, read sharers {A}   protect A        copy out    punch        release ABSENT
//!  worker A        reads, writes       writes no more, reads the old value       faults: missing
//!  worker B                             faults: EVICTING, waits ................ wakes: fills
//! ```
//!
//! The hard case is B one step earlier: it found RESIDENT and is about to map. Then it has claimed MAPPING
//! first, so the evictor's claim fails; or the evictor was first, and B's claim fails. A worker's bit is
//! set while it owns the entry and before it maps, so an evictor's snapshot, taken after its own claim,
//! has it.
//!
//! An owner may be killed. EVICTING and PUNCHING are apart for that: in EVICTING the page is still there
//! and the far copy may be torn, so whoever takes over writes it again; in PUNCHING the far copy is whole
//! and the page may be gone, so it must not be written again: it would be zeros. SEEKING and FILLING are
//! apart because FILLING has a frame: who takes it over has that frame too.
//!
//! The directory never waits, never calls the kernel and knows no policy.

use crate::names::{Actor, Group, Space};
use crate::sync::{AtomicU32, Ordering};

mod word;

pub use word::{Flags, State, Word};

/// Words of an entry before its sharers: state, pins, home, and the era of its pins.
const HEAD_WORDS: usize = 4;
/// Words of a cache line; entries are whole lines, so that no two of them share one.
const LINE_WORDS: usize = 16;
/// Tables that one word of sharers tells apart.
const SHARERS_PER_WORD: usize = 32;

/// From one end of all pins of a group to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Era(u32);

/// The home of a group that was never filled.
pub const NO_HOME: u32 = u32::MAX;

/// The entries of all groups.
#[derive(Clone, Copy, Debug)]
pub struct Directory<'a> {
    words: &'a [AtomicU32],
    stride: usize,
    groups: u32,
    spaces: u16,
}

impl<'a> Directory<'a> {
    /// Words that a directory needs.
    #[must_use]
    pub const fn words(groups: u32, spaces: u16) -> usize {
        Self::stride(spaces) * groups as usize
    }

    const fn stride(spaces: u16) -> usize {
        (HEAD_WORDS + (spaces as usize).div_ceil(SHARERS_PER_WORD)).next_multiple_of(LINE_WORDS)
    }

    /// A directory over zeroed words, in which every group is absent and nothing is stored.
    ///
    /// # Panics
    /// If there are fewer words than [`Self::words`] says.
    #[must_use]
    pub fn new(words: &'a [AtomicU32], groups: u32, spaces: u16) -> Self {
        assert!(
            words.len() >= Self::words(groups, spaces),
            "a directory of {groups} groups needs more words"
        );
        Self { words, stride: Self::stride(spaces), groups, spaces }
    }

    /// How many groups there are.
    #[must_use]
    pub const fn groups(&self) -> u32 {
        self.groups
    }

    /// How many tables there are.
    #[must_use]
    pub const fn spaces(&self) -> u16 {
        self.spaces
    }

    fn at(&self, group: Group, word: usize) -> &'a AtomicU32 {
        &self.words[group.index() * self.stride + word]
    }

    /// The state word itself, to sleep on.
    #[must_use]
    pub fn word(&self, group: Group) -> &'a AtomicU32 {
        self.at(group, 0)
    }

    /// What the entry says now.
    #[must_use]
    pub fn look(&self, group: Group) -> Word {
        // SeqCst, not Acquire: who has pinned the group looks whether somebody has claimed it, and
        // who has claimed it asks whether it is pinned; who announced that it waits for a victim
        // looks for one. On x86-64 both are plain loads, and the locked operation before each keeps
        // them in order. On AArch64 an Acquire load may be an `ldapr`, which may be done before an
        // earlier `stlr` or `swpal` of another word is seen; a SeqCst one (`ldar`) may not.
        Word(self.word(group).load(Ordering::SeqCst))
    }

    /// Becomes the owner of an entry that was seen at rest, and puts it into `state`; flags stay.
    ///
    /// # Errors
    /// What the entry says instead, if it changed since it was seen.
    pub fn claim(&self, group: Group, seen: Word, state: State, me: Actor) -> Result<Word, Word> {
        debug_assert!(!seen.state().is_owned(), "only an entry at rest is claimed");
        let next = seen.with_state(state).with_owner(me);
        self.swap(group, seen, next)
    }

    /// Goes to another owned state, with the flags that hold from now on. Only for the owner.
    pub fn advance(&self, group: Group, state: State, flags: Flags, me: Actor) {
        let word = self.word(group);
        let mut seen = Word(word.load(Ordering::Relaxed));
        loop {
            debug_assert!(seen.state().is_owned() && seen.owner() == me, "only the owner moves on");
            // A waiter may announce itself meanwhile; nothing else changes an owned entry.
            match self.swap(group, seen, seen.with_state(state).with_flags(flags)) {
                Ok(_) => return,
                Err(other) => seen = other,
            }
        }
    }

    /// Puts an owned entry to rest, with the flags that hold from now on; true if somebody waits and has
    /// to be woken. Only for the owner.
    #[must_use = "who waits must be woken"]
    pub fn release(&self, group: Group, state: State, flags: Flags) -> bool {
        debug_assert!(!state.is_owned(), "a released entry is at rest");
        let next = Word::at_rest(state, flags);
        // SeqCst: partner of `Frames::announce`, see `Frames::nudge`.
        Word(self.word(group).swap(next.0, Ordering::SeqCst)).has_waiters()
    }

    /// Says that somebody is about to sleep on an owned entry.
    ///
    /// # Errors
    /// What the entry says instead, if it changed since it was seen; then there is nothing to wait for.
    pub fn announce(&self, group: Group, seen: Word) -> Result<Word, Word> {
        if seen.has_waiters() { Ok(seen) } else { self.swap(group, seen, seen.with_waiters()) }
    }

    /// Takes an owned entry over from an owner that is dead; its state stays.
    ///
    /// # Errors
    /// What the entry says instead, if it changed since it was seen.
    pub fn take_over(&self, group: Group, seen: Word, me: Actor) -> Result<Word, Word> {
        debug_assert!(seen.state().is_owned(), "only an owned entry is taken over");
        self.swap(group, seen, seen.with_owner(me))
    }

    fn swap(&self, group: Group, seen: Word, next: Word) -> Result<Word, Word> {
        let swapped =
            // SeqCst: a claim comes before its `is_pinned` for whoever pins, as a pin before its `look`.
            self.word(group).compare_exchange(seen.0, next.0, Ordering::SeqCst, Ordering::Acquire);
        swapped.map(|_| next).map_err(Word)
    }

    /// Notes that a table is about to map the group. Only for the owner, before the mapping is made.
    pub fn join(&self, group: Group, space: Space) {
        let (word, bit) = Self::bit(space);
        self.at(group, word).fetch_or(bit, Ordering::AcqRel);
    }

    /// Notes that no table maps the group any more. Only for the owner, after the last was taken away.
    pub fn part(&self, group: Group) {
        for word in self.sharer_words() {
            self.at(group, word).store(0, Ordering::Release);
        }
    }

    /// Whether a table may map the group.
    #[must_use]
    pub fn shares(&self, group: Group, space: Space) -> bool {
        let (word, bit) = Self::bit(space);
        self.at(group, word).load(Ordering::Acquire) & bit != 0
    }

    /// How many tables may map the group.
    #[must_use]
    pub fn count(&self, group: Group) -> u32 {
        self.sharer_words()
            .map(|word| self.at(group, word).load(Ordering::Acquire).count_ones())
            .sum()
    }

    /// The tables that may map the group, in ascending order.
    pub fn sharers(&self, group: Group) -> impl Iterator<Item = Space> + 'a {
        let this = *self;
        (0..self.spaces).map(Space).filter(move |space| this.shares(group, *space))
    }

    /// Whether two groups are mapped by the same tables.
    #[must_use]
    pub fn alike(&self, a: Group, b: Group) -> bool {
        let word = |group, word| self.at(group, word).load(Ordering::Acquire);
        self.sharer_words().all(|w| word(a, w) == word(b, w))
    }

    fn sharer_words(&self) -> std::ops::Range<usize> {
        HEAD_WORDS..HEAD_WORDS + usize::from(self.spaces).div_ceil(SHARERS_PER_WORD)
    }

    fn bit(space: Space) -> (usize, u32) {
        (HEAD_WORDS + space.index() / SHARERS_PER_WORD, 1 << (space.index() % SHARERS_PER_WORD))
    }

    /// Keeps the group from being evicted until as many [`Self::unpin`] as pins came, or all ended. It does not
    /// fetch it, and an eviction that is under way goes on: the caller fetches the group afterwards.
    pub fn pin(&self, group: Group) -> Era {
        let era = self.era(group);
        // SeqCst: partner of `claim` and `is_pinned`; one of the two sees the other.
        self.at(group, 1).fetch_add(1, Ordering::SeqCst);
        era
    }

    /// Takes one pin of an era back; false where all of it have ended. Only for who has one.
    #[must_use = "a pin that has ended is nobody's to take back"]
    pub fn unpin(&self, group: Group, era: Era) -> bool {
        let less = |pins: u32| pins.checked_sub(1);
        let pins = self.at(group, 1);
        era == self.era(group)
            && pins.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok()
    }

    /// Ends all pins, whoever has them: what the group holds is given back.
    pub fn end_pins(&self, group: Group) {
        self.at(group, 3).fetch_add(1, Ordering::SeqCst);
        self.at(group, 1).store(0, Ordering::SeqCst);
    }

    /// The era of pins that are made now.
    #[must_use]
    pub fn era(&self, group: Group) -> Era {
        Era(self.at(group, 3).load(Ordering::SeqCst))
    }

    /// Whether somebody needs the group to stay. An evictor asks after its claim: who pinned before it is
    /// seen, who pins after it sees the claim and waits.
    #[must_use]
    pub fn is_pinned(&self, group: Group) -> bool {
        self.at(group, 1).load(Ordering::SeqCst) > 0
    }

    /// The list that the group stands on, [`NO_HOME`] if it was never filled.
    #[must_use]
    pub fn home(&self, group: Group) -> u32 {
        // Zeroed words say that there is none.
        self.at(group, 2).load(Ordering::Relaxed).wrapping_sub(1)
    }

    /// Notes the list that the group stands on.
    pub fn set_home(&self, group: Group, home: u32) {
        self.at(group, 2).store(home.wrapping_add(1), Ordering::Relaxed);
    }
}

#[cfg(all(loom, test))]
mod loom_tests;
#[cfg(test)]
#[cfg(not(loom))]
mod tests;
