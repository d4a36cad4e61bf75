//! The classifier: which base each core wears, and the codes of the arena's pages.
//!
//! It joins the parts. A page is decoded in the base that its judge was last found to wear, and
//! yielded only after a look at known pages has confirmed that base: what was decoded across a
//! move is decoded again. It never hands out memory and never starts a thread.

use super::answers::{Identity, Plan, Slice, Stats};
use super::batch::Progress;
use super::compare::Weighing;
use super::dice::Dice;
use super::epoch::{Epoch, Visit};
use super::identify::Inquiry;
use super::level::LevelModel;
use super::look::Look;
use super::notes::{Notes, Queue, side};
use super::stream::{Judge, OTHERS, Step, Stream, WINDOW};
use super::timing::Timing;
use crate::Worn;
use isochrone_atlas::{Atlas, BaseContest};
use isochrone_os::OsError;
use isochrone_os::boxed::Boxed;
use isochrone_os::table::Table;
use isochrone_units::{CoreId, Level};

/// Pages decoded at a level before their base is confirmed.
const CONFIRM_PAGES: usize = 512;
/// Judges at most.
const JUDGES: usize = 4;
/// How long another core waits for one that looks at pages.
const PATIENCE_NS: u64 = 10_000_000;
/// Time after which a level that was given up is tried once more; twice as long each time.
const RETRY_NS: u64 = 1_000_000_000;
/// Times that this time doubles at most.
const DOUBLINGS: u32 = 6;

/// One core, as far as it is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seat {
    pub(super) core: CoreId,
    pub(super) worn: [Option<u16>; 2],
    /// Whether known pages said so.
    pub(super) proven: [bool; 2],
    /// What the last inquiry found.
    pub(super) found: [Option<Identity>; 2],
    /// No inquiry before this time.
    pub(super) ask_at_ns: [u64; 2],
}

/// What is under way besides decoding: all of it looks at pages, through one pair of eyes.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "nothing below malloc allocates, so no box")]
pub(super) enum Doing {
    Nothing,
    /// A look that confirms what was decoded at a level.
    Confirming(Level),
    /// What it has seen is compared with one base after another, since the one that it confirms was
    /// a guess.
    Contesting(Level, BaseContest),
    /// Which base a core wears.
    Inquiring(Inquiry),
    /// Whether a core still wears its base, and pages have their frames.
    Visiting(Visit),
}

/// One level, as far as it follows the pattern.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) model: LevelModel,
    pub(super) stream: Stream,
    /// Pages decoded since the base was confirmed last.
    pub(super) fresh: Queue,
    /// Times that pages were decoded in vain since a base was confirmed last.
    pub(super) failures: u32,
    /// No base fits, and no page is known from which to measure one: the level is left alone
    /// until this time.
    pub(super) given_up_until: Option<u64>,
    /// Times that it was given up.
    pub(super) given_up: u32,
    /// It is of use to decode this level.
    pub(super) wanted: bool,
}

/// Learns codes and bases.
#[derive(Debug)]
pub struct Classifier<'a> {
    pub(super) atlas: Atlas<'a>,
    pub(super) sides: [Option<Boxed<Side>>; 2],
    pub(super) seats: Table<Seat>,
    pub(super) notes: Notes,
    pub(super) look: Look,
    pub(super) doing: Doing,
    /// When that was gone on with last.
    pub(super) did_at_ns: u64,
    /// Pages under way under one base.
    pub(super) weighing: Option<Weighing>,
    /// A core that is to be visited.
    pub(super) due: Option<CoreId>,
    /// What the last visit found.
    pub(super) epoch: Epoch,
    pub(super) events: Queue,
    /// Raised whenever what a core wears may have changed.
    pub(super) changes: u32,
    pub(super) judges: [CoreId; JUDGES],
    pub(super) judge_count: usize,
    pub(super) dice: Dice,
    pub(super) checked: u32,
    pub(super) stats: Stats,
}

