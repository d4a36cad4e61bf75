//! A look at some pages from one core, to see its current base.
//!
//! Pages are chosen at random, lines of one page do not neighbour each other (a load brings the
//! next line along), consecutive loads go to different pages, and no page's lines come at a stride
//! (prefetchers would know the next one). It only takes samples.

use super::batch::{Batch, Progress};
use super::dice::Dice;
use super::kept::{ENOUGH, Window, keep_window};
use super::notes::{Notes, block_of};
use super::number::{cycles, page};
use super::timing::Timing;
use isochrone_atlas::{Code, CodedSample, Period};
use isochrone_os::OsError;
use isochrone_os::table::{Stack, Table};
use isochrone_units::{CoreId, Level, LineAddr};

/// Pages of a look at most.
const LOOK_PAGES: usize = 128;
/// Samples of one look at most.
const SAMPLES: usize = 2048;

/// How many lines of how many pages are loaded in one look.
#[derive(Clone, Copy, Debug)]
struct Shape {
    pages: usize,
    /// Lines of each page, `step` apart.
    lines: usize,
    /// Distance of lines: odd, so that all residues modulo 8 are among them, and large enough that
    /// no load brings in another one's line.
    step: usize,
    /// Loads of each line. In the last-level cache it is one: the second would find it nearer.
    turns: usize,
}

impl Shape {
    /// Known pages are each worth the same; a page of which nothing is known has to show its code
    /// first, so of those there are fewer, and more lines of each.
    const fn of(level: Level, known: bool) -> Self {
        match (level, known) {
            (Level::Llc, true) => Self { pages: LOOK_PAGES, lines: 8, step: 9, turns: 1 },
            (Level::Llc, false) => Self { pages: 24, lines: 22, step: 3, turns: 1 },
            (Level::Dram, _) => Self { pages: 32, lines: 8, step: 9, turns: 6 },
        }
    }
}

/// Samples that are kept over several looks.
const KEPT: usize = 4 * SAMPLES;
/// Tries to find a page that will do, for each that is wanted.
const TRIES: usize = 8;

/// Pages that are looked at, and what was seen of them.
#[derive(Debug)]
pub(super) struct Look {
    batch: Batch,
    /// Of each load the page's place among the pages, and the line.
    whats: Stack<(u8, u8)>,
    pages: Table<u32>,
    chosen: usize,
    values: Table<f32>,
    samples: Stack<CodedSample>,
    room: Table<f32>,
    known: bool,
    /// The code of all pages, where nothing has to be known of a page.
    only: Option<Code>,
    shape: Shape,
}

/// Which pages may be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Among {
    /// Any; nothing need be known of them.
    Any,
    /// Any, since all have this code.
    Alike(Code),
    /// Those whose code is known.
    Known,
    /// Those whose code was confirmed.
    Confirmed,
}

impl Look {
    pub(super) fn new() -> Result<Self, OsError> {
        Ok(Self {
            batch: Batch::new(SAMPLES, Level::Llc)?,
            whats: Stack::new(SAMPLES)?,
            pages: Table::zeroed(LOOK_PAGES)?,
            chosen: 0,
            values: Table::zeroed(SAMPLES)?,
            samples: Stack::new(KEPT)?,
            room: Table::zeroed(ENOUGH)?,
            known: false,
            only: None,
            shape: Shape::of(Level::Llc, true),
        })
    }

    /// Forgets what was seen.
    pub(super) fn clear(&mut self) {
        self.samples.truncate(0);
    }

    /// What was seen so far. Of pages of which nothing is known, `code` is the number of the page
    /// in the look.
    pub(super) fn samples(&self) -> &[CodedSample] {
        &self.samples
    }

    /// Whether another look would still be kept.
    pub(super) fn has_room(&self) -> bool {
        self.samples.len() + SAMPLES <= KEPT
    }

    /// Puts all samples of a page together, those of several looks at the same pages too.
    pub(super) fn sort(&mut self) {
        self.samples.sort_unstable_by_key(|sample| sample.code);
    }

    /// Which samples count.
    pub(super) fn window(&mut self, tick: u32) -> Window {
        let step = self.samples.len().div_ceil(self.values.len()).max(1);
        let some = self.samples.iter().step_by(step);
        let mut used = 0;
        for (slot, sample) in self.values.iter_mut().zip(some) {
            *slot = sample.cycles;
            used += 1;
        }
        keep_window(&self.values[..used], &mut self.room, tick)
    }

    /// The pages that were looked at last.
    pub(super) fn pages(&self) -> &[u32] {
        &self.pages[..self.chosen]
    }

    /// Chooses pages and lines. False where fewer than `least` pages will do.
    pub(super) fn begin(
        &mut self,
        core: CoreId,
        level: Level,
        among: Among,
        least: usize,
        notes: &Notes,
        dice: &mut Dice,
    ) -> bool {
        self.only = if let Among::Alike(code) = among { Some(code) } else { None };
        self.known = among != Among::Any;
        self.shape = Shape::of(level, self.known);
        self.choose(level, among, notes, dice, self.shape.pages);
        self.fill(core, level, dice);
        self.chosen >= least
    }

