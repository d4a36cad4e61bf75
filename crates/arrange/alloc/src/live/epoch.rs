//! Epochs: whether a core still has its base, and whether pages still have their frames.
//!
//! A base that changed is identified again at once. A page whose frame is seen to be another one
//! is told of at once; where frames may not be known, pages that no longer look like their codes
//! are decoded once more, and told of when that gives another code.

use super::batch::Progress;
use super::compare::{CURRENT_SLOPE, slope};
use super::eyes::{Eyes, Outcome, better_base};
use super::known::Known;
use super::look::Among;
use super::notes::{block_of, side};
use super::number::page;
use super::timing::Timing;
use isochrone_atlas::{BaseContest, Codebook, CodedSample, Decoder, PatternTable};
use isochrone_os::OsError;
use isochrone_units::{CoreId, Level, PageAddr};

/// Pages whose frames are compared in one epoch, and in one step of it.
const FRAMES: usize = 512;
const FRAMES_TOGETHER: usize = 64;
/// Pages whose code in memory is decoded again in one epoch where frames may not be known: they
/// take tens of loads, so few.
const DECODED_AGAIN: u32 = 16;
/// Pages below which an epoch has nothing to look at.
const LEAST_PAGES: usize = 16;
/// Looks until a base is believed to have changed.
const LOOKS: u32 = 3;
/// Odds, in nats, at which a page is doubted: a few of a hundred are, of which nothing changed.
const DOUBT_NATS: f32 = 3.0;
/// Pages that are doubted or not in one step: some 20 microseconds.
const DOUBTED_TOGETHER: usize = 32;

/// What a visit found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Epoch {
    /// The core has another base now: its orders have to be made anew.
    pub moved: bool,
    /// The current base of the core is not known.
    pub lost: bool,
    /// Pages whose frame was replaced; they come from [`super::Classifier::next_event`].
    pub replaced: u32,
    /// Pages that will be decoded again, since they no longer look like their codes, or in turn.
    pub doubted: u32,
}

/// What visits leave: what the last one found, and the page at which the next one goes on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Round {
    pub(super) epoch: Epoch,
    /// The page whose frame is compared next.
    next: u32,
}

/// A visit under way.
#[derive(Debug)]
pub(super) struct Visit {
    core: CoreId,
    level: Level,
    looks: u32,
    /// Frames may be known.
    framed: bool,
    stage: Stage,
}

/// How far a visit came.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// So many pages' frames are still to be compared.
    Frames(usize),
    /// Confirmed pages are to be chosen.
    Choosing,
    /// They are looked at.
    Looking,
    /// They are compared with one base after another.
    Comparing(BaseContest),
    /// Pages from this one of the look on may be doubted.
    Doubting(usize),
}

/// What comes after a stage: another one, or the end, at which the core has its base or nothing is
/// known of that.
enum Next {
    Stage(Stage),
    Same,
    Unknown,
    Moved,
}

impl Visit {
    /// Of a core at the first level that counts.
    pub(super) fn new(core: CoreId, known: &Known<'_>) -> Option<Self> {
        let level = Level::ALL.into_iter().find(|level| known.counts(*level))?;
        let stage = Stage::Frames(FRAMES.min(known.ledger.notes.pages()));
        Some(Self { core, level, looks: 0, framed: false, stage })
    }

    /// One step of it.
    pub(super) fn step(
        &mut self,
        known: &mut Known<'_>,
        eyes: &mut Eyes,
        round: &mut Round,
        timing: &mut impl Timing,
        until: u64,
    ) -> Result<Outcome, OsError> {
        let next = match self.stage {
            Stage::Frames(0) => {
                eyes.look.clear();
                Next::Stage(Stage::Choosing)
            }
            Stage::Frames(left) => {
                self.framed |= compare_frames(known, round, timing);
                Next::Stage(Stage::Frames(left.saturating_sub(FRAMES_TOGETHER)))
            }
            Stage::Choosing => {
                timing.abandon();
                self.choose(known, eyes)
            }
            Stage::Looking => match eyes.look_on(known, timing, self.level, until)? {
                Progress::Done => {
                    self.looks += 1;
                    Next::Stage(Stage::Comparing(BaseContest::new()))
                }
                Progress::Paused => return Ok(Outcome::Paused),
                // That core is another visit's affair.
                Progress::Elsewhere => return Ok(Outcome::Elsewhere),
                Progress::Stale => return Ok(Outcome::Stale),
            },
            Stage::Comparing(contest) => {
                self.compare_one(known, eyes, timing.tick_cycles(), contest)
            }
            Stage::Doubting(first) if first >= eyes.look.pages().len() => Next::Same,
            Stage::Doubting(first) => {
                round.epoch.doubted += self.doubt_seen(known, eyes, first);
                Next::Stage(Stage::Doubting(first + DOUBTED_TOGETHER))
            }
        };
        match next {
            Next::Stage(stage) => {
                self.stage = stage;
                return Ok(Outcome::Again);
            }
            Next::Same if !self.framed => round.epoch.doubted += doubt_in_turn(known, eyes),
            Next::Same | Next::Unknown => {}
            Next::Moved => {
                round.epoch.moved = true;
                known.note_move(self.core);
            }
        }
        Ok(Outcome::Ended)
    }

