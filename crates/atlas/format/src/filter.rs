//! The matched filter: decodes a page's code from a few timed loads.
//!
//! Every sample adds one log-likelihood to every answer; the answer whose predicted latencies fit
//! best wins, and the posterior says when to stop. Single loads have heavy tails (an interrupt, a
//! miss, a refresh), so what a sample can cost is bounded. It never touches memory.

use crate::codebook::Codebook;
use crate::model::{Code, TABLE_ENTRIES};
use crate::penalties::entry;

/// An answer further below the best than this cannot change any decision (e^-20 = 2e-9).
const NEGLIGIBLE: f32 = -20.0;
/// An answer this far behind the best does not come back, nats.
const LEFT_BEHIND: f32 = 16.0;
/// Answers that a shortlist holds, at most.
const LISTED: usize = 128;
/// Scores that are compared together.
const LANES: usize = 8;

/// What a decoder makes of the samples so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// The best code, as the canonical one of its class of equivalent codes.
    pub code: Code,
    /// Posterior probability that the page's code is in another class.
    pub error: f32,
    /// Log odds of the best class against the second one, nats, at most 20;
    /// infinite if there is only one class.
    pub margin: f32,
    /// Samples behind the decision.
    pub samples: u32,
}

impl Decision {
    /// True when the decision may be taken: the posterior error is below `threshold`.
    #[must_use]
    pub fn is_safe(&self, threshold: f32) -> bool {
        self.error < threshold
    }
}

/// Decodes one page, sample by sample. Only as much of it is touched as there are answers.
#[derive(Clone, Debug)]
pub struct Decoder {
    samples: u32,
    /// Answers in the shortlist; 0 while all are looked at.
    listed: u16,
    /// The places of those answers, ascending.
    places: [u16; LISTED],
    /// By answer, or by place in the shortlist.
    score: [f32; TABLE_ENTRIES],
}

impl Decoder {
    /// A decoder that has seen nothing but the prior of `book`.
    #[must_use]
    pub fn new(book: &Codebook) -> Self {
        let mut decoder =
            Self { samples: 0, listed: 0, places: [0; LISTED], score: [0.0; TABLE_ENTRIES] };
        decoder.reset(book);
        decoder
    }

    /// Forgets all samples: the next page.
    pub fn reset(&mut self, book: &Codebook) {
        for (score, prior) in self.score.iter_mut().zip(book.log_prior()) {
            *score = *prior;
        }
        self.samples = 0;
        self.listed = 0;
    }

    /// Keeps only the answers that may still win, once they are few: from then on a sample costs as
    /// much as there are of them. An answer that is left out does not come back before
    /// [`Self::reset`].
    pub fn prune(&mut self, book: &Codebook) {
        let scores = self.scores(book);
        let limit = largest(scores) - LEFT_BEHIND;
        // Counted first, in a loop without a branch: mostly there are too many, or few already.
        let left: usize = scores.iter().map(|score| usize::from(*score >= limit)).sum();
        if left > LISTED || left == scores.len() {
            return;
        }
        let mut count = 0;
        for at in 0..scores.len() {
            let score = self.score[at];
            if score >= limit {
                // Kept ones move towards the front, so nothing is overwritten that is still to be read.
                self.places[count] = self.place(at);
                self.score[count] = score;
                count += 1;
            }
        }
        self.listed = u16::try_from(count).unwrap_or(0);
    }

    /// The scores of the answers that are left.
    fn scores(&self, book: &Codebook) -> &[f32] {
        let all = book.answers().len();
        &self.score[..if self.listed > 0 { usize::from(self.listed) } else { all }]
    }

    /// The answer that a score is of.
    fn place(&self, at: usize) -> u16 {
        if self.listed > 0 { self.places[at] } else { u16::try_from(at).unwrap_or(0) }
    }

