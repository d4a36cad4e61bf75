//! Epochs: whether a core still wears its base, and whether pages still have their frames.
//!
//! A base that changed is identified again at once. A page whose frame is seen to be another one
//! is told of at once; where frames may not be known, pages that no longer look like their codes
//! are decoded once more, and told of when that gives another code.

use super::batch::Progress;
use super::classifier::{Classifier, Doing};
use super::compare::{BLANK, COMPARED_SAMPLES, slope, some_of};
use super::identify::WORN_SLOPE;
use super::look::Among;
use super::notes::{block_of, side};
use super::number::page;
use super::timing::Timing;
use isochrone_atlas::{BaseContest, Codebook, CodedSample, Decoder};
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
/// Bases that are compared in an epoch: each costs some 30 microseconds. With more of them only
/// one that is unlike the base worn is noticed.
const COMPARED: usize = 16;
/// Probability of error at which another base is believed to be worn.
const OTHER_ERROR: f32 = 1e-3;
/// Odds, in nats, at which a page is doubted: a few of a hundred are, of which nothing changed.
const DOUBT_NATS: f32 = 3.0;
/// Pages that are doubted or not in one step: some 20 microseconds.
const DOUBTED_TOGETHER: usize = 32;

/// What a visit found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Epoch {
    /// The core wears another base now: its orders have to be made anew.
    pub moved: bool,
    /// It is not known what the core wears.
    pub lost: bool,
    /// Pages whose frame was replaced; they come from [`Classifier::next_event`].
    pub replaced: u32,
    /// Pages that will be decoded again, since they no longer look like their codes, or in turn.
    pub doubted: u32,
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