    fn choose(&self, known: &Known<'_>, eyes: &mut Eyes) -> Next {
        let (core, level) = (self.core, self.level);
        let is_known = known.base_of(core, level).is_some();
        if is_known && eyes.begin(known, core, level, Among::Confirmed, LEAST_PAGES) {
            Next::Stage(Stage::Looking)
        } else {
            Next::Unknown
        }
    }

    /// Compares what was seen with one base more; after the last it is decided whether the core
    /// still has its own, or looked once more.
    fn compare_one(
        &self,
        known: &Known<'_>,
        eyes: &mut Eyes,
        tick: u32,
        mut contest: BaseContest,
    ) -> Next {
        let level = self.level;
        let Some(base) = known.base_of(self.core, level) else { return Next::Unknown };
        if eyes.contest_next(known, level, &mut contest) {
            return Next::Stage(Stage::Comparing(contest));
        }
        let window = eyes.look.window(tick);
        let Some(own) = &known.sides[side(level)] else { return Next::Unknown };
        let Some(fit) = slope(own.model.base(base), eyes.look.samples(), window) else {
            // The base says the same of all these pages: nothing is to be seen here.
            return Next::Unknown;
        };
        let better = better_base(known, level, base, &contest).is_some();
        // Far below, and not by chance: one look is enough.
        let strange = fit.slope + 5.0 * fit.error < CURRENT_SLOPE;
        if !better && fit.slope >= CURRENT_SLOPE {
            return if self.framed { Next::Same } else { Next::Stage(Stage::Doubting(0)) };
        }
        if !better && !strange && self.looks < LOOKS {
            return Next::Stage(Stage::Choosing);
        }
        Next::Moved
    }

    /// Pages of the last look, from one on, that no longer look like their codes are decoded again.
    fn doubt_seen(&self, known: &mut Known<'_>, eyes: &Eyes, first: usize) -> u32 {
        let Some(base) = known.base_of(self.core, self.level) else { return 0 };
        let Some(own) = &known.sides[side(self.level)] else { return 0 };
        let (table, block) = (own.model.base(base), own.model.block_pages());
        let Some(book) = own.model.book(table) else { return 0 };
        let (samples, pages) = (eyes.look.samples(), eyes.look.pages());
        let offset = offset_of(table, samples, own.model.noise_cycles);
        let mut doubted = 0;
        for (place, run) in page_runs_of(samples, pages.len()).skip(first).take(DOUBTED_TOGETHER) {
            let of = block_of(pages[place], block);
            let waits = known.ledger.notes.is_doubted(self.level, of);
            if !waits && is_strange(&book, run, offset) && known.doubt(self.level, of) {
                doubted += 1;
            }
        }
        doubted
    }
}

/// Compares the frames of the next pages with those noted; false where they may not be known.
fn compare_frames(known: &mut Known<'_>, round: &mut Round, timing: &impl Timing) -> bool {
    let first = round.next;
    let mut seen = false;
    if known.ledger.holds(first) {
        let mut frames = [None; FRAMES_TOGETHER];
        timing.frames(PageAddr(u64::from(first)), &mut frames);
        for (of, frame) in (first..).zip(frames) {
            seen = seen || frame.is_some();
            if known.ledger.holds(of) && known.ledger.notes.set_frame(of, frame) {
                round.epoch.replaced += 1;
                known.forget_frame(of, frame);
            }
        }
    }
    let next = first + page(FRAMES_TOGETHER);
    round.next = if known.ledger.holds(next) { next } else { 0 };
    seen
}

/// Some pages are decoded again in memory, whatever they look like.
fn doubt_in_turn(known: &mut Known<'_>, eyes: &mut Eyes) -> u32 {
    let level = Level::Dram;
    let Some(own) = &known.sides[side(level)] else { return 0 };
    let block = own.model.block_pages();
    let mut doubted = 0;
    for _ in 0..DECODED_AGAIN {
        let of = block_of(eyes.dice.below(page(known.ledger.notes.pages())), block);
        if known.ledger.notes.is_confirmed(level, of) && known.doubt(level, of) {
            doubted += 1;
        }
    }
    doubted
}

/// What samples of pages of known codes have in common beyond the base.
fn offset_of(table: &PatternTable, samples: &[CodedSample], noise_cycles: f32) -> f32 {
    let mut sum = (0.0_f32, 0.0_f32);
    for sample in samples {
        let off = sample.cycles - table.latency_cycles(sample.code, sample.line);
        if off.abs() < 4.0 * noise_cycles {
            sum = (sum.0 + off, sum.1 + 1.0);
        }
    }
    sum.0 / sum.1.max(1.0)
}

/// The samples of each page of the last look, which has kept them page by page.
fn page_runs_of(
    samples: &[CodedSample],
    pages: usize,
) -> impl Iterator<Item = (usize, &[CodedSample])> {
    let each = samples.len().checked_div(pages).unwrap_or(0).max(1);
    // Several looks are of several sets of pages; of a single one every page has as many samples.
    let whole = samples.len() == each * pages;
    samples.chunks_exact(each).enumerate().filter(move |_| whole)
}

/// Whether another code fits samples of a page better than the one that it had.
fn is_strange(book: &Codebook, run: &[CodedSample], offset: f32) -> bool {
    let Some(code) = run.first().map(|sample| sample.code) else { return false };
    let mut decoder = Decoder::new(book);
    decoder.favour(book, code, DOUBT_NATS);
    for sample in run {
        decoder.add(book, sample.line, sample.cycles - offset);
    }
    decoder.best(book).code != book.canonical(code)
}
