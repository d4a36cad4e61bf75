//! Epochs: whether a core still wears its base, and whether pages still have their frames.
//!
//! A base that changed is identified again at once. A page whose frame is seen to be another one
//! is told of at once; where frames may not be known, pages that no longer look like their codes
//! are decoded once more, and told of when that gives another code.

use super::classifier::Classifier;
use super::compare::slope;
use super::identify::WORN_SLOPE;
use super::look::Among;
use super::notes::{block_of, side};
use super::number::page;
use super::timing::Timing;
use isochrone_atlas::{Codebook, CodedSample, Decoder, identify_base};
use isochrone_os::OsError;
use isochrone_units::{CoreId, Level, PageAddr};

/// Pages whose frames are compared in one epoch.
const FRAMES: usize = 512;
/// Pages whose code in memory is decoded again in one epoch where frames may not be known: they
/// take tens of loads, so few.
const DECODED_AGAIN: u32 = 16;
/// Pages below which an epoch has nothing to look at.
const LEAST_PAGES: usize = 16;
/// Looks until a base is believed to have changed.
const LOOKS: usize = 3;
/// Bases that are compared in an epoch: each costs some 30 microseconds. With more of them only
/// one that is unlike the base worn is noticed.
const COMPARED: usize = 16;
/// Probability of error at which another base is believed to be worn.
const OTHER_ERROR: f32 = 1e-3;
/// Odds, in nats, at which a page is doubted: a few of a hundred are, of which nothing changed.
const DOUBT_NATS: f32 = 3.0;

/// What an epoch found.
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

impl Classifier<'_> {
    /// Looks at the core that runs this and at some of the pages, in half a millisecond or so;
    /// where the base changed, in as long as [`Classifier::identify`] takes on top.
    ///
    /// # Errors
    /// [`OsError`] where loads cannot be timed here.
    pub fn check(&mut self, timing: &mut impl Timing) -> Result<Epoch, OsError> {
        let begin = timing.now_ns();
        let core = timing.core();
        let mut epoch = Epoch::default();
        let framed = self.compare_frames(timing, &mut epoch);
        let open =
            |level: &Level| self.sides[side(*level)].as_ref().is_some_and(|own| !own.given_up);
        let level = Level::ALL.into_iter().find(open);
        let Some(level) = level else { return Ok(epoch) };
        if self.base_of(core, level).is_none() {
            epoch.lost = true;
            return Ok(epoch);
        }
        match self.still_worn(timing, core, level)? {
            Some(true) if !framed => epoch.doubted += self.doubt_seen(core, level),
            Some(true) | None => {}
            Some(false) => {
                let before = self.worn(core);
                self.lose_base(core);
                let found = self.identify(timing)?;
                epoch.lost = found[side(level)].is_none();
                epoch.moved = self.worn(core) != before;
            }
        }
        if !framed && !epoch.lost {
            epoch.doubted += self.doubt_in_turn();
        }
        self.stats.busy_ns += timing.now_ns() - begin;
        Ok(epoch)
    }

    /// Compares the frames of the next pages with those noted; false where they may not be known.
    fn compare_frames(&mut self, timing: &impl Timing, epoch: &mut Epoch) -> bool {
        const TOGETHER: usize = 64;
        let pages = self.notes.pages();
        let mut known = false;
        for _ in 0..FRAMES.min(pages).div_ceil(TOGETHER) {
            let first = self.checked;
            if !self.holds(first) {
                self.checked = 0;
                break;
            }
            let mut frames = [None; TOGETHER];
            timing.frames(PageAddr(u64::from(first)), &mut frames);
            for (of, frame) in (first..).zip(frames) {
                known = known || frame.is_some();
                if self.holds(of) && self.notes.set_frame(of, frame) {
                    epoch.replaced += 1;
                    self.forget_frame(of, frame);
                }
            }
            self.checked = first + page(TOGETHER);
        }
        if !self.holds(self.checked) {
            self.checked = 0;
        }
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

    /// Whether confirmed pages still look as the core's base says; `None` where there are too few
    /// of them.
    fn still_worn(
        &mut self,
        timing: &mut impl Timing,
        core: CoreId,
        level: Level,
    ) -> Result<Option<bool>, OsError> {
        self.confirming = None;
        self.look.clear();
        for _ in 0..LOOKS {
            let picks = (&self.notes, &mut self.dice);
            if !self.look.begin((core, level), (Among::Confirmed, LEAST_PAGES), picks) {
                return Ok(None);
            }
            if !self.look_once(timing, level, u64::MAX)? {
                // The thread is on another core now: that one is another epoch's affair.
                return Ok(None);
            }
            let window = self.look.window(timing.tick_cycles());
            let Some(base) = self.base_of(core, level) else { return Ok(None) };
            let Some(own) = &self.sides[side(level)] else { return Ok(None) };
            let fit = slope(own.model.base(base), self.look.samples(), window);
            let Some(fit) = fit else { return Ok(None) };
            if self.better_base(level, base).is_some() {
                return Ok(Some(false));
            }
            if fit.slope >= WORN_SLOPE {
                return Ok(Some(true));
            }
            // Far below, and not by chance: one look is enough.
            if fit.slope + 5.0 * fit.error < WORN_SLOPE {
                return Ok(Some(false));
            }
        }
        Ok(Some(false))
    }

    /// Another base that the samples are of for certain, though they may be much like this one's.
    pub(super) fn better_base(&self, level: Level, base: u16) -> Option<u16> {
        let own = self.sides[side(level)].as_ref()?;
        let bases = own.model.bases();
        if bases.len() > COMPARED {
            return None;
        }
        let found = identify_base(bases, self.look.samples(), own.model.noise())?;
        let sure = found.error < OTHER_ERROR && found.index != usize::from(base);
        // Bases that are one but for the noise of measuring them are not worth a change.
        let alike = own.model.are_alike(own.model.base(base), bases.get(found.index)?);
        (sure && !alike).then(|| u16::try_from(found.index).ok()).flatten()
    }

    /// Pages of the last look that no longer look like their codes are decoded again.
    fn doubt_seen(&mut self, core: CoreId, level: Level) -> u32 {
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
        for (place, run) in page_runs_of(self.look.samples(), self.look.pages().len()) {
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
