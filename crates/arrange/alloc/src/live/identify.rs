//! The current base of a core: by pages whose codes are known, or, at first, by pages of which nothing
//! is known. A base that fits none of the atlas's is measured anew from known pages.
//!
//! An inquiry is a millisecond of work or so in steps of some tens of microseconds, which can be
//! put aside. It asks of one core at one level.

use super::answers::Identity;
use super::batch::Progress;
use super::compare::{
    BLANK, COMPARED_SAMPLES, CURRENT_SLOPE, LEAST_KNOWN, Weighing, measured, slope, some_of,
};
use super::eyes::{Eyes, Outcome};
use super::known::Known;
use super::look::Among;
use super::notes::side;
use super::timing::Timing;
use isochrone_atlas::BaseContest;
use isochrone_os::OsError;
use isochrone_units::{CoreId, Level};

/// Pages of which nothing is known, from which a base is identified at least.
const LEAST_PAGES: usize = 16;
/// Looks until a base that fits none is believed to be new.
const LOOKS: u32 = 4;
/// Looks at pages of which nothing is known until the likeliest base is taken, sure or not. One is
/// enough on most machines; where bases are nearly twins more cost less than decoding in a wrong one.
const BLIND_LOOKS: u32 = 12;
/// Odds, in nats, by which the base that the atlas saw last on a core is preferred before any
/// sample.
const SEEN_LAST_NATS: f32 = 1.0;
/// Probability of error at which a base is believed before any page is known.
const SURE: f32 = 0.02;
/// Bases that are compared while no page is known: the first of the atlas, which are those that
/// cores had first. Each costs a tenth of a millisecond.
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
    core: CoreId,
    level: Level,
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

/// What comes after a stage: another one, or what was found.
#[allow(clippy::large_enum_variant, reason = "nothing below malloc allocates, so no box")]
enum Next {
    Stage(Stage),
    Found(Option<Identity>),
}

impl Inquiry {
    /// Of a core at a level. With `verifies` it asks once more after the first pages were decoded in a
    /// base that was guessed: the core may have moved meanwhile.
    pub(super) const fn new(core: CoreId, level: Level, verifies: Option<u16>) -> Self {
        let nats = [0.0; BLIND_BASES];
        Self { core, level, verifies, looks: 0, nats, stage: Stage::Choosing }
    }

    /// One step of it.
    pub(super) fn step(
        &mut self,
        known: &mut Known<'_>,
        eyes: &mut Eyes,
        timing: &mut impl Timing,
        until: u64,
    ) -> Result<Outcome, OsError> {
        let peers = matches!(self.stage, Stage::Peering);
        let next = match &mut self.stage {
            Stage::Choosing => {
                timing.abandon();
                self.choose(known, eyes)
            }
            Stage::Looking | Stage::Peering => {
                match eyes.look_on(known, timing, self.level, until)? {
                    Progress::Done => {}
                    Progress::Paused => return Ok(Outcome::Paused),
                    Progress::Elsewhere => return Ok(Outcome::Elsewhere),
                    Progress::Stale => return Ok(Outcome::Stale),
                }
                self.looks += 1;
                Next::Stage(if peers {
                    eyes.look.sort();
                    Stage::Weighing { base: 0, nats: [f32::NEG_INFINITY; BLIND_BASES] }
                } else {
                    Stage::Comparing(BaseContest::new())
                })
            }
            Stage::Comparing(contest) => {
                let contest = *contest;
                self.compare_next(known, eyes, timing.tick_cycles(), contest)
            }
            Stage::Weighing { base, nats } => {
                let (base, nats) = (*base, *nats);
                self.weigh_next(known, eyes, timing.tick_cycles(), base, nats)
            }
        };
        match next {
            Next::Stage(stage) => self.stage = stage,
            Next::Found(found) => {
                self.end(known, timing.now_ns(), found);
                return Ok(Outcome::Ended);
            }
        }
        Ok(Outcome::Again)
    }

    /// Chooses pages to look at: where nothing is to be verified such of known codes, else any.
    fn choose(&self, known: &Known<'_>, eyes: &mut Eyes) -> Next {
        // What the atlas says of frames may be old, but is worth a look.
        if self.verifies.is_none() && self.choose_known(known, eyes) {
            Next::Stage(Stage::Looking)
        } else if eyes.begin(known, self.core, self.level, Among::Any, LEAST_PAGES) {
            Next::Stage(Stage::Peering)
        } else {
            Next::Found(None)
        }
    }

    /// Chooses pages of which the codes are known: confirmed ones, else those of the
    /// atlas (which may be old, but are worth a look), else any where all are alike.
    fn choose_known(&self, known: &Known<'_>, eyes: &mut Eyes) -> bool {
        let Some(own) = &known.sides[side(self.level)] else { return false };
        let from_atlas = known.ledger.stats.from_atlas > 0 && own.failures == 0;
        let alike = own.model.only_code.map(|code| (Among::Alike(code), LEAST_PAGES));
        let noted = from_atlas.then_some((Among::Known, LEAST_KNOWN));
        [Some((Among::Confirmed, LEAST_KNOWN)), noted, alike]
            .into_iter()
            .flatten()
            .any(|(among, least)| eyes.begin(known, self.core, self.level, among, least))
    }

