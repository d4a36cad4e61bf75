//! Which base a core wears: by pages whose codes are known, or, at first, by pages of which nothing
//! is known. A base that fits none of the atlas's is measured anew from known pages.

use super::batch::Progress;
use super::classifier::{Classifier, Identity};
use super::compare::{evidence, measured, slope};
use super::look::Among;
use super::notes::side;
use super::timing::Timing;
use isochrone_atlas::identify_base;
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
const LOOKS: usize = 4;
/// Looks at pages of which nothing is known until the likeliest base is taken, sure or not. One is
/// enough on most machines; where bases are nearly twins more cost less than decoding in a wrong one.
const BLIND_LOOKS: usize = 12;
/// Odds, in nats, by which the base that the atlas saw last on a core is preferred before any
/// sample.
const WORN_LAST_NATS: f32 = 1.0;
/// Probability of error at which a base is believed before any page is known.
const SURE: f32 = 0.02;
/// Bases that are compared while no page is known: the first of the atlas, which are those that
/// cores wore first. Each costs a tenth of a millisecond.
const BLIND_BASES: usize = 64;
/// Odds below which a base does not count.
const NEGLIGIBLE_NATS: f32 = -8.0;

impl Classifier<'_> {
    /// Finds the base that the core which runs this wears at each level, in a millisecond or so.
    /// `None` of a level where no base fits, or that does not follow the pattern.
    ///
    /// # Errors
    /// [`OsError`] where loads cannot be timed here.
    pub fn identify(&mut self, timing: &mut impl Timing) -> Result<[Option<Identity>; 2], OsError> {
        let begin = timing.now_ns();
        let core = timing.core();
        let mut found = [None; 2];
        self.confirming = None;
        for level in Level::ALL {
            let place = side(level);
            if self.sides[place].is_none() {
                continue;
            }
            found[place] = self.identify_at(timing, core, level)?;
            let Some(seat) = self.seat(core) else { continue };
            let base = found[place].map(|identity: Identity| identity.base);
            let seat = &mut self.seats[seat];
            if seat.worn[place].is_some_and(|before| Some(before) != base) {
                self.stats.moves += 1;
            }
            seat.worn[place] = base;
            seat.proven[place] = found[place].is_some_and(|identity| identity.from_known_pages);
        }
        if self.judge_count == 0 {
            (self.judges[0], self.judge_count) = (core, 1);
        }
        self.judge();
        self.stats.busy_ns += timing.now_ns() - begin;
        Ok(found)
    }

    fn identify_at(
        &mut self,
        timing: &mut impl Timing,
        core: CoreId,
        level: Level,
    ) -> Result<Option<Identity>, OsError> {
        self.look.clear();
        for attempt in 0..LOOKS {
            // What the atlas says of frames may be old, but is worth a look.
            if !self.choose_pages(core, level) {
                return self.identify_blind(timing, core, level);
            }
            if !self.look_once(timing, level, u64::MAX)? {
                continue;
            }
            if let Some(identity) = self.compare_known(timing.tick_cycles(), level) {
                return Ok(Some(identity));
            }
            if attempt + 1 == LOOKS {
                break;
            }
        }
        Ok(self.measure_base(timing.tick_cycles(), level))
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

    /// One look, without a limit; false if the thread was moved away.
    pub(super) fn look_once(
        &mut self,
        timing: &mut impl Timing,
        level: Level,
        until_ns: u64,
    ) -> Result<bool, OsError> {
        let Some(own) = &self.sides[side(level)] else { return Ok(false) };
        timing.abandon();
        let known = (&self.notes, level, own.model.period);
        Ok(self.look.run(timing, known, until_ns)? == Progress::Done)
    }

    /// The base that pages with known codes show, if it is one that is known.
    fn compare_known(&mut self, tick: u32, level: Level) -> Option<Identity> {
        let window = self.look.window(tick);
        let own = self.sides[side(level)].as_ref()?;
        let bases = own.model.bases();
        let found = identify_base(bases, self.look.samples(), own.model.noise())?;
        let table = bases.get(found.index)?;
        // A base that says the same of all these pages fits as well as any.
        let fits = slope(table, self.look.samples(), window);
        fits.is_none_or(|fit| fit.slope >= WORN_SLOPE).then(|| Identity {
            base: u16::try_from(found.index).unwrap_or(0),
            error: found.error,
            from_known_pages: true,
            is_new: false,
        })
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

    /// The base under which pages of which nothing is known are likeliest.
    fn identify_blind(
        &mut self,
        timing: &mut impl Timing,
        core: CoreId,
        level: Level,
    ) -> Result<Option<Identity>, OsError> {
        self.look.clear();
        let picks = (&self.notes, &mut self.dice);
        if !self.look.begin((core, level), (Among::Any, LEAST_PAGES), picks) {
            return Ok(None);
        }
        let mut found = None;
        for _ in 0..BLIND_LOOKS {
            if self.look_once(timing, level, u64::MAX)? {
                found = self.compare_blind(timing.tick_cycles(), core, level);
            }
            if found.is_some_and(|found| found.error < SURE) {
                break;
            }
            self.look.again(core, level, &mut self.dice);
        }
        Ok(found)
    }

    fn compare_blind(&mut self, tick: u32, core: CoreId, level: Level) -> Option<Identity> {
        self.look.sort();
        let window = self.look.window(tick);
        let last = self.atlas.core_base(core, level);
        let own = self.sides[side(level)].as_ref()?;
        let bases = own.model.bases();
        let mut nats = [f32::NEG_INFINITY; BLIND_BASES];
        for ((place, table), nats) in bases.iter().enumerate().zip(&mut nats) {
            let prior = if last == Some(place) { WORN_LAST_NATS } else { 0.0 };
            let Some(book) = own.model.book(table) else { continue };
            *nats = prior + evidence(&own.model, &book, table, self.look.samples(), window);
        }
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
}
