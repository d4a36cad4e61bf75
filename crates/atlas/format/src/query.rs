//! Answers for one core and one level: the fast path of every arranger.
//!
//! A [`LevelView`] resolves core, level and base once and holds the pattern by value, so that a
//! query is one load for the page's code and one for the latency. It never allocates and never
//! panics; what the atlas does not know is `None`.

use crate::format::{LINES_BYTES, LinesRecord};
use crate::model::{Code, PatternTable, Period, TABLE_ENTRIES};
use crate::pages::PageCodes;
use isochrone_units::{LINES_PER_PAGE, LineAddr, PageAddr};

/// Bits of a latency that is not known.
const UNKNOWN: u32 = f32::NAN.to_bits();
/// All bits but the sign.
const ABSOLUTE: u32 = u32::MAX >> 1;
/// Beyond these bits a number is NaN.
const INFINITY: u32 = f32::INFINITY.to_bits();

/// Where a view finds what it needs about a page.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source<'a> {
    /// Codes of the page table.
    Codes(PageCodes<'a>),
    /// All pages are alike.
    Everywhere,
    /// Lines measured one by one, ascending by frame.
    Lines(&'a [[u8; LINES_BYTES]]),
    /// No page is known; only [`LevelView::latency_of_code`] answers.
    Nothing,
}

/// Latencies of one level as one core sees them.
#[derive(Clone, Debug)]
pub struct LevelView<'a> {
    /// Bits of the latencies, so that what is not known is told apart without the detour of a
    /// number through the floating-point registers.
    table: [u32; TABLE_ENTRIES],
    mask: u32,
    period: Period,
    source: Source<'a>,
}

impl<'a> LevelView<'a> {
    pub(crate) fn new(table: Option<&PatternTable>, period: Period, source: Source<'a>) -> Self {
        Self {
            table: table.map_or([UNKNOWN; TABLE_ENTRIES], |table| table.values().map(f32::to_bits)),
            mask: u32::from(period.mask()),
            period,
            source,
        }
    }

    /// Latency of a line in cycles, by its physical line number. `None` where the atlas does not
    /// know its page.
    #[inline]
    #[must_use]
    pub fn get(&self, line: LineAddr) -> Option<f32> {
        let code = match &self.source {
            Source::Codes(codes) => codes.code(line.0 / LINES_PER_PAGE as u64)?,
            Source::Everywhere => 0,
            Source::Lines(records) => return measured(records, line),
            Source::Nothing => return None,
        };
        self.latency_of_code(Code(code), line)
    }

    /// Latency of a line whose page's code the caller knows (decoded at use, where frames are
    /// not readable). Only the line's place in its period matters.
    #[inline]
    #[must_use]
    pub fn latency_of_code(&self, code: Code, line: LineAddr) -> Option<f32> {
        // In 32 bits, so that the code needs no instruction to be widened after it arrives; the
        // bounds check is a predicted branch and costs the chain of loads nothing.
        let index = u32::from(line.0.to_le_bytes()[0]) & self.mask;
        let bits = *self.table.get((u32::from(code.0) ^ index) as usize)?;
        if bits & ABSOLUTE > INFINITY {
            core::hint::cold_path();
            return None;
        }
        Some(f32::from_bits(bits))
    }

    /// The code of a frame, where the atlas has it.
    #[must_use]
    pub fn code(&self, frame: PageAddr) -> Option<Code> {
        match &self.source {
            Source::Codes(codes) => codes.code(frame.0).map(Code),
            Source::Everywhere => Some(Code(0)),
            Source::Lines(_) | Source::Nothing => None,
        }
    }

    /// Lines after which the pattern repeats.
    #[must_use]
    pub const fn period(&self) -> Period {
        self.period
    }

    /// The lines of a page below a quantile, as a bit mask (bit `i` is line `i`): the
    /// `round(64 q)` nearest ones, the lower index first among equals. `None` unless the latencies
    /// of all 64 lines are known.
    #[must_use]
    pub fn lines_below_quantile(&self, page: PageAddr, q: f32) -> Option<u64> {
        nearest_lines(q, |index| self.get(line_of(page, index)))
    }

    /// The same for a page whose code the caller knows.
    #[must_use]
    pub fn lines_of_code_below_quantile(&self, code: Code, page: PageAddr, q: f32) -> Option<u64> {
        nearest_lines(q, |index| self.latency_of_code(code, line_of(page, index)))
    }
}

/// Line `index` of a page; wraps instead of overflowing for pages beyond any memory.
const fn line_of(page: PageAddr, index: u8) -> LineAddr {
    LineAddr(page.0.wrapping_mul(LINES_PER_PAGE as u64) + index as u64)
}

/// Looks a line up among measured ones.
fn measured(records: &[[u8; LINES_BYTES]], line: LineAddr) -> Option<f32> {
    let at =
        records.binary_search_by_key(&line.page().0, |bytes| LinesRecord::key(bytes).2).ok()?;
    let values = records.get(at)?.get(16..)?.as_chunks::<4>().0;
    let cycles = f32::from_le_bytes(*values.get(usize::from(line.index_in_page()))?);
    if cycles.is_nan() { None } else { Some(cycles) }
}

/// The `round(64 q)` lines with the lowest latency.
fn nearest_lines(q: f32, latency: impl Fn(u8) -> Option<f32>) -> Option<u64> {
    let mut lines = [(0.0_f32, 0_u8); LINES_PER_PAGE];
    for (index, line) in (0_u8..).zip(&mut lines) {
        *line = (latency(index)?, index);
    }
    lines.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut mask = 0;
    let mut wanted = 0.5;
    for (_, index) in lines {
        if q.clamp(0.0, 1.0) * 64.0 < wanted || q.is_nan() {
            break;
        }
        mask |= 1_u64 << index;
        wanted += 1.0;
    }
    Some(mask)
}