    /// Makes one code more likely beforehand by `nats`, for a page about which something is known
    /// (the codes of its neighbours, its code in an older atlas).
    pub fn favour(&mut self, book: &Codebook, code: Code, nats: f32) {
        let place = book.place(code);
        let at = match u16::try_from(place) {
            Ok(place) if self.listed > 0 => {
                self.places[..usize::from(self.listed)].iter().position(|of| *of == place)
            }
            _ => Some(place),
        };
        if let Some(at) = at {
            self.score[at] += nats;
        }
    }

    /// Adds one timed load: `line` is the line's number modulo 256, `cycles` its latency with the
    /// timer's own cost taken off. `book` may be that of another core than the one before, if it
    /// has the same answers: then what two cores see of a page is joined.
    pub fn add(&mut self, book: &Codebook, line: u8, cycles: f32) {
        self.add_weighted(book, line, cycles, 1.0);
    }

    /// Adds a value that counts as `weight` samples (the mean of several loads). Values that are
    /// not finite are ignored.
    pub fn add_weighted(&mut self, book: &Codebook, line: u8, cycles: f32, weight: f32) {
        if !(cycles.is_finite() && weight.is_finite() && weight > 0.0) {
            return;
        }
        let line = line & book.period.mask();
        // A mean of `weight` samples scatters less by its root.
        let scale = libm::sqrtf(weight) / book.penalties.step_cycles;
        let penalty = |answer: u16| {
            let residual = (cycles - book.values[usize::from(answer ^ u16::from(line))]) * scale;
            book.penalties.nats[entry(residual)]
        };
        if self.listed > 0 {
            let listed = &self.places[..usize::from(self.listed)];
            for (score, place) in self.score.iter_mut().zip(listed) {
                *score -= penalty(book.answers()[usize::from(*place)]);
            }
        } else {
            for (score, answer) in self.score.iter_mut().zip(book.answers()) {
                *score -= penalty(*answer);
            }
        }
        self.samples = self.samples.saturating_add(1);
    }

    /// How well the samples fit this base whatever the page's code is: the logarithm of their
    /// probability, summed over all answers, nats. Only differences between bases mean something.
    #[must_use]
    pub fn evidence_nats(&self, book: &Codebook) -> f32 {
        let scores = self.scores(book);
        let top = largest(scores);
        let sum: f32 = scores.iter().map(|score| exp_of_nonpositive(score - top)).sum();
        top + libm::logf(sum)
    }

    /// The best code so far and how sure it is.
    #[must_use]
    pub fn best(&self, book: &Codebook) -> Decision {
        let scores = self.scores(book);
        let top = largest(scores);
        let place = scores.iter().position(|score| *score >= top).unwrap_or(0);
        let (mut others, mut second) = (0.0_f32, 0.0_f32);
        for (i, &score) in scores.iter().enumerate() {
            if i != place && score - top > NEGLIGIBLE {
                let mass = exp_of_nonpositive(score - top);
                others += mass;
                second = if mass > second { mass } else { second };
            }
        }
        let margin = match (scores.len(), second > 0.0) {
            (1, _) => f32::INFINITY,
            (_, true) => (-libm::logf(second)).min(-NEGLIGIBLE),
            (_, false) => -NEGLIGIBLE,
        };
        let error = others / (1.0 + others);
        let answer = book.answers()[usize::from(self.place(place))];
        Decision { code: Code(answer), error, margin, samples: self.samples }
    }
}

/// The largest score, found in lanes that become vector code.
fn largest(scores: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (chunks, rest) = scores.as_chunks::<LANES>();
    let more = |a: f32, b: f32| if b > a { b } else { a };
    for chunk in chunks {
        for (lane, score) in lanes.iter_mut().zip(chunk) {
            *lane = more(*lane, *score);
        }
    }
    lanes.iter().chain(rest).copied().fold(f32::NEG_INFINITY, more)
}

