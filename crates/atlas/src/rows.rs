//! The matched filter for many pages and many codes: what each reading says of every code is worked out
//! once, and a sample then adds one row of small whole numbers.
//!
//! [`crate::Decoder`] looks every code's penalty up for every sample, which is right for a few pages or
//! few codes. With a thousand codes that costs more than the load itself. Here readings are rounded to
//! buckets, penalties to [`UNITS`] a nat, and a row holds the penalties of one bucket by canonical
//! index; the row of line `i` is the same one, its places XORed with `i`. Whole classes whose best code
//! has fallen far behind (pages on another node, mostly) are left out of what follows. The caller gives
//! the memory; nothing here allocates.

use crate::codebook::Codebook;
use crate::model::{Code, TABLE_ENTRIES};
use crate::penalties::MIDDLE;

/// Parts of a nat that scores are counted in: an error of 1/48 nat a sample, less than any density is
/// known to.
const UNITS: f32 = 24.0;
/// Codes that are added together, so that a row is read in runs.
const RUN: usize = 8;
/// Codes of one class that is kept or left out as a whole.
const GROUP: usize = 64;
/// Groups of a table.
const GROUPS: usize = TABLE_ENTRIES / GROUP;
/// Score of what is no answer; far from overflow, and farther behind than anything that counts.
const NEVER: i16 = i16::MAX / 2;
/// Samples after which scores are counted anew from the best: so many, at a cell's most, leave what is no answer
/// behind what is.
const SPAN: u8 = 60;
/// A class this far behind does not come back, nats.
const LEFT_BEHIND: f32 = 16.0;
/// A code further behind the best than this cannot change any decision (e^-9 = 1e-4), nats.
const NEGLIGIBLE: f32 = 9.0;
/// Units within which a code counts.
const ODDS: usize = 256;
/// Codes close to the best that a verdict lists.
pub const CLOSE: usize = 8;
/// Once no more codes than this are left they are kept one by one: a sample then costs a few loads.
const LISTED: usize = 32;

/// What each reading says of every code of one book.
#[derive(Debug)]
pub struct Rows<'b> {
    cells: &'b [u8],
    /// By answer (its code): its prior, or [`NEVER`].
    prior: [i16; TABLE_ENTRIES],
    groups: usize,
    first_cycles: f32,
    step_cycles: f32,
    buckets: usize,
    mask: u8,
    /// Odds of a code by how many units it is behind the best.
    odds: [f32; ODDS],
    /// The answers with their priors, where they are few.
    few: Left,
}

/// The codes that are left, ascending, and how far behind each is.
#[derive(Clone, Copy, Debug)]
struct Left {
    codes: [u16; LISTED],
    behind: [i16; LISTED],
    /// 0 as long as there are too many to list.
    count: usize,
}

impl Left {
    const NONE: Self = Self { codes: [0; LISTED], behind: [NEVER; LISTED], count: 0 };

    /// Lists these, or none if they are too many.
    fn of(codes: impl Iterator<Item = (u16, i16)>) -> Self {
        let mut left = Self::NONE;
        for (code, behind) in codes {
            if left.count == LISTED {
                return Self::NONE;
            }
            (left.codes[left.count], left.behind[left.count]) = (code, behind);
            left.count += 1;
        }
        left
    }

    fn iter(&self) -> impl Iterator<Item = (u16, i16)> + '_ {
        self.codes.iter().copied().zip(self.behind).take(self.count)
    }

    fn verdict(&mut self, rows: &Rows<'_>) -> Verdict {
        let best = self.iter().map(|(_, behind)| behind).fold(NEVER, i16::min);
        let mut verdict = Verdict::NONE;
        let (mut found, mut others) = (false, 0.0);
        for (code, behind) in self.iter() {
            if behind == best && !found {
                (verdict.code, found) = (Code(code), true);
            } else if behind <= best.saturating_add(units_i16(NEGLIGIBLE)) {
                let odds = rows.odds(behind.saturating_sub(best));
                others += odds;
                verdict.keep(Code(code), odds);
            }
        }
        verdict.shared(others)
    }

    /// Scores from that of the best on.
    fn rebase(&mut self) {
        let best = self.iter().map(|(_, behind)| behind).fold(i16::MAX, i16::min);
        self.behind.iter_mut().for_each(|behind| *behind = behind.saturating_sub(best));
    }
}

