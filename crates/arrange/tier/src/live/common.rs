//! What all processes of a team share beside the area: the pager's words, counters, wishes, mailboxes, and
//! lights that tell who lives.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use isochrone_os::OsError;
use isochrone_os::area::Words;
use isochrone_os::mapping::Mapping;
use isochrone_os::process::Lights;

use super::heap::Heap;
use crate::names::Actor;
use crate::pager::Shape;
use crate::pages::Event;

/// What is timed, in cycles of the time-stamp counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timed {
    /// A worker's handler, all of it.
    Fault,
    /// Frozen: unmapped, or write permission taken away.
    Protect,
    /// Copied to the far tier.
    CopyOut,
    /// Taken out of tables and memory.
    Punch,
    /// Read from the far tier, where that is a step of its own.
    Read,
    /// Put into memory and a table.
    Fill,
    /// Put into one more table: the page was in memory.
    Map,
    /// Slept or spun for somebody else.
    Wait,
}

impl Timed {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Fault,
        Self::Protect,
        Self::CopyOut,
        Self::Punch,
        Self::Read,
        Self::Fill,
        Self::Map,
        Self::Wait,
    ];
}

/// Words of counters of an actor: events, then a count and cycles for each timed thing.
const COUNTER_WORDS: usize = 64;
const TIMED_FROM: usize = Event::ALL.len();

/// What was counted of one actor, or of several together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters([u64; COUNTER_WORDS]);

impl Counters {
    /// Nothing counted.
    #[must_use]
    pub const fn none() -> Self {
        Self([0; COUNTER_WORDS])
    }

    /// So often, each.
    #[cfg(test)]
    pub(super) fn with(events: &[(Event, u64)]) -> Self {
        let mut counters = Self::none();
        events.iter().for_each(|(event, times)| counters.0[event.index()] = *times);
        counters
    }

    /// How often.
    #[must_use]
    pub const fn events(&self, event: Event) -> u64 {
        self.0[event.index()]
    }

    /// How often something timed was done.
    #[must_use]
    pub const fn times(&self, timed: Timed) -> u64 {
        self.0[TIMED_FROM + 2 * timed as usize]
    }

    /// How many cycles it took in all.
    #[must_use]
    pub const fn cycles(&self, timed: Timed) -> u64 {
        self.0[TIMED_FROM + 2 * timed as usize + 1]
    }

    /// What came since an earlier look.
    #[must_use]
    pub fn since(mut self, earlier: &Self) -> Self {
        self.0
            .iter_mut()
            .zip(earlier.0)
            .for_each(|(now, before)| *now = now.saturating_sub(before));
        self
    }

    /// Both together.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine += theirs);
        self
    }
}

/// Words of the head: go, over, doorbells of movers.
const HEAD_WORDS: usize = 16;
const LINE_WORDS: usize = 16;
/// The same in wide words.
const LINE_WIDE: usize = 8;
/// Words of what a worker declares for a phase: a token, then begin and end of each written part.
pub(super) const DECLARATION_WORDS: usize = LINE_WIDE;
/// Numbers that a worker may leave for the report.
pub const NOTES: usize = 32;
/// Words in which a worker says why it failed.
pub(super) const MAIL_BYTES: usize = 512;

/// The shared state.
#[derive(Debug)]
pub(super) struct Common {
    words: Words,
    wide: Mapping,
    pub(super) lights: Lights,
    shape: Shape,
    actors: u16,
    movers: u16,
}

impl Common {
    pub(super) fn new(shape: Shape, movers: u16) -> Result<Self, OsError> {
        let actors = shape.workers + movers;
        let heap = Heap::words(shape.groups);
        let words = Words::new(Self::pager_from(movers) + Self::pager_length(shape) + heap)?;
        let counters = usize::from(actors) * COUNTER_WORDS;
        let mail = usize::from(shape.workers) * (MAIL_BYTES / 8 + 2);
        let wishes = usize::from(movers) * super::wishes::WORDS;
        let reduction = usize::from(shape.workers) * (LINE_WIDE + NOTES);
        let wide = Mapping::shared_memfd((counters + mail + wishes + reduction + 64) * 8)?;
        Ok(Self { words, wide, lights: Lights::new()?, shape, actors, movers })
    }

    fn pager_from(movers: u16) -> usize {
        HEAD_WORDS * 4 + usize::from(movers) * LINE_WORDS
    }