impl Side {
    /// Whether it was not given up.
    pub(super) const fn is_open(&self) -> bool {
        self.given_up_until.is_none()
    }
}

impl<'a> Classifier<'a> {
    /// Makes the tables. Most of their memory is taken as pages come.
    ///
    /// # Errors
    /// [`OsError`] where there is no address space, or for an atlas that cannot be decoded with.
    pub fn new(atlas: Atlas<'a>, plan: Plan) -> Result<Self, OsError> {
        let open = |level: Level| -> Result<Option<Boxed<Side>>, OsError> {
            let Some(model) = LevelModel::open(&atlas, level)? else { return Ok(None) };
            let seed = plan.seed ^ u64::from(isochrone_atlas::format::level_tag(level)) << 32;
            let stream = Stream::new(&model, plan.pages_max, seed, WINDOW)?;
            let fresh = Queue::new(plan.pages_max)?;
            let side = Side {
                model,
                stream,
                fresh,
                failures: 0,
                given_up_until: None,
                given_up: 0,
                wanted: true,
            };
            Boxed::new(side).map(Some)
        };
        let mut cores = atlas.cores();
        let seats = Table::made(atlas.cores().len(), |_| Seat {
            core: cores.next().unwrap_or(CoreId(u16::MAX)),
            worn: [None; 2],
            proven: [false; 2],
            found: [None; 2],
            ask_at_ns: [0; 2],
        })?;
        Ok(Self {
            atlas,
            sides: [open(Level::Llc)?, open(Level::Dram)?],
            seats,
            notes: Notes::new(plan.pages_max)?,
            look: Look::new()?,
            doing: Doing::Nothing,
            did_at_ns: 0,
            weighing: None,
            due: None,
            epoch: Epoch::default(),
            changes: 0,
            events: Queue::new(2 * plan.pages_max)?,
            judges: [CoreId(u16::MAX); JUDGES],
            judge_count: 0,
            dice: Dice::new(plan.seed),
            checked: 0,
            stats: Stats::default(),
        })
    }

    /// Names the cores that will decode in turns (four at most). Classes of pages that none of
    /// them tells apart are one class. Without this, the first core that decodes is the judge.
    pub fn set_judges(&mut self, cores: &[CoreId]) {
        self.judge_count = 0;
        for core in cores.iter().take(JUDGES) {
            self.judges[self.judge_count] = *core;
            self.judge_count += 1;
        }
        self.judge();
    }

    /// Says whether distances in memory matter: they do where what is live misses the last-level
    /// cache. A level that does not matter is left alone, unless there is no other.
    pub fn want_memory(&mut self, wanted: bool) {
        let alone = self.sides[side(Level::Llc)].as_ref().is_none_or(|llc| !llc.is_open());
        if let Some(dram) = &mut self.sides[side(Level::Dram)] {
            dram.wanted = wanted || alone;
        }
    }

    /// Whether a level follows the pattern, is of use and was not given up.
    pub(super) fn counts(&self, level: Level) -> bool {
        self.sides[side(level)].as_ref().is_some_and(|own| own.wanted && own.is_open())
    }

    /// Raised whenever what a core wears may have changed: see [`Self::worn`].
    #[must_use]
    pub const fn changes(&self) -> u32 {
        self.changes
    }

    /// What codes the judges can tell apart, anew.
    pub(super) fn judge(&mut self) {
        let judges = &self.judges[..self.judge_count];
        for own in self.sides.iter_mut().flatten() {
            let place = side(own.model.level);
            let worn = self.seats.iter().filter(|seat| judges.contains(&seat.core));
            let bases = worn.filter_map(|seat| seat.worn[place]);
            if own.model.judge_by(bases) {
                own.stream.start_over();
            }
        }
    }

    /// What a core wears, for [`crate::Heap::wear`]; `None` of a level that does not follow the
    /// pattern, or of which it is not known.
    #[must_use]
    pub fn worn(&self, core: CoreId) -> Worn {
        let table = |level: Level| {
            let own = self.sides[side(level)].as_ref()?;
            Some(own.model.base(self.base_of(core, level)?))
        };
        Worn::of(table(Level::Llc), table(Level::Dram))
    }

