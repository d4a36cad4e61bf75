//! The classifier: the current base of each core, and the codes of the arena's pages.
//!
//! It joins the parts. A page is decoded in the base that its decoding core was last found to have, and
//! yielded only after a look at known pages has confirmed that base: what was decoded across a
//! move is decoded again. It never hands out memory and never starts a thread.

use super::answers::{Event, Identity, Plan, Slice, Stats};
use super::confirm::Confirmation;
use super::epoch::{Epoch, Round, Visit};
use super::eyes::{Eyes, Outcome};
use super::identify::Inquiry;
use super::known::{Known, Seat};
use super::level::patterned;
use super::notes::side;
use super::stream::{DecodingCore, Step};
use super::timing::Timing;
use crate::CurrentBases;
use isochrone_atlas::Atlas;
use isochrone_os::OsError;
use isochrone_units::{CoreId, Level, PageAddr};

/// Pages decoded at a level before their base is confirmed.
const CONFIRM_PAGES: usize = 512;
/// How long another core waits for one that looks at pages.
const PATIENCE_NS: u64 = 10_000_000;

/// What is under way besides decoding: all of it looks at pages, through one pair of eyes.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "nothing below malloc allocates, so no box")]
enum Doing {
    Nothing,
    /// Whether what was decoded at a level was decoded in the current base.
    Confirming(Confirmation),
    /// The current base of a core.
    Inquiring(Inquiry),
    /// Whether a core still has its base, and pages have their frames.
    Visiting(Visit),
}

/// Learns codes and bases.
#[derive(Debug)]
pub struct Classifier<'a> {
    known: Known<'a>,
    eyes: Eyes,
    doing: Doing,
    /// When that was gone on with last.
    did_at_ns: u64,
    /// A core that is to be visited.
    due: Option<CoreId>,
    /// The page from which on all that are known are still to be doubted.
    doubts: Option<u32>,
    round: Round,
}

impl<'a> Classifier<'a> {
    /// Makes the tables. Most of their memory is taken as pages come.
    ///
    /// # Errors
    /// [`OsError`] where there is no address space, or for an atlas that cannot be decoded with.
    pub fn new(atlas: Atlas<'a>, plan: Plan) -> Result<Self, OsError> {
        Ok(Self {
            known: Known::new(atlas, plan)?,
            eyes: Eyes::new(plan.seed)?,
            doing: Doing::Nothing,
            did_at_ns: 0,
            due: None,
            doubts: None,
            round: Round::default(),
        })
    }

    /// Whether lines differ by any level of an atlas: where they do not there is nothing to learn.
    #[must_use]
    pub fn learns(atlas: &Atlas<'_>) -> bool {
        Level::ALL.into_iter().any(|level| patterned(atlas, level).is_some())
    }

    /// Names the cores that will decode in turns (four at most). Classes of pages that none of
    /// them tells apart are one class. Without this it is the first core that decodes.
    pub fn set_decoding_cores(&mut self, cores: &[CoreId]) {
        self.known.set_decoding_cores(cores);
    }

    /// Says whether distances in memory matter: they do where what is live misses the last-level
    /// cache. A level that does not matter is left alone, unless there is no other.
    pub fn want_memory(&mut self, wanted: bool) {
        self.known.want_memory(wanted);
    }

    /// Takes note of all pages of the arena below `end`. Those whose frames the atlas knows have
    /// their codes from it.
    pub fn add(&mut self, timing: &impl Timing, end: usize) {
        self.known.add(timing, end);
    }

    /// Whether there is an event to be taken.
    #[must_use]
    pub const fn has_events(&self) -> bool {
        self.known.ledger.has_events()
    }

    /// The next page that is ready, or was given another frame.
    pub fn next_event(&mut self) -> Option<Event> {
        self.known.ledger.next_event()
    }