    /// Compares known pages with one base more; after the last the base is known, or they are
    /// looked at again.
    fn compare_next(
        &self,
        known: &mut Known<'_>,
        eyes: &mut Eyes,
        tick: u32,
        mut contest: BaseContest,
    ) -> Next {
        let Some(own) = &mut known.sides[side(self.level)] else { return Next::Found(None) };
        if let Some(base) = own.model.bases().get(contest.compared()) {
            let mut room = [BLANK; COMPARED_SAMPLES];
            contest.add(base, some_of(eyes.look.samples(), &mut room), own.model.noise());
            return Next::Stage(Stage::Comparing(contest));
        }
        let window = eyes.look.window(tick);
        let samples = eyes.look.samples();
        let identity = contest.best().and_then(|found| {
            let table = own.model.bases().get(found.index)?;
            // A base that says the same of all these pages fits as well as any.
            let fits = slope(table, samples, window);
            fits.is_none_or(|fit| fit.slope >= CURRENT_SLOPE).then(|| Identity {
                base: u16::try_from(found.index).unwrap_or(0),
                error: found.error,
                from_known_pages: true,
                is_new: false,
            })
        });
        if identity.is_none() && self.looks < LOOKS {
            return Next::Stage(Stage::Choosing);
        }
        Next::Found(identity.or_else(|| {
            // The base as it was just seen, where it fits none.
            let table = measured(&own.model, samples, window).filter(|_| !samples.is_empty())?;
            let base = own.model.keep(table);
            Some(Identity { base, error: 0.0, from_known_pages: true, is_new: true })
        }))
    }

    /// Weighs some pages of which nothing is known under a base; after the last base the likeliest
    /// one is taken, or pages are looked at again.
    fn weigh_next(
        &mut self,
        known: &Known<'_>,
        eyes: &mut Eyes,
        tick: u32,
        base: usize,
        mut nats: [f32; BLIND_BASES],
    ) -> Next {
        let (core, level) = (self.core, self.level);
        let Some(own) = &known.sides[side(level)] else { return Next::Found(None) };
        if let Some(table) = own.model.bases().get(base).filter(|_| base < BLIND_BASES) {
            let best = self.nats.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            if self.nats[base] < best - OUT_NATS {
                return Next::Stage(Stage::Weighing { base: base + 1, nats });
            }
            if eyes.weighing.is_none() {
                let window = eyes.look.window(tick);
                eyes.weighing = Weighing::new(&own.model, table, eyes.look.samples(), window);
            }
            let whole = match &mut eyes.weighing {
                Some(weighing) => weighing.go_on(eyes.look.samples()),
                None => Some(f32::NEG_INFINITY),
            };
            let Some(evidence) = whole else {
                return Next::Stage(Stage::Weighing { base, nats });
            };
            eyes.weighing = None;
            let last = known.atlas.core_base(core, level);
            nats[base] = evidence + if last == Some(base) { SEEN_LAST_NATS } else { 0.0 };
            return Next::Stage(Stage::Weighing { base: base + 1, nats });
        }
        let found = likeliest(known, level, &nats);
        let sure = found.is_some_and(|found| found.error < SURE);
        if !sure && self.looks < BLIND_LOOKS && eyes.look.has_room() {
            self.nats = nats;
            eyes.look.again(core, level, &mut eyes.dice);
            return Next::Stage(Stage::Peering);
        }
        Next::Found(found)
    }

    /// Notes the current base of the core.
    fn end(&self, known: &mut Known<'_>, now_ns: u64, found: Option<Identity>) {
        let (core, level) = (self.core, self.level);
        if let Some(base) = self.verifies {
            if found.is_none_or(|found| is_same(known, level, base, found.base)) {
                return known.prove(core, level);
            }
            known.lose_level(core, level);
        }
        known.set_base(core, level, found, now_ns + AGAIN_NS);
    }
}

/// The base under which pages of unknown codes are likeliest.
fn likeliest(known: &Known<'_>, level: Level, nats: &[f32; BLIND_BASES]) -> Option<Identity> {
    let own = known.sides[side(level)].as_ref()?;
    let bases = own.model.bases();
    let best = (0..nats.len()).max_by(|a, b| nats[*a].total_cmp(&nats[*b]))?;
    let table = bases.get(best)?;
    // Bases that predict the same, if pages had other keys, are as good: what is decoded in one
    // of them is right for this core.
    let differs = |place: usize| {
        let near = nats[place] - nats[best] > NEGLIGIBLE_NATS;
        near && place != best && !own.model.are_twins(table, &bases[place])
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

/// Whether pages cannot tell two bases apart.
fn is_same(known: &Known<'_>, level: Level, a: u16, b: u16) -> bool {
    let Some(own) = &known.sides[side(level)] else { return true };
    a == b || own.model.are_twins(own.model.base(a), own.model.base(b))
}