/// The shape of the rows of a book.
struct Extent {
    first_cycles: f32,
    step_cycles: f32,
    buckets: usize,
    codes: usize,
}

impl Extent {
    fn of(book: &Codebook, step_cycles: f32) -> Self {
        let values = || book.answers().iter().map(|code| book.values[usize::from(*code)]);
        let reach = book.penalties.step_cycles * MIDDLE;
        let low = values().fold(f32::INFINITY, f32::min) - reach;
        let high = values().fold(f32::NEG_INFINITY, f32::max) + reach;
        let step_cycles = step_cycles.max(book.penalties.step_cycles);
        let mut buckets = 1;
        let mut end = low;
        // A table of a few hundred buckets; a pattern of absurd height gets coarse ones.
        let step_cycles = step_cycles.max((high - low) / 4096.0);
        while end < high {
            end += step_cycles;
            buckets += 1;
        }
        let last = book.answers().last().map_or(0, |code| usize::from(*code));
        let codes = (last + 1).next_multiple_of(GROUP).max(book.period.lines());
        Self { first_cycles: low, step_cycles, buckets, codes }
    }

    const fn bytes(&self) -> usize {
        self.buckets * self.codes * RUN
    }
}

impl<'b> Rows<'b> {
    /// Bytes that the rows of a book take, with readings rounded to `step_cycles` (or to the steps of
    /// its penalties, where these are wider).
    #[must_use]
    pub fn bytes(book: &Codebook, step_cycles: f32) -> usize {
        Extent::of(book, step_cycles).bytes()
    }

    /// Works the rows out. `None` if `cells` is shorter than [`Self::bytes`].
    #[must_use]
    pub fn new(book: &Codebook, step_cycles: f32, cells: &'b mut [u8]) -> Option<Self> {
        let extent = Extent::of(book, step_cycles);
        let cells = cells.get_mut(..extent.bytes())?;
        let least = book.penalties.nats.iter().copied().fold(f32::INFINITY, f32::min);
        for (bucket, rows) in cells.chunks_exact_mut(extent.codes * RUN).enumerate() {
            let reading = extent.first_cycles + extent.step_cycles * count_f32(bucket);
            // A row for each arrangement of the lowest bits; runs are only reordered.
            for (low, row) in rows.chunks_exact_mut(extent.codes).enumerate() {
                for (place, cell) in row.iter_mut().enumerate() {
                    let value = book.values[place ^ low];
                    *cell = units_u8(book.penalties.at(reading - value) - least);
                }
            }
        }
        let best = book.log_prior().iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let mut prior = [NEVER; TABLE_ENTRIES];
        for (code, log) in book.answers().iter().zip(book.log_prior()) {
            prior[usize::from(*code)] = units_i16(best - log);
        }
        let answers = prior.iter().enumerate().filter(|(_, behind)| **behind < NEVER);
        let answers = answers.map(|(code, behind)| (u16::try_from(code).unwrap_or(0), *behind));
        let few = Left::of(answers);
        Some(Self {
            cells,
            prior,
            few,
            groups: extent.codes / GROUP,
            first_cycles: extent.first_cycles,
            step_cycles: extent.step_cycles,
            buckets: extent.buckets,
            mask: book.period.mask(),
            odds: core::array::from_fn(|behind| libm::expf(-count_f32(behind) / UNITS)),
        })
    }

    fn odds(&self, behind: i16) -> f32 {
        let place = usize::try_from(behind).unwrap_or(0);
        self.odds.get(place).copied().unwrap_or(0.0)
    }

