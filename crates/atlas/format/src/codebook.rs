//! Everything that decoding the pages of one core and level needs, prepared once.
//!
//! Codes that give practically the same pattern are one answer; only answers are scored.

use crate::model::{Code, ModelError, PatternTable, Period, TABLE_ENTRIES};
use crate::penalties::Penalties;

/// What an answer with a share of 0 counts as: ten or twenty loads can still find it.
const LEAST_SHARE: f32 = 1e-4;

/// A base, its answers, how likely each is beforehand, and what residuals cost.
#[derive(Clone, Debug)]
pub struct Codebook {
    pub(crate) values: [f32; TABLE_ENTRIES],
    /// The codes that are answers, ascending; of codes alike the smallest.
    answers: [u16; TABLE_ENTRIES],
    answer_count: usize,
    /// For each code the place of its answer.
    answer_of: [u16; TABLE_ENTRIES],
    log_prior: [f32; TABLE_ENTRIES],
    pub(crate) penalties: Penalties,
    mean_cycles: f32,
    pub(crate) period: Period,
}

impl Codebook {
    /// Prepares a base for decoding.
    ///
    /// `canonical` names for each key (`period` entries) or each code the one that stands for it;
    /// `shares` is how often each code was seen, in any unit. Either may be empty: then every
    /// code stands for itself, and all are equally likely.
    ///
    /// # Errors
    /// [`ModelError`] for lists of a wrong length or with entries out of range.
    pub fn new(
        table: &PatternTable,
        canonical: &[u16],
        shares: &[f32],
        penalties: impl Into<Penalties>,
    ) -> Result<Self, ModelError> {
        let penalties = penalties.into();
        penalties.check()?;
        let codes = table.codes();
        let canonical = canonical_codes(canonical, table)?;
        let mut book = Self {
            values: *table.values(),
            answers: [0; TABLE_ENTRIES],
            answer_count: 0,
            answer_of: [0; TABLE_ENTRIES],
            log_prior: [0.0; TABLE_ENTRIES],
            penalties,
            mean_cycles: mean(&table.values()[..codes]),
            period: table.period(),
        };
        for (code, &stands) in (0_u16..).zip(&canonical[..codes]) {
            let place = if stands == code {
                book.answers[book.answer_count] = code;
                book.answer_count += 1;
                u16::try_from(book.answer_count - 1).unwrap_or(0)
            } else {
                book.answer_of[usize::from(stands)]
            };
            book.answer_of[usize::from(code)] = place;
        }
        book.set_prior(shares, codes)?;
        Ok(book)
    }

    /// Log prior of each answer from the shares of its codes. None is called impossible.
    fn set_prior(&mut self, shares: &[f32], codes: usize) -> Result<(), ModelError> {
        if !shares.is_empty() && shares.len() < codes {
            return Err(ModelError::CodeList { found: shares.len(), expected: codes });
        }
        if !shares.iter().all(|share| share.is_finite() && *share >= 0.0) {
            return Err(ModelError::NotFinite);
        }
        let total: f32 = shares.iter().take(codes).sum();
        let uniform = 1.0 / count_f32(self.answer_count);
        let mut mass = [0.0_f32; TABLE_ENTRIES];
        for (&place, share) in self.answer_of.iter().zip(shares).take(codes) {
            mass[usize::from(place)] += share / total.max(f32::MIN_POSITIVE);
        }
        for (log, mass) in self.log_prior.iter_mut().zip(mass).take(self.answer_count) {
            let seen = if total > 0.0 { mass } else { uniform };
            *log = libm::logf(seen.max(LEAST_SHARE));
        }
        Ok(())
    }

    /// Mean latency over all lines and classes, cycles.
    #[must_use]
    pub const fn mean_cycles(&self) -> f32 {
        self.mean_cycles
    }

    /// The codes that are answers, ascending; with one there is nothing to decode.
    #[must_use]
    pub fn answers(&self) -> &[u16] {
        &self.answers[..self.answer_count]
    }

    /// Latencies by code: `values()[code ^ line]`, cycles; NaN beyond the last class.
    #[must_use]
    pub const fn values(&self) -> &[f32; TABLE_ENTRIES] {
        &self.values
    }

    /// What residuals cost.
    #[must_use]
    pub const fn penalties(&self) -> &Penalties {
        &self.penalties
    }

    /// Lines after which the pattern repeats.
    #[must_use]
    pub const fn period(&self) -> Period {
        self.period
    }