    pub(super) fn seat(&self, core: CoreId) -> Option<usize> {
        self.seats.iter().position(|seat| seat.core == core)
    }

    pub(super) fn base_of(&self, core: CoreId, level: Level) -> Option<u16> {
        self.seats[self.seat(core)?].worn[side(level)]
    }

    /// What classifying cost so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let loads = |place: usize| self.sides[place].as_ref().map_or(0, |own| own.stream.loads());
        Stats { loads: [loads(0), loads(1)], ..self.stats }
    }

    /// Does what is due for at most `budget_ns` (and the tens of microseconds of its last step):
    /// finds out which base this core wears, decodes pages, confirms what was decoded, and visits
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
        self.stats.busy_ns += timing.now_ns() - begin;
        Ok(result)
    }

    /// One step; `None` if there may be another.
    fn step(
        &mut self,
        timing: &mut impl Timing,
        core: CoreId,
        until: u64,
    ) -> Result<Option<Slice>, OsError> {
        let now = timing.now_ns();
        self.reopen(now);
        // A machine whose lines are all alike has no side at all, and nothing is unknown there.
        if self.sides.iter().all(Option::is_none) {
            return Ok(Some(Slice::Idle));
        }
        let Some(seat) = self.seat(core) else { return Ok(Some(Slice::Unknown)) };
        if !Level::ALL.into_iter().any(|level| self.counts(level)) {
            return Ok(Some(Slice::Unknown));
        }
        if self.is_free(core, now) {
            self.begin_next(timing, core, seat);
        }
        if !matches!(self.doing, Doing::Nothing) && self.look.core() == core {
            self.did_at_ns = now;
            return Ok(match self.go_on(timing, core, until)? {
                Progress::Done => None,
                Progress::Paused => Some(Slice::Paused),
                Progress::Elsewhere => {
                    self.doing = Doing::Nothing;
                    Some(Slice::Paused)
                }
                Progress::Stale => {
                    self.doing = Doing::Nothing;
                    self.refuse(self.look.level(), now);
                    None
                }
            });
        }
        for level in Level::ALL {
            match self.decode(timing, seat, level, until)? {
                Step::Went => return Ok(None),
                Step::Paused | Step::Elsewhere(_) => return Ok(Some(Slice::Paused)),
                Step::Lost => {
                    self.lose_base(core);
                    return Ok(None);
                }
                Step::Cannot => {
                    self.refuse(level, now);
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
        let left = self.look.core() != core && now.saturating_sub(self.did_at_ns) > PATIENCE_NS;
        if busy && left {
            self.doing = Doing::Nothing;
        }
        !busy || left
    }

    /// Begins what is due besides decoding.
    fn begin_next(&mut self, timing: &mut impl Timing, core: CoreId, seat: usize) {
        if self.due == Some(core) {
            self.due = None;
            return self.begin_visit(core);
        }
        let now = timing.now_ns();
        for level in Level::ALL.into_iter().filter(|level| self.counts(*level)) {
            let Seat { worn, ask_at_ns, .. } = self.seats[seat];
            if worn[side(level)].is_none() && now >= ask_at_ns[side(level)] {
                self.begin_inquiry(core, level);
                self.look.turn_to(core);
                return;
            }
        }
        for level in Level::ALL.into_iter().filter(|level| self.counts(*level)) {
            let Some(own) = &self.sides[side(level)] else { continue };
            let waits = own.fresh.len();
            let idle = !own.stream.has_work(&self.notes);
            let knows = self.base_of(core, level).is_some();
            if knows && (waits >= CONFIRM_PAGES || (idle && waits > 0)) {
                self.look.clear();
                return self.begin_confirming(core, level, timing);
            }
        }
    }

    /// Goes on with what is under way besides decoding.
    fn go_on(
        &mut self,
        timing: &mut impl Timing,
        core: CoreId,
        until: u64,
    ) -> Result<Progress, OsError> {
        match core::mem::replace(&mut self.doing, Doing::Nothing) {
            Doing::Nothing => Ok(Progress::Done),
            Doing::Confirming(level) => self.confirm(timing, core, level, until),
            Doing::Contesting(level, contest) => {
                self.contest(core, level, contest);
                Ok(Progress::Done)
            }
            Doing::Inquiring(inquiry) => self.inquire(timing, inquiry, until),
            Doing::Visiting(visit) => self.visit(timing, visit, until),
        }
    }

    /// Goes on until nothing is under way besides decoding, or the thread is on another core.
    pub(super) fn finish(&mut self, timing: &mut impl Timing) -> Result<(), OsError> {
        let core = timing.core();
        while !matches!(self.doing, Doing::Nothing) {
            if matches!(self.go_on(timing, core, u64::MAX)?, Progress::Elsewhere | Progress::Stale)
            {
                self.doing = Doing::Nothing;
            }
        }
        Ok(())
    }

    /// What is left where there is nothing to decode.
    fn rest(&self, seat: usize) -> Slice {
        let worn = self.seats[seat].worn;
        let known = |level: &Level| self.counts(*level) && worn[side(*level)].is_some();
        if !matches!(self.doing, Doing::Nothing) {
            // Another core looks at pages; it will not be long.
            Slice::Paused
        } else if Level::ALL.iter().any(known) {
            Slice::Idle
        } else {
            Slice::Unknown
        }
    }

    /// Tries levels once more that were given up long ago.
    fn reopen(&mut self, now: u64) {
        for own in self.sides.iter_mut().flatten() {
            if own.given_up_until.is_some_and(|until| now >= until) {
                own.given_up_until = None;
                own.failures = 0;
            }
        }
    }

    /// A level cannot be decoded here, in slices such as these: it is left alone for some time.
    fn refuse(&mut self, level: Level, now: u64) {
        self.settle(level, false);
        self.give_up(level, now);
    }

    /// Leaves a level alone for some time, as no base fits.
    pub(super) fn give_up(&mut self, level: Level, now: u64) {
        let Some(own) = &mut self.sides[side(level)] else { return };
        own.given_up_until = Some(now.saturating_add(RETRY_NS << own.given_up.min(DOUBLINGS)));
        own.given_up += 1;
        own.stream.start_over();
        for seat in &mut *self.seats {
            seat.worn[side(level)] = None;
            seat.ask_at_ns[side(level)] = 0;
        }
        self.changes = self.changes.wrapping_add(1);
        self.judge();
        self.want_memory(false);
    }

    /// One step of decoding at a level.
    fn decode(
        &mut self,
        timing: &mut impl Timing,
        seat: usize,
        level: Level,
        until: u64,
    ) -> Result<Step, OsError> {
        let place = side(level);
        let others = self.others(place, self.seats[seat].worn[place]);
        let Some(own) = self.sides[place].as_deref_mut() else { return Ok(Step::Idle) };
        let seat = self.seats[seat];
        let Some(base) = seat.worn[place] else { return Ok(Step::Idle) };
        if !own.wanted || !own.is_open() || !own.stream.has_work(&self.notes) {
            return Ok(Step::Idle);
        }
        let judge = Judge { core: seat.core, base, others };
        let known = (&own.model, &self.notes);
        let step = own.stream.advance(timing, known, judge, until)?;
        while let Some(decoded) = self.sides[place].as_mut().and_then(|own| own.stream.pop()) {
            self.take_decoded(level, decoded);
        }
        Ok(step)
    }

    /// Bases that other cores wear.
    fn others(&self, place: usize, base: Option<u16>) -> ([u16; OTHERS], usize) {
        let (mut others, mut count) = ([0; OTHERS], 0);
        for other in self.seats.iter().filter_map(|seat| seat.worn[place]) {
            if Some(other) != base && count < OTHERS && !others[..count].contains(&other) {
                others[count] = other;
                count += 1;
            }
        }
        (others, count)
    }
}