impl Classifier<'_> {
    /// Has the core that runs this visited at the next slices: whether it still wears its base,
    /// and whether pages still have their frames. Half a millisecond of work; where the base
    /// changed, that of [`Self::identify`] on top.
    pub fn ask_check(&mut self, core: CoreId) {
        self.due = Some(core);
    }

    /// Visits the core that runs this at once; see [`Self::ask_check`].
    ///
    /// # Errors
    /// [`OsError`] where loads cannot be timed here.
    pub fn check(&mut self, timing: &mut impl Timing) -> Result<Epoch, OsError> {
        let begin = timing.now_ns();
        let core = timing.core();
        let worn = |found: &Self| Level::ALL.map(|level| found.base_of(core, level));
        let before = worn(self);
        self.begin_visit(core);
        self.finish(timing)?;
        self.stats.busy_ns += timing.now_ns() - begin;
        if self.epoch.moved {
            self.identify(timing)?;
        }
        let unknown = |level: &Level| self.counts(*level) && self.base_of(core, *level).is_none();
        self.epoch.lost = Level::ALL.iter().any(unknown);
        self.epoch.moved = worn(self) != before;
        Ok(self.epoch)
    }

    pub(super) fn begin_visit(&mut self, core: CoreId) {
        self.epoch = Epoch::default();
        let Some(level) = Level::ALL.into_iter().find(|level| self.counts(*level)) else { return };
        let stage = Stage::Frames(FRAMES.min(self.notes.pages()));
        self.look.turn_to(core);
        self.doing = Doing::Visiting(Visit { core, level, looks: 0, framed: false, stage });
    }

    /// One step of a visit.
    pub(super) fn visit(
        &mut self,
        timing: &mut impl Timing,
        mut visit: Visit,
        until: u64,
    ) -> Result<Progress, OsError> {
        let (core, level) = (visit.core, visit.level);
        visit.stage = match visit.stage {
            Stage::Frames(0) => {
                self.look.clear();
                Stage::Choosing
            }
            Stage::Frames(left) => {
                visit.framed |= self.compare_frames(timing);
                Stage::Frames(left.saturating_sub(FRAMES_TOGETHER))
            }
            Stage::Choosing => {
                timing.abandon();
                let known = self.base_of(core, level).is_some();
                let picks = (&self.notes, &mut self.dice);
                let among = (Among::Confirmed, LEAST_PAGES);
                if !known || !self.look.begin((core, level), among, picks) {
                    self.end_visit(&visit, false);
                    return Ok(Progress::Done);
                }
                Stage::Looking
            }
            Stage::Looking => match self.look_on(timing, level, until)? {
                Progress::Done => {
                    visit.looks += 1;
                    Stage::Comparing(BaseContest::new())
                }
                Progress::Paused => {
                    self.doing = Doing::Visiting(visit);
                    return Ok(Progress::Paused);
                }
                // That core is another visit's affair.
                other => return Ok(other),
            },
            Stage::Comparing(contest) => match self.compare_one(timing, &visit, contest) {
                Some(stage) => stage,
                None => return Ok(Progress::Done),
            },
            Stage::Doubting(first) => {
                if first >= self.look.pages().len() {
                    self.end_visit(&visit, true);
                    return Ok(Progress::Done);
                }
                self.epoch.doubted += self.doubt_seen(core, level, first);
                Stage::Doubting(first + DOUBTED_TOGETHER)
            }
        };
        self.doing = Doing::Visiting(visit);
        Ok(Progress::Done)
    }

    fn end_visit(&mut self, visit: &Visit, worn: bool) {
        if !visit.framed && worn {
            self.epoch.doubted += self.doubt_in_turn();
        }
    }

    /// Compares the frames of the next pages with those noted; false where they may not be known.
    fn compare_frames(&mut self, timing: &impl Timing) -> bool {
        let first = self.checked;
        let mut known = false;
        if self.holds(first) {
            let mut frames = [None; FRAMES_TOGETHER];
            timing.frames(PageAddr(u64::from(first)), &mut frames);
            for (of, frame) in (first..).zip(frames) {
                known = known || frame.is_some();
                if self.holds(of) && self.notes.set_frame(of, frame) {
                    self.epoch.replaced += 1;
                    self.forget_frame(of, frame);
                }
            }
        }
        let next = first + page(FRAMES_TOGETHER);
        self.checked = if self.holds(next) { next } else { 0 };
        known
    }

    /// A page has another frame: nothing that was known of it holds.
    fn forget_frame(&mut self, of: u32, frame: Option<u64>) {
        self.replaced(of);
        for level in Level::ALL {
            let Some(own) = &mut self.sides[side(level)] else { continue };
            let block = own.model.block_pages();
            let first = block_of(of, block);
            (first..).take(block).for_each(|of| self.notes.forget(level, of));
            if !self.notes.is_doubted(level, first) {
                own.stream.decode_again(first);
            }
            (first..).take(block).for_each(|of| self.notes.set_doubted(level, of, false));
        }
        self.ask_atlas(of, frame);
    }

    /// Compares what was seen with one base more; after the last it is decided whether the core
    /// still wears its own, or looked once more. `None` when the visit has ended.
    fn compare_one(
        &mut self,
        timing: &impl Timing,
        visit: &Visit,
        mut contest: BaseContest,
    ) -> Option<Stage> {
        let (core, level) = (visit.core, visit.level);
        let base = self.base_of(core, level)?;
        if self.contest_next(level, &mut contest) {
            return Some(Stage::Comparing(contest));
        }
        let window = self.look.window(timing.tick_cycles());
        let own = self.sides[side(level)].as_ref()?;
        let Some(fit) = slope(own.model.base(base), self.look.samples(), window) else {
            // The base says the same of all these pages: nothing is to be seen here.
            self.end_visit(visit, false);
            return None;
        };
        let better = self.better_base(level, base, &contest).is_some();
        // Far below, and not by chance: one look is enough.
        let strange = fit.slope + 5.0 * fit.error < WORN_SLOPE;
        if !better && fit.slope >= WORN_SLOPE {
            if visit.framed {
                self.end_visit(visit, true);
                return None;
            }
            return Some(Stage::Doubting(0));
        }
        if !better && !strange && visit.looks < LOOKS {
            return Some(Stage::Choosing);
        }
        self.epoch.moved = true;
        self.note_move(core);
        None
    }

    /// Another base that the samples are of for certain, though they may be much like this one's.
    pub(super) fn better_base(
        &self,
        level: Level,
        base: u16,
        contest: &BaseContest,
    ) -> Option<u16> {
        let own = self.sides[side(level)].as_ref()?;
        let bases = own.model.bases();
        let found = contest.best()?;
        let sure = found.error < OTHER_ERROR && found.index != usize::from(base);
        // Bases that are one but for the noise of measuring them are not worth a change.
        let alike = own.model.are_alike(own.model.base(base), bases.get(found.index)?);
        (sure && !alike).then(|| u16::try_from(found.index).ok()).flatten()
    }

    /// Compares what was seen with one base more. False if there is none left, or if there are so
    /// many that none is compared.
    pub(super) fn contest_next(&self, level: Level, contest: &mut BaseContest) -> bool {
        let Some(own) = &self.sides[side(level)] else { return false };
        let bases = own.model.bases();
        let Some(next) = bases.get(contest.compared()).filter(|_| bases.len() <= COMPARED) else {
            return false;
        };
        let mut room = [BLANK; COMPARED_SAMPLES];
        contest.add(next, some_of(self.look.samples(), &mut room), own.model.noise());
        true
    }

    /// Pages of the last look, from one on, that no longer look like their codes are decoded again.
    fn doubt_seen(&mut self, core: CoreId, level: Level, first: usize) -> u32 {
        let Some(base) = self.base_of(core, level) else { return 0 };
        let Some(own) = &mut self.sides[side(level)] else { return 0 };
        let table = own.model.base(base);
        let Some(book) = own.model.book(table) else { return 0 };
        let offset = {
            let kept = self.look.samples().iter();
            let mut sum = (0.0_f32, 0.0_f32);
            for sample in kept {
                let off = sample.cycles - table.latency_cycles(sample.code, sample.line);
                if off.abs() < 4.0 * own.model.noise_cycles {
                    sum = (sum.0 + off, sum.1 + 1.0);
                }
            }
            sum.0 / sum.1.max(1.0)
        };
        let mut doubted = 0;
        let runs = page_runs_of(self.look.samples(), self.look.pages().len());
        for (place, run) in runs.skip(first).take(DOUBTED_TOGETHER) {
            let of = self.look.pages()[place];
            let first = block_of(of, own.model.block_pages());
            if self.notes.is_doubted(level, first) || !is_strange(&book, run, offset) {
                continue;
            }
            self.notes.set_doubted(level, first, true);
            own.stream.decode_again(first);
            doubted += 1;
        }
        doubted
    }

    /// Some pages are decoded again in memory, whatever they look like.
    fn doubt_in_turn(&mut self) -> u32 {
        let level = Level::Dram;
        let Some(own) = &mut self.sides[side(level)] else { return 0 };
        let mut doubted = 0;
        for _ in 0..DECODED_AGAIN {
            let of = self.dice.below(page(self.notes.pages()));
            let first = block_of(of, own.model.block_pages());
            let known = self.notes.is_confirmed(level, first);
            if known && !self.notes.is_doubted(level, first) {
                self.notes.set_doubted(level, first, true);
                own.stream.decode_again(first);
                doubted += 1;
            }
        }
        doubted
    }
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