    fn pager_length(shape: Shape) -> usize {
        shape.words().next_multiple_of(LINE_WORDS)
    }

    /// The words that the pager is a view of.
    pub(super) fn pager_words(&self) -> &[AtomicU32] {
        &self.words.as_slice()[Self::pager_from(self.movers)..]
    }

    /// Who has which piece of the area.
    pub(super) fn heap(&self) -> Heap<'_> {
        let from = Self::pager_from(self.movers) + Self::pager_length(self.shape);
        Heap::new(&self.words.as_slice()[from..], self.shape.groups)
    }

    /// Set once all are ready.
    pub(super) fn go(&self) -> &AtomicU32 {
        &self.words.as_slice()[0]
    }

    /// Set once no worker works any more.
    pub(super) fn over(&self) -> &AtomicU32 {
        &self.words.as_slice()[1]
    }

    /// The barrier's count and epoch.
    pub(super) fn barrier(&self) -> [&AtomicU32; 3] {
        let words = self.words.as_slice();
        [&words[HEAD_WORDS], &words[2 * HEAD_WORDS], &words[2 * HEAD_WORDS + 1]]
    }

    /// A mover sleeps on its own.
    pub(super) fn doorbell(&self, mover: u16) -> &AtomicU32 {
        &self.words.as_slice()[4 * HEAD_WORDS + usize::from(mover) * LINE_WORDS]
    }

    fn counters_of(&self, actor: Actor) -> &[AtomicU64] {
        &self.wide.words()[actor.index() * COUNTER_WORDS..][..COUNTER_WORDS]
    }

    pub(super) fn count(&self, actor: Actor, event: Event, times: u32) {
        self.counters_of(actor)[event.index()].fetch_add(u64::from(times), Ordering::Relaxed);
    }

    pub(super) fn time(&self, actor: Actor, timed: Timed, cycles: u64) {
        let at = TIMED_FROM + 2 * timed as usize;
        let counters = self.counters_of(actor);
        counters[at].fetch_add(1, Ordering::Relaxed);
        counters[at + 1].fetch_add(cycles, Ordering::Relaxed);
    }

    pub(super) fn counters(&self, actor: Actor) -> Counters {
        let mut counters = Counters::none();
        for (to, from) in counters.0.iter_mut().zip(self.counters_of(actor)) {
            *to = from.load(Ordering::Relaxed);
        }
        counters
    }

    /// Two words (whether it ended, its value), then what it says about a failure.
    pub(super) fn mail(&self, worker: u16) -> &[AtomicU64] {
        let words = MAIL_BYTES / 8 + 2;
        let from = usize::from(self.actors) * COUNTER_WORDS + usize::from(worker) * words;
        &self.wide.words()[from..][..words]
    }

    pub(super) fn wishes(&self, mover: u16) -> &[AtomicU64] {
        let mail = usize::from(self.shape.workers) * (MAIL_BYTES / 8 + 2);
        let from = usize::from(self.actors) * COUNTER_WORDS + mail;
        &self.wide.words()[from + usize::from(mover) * super::wishes::WORDS..]
            [..super::wishes::WORDS]
    }

    fn slots_from(&self) -> usize {
        usize::from(self.actors) * COUNTER_WORDS
            + usize::from(self.shape.workers) * (MAIL_BYTES / 8 + 2)
            + usize::from(self.movers) * super::wishes::WORDS
    }

    /// A line for each worker, for what it brings when all meet.
    pub(super) fn slot(&self, worker: u16) -> &[AtomicU64] {
        &self.wide.words()[self.slots_from() + usize::from(worker) * LINE_WIDE..][..LINE_WIDE]
    }

    /// What a worker leaves for the report.
    pub(super) fn notes(&self, worker: u16) -> &[AtomicU64] {
        let workers = usize::from(self.shape.workers);
        let from = self.slots_from() + workers * LINE_WIDE + 8 + usize::from(worker) * NOTES;
        &self.wide.words()[from..][..NOTES]
    }

    pub(super) fn noted(&self, worker: u16) -> Vec<u64> {
        self.notes(worker).iter().map(|word| word.load(Ordering::Acquire)).collect()
    }

    /// What the area is used as.
    pub(super) fn kind(&self) -> &AtomicU64 {
        &self.wide.words()[self.slots_from() + usize::from(self.shape.workers) * LINE_WIDE]
    }
}
