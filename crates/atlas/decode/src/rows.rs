//! The matched filter for many pages and many codes: what each reading says of every code is worked out
//! once, and a sample then adds one row of small whole numbers.
//!
//! [`isochrone_atlas::Decoder`] looks every code's penalty up for every sample, which is right for a few pages or
//! few codes. With a thousand codes that costs more than the load itself. Here readings are rounded to
//! buckets, penalties to parts of a nat ([`Units`]), and a row holds the penalties of one bucket by canonical
//! index; the row of line `i` is the same one, its places XORed with `i`. A page's first samples are added
//! to the scores of all codes ([`Scores`]), in runs that become vector code; after them few codes are
//! left, and a page keeps these alone ([`Shortlist`]). The caller gives the memory; nothing here allocates.

use isochrone_atlas::{Codebook, PENALTY_ENTRIES, PatternTable, Penalties, TABLE_ENTRIES};

use core::ops::Range;

mod scores;
mod verdict;

pub use scores::{LISTED, ScoreState, Scores, ScoresMut, Shortlist, ShortlistMut};
pub use verdict::{CLOSE, Verdict};

/// The entry of a penalty table for a residual of 0.
const MIDDLE: f32 = 128.0;
/// Parts of a nat that scores are counted in at least: an error of 1/48 nat a sample, less than any density is
/// known to.
const COARSE: f32 = 24.0;
/// The same at most.
const FINE: f32 = 96.0;
/// Codes that are added together, so that a row is read in runs.
const RUN: usize = 8;
/// Codes of one class that is kept or left out as a whole.
const GROUP: usize = 64;
/// Groups of a table.
const GROUPS: usize = TABLE_ENTRIES / GROUP;
/// Score of what is no answer; far from overflow, and farther behind than anything that counts.
const NEVER: i16 = i16::MAX / 2;
/// Coarse units within which a code counts.
const ODDS: usize = 256;

/// How finely penalties are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Units {
    /// In 24ths of a nat.
    Coarse,
    /// As finely as a byte allows if each reading's are counted from its likeliest code, up to 96ths of a nat.
    /// Where a decision takes a hundred loads and the clock has few readings, what is rounded adds up: it is
    /// the same for every load of a page.
    Fine,
}

/// One number for each code of a group, run by run.
pub type Group<T> = [[T; RUN]; GROUP / RUN];

/// What is known of the rows of one book besides their cells.
#[derive(Clone, Debug)]
pub struct RowHead {
    /// By answer (its code): its prior, or [`NEVER`].
    prior: [Group<i16>; GROUPS],
    groups: usize,
    answers: usize,
    first_cycles: f32,
    buckets_a_cycle: f32,
    buckets: usize,
    mask: u8,
    arrangements: Arrangements,
    units: Units,
    /// Units in a nat.
    a_nat: f32,
    /// Odds of a code by how many coarse units it is behind the best.
    odds: [f32; ODDS],
}

/// What each reading says of every code of one book.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'b> {
    head: &'b RowHead,
    cells: &'b [u8],
}

/// The shape of the rows of a book.
struct Extent {
    first_cycles: f32,
    step_cycles: f32,
    buckets: usize,
    codes: usize,
    arrangements: Arrangements,
}

/// Which of a line's lowest bits change the order of a row: where lines come in groups that are all alike, or
/// all lines are, there are fewer rows.
#[derive(Clone, Copy, Debug)]
struct Arrangements {
    /// Bits that matter.
    mask: usize,
    /// How many there are: a power of two, [`RUN`] at most.
    count: usize,
}

impl Arrangements {
    const ALL: Self = Self { mask: RUN - 1, count: RUN };

    /// Of a base. Coarse rows have all of them whatever the base is: their step follows from their bytes.
    fn of(values: &[f32], units: Units) -> Self {
        let Units::Fine = units else { return Self::ALL };
        let differs = |bit: usize| {
            let pairs =
                values.iter().enumerate().filter_map(|(i, a)| Some((a, values.get(i ^ bit)?)));
            pairs.into_iter().any(|(a, b)| a.to_bits() != b.to_bits())
        };
        let mask = [1, 2, 4].into_iter().filter(|bit| differs(*bit)).sum::<usize>();
        Self { mask, count: 1 << mask.count_ones() }
    }

    /// The number of the arrangement of a line.
    const fn place(self, low: usize) -> usize {
        let (mut place, mut next, mut bit) = (0, 1, 1);
        while bit < RUN {
            if self.mask & bit != 0 {
                place += if low & bit != 0 { next } else { 0 };
                next *= 2;
            }
            bit *= 2;
        }
        place
    }
}

/// Arrangements of the rows of a base, counted finely: what they take is in proportion to it.
#[must_use]
pub fn arrangements(table: &PatternTable) -> usize {
    Arrangements::of(&table.values()[..table.codes()], Units::Fine).count
}

