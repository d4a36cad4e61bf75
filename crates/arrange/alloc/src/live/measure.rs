//! The latency of every single line, measured: what placement is compared with in benchmarks.
//!
//! It takes a thousand times as long as decoding, and knows nothing of bases: if the core moves
//! meanwhile, the means are of two bases. [`Classifier::check`](super::Classifier::check) before
//! and after says whether it did.

use super::batch::{Batch, Progress};
use super::dice::Dice;
use super::kept::{ENOUGH, keep_window};
use super::number::{cycles, index, real};
use super::timing::Timing;
use isochrone_os::OsError;
use isochrone_os::table::Table;
use isochrone_units::{LINES_PER_PAGE, Level, LineAddr};

/// Distance, in lines, of the lines of one page that are timed together: a load brings its
/// neighbours along.
const APART: usize = 8;
/// Times that a batch is done again when the thread is found elsewhere.
const TRIES: usize = 8;

/// Mean latencies of the lines of some pages, from one core at one level.
#[derive(Debug)]
pub struct LineMeans {
    batch: Batch,
    places: Table<u32>,
    values: Table<f32>,
    room: Table<f32>,
    sums: Table<f32>,
    counts: Table<u32>,
    common: (f32, f32),
    pages: usize,
    dice: Dice,
}

impl LineMeans {
    /// Pages that are measured at a time: their translations stay in a second-level TLB.
    pub const PAGES: usize = 512;

    /// Room for as many pages as are measured at a time ([`Self::PAGES`]).
    ///
    /// # Errors
    /// [`OsError`] where there is no address space.
    pub fn new(seed: u64) -> Result<Self, OsError> {
        let together = Self::PAGES * LINES_PER_PAGE / APART;
        Ok(Self {
            batch: Batch::new(together, Level::Llc)?,
            places: Table::zeroed(together)?,
            values: Table::zeroed(together)?,
            room: Table::zeroed(ENOUGH)?,
            sums: Table::zeroed(Self::PAGES * LINES_PER_PAGE)?,
            counts: Table::zeroed(Self::PAGES * LINES_PER_PAGE)?,
            common: (0.0, 0.0),
            pages: 0,
            dice: Dice::new(seed),
        })
    }

    /// Times every line of `pages` (of the first [`Self::PAGES`] of them) `repeats` times from the core that
    /// runs this, and forgets what was measured before.
    ///
    /// # Errors
    /// [`OsError`] where loads cannot be timed here, or the thread does not stay on a core.
    pub fn measure(
        &mut self,
        timing: &mut impl Timing,
        level: Level,
        pages: &[u32],
        repeats: u32,
    ) -> Result<(), OsError> {
        let pages = &pages[..pages.len().min(Self::PAGES)];
        self.pages = pages.len();
        self.common = (0.0, 0.0);
        self.sums.fill(0.0);
        self.counts.fill(0);
        for _ in 0..repeats {
            let turn = self.dice.below(8);
            for residue in 0..APART {
                self.draw(timing, level, pages, residue + index(turn));
                self.time(timing)?;
                self.take(timing);
            }
        }
        Ok(())
    }

    /// An eighth of all lines: of each page those with one residue modulo 8, another one from page
    /// to page, so that what a batch has in common is the same for all batches.
    fn draw(&mut self, timing: &mut impl Timing, level: Level, pages: &[u32], residue: usize) {
        self.batch.begin(timing.core(), level);
        timing.abandon();
        let mut end = 0;
        for step in 0..LINES_PER_PAGE / APART {
            let begin = end;
            for place in 0..pages.len() {
                let line = (step + place / APART) % (LINES_PER_PAGE / APART) * APART
                    + (residue + place) % APART;
                self.places[end] = super::number::page(place * LINES_PER_PAGE + line);
                end += 1;
            }
            self.dice.shuffle(&mut self.places[begin..end]);
        }
        for place in &self.places[..end] {
            let (of, line) = (index(*place) / LINES_PER_PAGE, u64::from(*place) % 64);
            self.batch.push(LineAddr(u64::from(pages[of]) * 64 + line));
        }
    }

    fn time(&mut self, timing: &mut impl Timing) -> Result<(), OsError> {
        for _ in 0..TRIES {
            if self.batch.run(timing, u64::MAX)? == Progress::Done {
                return Ok(());
            }
            timing.abandon();
            self.batch.restart(timing.core());
        }
        Err(OsError {
            what: "cannot measure lines: the thread does not stay on its core",
            errno: 11,
            advice: "pin the thread before measuring",
        })
    }

    fn take(&mut self, timing: &impl Timing) {
        let count = self.batch.len();
        let overhead = timing.overhead_cycles();
        for (value, sample) in self.values.iter_mut().zip(self.batch.samples()) {
            *value = cycles(sample.0) - overhead;
        }
        let values = &self.values[..count];
        let window = keep_window(values, &mut self.room, timing.tick_cycles());
        let kept = values.iter().filter(|value| window.holds(**value));
        let (sum, number) = kept.fold((0.0_f32, 0_usize), |(s, n), v| (s + v, n + 1));
        if number == 0 {
            return;
        }
        let mean = sum / real(number);
        self.common = (self.common.0 + mean, self.common.1 + 1.0);
        for (place, value) in self.places[..count].iter().zip(values) {
            if window.holds(*value) {
                // The clock rate drifts: deviations are what is added up.
                self.sums[index(*place)] += value - mean;
                self.counts[index(*place)] += 1;
            }
        }
    }

    /// Mean latency of a line, cycles: `place` is the page's place in what was measured. `None`
    /// where no sample was kept.
    #[must_use]
    pub fn mean(&self, place: usize, line: u8) -> Option<f32> {
        let at = place.checked_mul(LINES_PER_PAGE)? + usize::from(line % 64);
        let count = *self.counts.get(at).filter(|_| place < self.pages)?;
        let common = self.common.0 / self.common.1;
        (count > 0).then(|| common + self.sums[at] / real(index(count)))
    }
}
