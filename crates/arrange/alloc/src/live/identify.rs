//! Which base a core wears: by pages whose codes are known, or, at first, by pages of which nothing
//! is known. A base that fits none of the atlas's is measured anew from known pages.
//!
//! An inquiry is a millisecond of work or so in steps of some tens of microseconds, which can be
//! put aside. It asks of one core at one level.

use super::answers::Identity;
use super::batch::Progress;
use super::classifier::{Classifier, Doing};
use super::compare::{BLANK, COMPARED_SAMPLES, Weighing, measured, slope, some_of};
use super::look::Among;
use super::notes::side;
use super::timing::Timing;
use isochrone_atlas::BaseContest;
use isochrone_os::OsError;
use isochrone_units::{CoreId, Level};

/// Pages of which nothing is known, from which a base is identified at least.
const LEAST_PAGES: usize = 16;
/// Known pages from which a base is identified, or measured anew, at least.
pub(super) const LEAST_KNOWN: usize = 32;
/// Share of what a base predicts that must be seen for it to be the one worn. Bases of other
/// cores have 0.6 or less on the machines seen, often less than nothing.
pub(super) const WORN_SLOPE: f32 = 0.75;
/// Looks until a base that fits none is believed to be new.
const LOOKS: u32 = 4;
/// Looks at pages of which nothing is known until the likeliest base is taken, sure or not. One is
/// enough on most machines; where bases are nearly twins more cost less than decoding in a wrong one.
const BLIND_LOOKS: u32 = 12;
/// Odds, in nats, by which the base that the atlas saw last on a core is preferred before any
/// sample.
const WORN_LAST_NATS: f32 = 1.0;
/// Probability of error at which a base is believed before any page is known.
const SURE: f32 = 0.02;
/// Bases that are compared while no page is known: the first of the atlas, which are those that
/// cores wore first. Each costs a tenth of a millisecond.
const BLIND_BASES: usize = 64;
/// A base that is this far behind after one look is not weighed in the next.
const OUT_NATS: f32 = 40.0;
/// Odds below which a base does not count.
const NEGLIGIBLE_NATS: f32 = -8.0;
/// Time after which a base that was not found is looked for again.
const AGAIN_NS: u64 = 100_000_000;

/// An inquiry under way.
#[derive(Debug)]
pub(super) struct Inquiry {
    pub(super) core: CoreId,
    pub(super) level: Level,
    /// The base in which pages were decoded, if these are to say nothing: whatever base they were
    /// decoded in fits them.
    verifies: Option<u16>,
    looks: u32,
    /// The evidence of the look before.
    nats: [f32; BLIND_BASES],
    stage: Stage,
}

/// How far an inquiry came.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "nothing below malloc allocates, so no box")]
enum Stage {
    /// Pages are to be chosen.
    Choosing,
    /// Pages with known codes are looked at.
    Looking,
    /// They are compared with one base after another.
    Comparing(BaseContest),
    /// Pages of which nothing is known are looked at.
    Peering,
    /// They are weighed under one base after another: the evidence for each so far.
    Weighing { base: usize, nats: [f32; BLIND_BASES] },
}