impl Extent {
    fn of(book: &Codebook, step_cycles: f32, units: Units) -> Self {
        let values = || book.answers().iter().map(|code| book.values()[usize::from(*code)]);
        let reach = book.penalties().step_cycles * MIDDLE;
        let low = values().fold(f32::INFINITY, f32::min) - reach;
        let high = values().fold(f32::NEG_INFINITY, f32::max) + reach;
        let step_cycles = step_cycles.max(book.penalties().step_cycles);
        let mut buckets = 1;
        let mut end = low;
        // A table of a few hundred buckets; a pattern of absurd height gets coarse ones.
        let step_cycles = step_cycles.max((high - low) / 4096.0);
        while end < high {
            end += step_cycles;
            buckets += 1;
        }
        let last = book.answers().last().map_or(0, |code| usize::from(*code));
        let codes = (last + 1).next_multiple_of(GROUP).max(book.period().lines());
        let known = book.values().iter().take_while(|value| value.is_finite()).count();
        let arrangements = Arrangements::of(&book.values()[..known], units);
        Self { first_cycles: low, step_cycles, buckets, codes, arrangements }
    }

    const fn bytes(&self) -> usize {
        self.buckets * self.codes * self.arrangements.count
    }
}

impl RowHead {
    /// Of no book: nothing is an answer.
    pub const EMPTY: Self = Self {
        prior: [[[NEVER; RUN]; GROUP / RUN]; GROUPS],
        groups: 1,
        answers: 0,
        first_cycles: 0.0,
        buckets_a_cycle: 1.0,
        buckets: 1,
        mask: 0,
        arrangements: Arrangements::ALL,
        units: Units::Coarse,
        a_nat: COARSE,
        odds: [0.0; ODDS],
    };

    /// Bytes that the rows of a book take, with readings rounded to `step_cycles` (or to the steps of
    /// its penalties, where these are wider).
    #[must_use]
    pub fn bytes(book: &Codebook, step_cycles: f32, units: Units) -> usize {
        Extent::of(book, step_cycles, units).bytes()
    }

    /// Takes a book. Its cells are still to be filled: see [`Self::fill`]. Rows that score the same pages have
    /// to have the same units in a nat: those of the first of them are given as `a_nat` to the others.
    pub fn set(&mut self, book: &Codebook, step_cycles: f32, units: Units, a_nat: Option<f32>) {
        self.units = units;
        self.a_nat = a_nat.unwrap_or_else(|| units_of(book, units));
        let a_nat = self.a_nat;
        let extent = Extent::of(book, step_cycles, units);
        let best = book.log_prior().iter().copied().fold(f32::NEG_INFINITY, f32::max);
        self.prior.as_flattened_mut().as_flattened_mut().fill(NEVER);
        for (code, log) in book.answers().iter().zip(book.log_prior()) {
            let code = usize::from(*code);
            self.prior[code / GROUP][code % GROUP / RUN][code % RUN] =
                units_i16((best - log) * a_nat);
        }
        self.answers = book.answers().len();
        self.groups = extent.codes / GROUP;
        self.first_cycles = extent.first_cycles;
        self.buckets_a_cycle = 1.0 / extent.step_cycles;
        self.buckets = extent.buckets;
        self.mask = book.period().mask();
        self.arrangements = extent.arrangements;
        for (behind, odds) in self.odds.iter_mut().enumerate() {
            *odds = libm::expf(-count_f32(behind) / COARSE);
        }
    }

    /// Buckets that readings are rounded to: each is filled by itself.
    #[must_use]
    pub const fn buckets(&self) -> usize {
        self.buckets
    }

    /// Units in a nat.
    #[must_use]
    pub const fn a_nat(&self) -> f32 {
        self.a_nat
    }

    /// Works out the rows of some buckets of the book that was set, with the same step.
    pub fn fill(&self, book: &Codebook, step_cycles: f32, buckets: Range<usize>, cells: &mut [u8]) {
        let extent = Extent::of(book, step_cycles, self.units);
        let nats = &book.penalties().nats;
        let least = nats.iter().copied().fold(f32::INFINITY, f32::min);
        let units = nats.map(|nats| (nats - least) * self.a_nat);
        let rows = cells.chunks_exact_mut(extent.codes * self.arrangements.count).enumerate();
        for (bucket, rows) in rows.skip(buckets.start).take(buckets.len()) {
            let reading = extent.first_cycles + extent.step_cycles * count_f32(bucket);
            self.fill_bucket(rows, book, &units, reading);
        }
    }