    /// Log prior of each answer, in the order of [`Self::answers`].
    #[must_use]
    pub fn log_prior(&self) -> &[f32] {
        &self.log_prior[..self.answer_count]
    }

    /// The place of a code's answer.
    pub(crate) fn place(&self, code: Code) -> usize {
        usize::from(self.answer_of.get(usize::from(code.0)).copied().unwrap_or(0))
    }

    /// The code that stands for this one.
    #[must_use]
    pub fn canonical(&self, code: Code) -> Code {
        Code(self.answers[self.place(code)])
    }

    /// What the loads of one batch have in common beyond the patterns: their median minus the
    /// mean of the base. Subtract it from each value before [`crate::Decoder::add`]. Only worth it
    /// for batches of many lines from many pages: its own error is that of their median.
    /// Reorders `values`; 0 for an empty batch.
    #[must_use]
    pub fn common_offset_cycles(&self, values: &mut [f32]) -> f32 {
        if values.is_empty() {
            return 0.0;
        }
        let middle = values.len() / 2;
        let (_, median, _) = values.select_nth_unstable_by(middle, f32::total_cmp);
        *median - self.mean_cycles
    }
}

/// A map from code to the code that stands for it, closed so that standing-in is one step.
fn canonical_codes(
    canonical: &[u16],
    table: &PatternTable,
) -> Result<[u16; TABLE_ENTRIES], ModelError> {
    let mut map = [0_u16; TABLE_ENTRIES];
    let period = table.period();
    let by_key = canonical.len() == period.lines();
    if !canonical.is_empty() && !by_key && canonical.len() < table.codes() {
        return Err(ModelError::CodeList { found: canonical.len(), expected: period.lines() });
    }
    for (code, slot) in (0_u16..).zip(map.iter_mut()) {
        let key = code & u16::from(period.mask());
        let stands = if canonical.is_empty() {
            code
        } else if by_key {
            (code - key) | (canonical[usize::from(key)] & u16::from(period.mask()))
        } else {
            canonical.get(usize::from(code)).copied().unwrap_or(code)
        };
        // "Smallest alike" only ever points down; anything else would not end.
        if stands > code {
            return Err(ModelError::CodeList { found: canonical.len(), expected: period.lines() });
        }
        *slot = stands;
    }
    for code in 0..TABLE_ENTRIES {
        map[code] = map[usize::from(map[code])]; // what it points to is closed already
    }
    Ok(map)
}

fn mean(values: &[f32]) -> f32 {
    values.iter().sum::<f32>() / count_f32(values.len())
}

fn count_f32(count: usize) -> f32 {
    u16::try_from(count).map_or(f32::MAX, f32::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::penalties::Noise;
    use std::vec::Vec;

    fn ramp() -> PatternTable {
        let pattern: Vec<f32> = (0..64_u8).map(f32::from).collect();
        PatternTable::new(Period::Lines64, [pattern.as_slice()]).unwrap()
    }

    #[test]
    fn bad_lists_are_refused() {
        let table = PatternTable::new(Period::Lines64, [[1.0; 64].as_slice()]).unwrap();
        let noise = Noise::heavy_tailed(1.0);
        let bad = |canonical: &[u16], shares: &[f32], noise: Noise| {
            Codebook::new(&table, canonical, shares, noise).unwrap_err()
        };
        assert_eq!(bad(&[0; 9], &[], noise), ModelError::CodeList { found: 9, expected: 64 });
        assert_eq!(bad(&[9; 64], &[], noise), ModelError::CodeList { found: 64, expected: 64 });
        assert_eq!(bad(&[], &[1.0; 9], noise), ModelError::CodeList { found: 9, expected: 64 });
        assert_eq!(bad(&[], &[f32::NAN; 64], noise), ModelError::NotFinite);
        assert_eq!(bad(&[], &[], Noise::heavy_tailed(0.0)), ModelError::NotFinite);
    }

    #[test]
    fn a_common_offset_is_found_in_a_batch() {
        let table = ramp();
        let book = Codebook::new(&table, &[], &[], Noise::heavy_tailed(1.0)).unwrap();
        let mut values: Vec<f32> =
            (0..64).map(|line| table.latency_cycles(Code(9), line) + 7.0).collect();
        assert!((book.common_offset_cycles(&mut values) - 7.0).abs() <= 0.5);
        assert_eq!(book.common_offset_cycles(&mut []), 0.0);
    }
}