impl Classifier<'_> {
    /// Finds the base that the core which runs this wears at each level that counts, at once, in a
    /// millisecond or so each. `None` of a level where no base fits, or that does not follow the
    /// pattern. [`Self::slice`] does the same by and by.
    ///
    /// # Errors
    /// [`OsError`] where loads cannot be timed here.
    pub fn identify(&mut self, timing: &mut impl Timing) -> Result<[Option<Identity>; 2], OsError> {
        let begin = timing.now_ns();
        let core = timing.core();
        for level in Level::ALL {
            if self.counts(level) {
                self.begin_inquiry(core, level);
                self.finish(timing)?;
            }
        }
        self.stats.busy_ns += timing.now_ns() - begin;
        let seat = self.seat(core).and_then(|seat| self.seats.get(seat));
        Ok(seat.map_or([None; 2], |seat| seat.found))
    }

    pub(super) fn begin_inquiry(&mut self, core: CoreId, level: Level) {
        self.look.clear();
        let stage = Stage::Choosing;
        let nats = [0.0; BLIND_BASES];
        self.doing =
            Doing::Inquiring(Inquiry { core, level, verifies: None, looks: 0, nats, stage });
    }

    /// Asks once more after the first pages were decoded in a base that was guessed: the core may
    /// have moved meanwhile.
    pub(super) fn begin_verifying(&mut self, core: CoreId, level: Level, base: u16) {
        self.begin_inquiry(core, level);
        if let Doing::Inquiring(inquiry) = &mut self.doing {
            inquiry.verifies = Some(base);
        }
    }

    /// One step of an inquiry.
    pub(super) fn inquire(
        &mut self,
        timing: &mut impl Timing,
        mut inquiry: Inquiry,
        until: u64,
    ) -> Result<Progress, OsError> {
        let (core, level) = (inquiry.core, inquiry.level);
        match inquiry.stage {
            Stage::Choosing => {
                timing.abandon();
                // What the atlas says of frames may be old, but is worth a look.
                let known = inquiry.verifies.is_none() && self.choose_pages(core, level);
                inquiry.stage = if known {
                    Stage::Looking
                } else if self.choose_any(core, level) {
                    Stage::Peering
                } else {
                    self.end_inquiry(timing, &inquiry, None);
                    return Ok(Progress::Done);
                };
            }
            Stage::Looking | Stage::Peering => match self.look_on(timing, level, until)? {
                Progress::Done => {
                    let peers = matches!(inquiry.stage, Stage::Peering);
                    inquiry.looks += 1;
                    inquiry.stage = if peers {
                        self.look.sort();
                        Stage::Weighing { base: 0, nats: [f32::NEG_INFINITY; BLIND_BASES] }
                    } else {
                        Stage::Comparing(BaseContest::new())
                    };
                }
                Progress::Paused => {
                    self.doing = Doing::Inquiring(inquiry);
                    return Ok(Progress::Paused);
                }
                other => return Ok(other),
            },
            Stage::Comparing(contest) => {
                let Some(stage) = self.compare_next(timing, &inquiry, contest) else {
                    return Ok(Progress::Done);
                };
                inquiry.stage = stage;
            }
            Stage::Weighing { base, nats } => {
                let Some(stage) = self.weigh_next(timing, &mut inquiry, base, nats) else {
                    return Ok(Progress::Done);
                };
                inquiry.stage = stage;
            }
        }
        self.doing = Doing::Inquiring(inquiry);
        Ok(Progress::Done)
    }

    /// Chooses pages to look at of which the codes are known: confirmed ones, else those of the
    /// atlas (which may be old, but are worth a look), else any where all are alike.
    fn choose_pages(&mut self, core: CoreId, level: Level) -> bool {
        let Some(own) = &self.sides[side(level)] else { return false };
        let from_atlas = self.stats.from_atlas > 0 && own.failures == 0;
        let alike = own.model.only_code.map(|code| (Among::Alike(code), LEAST_PAGES));
        let known = from_atlas.then_some((Among::Known, LEAST_KNOWN));
        [Some((Among::Confirmed, LEAST_KNOWN)), known, alike]
            .into_iter()
            .flatten()
            .any(|among| self.look.begin((core, level), among, (&self.notes, &mut self.dice)))
    }

    fn choose_any(&mut self, core: CoreId, level: Level) -> bool {
        let picks = (&self.notes, &mut self.dice);
        self.look.begin((core, level), (Among::Any, LEAST_PAGES), picks)
    }

    /// Goes on with a look.
    pub(super) fn look_on(
        &mut self,
        timing: &mut impl Timing,
        level: Level,
        until: u64,
    ) -> Result<Progress, OsError> {
        let Some(own) = &self.sides[side(level)] else { return Ok(Progress::Elsewhere) };
        self.look.run(timing, (&self.notes, level, own.model.period), until)
    }

    /// Compares known pages with one base more; after the last the base is known, or they are
    /// looked at again. `None` when the inquiry has ended.
    fn compare_next(
        &mut self,
        timing: &impl Timing,
        inquiry: &Inquiry,
        mut contest: BaseContest,
    ) -> Option<Stage> {
        let level = inquiry.level;
        let own = self.sides[side(level)].as_ref()?;
        if let Some(base) = own.model.bases().get(contest.compared()) {
            let mut room = [BLANK; COMPARED_SAMPLES];
            contest.add(base, some_of(self.look.samples(), &mut room), own.model.noise());
            return Some(Stage::Comparing(contest));
        }
        let identity = contest.best().and_then(|found| {
            let window = self.look.window(timing.tick_cycles());
            let own = self.sides[side(level)].as_ref()?;
            let table = own.model.bases().get(found.index)?;
            // A base that says the same of all these pages fits as well as any.
            let fits = slope(table, self.look.samples(), window);
            fits.is_none_or(|fit| fit.slope >= WORN_SLOPE).then(|| Identity {
                base: u16::try_from(found.index).unwrap_or(0),
                error: found.error,
                from_known_pages: true,
                is_new: false,
            })
        });
        if identity.is_none() && inquiry.looks < LOOKS {
            return Some(Stage::Choosing);
        }
        let identity = identity.or_else(|| self.measure_base(timing.tick_cycles(), level));
        self.end_inquiry(timing, inquiry, identity);
        None
    }

    /// The base as it was just seen, where it fits none.
    fn measure_base(&mut self, tick: u32, level: Level) -> Option<Identity> {
        if self.look.samples().is_empty() {
            return None;
        }
        let window = self.look.window(tick);
        let own = self.sides[side(level)].as_mut()?;
        let table = measured(&own.model, self.look.samples(), window)?;
        let base = own.model.keep(table);
        Some(Identity { base, error: 0.0, from_known_pages: true, is_new: true })
    }

    /// Weighs some pages of which nothing is known under a base; after the last base the likeliest
    /// one is taken, or pages are looked at again. `None` when the inquiry has ended.
    fn weigh_next(
        &mut self,
        timing: &impl Timing,
        inquiry: &mut Inquiry,
        base: usize,
        mut nats: [f32; BLIND_BASES],
    ) -> Option<Stage> {
        let (core, level) = (inquiry.core, inquiry.level);
        let own = self.sides[side(level)].as_ref()?;
        let table = own.model.bases().get(base).filter(|_| base < BLIND_BASES);
        if let Some(table) = table {
            let best = inquiry.nats.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            if inquiry.nats[base] < best - OUT_NATS {
                return Some(Stage::Weighing { base: base + 1, nats });
            }
            if self.weighing.is_none() {
                let window = self.look.window(timing.tick_cycles());
                let own = self.sides[side(level)].as_ref()?;
                self.weighing = Weighing::new(&own.model, table, self.look.samples(), window);
            }
            let whole = match &mut self.weighing {
                Some(weighing) => weighing.go_on(self.look.samples()),
                None => Some(f32::NEG_INFINITY),
            };
            let Some(evidence) = whole else { return Some(Stage::Weighing { base, nats }) };
            self.weighing = None;
            let last = self.atlas.core_base(core, level);
            nats[base] = evidence + if last == Some(base) { WORN_LAST_NATS } else { 0.0 };
            return Some(Stage::Weighing { base: base + 1, nats });
        }
        let found = self.likeliest(level, &nats);
        let sure = found.is_some_and(|found| found.error < SURE);
        if !sure && inquiry.looks < BLIND_LOOKS && self.look.has_room() {
            inquiry.nats = nats;
            self.look.again(core, level, &mut self.dice);
            return Some(Stage::Peering);
        }
        self.end_inquiry(timing, inquiry, found);
        None
    }

    fn likeliest(&self, level: Level, nats: &[f32; BLIND_BASES]) -> Option<Identity> {
        let own = self.sides[side(level)].as_ref()?;
        let bases = own.model.bases();
        let best = (0..nats.len()).max_by(|a, b| nats[*a].total_cmp(&nats[*b]))?;
        let worn = bases.get(best)?;
        // Bases that predict the same, if pages had other keys, are as good: what is decoded in one
        // of them is right for this core.
        let differs = |place: usize| {
            let near = nats[place] - nats[best] > NEGLIGIBLE_NATS;
            near && place != best && !own.model.are_twins(worn, &bases[place])
        };
        let others = (0..bases.len().min(nats.len()))
            .filter(|place| differs(*place))
            .fold(0.0, |sum, place| sum + libm::expf(nats[place] - nats[best]));
        Some(Identity {
            base: u16::try_from(best).ok()?,
            error: others / (1.0 + others),
            from_known_pages: false,
            is_new: false,
        })
    }

    /// Notes what a core wears.
    fn end_inquiry(&mut self, timing: &impl Timing, inquiry: &Inquiry, found: Option<Identity>) {
        let (core, level, place) = (inquiry.core, inquiry.level, side(inquiry.level));
        if let Some(base) = inquiry.verifies {
            if found.is_none_or(|found| self.is_same(level, base, found.base)) {
                return self.prove(core, level);
            }
            self.lose_level(core, level);
        }
        let Some(seat) = self.seat(core) else { return };
        let seat = &mut self.seats[seat];
        let base = found.map(|identity| identity.base);
        if seat.worn[place].is_some_and(|before| Some(before) != base) {
            self.stats.moves += 1;
        }
        seat.worn[place] = base;
        seat.proven[place] = found.is_some_and(|identity| identity.from_known_pages);
        seat.found[place] = found;
        seat.ask_at_ns[place] = timing.now_ns() + AGAIN_NS;
        self.changes = self.changes.wrapping_add(1);
        if self.judge_count == 0 {
            (self.judges[0], self.judge_count) = (core, 1);
        }
        self.judge();
    }

    /// Whether pages cannot tell two bases apart.
    fn is_same(&self, level: Level, a: u16, b: u16) -> bool {
        let Some(own) = &self.sides[side(level)] else { return true };
        a == b || own.model.are_twins(own.model.base(a), own.model.base(b))
    }
}