    /// The rows of one reading: one for each arrangement of the lowest bits; runs are only reordered.
    fn fill_bucket(
        &self,
        rows: &mut [u8],
        book: &Codebook,
        units: &[f32; PENALTY_ENTRIES],
        reading: f32,
    ) {
        let codes = rows.len() / self.arrangements.count;
        let (first, others) = rows.split_at_mut(codes);
        let steps_a_cycle = 1.0 / book.penalties().step_cycles;
        let of = |value: &f32| units[Penalties::entry((reading - value) * steps_a_cycle)];
        let own = &book.values()[..codes];
        // Only differences between codes mean something.
        let least = match self.units {
            Units::Coarse => 0.0,
            Units::Fine => {
                let known = own.iter().filter(|value| value.is_finite());
                known.map(of).fold(f32::INFINITY, f32::min)
            }
        };
        for (cell, value) in first.iter_mut().zip(own) {
            *cell = units_u8(of(value) - least);
        }
        for low in (1..RUN).filter(|low| low & !self.arrangements.mask == 0) {
            let begin = (self.arrangements.place(low) - 1) * codes;
            let Some(row) = others.get_mut(begin..begin + codes) else { continue };
            let runs = row.as_chunks_mut::<RUN>().0.iter_mut();
            for (run, from) in runs.zip(first.as_chunks::<RUN>().0) {
                *run = core::array::from_fn(|place| from[place ^ (low & (RUN - 1))]);
            }
        }
    }

    /// Groups of 64 codes that a page has scores of.
    #[must_use]
    pub const fn groups(&self) -> usize {
        self.groups
    }

    /// With its cells.
    #[must_use]
    pub const fn with<'b>(&'b self, cells: &'b [u8]) -> Rows<'b> {
        Rows { head: self, cells }
    }
}

impl Rows<'_> {
    /// How many codes are answers.
    #[must_use]
    pub const fn answers(&self) -> usize {
        self.head.answers
    }

    fn odds(&self, behind: i16) -> f32 {
        let place = f32::from(behind.max(0)) * (COARSE / self.head.a_nat) + 0.5;
        self.head.odds.get(place_of(place, usize::MAX)).copied().unwrap_or(0.0)
    }

    /// Nats as units, at most what is no answer.
    fn units(&self, nats: f32) -> i16 {
        units_i16(nats * self.head.a_nat)
    }

    /// The row of a reading of a line, in the arrangement of the line's lowest bits, and the rest of
    /// the line's number: code `c` is at `c ^ rest`. None for a reading that is no number.
    fn row(&self, line: u8, cycles: f32) -> Option<(&[u8], usize)> {
        if !cycles.is_finite() {
            return None;
        }
        let head = self.head;
        let line = usize::from(line & head.mask);
        let low = line % RUN;
        let codes = head.groups * GROUP;
        let place = (cycles - head.first_cycles) * head.buckets_a_cycle + 0.5;
        let bucket = place_of(place, head.buckets) * head.arrangements.count;
        let begin = (bucket + head.arrangements.place(low)) * codes;
        Some((self.cells.get(begin..begin + codes)?, line - low))
    }
}

/// Units in a nat with which the penalties of every reading of a book have room in a byte, as far as the
/// distance of its lines alone says that.
fn units_of(book: &Codebook, units: Units) -> f32 {
    let Units::Fine = units else { return COARSE };
    let Penalties { nats, step_cycles } = book.penalties();
    let values = || book.values().iter().filter(|value| value.is_finite());
    let height = values().fold(f32::NEG_INFINITY, |a, b| a.max(*b))
        - values().fold(f32::INFINITY, |a, b| a.min(*b));
    let reach = place_of(height / step_cycles + 2.0, nats.len()).max(1);
    let range = nats.windows(reach).map(|some| {
        let ends = some.iter().fold((f32::INFINITY, f32::NEG_INFINITY), |(least, most), nats| {
            (least.min(*nats), most.max(*nats))
        });
        ends.1 - ends.0
    });
    (255.0 / range.fold(0.0, f32::max)).clamp(COARSE, FINE)
}

/// Units as a cell holds them.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to 0..=255; truncation rounds, since a half was added"
)]
fn units_u8(units: f32) -> u8 {
    (units + 0.5).clamp(0.0, 255.0) as u8
}

/// Units as scores hold them, at most what is no answer.
#[allow(clippy::cast_possible_truncation, reason = "clamped; truncation rounds down")]
fn units_i16(units: f32) -> i16 {
    units.clamp(0.0, f32::from(NEVER - 1)) as i16
}

/// A place below `count`, the nearest one.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a conversion to usize saturates at 0; buckets are a few thousand"
)]
fn place_of(place: f32, count: usize) -> usize {
    (place as usize).min(count - 1)
}

fn count_f32(count: usize) -> f32 {
    u16::try_from(count).map_or(f32::MAX, f32::from)
}

#[cfg(test)]
mod tests;