    /// The same pages once more.
    pub(super) fn again(&mut self, core: CoreId, level: Level, dice: &mut Dice) {
        self.fill(core, level, dice);
    }

    fn fill(&mut self, core: CoreId, level: Level, dice: &mut Dice) {
        let Shape { lines, step, turns, .. } = self.shape;
        self.batch.begin(core, level);
        self.whats.truncate(0);
        let mut order = [0_u8; 64];
        for (line, slot) in (0_u8..).step_by(step).zip(&mut order[..lines]) {
            *slot = line;
        }
        for _ in 0..turns {
            dice.shuffle(&mut order[..lines]);
            for turn in 0..lines {
                let begin = self.whats.len();
                for place in 0..self.chosen {
                    // Every page has its lines in the same random order, from another one on.
                    let line = order[(turn + place) % lines];
                    self.whats.push((place.to_le_bytes()[0], line));
                }
                dice.shuffle(&mut self.whats[begin..]);
            }
        }
        for (place, line) in &*self.whats {
            let first = u64::from(self.pages[usize::from(*place)]) * 64;
            self.batch.push(LineAddr(first + u64::from(*line)));
        }
    }

    fn choose(&mut self, level: Level, among: Among, notes: &Notes, dice: &mut Dice, most: usize) {
        // A page that waits to be decoded again may have another frame, and many may: they say nothing of a base.
        let is_good = |of: u32| notes.is_known(level, of) && !notes.is_doubted(level, of);
        let fits = |of: u32| match among {
            Among::Any | Among::Alike(_) => true,
            Among::Known => is_good(of),
            Among::Confirmed => notes.is_confirmed(level, of) && is_good(of),
        };
        self.chosen = 0;
        let pages = notes.pages();
        if pages <= 2 * LOOK_PAGES {
            // Few enough to go through them all; a random start keeps it fair.
            let first = if pages > 0 { dice.below(page(pages)) } else { 0 };
            for step in 0..page(pages) {
                let of = (first + step) % page(pages);
                if self.chosen < most && fits(of) {
                    self.pages[self.chosen] = of;
                    self.chosen += 1;
                }
            }
        } else {
            for _ in 0..TRIES * LOOK_PAGES {
                let of = dice.below(page(pages));
                let new = fits(of) && !self.pages[..self.chosen].contains(&of);
                if new {
                    self.pages[self.chosen] = of;
                    self.chosen += 1;
                }
                if self.chosen == most {
                    break;
                }
            }
        }
        dice.shuffle(&mut self.pages[..self.chosen]);
    }

    /// Goes on until `until_ns`. When it is done its samples are among [`Self::samples`].
    pub(super) fn run(
        &mut self,
        timing: &mut impl Timing,
        notes: &Notes,
        level: Level,
        period: Period,
        until_ns: u64,
    ) -> Result<Progress, OsError> {
        let progress = self.batch.run(timing, until_ns)?;
        if progress == Progress::Done {
            self.keep(timing.overhead_cycles(), notes, level, period);
        }
        Ok(progress)
    }

    /// Notes the samples page by page, so that those of one page are a run.
    fn keep(&mut self, overhead: f32, notes: &Notes, level: Level, period: Period) {
        let begin = self.samples.len();
        let each = self.batch.len() / self.chosen.max(1);
        let blank = CodedSample { code: Code(0), line: 0, cycles: f32::NAN };
        for _ in 0..self.batch.len() {
            if !self.samples.push(blank) {
                return self.samples.truncate(begin);
            }
        }
        let mut taken = [0_u16; LOOK_PAGES];
        for ((place, line), sample) in self.whats.iter().zip(self.batch.samples()) {
            let of = self.pages[usize::from(*place)];
            let code = match self.only {
                Some(only) => only,
                None if self.known => notes.code(level, of),
                None => Code(u16::from(*place)),
            };
            // Of a page of unknown code the line is counted from the start of its block.
            let from = if self.known { 0 } else { of - block_of(of, period.lines() / 64) };
            let line = line.wrapping_add(from.to_le_bytes()[0].wrapping_mul(64));
            let nth = &mut taken[usize::from(*place)];
            let slot = begin + usize::from(*place) * each + usize::from(*nth);
            *nth += 1;
            self.samples[slot] = CodedSample { code, line, cycles: cycles(sample.0) - overhead };
        }
    }

    /// From now on it looks from this core.
    pub(super) fn turn_to(&mut self, core: CoreId) {
        self.batch.restart(core);
    }

    /// Where the lines of the look are put.
    pub(super) const fn level(&self) -> Level {
        self.batch.level()
    }

    /// The core from which it looks.
    pub(super) const fn core(&self) -> CoreId {
        self.batch.core()
    }
}