    fn bucket(&self, cycles: f32) -> usize {
        let place = (cycles - self.first_cycles) / self.step_cycles + 0.5;
        place_of(place, self.buckets)
    }
}

/// How far every code of one page is behind, sample by sample.
#[derive(Clone, Debug)]
pub struct Scores {
    behind: [i16; TABLE_ENTRIES],
    /// Bit by group: it is still looked at.
    alive: u32,
    /// Once they are few, the codes that are left; then nothing else counts.
    left: Left,
    /// Samples since scores were last counted from the best.
    since: u8,
}

/// What the samples of a page say so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// The best code.
    pub code: Code,
    /// Codes close to it, nearest first, with their posterior probability; `count` of them.
    pub close: [(Code, f32); CLOSE],
    /// How many are listed.
    pub count: usize,
    /// Posterior probability of all codes but the best.
    pub error: f32,
}

impl Verdict {
    const NONE: Self = Self { code: Code(0), close: [(Code(0), 0.0); CLOSE], count: 0, error: 0.0 };

    /// With the odds of all other codes as probabilities; `others` is their sum.
    fn shared(mut self, others: f32) -> Self {
        self.error = others / (1.0 + others);
        for (_, odds) in &mut self.close[..self.count] {
            *odds /= 1.0 + others;
        }
        self
    }

    /// The codes close to the best one with their posterior probability, the likeliest first.
    #[must_use]
    pub fn close(&self) -> &[(Code, f32)] {
        &self.close[..self.count]
    }
}

impl Scores {
    /// Nothing but the prior.
    #[must_use]
    pub fn new(rows: &Rows<'_>) -> Self {
        let alive = u32::MAX >> (32 - rows.groups.clamp(1, GROUPS));
        Self { behind: rows.prior, alive, left: rows.few, since: 0 }
    }

    /// Adds one timed load: `line` is the line's number modulo 256, `cycles` its latency with the
    /// timer's own cost and the common offset taken off. `rows` may be those of another core than
    /// before, if its book has the same answers.
    pub fn add(&mut self, rows: &Rows<'_>, line: u8, cycles: f32) {
        if !cycles.is_finite() {
            return;
        }
        let line = usize::from(line & rows.mask);
        let (low, high) = (line % RUN, line / RUN);
        let codes = rows.groups * GROUP;
        let begin = (rows.bucket(cycles) * RUN + low) * codes;
        let Some(row) = rows.cells.get(begin..begin + codes) else { return };
        if self.since == SPAN {
            self.rebase(rows);
        }
        self.since += 1;
        if self.left.count > 0 {
            let left = self.left.codes.iter().zip(&mut self.left.behind).take(self.left.count);
            for (code, behind) in left {
                let cell = row.get(usize::from(*code) ^ (high * RUN)).copied().unwrap_or(u8::MAX);
                *behind = behind.saturating_add(i16::from(cell));
            }
            return;
        }
        let row = row.as_chunks::<RUN>().0;
        // With a period of 256 lines a group is a quarter of the keys, and lines reach across.
        let (across, within) = (high / RUN, high % RUN);
        let groups = self.behind[..codes].as_chunks_mut::<GROUP>().0;
        for (group, behind) in groups.iter_mut().enumerate() {
            if self.alive >> group & 1 == 0 {
                continue;
            }
            let row = row.get((group ^ across) * RUN..).and_then(<[_]>::first_chunk::<RUN>);
            let Some(row) = row else { continue };
            for (run, behind) in behind.as_chunks_mut::<RUN>().0.iter_mut().enumerate() {
                let cells = row[(run ^ within) % RUN];
                for (behind, cell) in behind.iter_mut().zip(cells) {
                    *behind = behind.saturating_add(i16::from(cell));
                }
            }
        }
    }

    /// Counts on from the best, so that no number of samples overflows or makes an answer of what is none.
    #[cold]
    fn rebase(&mut self, rows: &Rows<'_>) {
        self.since = 0;
        self.left.rebase();
        let (_, best) = self.least(rows);
        for (behind, prior) in self.behind.iter_mut().zip(&rows.prior) {
            *behind = if *prior == NEVER { NEVER } else { behind.saturating_sub(best) };
        }
    }