    /// Raised whenever a current base may have changed: see [`Self::current_bases`].
    #[must_use]
    pub const fn changes(&self) -> u32 {
        self.known.changes
    }

    /// The current bases of a core, for [`crate::Heap::set_bases`]; `None` of a level that does not follow the
    /// pattern, or of which it is not known.
    #[must_use]
    pub fn current_bases(&self, core: CoreId) -> CurrentBases {
        self.known.current_bases(core)
    }

    /// Whether a base of this core is known, of any level.
    #[must_use]
    pub fn has_base(&self, core: CoreId) -> bool {
        Level::ALL.into_iter().any(|level| self.known.base_of(core, level).is_some())
    }

    /// What classifying cost so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.known.stats()
    }

    /// Does what is due for at most `budget_ns` (and the tens of microseconds of its last step):
    /// finds out the current base of this core, decodes pages, confirms what was decoded, and visits
    /// the core where [`Self::ask_check`] asked for it.
    ///
    /// # Errors
    /// [`OsError`] where loads cannot be timed here.
    pub fn slice(&mut self, timing: &mut impl Timing, budget_ns: u64) -> Result<Slice, OsError> {
        let begin = timing.now_ns();
        let until = begin.saturating_add(budget_ns);
        let core = timing.core();
        let result = loop {
            let result = self.step(timing, core, until)?;
            if let Some(result) = result {
                break result;
            }
            if timing.now_ns() >= until {
                break Slice::Paused;
            }
        };
        self.known.ledger.stats.busy_ns += timing.now_ns() - begin;
        Ok(result)
    }

    /// Finds the current base of the core which runs this at each level that counts, at once, in a
    /// millisecond or so each. `None` of a level where no base fits, or that does not follow the
    /// pattern. [`Self::slice`] does the same by and by.
    ///
    /// # Errors
    /// [`OsError`] where loads cannot be timed here.
    pub fn identify(&mut self, timing: &mut impl Timing) -> Result<[Option<Identity>; 2], OsError> {
        let begin = timing.now_ns();
        let core = timing.core();
        for level in Level::ALL {
            if self.known.counts(level) {
                self.begin_inquiry(core, level, None);
                self.finish(timing)?;
            }
        }
        self.known.ledger.stats.busy_ns += timing.now_ns() - begin;
        let seat = self.known.seat(core).and_then(|seat| self.known.seats.get(seat));
        Ok(seat.map_or([None; 2], |seat| seat.found))
    }

    /// Has the core that runs this visited at the next slices: whether it still has its base,
    /// and whether pages still have their frames. Half a millisecond of work; where the base
    /// changed, that of [`Self::identify`] on top.
    pub const fn ask_check(&mut self, core: CoreId) {
        self.due = Some(core);
    }

    /// Has every page of which a code is known decoded once more, in the next slices: their frames may be others. What
    /// was known is believed until another code is found, which comes as [`Event::Replaced`].
    pub const fn recheck(&mut self) {
        self.doubts = Some(0);
    }

    /// Pages that are decoded together, at most: these leave and come together.
    #[must_use]
    pub fn block_pages(&self) -> usize {
        self.known.sides.iter().flatten().map(|own| own.model.block_pages()).max().unwrap_or(1)
    }

    /// The memory of a page went back to the system: nothing of it is known, and it is left alone.
    pub fn send_away(&mut self, page: PageAddr) {
        if let Some(of) = self.noted(page) {
            self.known.send_away(of);
        }
    }

    /// A page that was sent away has memory again: it is decoded once more.
    pub fn take_back(&mut self, page: PageAddr) {
        if let Some(of) = self.noted(page) {
            self.known.take_back(of);
        }
    }

    /// Whether a page was sent away and not taken back.
    #[must_use]
    pub fn is_away(&self, page: PageAddr) -> bool {
        self.noted(page).is_some_and(|of| self.known.ledger.notes.is_away(of))
    }

    fn noted(&self, page: PageAddr) -> Option<u32> {
        u32::try_from(page.0).ok().filter(|of| self.known.ledger.holds(*of))
    }

    /// Visits the core that runs this at once; see [`Self::ask_check`].
    ///
    /// # Errors
    /// [`OsError`] where loads cannot be timed here.
    pub fn check(&mut self, timing: &mut impl Timing) -> Result<Epoch, OsError> {
        let begin = timing.now_ns();
        let core = timing.core();
        let current = |known: &Known<'_>| Level::ALL.map(|level| known.base_of(core, level));
        let before = current(&self.known);
        self.begin_visit(core);
        self.finish(timing)?;
        self.known.ledger.stats.busy_ns += timing.now_ns() - begin;
        if self.round.epoch.moved {
            self.identify(timing)?;
        }
        let known = &self.known;
        let unknown = |level: &Level| known.counts(*level) && known.base_of(core, *level).is_none();
        self.round.epoch.lost = Level::ALL.iter().any(unknown);
        self.round.epoch.moved = current(known) != before;
        Ok(self.round.epoch)
    }

    fn begin_inquiry(&mut self, core: CoreId, level: Level, verifies: Option<u16>) {
        self.eyes.turn_to(core);
        self.doing = Doing::Inquiring(Inquiry::new(core, level, verifies));
    }

    fn begin_visit(&mut self, core: CoreId) {
        self.round.epoch = Epoch::default();
        let Some(visit) = Visit::new(core, &self.known) else { return };
        self.eyes.look.turn_to(core);
        self.doing = Doing::Visiting(visit);
    }

    /// One step; `None` if there may be another.
    fn step(
        &mut self,
        timing: &mut impl Timing,
        core: CoreId,
        until: u64,
    ) -> Result<Option<Slice>, OsError> {
        let now = timing.now_ns();
        self.known.reopen(now);
        // A machine whose lines are all alike has no side at all, and nothing is unknown there.
        if self.known.sides.iter().all(Option::is_none) {
            return Ok(Some(Slice::Idle));
        }
        let Some(seat) = self.known.seat(core) else { return Ok(Some(Slice::Unknown)) };
        if !Level::ALL.into_iter().any(|level| self.known.counts(level)) {
            return Ok(Some(Slice::Unknown));
        }
        if self.is_free(core, now) {
            self.begin_next(core, seat, now);
        }
        if !matches!(self.doing, Doing::Nothing) && self.eyes.look.core() == core {
            self.did_at_ns = now;
            let paused =
                matches!(self.go_on(timing, core, until)?, Outcome::Paused | Outcome::Elsewhere);
            return Ok(paused.then_some(Slice::Paused));
        }
        if let Some(first) = self.doubts {
            self.doubts = self.known.doubt_some(first);
            return Ok(None);
        }
        for level in Level::ALL {
            match self.decode(timing, seat, level, until)? {
                Step::Went => return Ok(None),
                Step::Paused | Step::Elsewhere(_) => return Ok(Some(Slice::Paused)),
                Step::Lost => {
                    self.known.lose_base(core);
                    return Ok(None);
                }
                Step::Cannot => {
                    self.known.give_up(level, now);
                    return Ok(None);
                }
                Step::Idle => {}
            }
        }
        Ok(Some(self.rest(seat)))
    }

    /// Whether something may be begun: nothing is under way, or only what another core has left.
    fn is_free(&mut self, core: CoreId, now: u64) -> bool {
        let busy = !matches!(self.doing, Doing::Nothing);
        let left =
            self.eyes.look.core() != core && now.saturating_sub(self.did_at_ns) > PATIENCE_NS;
        if busy && left {
            self.doing = Doing::Nothing;
        }
        !busy || left
    }

    /// Begins what is due besides decoding.
    fn begin_next(&mut self, core: CoreId, seat: usize, now: u64) {
        if self.due == Some(core) {
            self.due = None;
            return self.begin_visit(core);
        }
        let Seat { current, ask_at_ns, .. } = self.known.seats[seat];
        let known = &self.known;
        let counting = || Level::ALL.into_iter().filter(|level| known.counts(*level));
        let asks =
            |level: &Level| current[side(*level)].is_none() && now >= ask_at_ns[side(*level)];
        if let Some(level) = counting().find(asks) {
            return self.begin_inquiry(core, level, None);
        }
        let waits = |level: &Level| {
            let own = known.sides[side(*level)].as_ref();
            own.is_some_and(|own| {
                let waits = own.fresh.len();
                let idle = !own.stream.has_work(&known.ledger.notes);
                waits >= CONFIRM_PAGES || (idle && waits > 0)
            })
        };
        if let Some(level) = counting().find(|at| current[side(*at)].is_some() && waits(at)) {
            self.eyes.turn_to(core);
            self.doing = Doing::Confirming(Confirmation::new(core, level));
        }
    }

    /// Goes on with what is under way besides decoding.
    fn go_on(
        &mut self,
        timing: &mut impl Timing,
        core: CoreId,
        until: u64,
    ) -> Result<Outcome, OsError> {
        let (known, eyes) = (&mut self.known, &mut self.eyes);
        let outcome = match &mut self.doing {
            Doing::Nothing => Outcome::Ended,
            Doing::Confirming(confirmation) => confirmation.step(known, eyes, timing, until)?,
            Doing::Inquiring(inquiry) => inquiry.step(known, eyes, timing, until)?,
            Doing::Visiting(visit) => visit.step(known, eyes, &mut self.round, timing, until)?,
        };
        match outcome {
            Outcome::Again | Outcome::Paused => {}
            Outcome::Ended | Outcome::Elsewhere => self.doing = Doing::Nothing,
            Outcome::Verify(base) => {
                let level = self.eyes.look.level();
                self.begin_inquiry(core, level, Some(base));
            }
            Outcome::Stale => {
                self.doing = Doing::Nothing;
                self.known.give_up(self.eyes.look.level(), timing.now_ns());
            }
        }
        Ok(outcome)
    }

    /// Goes on until nothing is under way besides decoding, or the thread is on another core.
    fn finish(&mut self, timing: &mut impl Timing) -> Result<(), OsError> {
        let core = timing.core();
        while !matches!(self.doing, Doing::Nothing) {
            self.go_on(timing, core, u64::MAX)?;
        }
        Ok(())
    }

    /// What is left where there is nothing to decode.
    fn rest(&self, seat: usize) -> Slice {
        let current = self.known.seats[seat].current;
        let known = |level: &Level| self.known.counts(*level) && current[side(*level)].is_some();
        if !matches!(self.doing, Doing::Nothing) {
            // Another core looks at pages; it will not be long.
            Slice::Paused
        } else if Level::ALL.iter().any(known) {
            Slice::Idle
        } else {
            Slice::Unknown
        }
    }

    /// One step of decoding at a level.
    fn decode(
        &mut self,
        timing: &mut impl Timing,
        seat: usize,
        level: Level,
        until: u64,
    ) -> Result<Step, OsError> {
        let known = &mut self.known;
        let Seat { core, current, .. } = known.seats[seat];
        let others = known.others(level, seat);
        let Some(own) = known.sides[side(level)].as_deref_mut() else { return Ok(Step::Idle) };
        let Some(base) = current[side(level)] else { return Ok(Step::Idle) };
        if !own.counts() || !own.stream.has_work(&known.ledger.notes) {
            return Ok(Step::Idle);
        }
        let by = DecodingCore { core, base, others };
        let step = own.stream.advance(timing, &own.model, &known.ledger.notes, by, until)?;
        while let Some(decoded) = known.sides[side(level)].as_mut().and_then(|own| own.stream.pop())
        {
            known.take_decoded(level, decoded);
        }
        Ok(step)
    }
}
