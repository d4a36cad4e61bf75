//! What samples say of a page so far, and how it is put together from scores.

use super::Rows;
use isochrone_atlas::Code;

/// Codes close to the best that a verdict lists.
pub const CLOSE: usize = 8;
/// A code further behind the best than this cannot change any decision (e^-9 = 1e-4), nats.
const NEGLIGIBLE: f32 = 9.0;

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
    /// The codes close to the best one with their posterior probability, the likeliest first.
    #[must_use]
    pub fn close(&self) -> &[(Code, f32)] {
        &self.close[..self.count]
    }

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

/// A verdict while codes are gone through.
pub(super) struct Tally<'a> {
    rows: &'a Rows<'a>,
    best: i16,
    limit: i16,
    found: bool,
    others: f32,
    verdict: Verdict,
}

impl<'a> Tally<'a> {
    /// `best` is the score of the best code.
    pub(super) fn new(rows: &'a Rows<'a>, best: i16) -> Self {
        let close = [(Code(0), 0.0); CLOSE];
        Self {
            rows,
            best,
            limit: best.saturating_add(rows.units(NEGLIGIBLE)),
            found: false,
            others: 0.0,
            verdict: Verdict { code: Code(0), close, count: 0, error: 0.0 },
        }
    }

    /// How far behind a code may be to count.
    pub(super) const fn limit(&self) -> i16 {
        self.limit
    }

    pub(super) fn take(&mut self, code: u16, behind: i16) {
        if behind == self.best && !self.found {
            (self.verdict.code, self.found) = (Code(code), true);
        } else if behind <= self.limit {
            let odds = self.rows.odds(behind.saturating_sub(self.best));
            self.others += odds;
            self.verdict.keep(Code(code), odds);
        }
    }

    /// With the odds of all other codes as probabilities.
    pub(super) fn end(mut self) -> Verdict {
        self.verdict.error = self.others / (1.0 + self.others);
        for (_, odds) in &mut self.verdict.close[..self.verdict.count] {
            *odds /= 1.0 + self.others;
        }
        self.verdict
    }
}