    /// For each group the score of its best code, and that of the best of all.
    fn least(&self, rows: &Rows<'_>) -> ([i16; GROUPS], i16) {
        let mut least = [NEVER; GROUPS];
        let groups = self.behind.as_chunks::<GROUP>().0;
        for (group, (least, behind)) in least.iter_mut().zip(groups).enumerate() {
            if self.alive >> group & 1 == 1 && group < rows.groups {
                *least = behind.iter().copied().fold(NEVER, i16::min);
            }
        }
        (least, least.iter().copied().fold(NEVER, i16::min))
    }

    /// Leaves classes out that have fallen far behind, so that the next samples cost less.
    pub fn prune(&mut self, rows: &Rows<'_>) {
        if self.left.count > 0 {
            return;
        }
        let (least, best) = self.least(rows);
        let limit = best.saturating_add(units_i16(LEFT_BEHIND));
        for (group, least) in least.iter().enumerate() {
            self.alive &= !(u32::from(*least > limit) << group);
        }
    }

    /// What the samples say so far. Leaves out what has fallen far behind: classes, and once few codes
    /// are left all others.
    pub fn verdict(&mut self, rows: &Rows<'_>) -> Verdict {
        if self.left.count > 0 {
            return self.left.verdict(rows);
        }
        let (least, best) = self.least(rows);
        let limit = best.saturating_add(units_i16(LEFT_BEHIND));
        let behind = self.behind.as_chunks::<RUN>().0;
        let near = behind.iter().enumerate().filter(|(run, behind)| {
            least[run * RUN / GROUP] <= limit
                && behind.iter().copied().fold(NEVER, i16::min) <= limit
        });
        let codes = near.flat_map(|(run, behind)| {
            (run * RUN..).zip(behind).map(|(code, at)| (u16::try_from(code).unwrap_or(0), *at))
        });
        let mut verdict = Verdict::NONE;
        let (mut found, mut others) = (false, 0.0);
        let mut left = Left::NONE;
        let mut fits = true;
        for (code, at) in codes.filter(|(_, at)| *at <= limit) {
            if left.count == LISTED {
                fits = false;
            } else {
                (left.codes[left.count], left.behind[left.count]) = (code, at);
                left.count += 1;
            }
            if at == best && !found {
                (verdict.code, found) = (Code(code), true);
            } else if at <= best.saturating_add(units_i16(NEGLIGIBLE)) {
                let odds = rows.odds(at.saturating_sub(best));
                others += odds;
                verdict.keep(Code(code), odds);
            }
        }
        for (group, least) in least.iter().enumerate() {
            self.alive &= !(u32::from(*least > limit) << group);
        }
        if fits {
            self.left = left;
        }
        verdict.shared(others)
    }
}

impl Verdict {
    /// Keeps a code among the closest, likeliest first.
    fn keep(&mut self, code: Code, odds: f32) {
        if self.count == CLOSE && odds <= self.close[CLOSE - 1].1 {
            return;
        }
        let listed = &self.close[..self.count];
        let place = listed.iter().position(|(_, other)| odds > *other).unwrap_or(self.count);
        if place == CLOSE {
            return;
        }
        self.count = (self.count + 1).min(CLOSE);
        self.close[place..self.count].rotate_right(1);
        self.close[place] = (code, odds);
    }
}

/// Nats as units, at least 0 and at most what a cell holds.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to 0..=255; truncation rounds, since a half was added"
)]
fn units_u8(nats: f32) -> u8 {
    (nats * UNITS + 0.5).clamp(0.0, 255.0) as u8
}

/// Nats as units, at most what is no answer.
#[allow(clippy::cast_possible_truncation, reason = "clamped; truncation rounds down")]
fn units_i16(nats: f32) -> i16 {
    (nats * UNITS).clamp(0.0, f32::from(NEVER - 1)) as i16
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