/// e^x for x in -80..=0, relative error below 1e-5: enough to tell when to stop, and an order of
/// magnitude cheaper than the exact one for 256 codes.
fn exp_of_nonpositive(x: f32) -> f32 {
    /// 1.5 * 2^23: adding it leaves a small number rounded to an integer in the low mantissa bits.
    const TO_INTEGER: f32 = 12_582_912.0;
    let power = (if x > -80.0 { x } else { -80.0 }) * core::f32::consts::LOG2_E;
    let shifted = power + TO_INTEGER;
    let t = (power - (shifted - TO_INTEGER)) * core::f32::consts::LN_2;
    // Taylor series of e^t, |t| <= ln 2 / 2: the first term left out is t^6/720 < 2.5e-6.
    const C: [f32; 6] = [1.0, 1.0, 1.0 / 2.0, 1.0 / 6.0, 1.0 / 24.0, 1.0 / 120.0];
    let series = C.iter().rev().fold(0.0, |sum, c| sum * t + c);
    let exponent = shifted.to_bits().wrapping_add(127) << 23;
    series * f32::from_bits(exponent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{PatternTable, Period};
    use crate::penalties::Noise;
    use std::vec::Vec;

    /// Small deterministic generator, so that the crate's tests need no dependency.
    struct Dice(u64);

    impl Dice {
        fn next(&mut self) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0
        }

        fn unit(&mut self) -> f32 {
            f32::from(u16::try_from(self.next() >> 48).unwrap()) / 65536.0
        }

        /// Sum of twelve uniform numbers less six: Gaussian enough, variance 1.
        fn gauss(&mut self) -> f32 {
            (0..12).map(|_| self.unit()).sum::<f32>() - 6.0
        }

        fn below(&mut self, bound: usize) -> usize {
            usize::try_from(self.next() >> 33).unwrap() % bound
        }
    }

    fn random_pattern(dice: &mut Dice, mean: f32, spread: f32, len: usize) -> Vec<f32> {
        (0..len).map(|_| mean + spread * dice.gauss()).collect()
    }

    fn book_of(patterns: &[Vec<f32>], period: Period, sd: f32) -> (PatternTable, Codebook) {
        let table = PatternTable::new(period, patterns.iter().map(Vec::as_slice)).unwrap();
        let book = Codebook::new(&table, &[], &[], Noise::heavy_tailed(sd)).unwrap();
        (table, book)
    }

    #[test]
    fn every_code_is_decoded_exactly_without_noise() {
        let mut dice = Dice(7);
        for (period, classes) in [(Period::Lines64, 16), (Period::Lines256, 4)] {
            let patterns: Vec<_> = (0..classes)
                .map(|_| random_pattern(&mut dice, 50.0, 12.0, period.lines()))
                .collect();
            let (table, book) = book_of(&patterns, period, 5.0);
            for code in 0..1024 {
                let mut decoder = Decoder::new(&book);
                for _ in 0..24 {
                    let line = u8::try_from(dice.below(256)).unwrap();
                    decoder.add(&book, line, table.latency_cycles(Code(code), line));
                }
                assert_eq!(decoder.best(&book).code, Code(code));
                assert_eq!(decoder.best(&book).samples, 24);
            }
        }
    }

    /// Pages with the noise and tails of timed loads, decoded until the decision is safe.
    fn decode_many(outliers: f32, threshold: f32, seed: u64) -> (f32, f32) {
        let mut dice = Dice(seed);
        let patterns = [random_pattern(&mut dice, 60.0, 15.0, 64)];
        let (table, book) = book_of(&patterns, Period::Lines64, 10.0);
        let (mut wrong, mut samples, pages) = (0.0, 0.0, 2000_u16);
        for _ in 0..pages {
            let code = Code(u16::try_from(dice.below(64)).unwrap());
            let mut decoder = Decoder::new(&book);
            let decision = loop {
                let line = u8::try_from(dice.below(64)).unwrap();
                let tail = if dice.unit() < outliers { 400.0 } else { 0.0 };
                let value = table.latency_cycles(code, line) + 10.0 * dice.gauss() + tail;
                decoder.add(&book, line, value);
                let decision = decoder.best(&book);
                if decision.is_safe(threshold) || decision.samples == 64 {
                    break decision;
                }
            };
            wrong += if decision.code == code { 0.0 } else { 1.0 };
            samples += f32::from(u16::try_from(decision.samples).unwrap());
        }
        (wrong / f32::from(pages), samples / f32::from(pages))
    }

    #[test]
    fn the_posterior_error_is_honest_and_tails_do_not_break_it() {
        let (wrong, samples) = decode_many(0.0, 0.02, 3);
        assert!(wrong < 0.03, "{wrong} of pages wrong where at most 0.02 were promised");
        assert!(samples < 15.0, "{samples} samples a page");
        let (wrong, samples) = decode_many(0.05, 0.02, 4);
        assert!(wrong < 0.04, "{wrong} wrong with one load in twenty an outlier");
        assert!(samples < 18.0, "{samples} samples a page");
    }

    #[test]
    fn equivalent_codes_are_one_answer() {
        let eight = [3.0, -4.0, 1.5, 5.0, -4.5, 0.0, -2.0, 1.0_f32];
        let pattern: Vec<f32> = (0..64).map(|i| 44.0 + eight[i % 8]).collect();
        let table = PatternTable::new(Period::Lines64, [pattern.as_slice()]).unwrap();
        let keys = table.canonical_keys(0.98);
        let noise = Noise::heavy_tailed(2.0);
        let keys = keys.map(u16::from);
        let merged = Codebook::new(&table, &keys[..64], &[], noise).unwrap();
        let apart = Codebook::new(&table, &[], &[], noise).unwrap();
        let (mut one, mut other) = (Decoder::new(&merged), Decoder::new(&apart));
        for line in 0..8 {
            one.add(&merged, line, table.latency_cycles(Code(0o53), line));
            other.add(&apart, line, table.latency_cycles(Code(0o53), line));
        }
        assert_eq!(one.best(&merged).code, Code(3));
        assert!(one.best(&merged).is_safe(0.01), "{:?}", one.best(&merged));
        assert!(
            (other.best(&apart).error - 0.875).abs() < 0.01,
            "eight codes alike: {:?}",
            other.best(&apart)
        );
        assert_eq!(merged.canonical(Code(0o53)), Code(3));
    }

    #[test]
    fn a_flat_level_has_one_answer_at_once() {
        let table = PatternTable::new(Period::Lines64, [[360.0; 64].as_slice()]).unwrap();
        let keys = table.canonical_keys(0.98).map(u16::from);
        let book = Codebook::new(&table, &keys[..64], &[], Noise::heavy_tailed(40.0)).unwrap();
        let decision = Decoder::new(&book).best(&book);
        assert_eq!((decision.code, decision.error, decision.margin), (Code(0), 0.0, f32::INFINITY));
    }

    #[test]
    fn the_prior_decides_where_samples_do_not() {
        let patterns = [[400.0_f32; 64].to_vec(), [410.0_f32; 64].to_vec()];
        let table = PatternTable::new(Period::Lines64, patterns.iter().map(Vec::as_slice)).unwrap();
        let keys = table.canonical_keys(0.98).map(u16::from);
        let shares: Vec<f32> = (0..128).map(|code| if code < 64 { 1.0 } else { 3.0 }).collect();
        let book = Codebook::new(&table, &keys[..64], &shares, Noise::heavy_tailed(40.0)).unwrap();
        let mut decoder = Decoder::new(&book);
        assert_eq!(decoder.best(&book).code, Code(64));
        decoder.add_weighted(&book, 5, 400.0, 200.0);
        assert_eq!(decoder.best(&book).code, Code(0));
        decoder.reset(&book);
        decoder.favour(&book, Code(0), 10.0);
        assert_eq!(decoder.best(&book).code, Code(0));
    }

    #[test]
    fn the_right_base_has_more_evidence_though_no_code_is_known() {
        let mut dice = Dice(11);
        let patterns: Vec<Vec<f32>> =
            (0..2).map(|_| random_pattern(&mut dice, 60.0, 12.0, 64)).collect();
        let (table, right) = book_of(&patterns[..1], Period::Lines64, 8.0);
        let (_, wrong) = book_of(&patterns[1..], Period::Lines64, 8.0);
        let mut gain = 0.0;
        for _ in 0..16 {
            let code = Code(u16::try_from(dice.below(64)).unwrap());
            let (mut own, mut other) = (Decoder::new(&right), Decoder::new(&wrong));
            assert!((own.evidence_nats(&right)).abs() < 1e-3, "nothing seen, nothing lost");
            for line in (0..64).step_by(9) {
                let value = table.latency_cycles(code, line) + 8.0 * dice.gauss();
                own.add(&right, line, value);
                other.add(&wrong, line, value);
            }
            gain += own.evidence_nats(&right) - other.evidence_nats(&wrong);
        }
        assert!(gain > 20.0, "{gain} nats");
    }

    #[test]
    fn a_shortlist_decides_as_all_answers_do() {
        let mut dice = Dice(23);
        let patterns: Vec<_> = (0..16).map(|_| random_pattern(&mut dice, 60.0, 12.0, 64)).collect();
        let (table, book) = book_of(&patterns, Period::Lines64, 6.0);
        let mut listed = 0;
        for _ in 0..100 {
            let code = Code(u16::try_from(dice.below(1024)).unwrap());
            let (mut all, mut few) = (Decoder::new(&book), Decoder::new(&book));
            for turn in 0..24 {
                let line = u8::try_from(dice.below(64)).unwrap();
                let value = table.latency_cycles(code, line) + 6.0 * dice.gauss();
                all.add(&book, line, value);
                few.add(&book, line, value);
                if turn % 3 == 2 {
                    few.prune(&book);
                }
                let (expected, found) = (all.best(&book), few.best(&book));
                // What was left out had odds of e^-16 at most, and came no nearer but by chance.
                assert_eq!((found.code, found.samples), (expected.code, expected.samples));
                assert!((found.error - expected.error).abs() < 1e-3, "{found:?} {expected:?}");
                assert!((all.evidence_nats(&book) - few.evidence_nats(&book)).abs() < 0.01);
            }
            assert!(few.listed < 100, "{} answers are left of 1024", few.listed);
            listed += usize::from(few.listed > 0);
            let before = few.best(&book).code;
            few.favour(&book, before, -100.0);
            assert_ne!((few.best(&book).code, few.listed), (before, 0));
            few.reset(&book);
            assert_eq!(few.best(&book), Decoder::new(&book).best(&book));
        }
        assert_eq!(listed, 100);
    }

    #[test]
    fn values_that_are_no_numbers_are_ignored() {
        let (_, book) = book_of(&[(0..64).map(|i| i as f32).collect()], Period::Lines64, 1.0);
        let mut decoder = Decoder::new(&book);
        for (value, weight) in [(f32::NAN, 1.0), (f32::INFINITY, 1.0), (1.0, f32::NAN), (1.0, -1.0)]
        {
            decoder.add_weighted(&book, 3, value, weight);
        }
        assert_eq!(decoder.best(&book).samples, 0);
    }

    #[test]
    fn the_cheap_exponential_agrees_with_the_exact_one() {
        for step in 0..2000_u16 {
            let x = -f32::from(step) / 100.0;
            let exact = libm::expf(x);
            assert!((exp_of_nonpositive(x) / exact - 1.0).abs() < 1e-5, "at {x}");
        }
    }
}
