//! What to read next of a page of which something is known, and whether enough is.
//!
//! The first lines are the same for all pages (`lines`). After them a handful of codes is left, and the
//! line that tells two codes apart best is a matter of these two alone: of their classes and of the XOR of
//! their keys. So it is looked up. A page is done when what it may lose by a wrong code is little: the
//! chance of each other code times how unlike its pattern is. Codes whose patterns correlate at 0.98
//! cost nothing. Where one load says little, because its noise is several times what lines differ by,
//! neither do codes that are a little less alike: to rule them out would take more loads than all the
//! rest of the code.

use isochrone_atlas::{Code, Verdict};

use super::apart::APART;
use super::decode::Judge;
use super::learn::{SAME_KEY, spread};
use super::lines::MAX_LINES;
use super::number::f32_of;
use super::walsh::{correlate, spectrum};

/// Lines of a page in a round, once they are chosen for the page: a few, so that the next are chosen
/// knowing what these said. On the base of a Granite Rapids two at a time take 14.8 loads of 6 cycles noise,
/// four 19.1, one 13.1.
const CHOSEN: usize = 2;
/// The same where the noise of one load is larger than what lines differ by.
pub(super) const CHOSEN_LOUD: usize = 4;
/// Lines kept for each pair of codes, best first.
const KEPT: usize = 8;
/// Rivals of the best code that lines are chosen for are worth at least this share of the first: a load
/// for a code that is nearly ruled out says nothing about the one that is not.
const WORTH: f32 = 0.125;
/// How unlike patterns may be at most to cost nothing, whatever the noise (correlation 0.9).
const TOLERATED: f64 = 0.1;
/// What may be lost grows with the noise over what lines differ by, beyond this ratio: the loads that
/// tell two codes apart grow with its square over their distance, so that the same distance a load is
/// worth the same.
const LOUD: f64 = 4.0 / 3.0;
/// How much more unlike than that codes are before they cost all of it.
const RAMP: f64 = 0.05;
/// Loss at which a decision is safe, as a share of that of a code that has nothing to do with the page.
pub(super) const SAFE_ERROR: f32 = 0.01;
/// The same at most, where one load says little: it too grows with the noise over what lines differ by,
/// since loads grow with the logarithm of its inverse and with the square of that ratio.
const SAFE_ERROR_LOUD: f32 = 0.03;

/// Lines and losses by pair of classes and XOR of keys.
pub(super) struct Chooser {
    classes: usize,
    period_bits: u32,
    judges: Vec<Judge>,
    /// For each judge the canonical indices of the first code at which the two differ most, as far as
    /// it was asked for.
    lines: Vec<Vec<Option<[u8; KEPT]>>>,
    /// What taking one code for the other costs, the worst over all cores.
    losses: Vec<f32>,
    /// Noise of one load over what lines differ by, beyond [`LOUD`]; 1 at least.
    loud: f64,
}

/// Which lines of a page were read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Read([u64; 4]);

impl Read {
    pub(super) fn insert(&mut self, line: u8) {
        self.0[usize::from(line >> 6)] |= 1 << (line & 63);
    }

    fn contains(self, line: u8) -> bool {
        self.0[usize::from(line >> 6)] >> (line & 63) & 1 == 1
    }

    pub(super) fn count(self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }
}

impl Chooser {
    /// `noise` is that of one load, cycles.
    /// `others` are the bases of cores that do not take part, but use the codes.
    pub(super) fn new(judges: &[Judge], others: &[Vec<Vec<f64>>], noise: f64) -> Self {
        let first = &judges[0].patterns;
        let (classes, period) = (first.len(), first[0].len());
        let pairs = classes * classes * period;
        let mut losses = vec![0.0_f32; pairs];
        for patterns in judges.iter().map(|judge| &judge.patterns).chain(others) {
            let of_base = losses_of(patterns, period, noise);
            losses.iter_mut().zip(of_base).for_each(|(most, loss)| *most = most.max(loss));
        }
        Self {
            classes,
            period_bits: period.trailing_zeros(),
            judges: judges.to_vec(),
            lines: vec![vec![None; pairs]; judges.len()],
            losses,
            loud: judges
                .iter()
                .map(|judge| loudness(&judge.patterns, noise))
                .fold(f64::MAX, f64::min),
        }
    }

    /// Loss at which a decision is safe.
    pub(super) fn safe(&self) -> f32 {
        (SAFE_ERROR * f32_of(self.loud)).min(SAFE_ERROR_LOUD)
    }

    /// Lines to read in a round once they are chosen for the page: where one load says little the next
    /// are chosen as well after four.
    pub(super) fn reads(&self) -> usize {
        if self.loud > 1.0 { CHOSEN_LOUD } else { CHOSEN }
    }

    fn split(&self, code: Code) -> (usize, usize) {
        let code = usize::from(code.0);
        (code >> self.period_bits, code & ((1 << self.period_bits) - 1))
    }

    fn pair(&self, a: Code, b: Code) -> usize {
        let ((class_a, key_a), (class_b, key_b)) = (self.split(a), self.split(b));
        ((class_a * self.classes + class_b) << self.period_bits) | (key_a ^ key_b)
    }

    /// The canonical indices of `a` at which a judge sees `b` differ most.
    fn lines_apart(&mut self, judge: usize, a: Code, b: Code) -> [u8; KEPT] {
        let pair = self.pair(a, b);
        if let Some(lines) = self.lines[judge][pair] {
            return lines;
        }
        let ((class_a, key_a), (class_b, key_b)) = (self.split(a), self.split(b));
        let patterns = &self.judges[judge].patterns;
        let lines = apart(&patterns[class_a], &patterns[class_b], key_a ^ key_b);
        self.lines[judge][pair] = Some(lines);
        lines
    }

    /// What a verdict may lose.
    pub(super) fn loss(&self, verdict: &Verdict) -> f32 {
        let listed: f32 = verdict.close().iter().map(|(_, share)| share).sum();
        let close = verdict.close().iter();
        let of_listed: f32 =
            close.map(|(code, share)| share * self.losses[self.pair(verdict.code, *code)]).sum();
        (verdict.error - listed).max(0.0) + of_listed
    }

    /// The codes that a wrong decision would most likely and most dearly fall on, the worst first.
    fn rivals(&self, verdict: &Verdict) -> [Option<Code>; CHOSEN_LOUD] {
        let cost = |close: &(Code, f32)| close.1 * self.losses[self.pair(verdict.code, close.0)];
        let mut costs = [0.0; CHOSEN_LOUD];
        let mut rivals = [None; CHOSEN_LOUD];
        for close in verdict.close() {
            let cost = cost(close);
            // Codes that cost nothing are left alone.
            if let Some(place) = costs.iter().position(|other| cost > *other) {
                costs[place..].rotate_right(1);
                rivals[place..].rotate_right(1);
                (costs[place], rivals[place]) = (cost, Some(close.0));
            }
        }
        for (rival, cost) in rivals.iter_mut().zip(costs) {
            *rival = rival.filter(|_| cost >= WORTH * costs[0]);
        }
        rivals
    }

    /// The lines that tell the best code from its worst rivals, for the judge whose turn it is;
    /// `fixed` are lines to fall back on. Lines of one round are [`APART`], and at most [`MAX_LINES`] are
    /// ever read.
    pub(super) fn next(
        &mut self,
        judge: usize,
        verdict: &Verdict,
        read: Read,
        fixed: &[u8],
    ) -> [u8; CHOSEN_LOUD] {
        let mut chosen = [0; CHOSEN_LOUD];
        let mut room = MAX_LINES.saturating_sub(read.count());
        let key = self.split(verdict.code).1.to_le_bytes()[0];
        let rivals = self.rivals(verdict);
        for nth in 0..self.reads() {
            let apart = |line: u8| chosen[..nth].iter().all(|c: &u8| c.abs_diff(line) >= far());
            let may = |line: u8| apart(line) && (room > 0 || read.contains(line));
            let other = rivals.iter().flatten().nth(nth).or(rivals[0].as_ref());
            let by_pair = other.copied().and_then(|code| {
                let lines = self.lines_apart(judge, verdict.code, code);
                lines.iter().map(|canonical| canonical ^ key).find(|line| may(*line))
            });
            let fallback = || fixed.iter().copied().find(|line| may(*line));
            let line = by_pair.or_else(fallback).unwrap_or(fixed[nth % fixed.len()]);
            room -= usize::from(room > 0 && !read.contains(line));
            chosen[nth] = line;
        }
        chosen
    }
}

fn far() -> u8 {
    u8::try_from(APART).unwrap_or(u8::MAX)
}

/// The canonical indices of `a` at which it differs most from `b` turned by `key`, best first: one of each
/// eight neighbours, so that they can be read together. Where lines are alike these are eight apart,
/// whatever key the page has.
fn apart(a: &[f64], b: &[f64], key: usize) -> [u8; KEPT] {
    let difference = |i: &usize| (a[*i] - b[*i ^ key]).abs();
    let better = |x: &usize, y: &usize| difference(y).total_cmp(&difference(x)).then(x.cmp(y));
    let neighbours = (0..a.len()).step_by(APART).map(|first| first..first + APART);
    let mut order: Vec<usize> = neighbours.filter_map(|group| group.min_by(better)).collect();
    order.sort_by(better);
    let mut lines = [0; KEPT];
    lines.iter_mut().zip(order).for_each(|(line, i)| *line = i.to_le_bytes()[0]);
    lines
}

/// Noise of one load over what lines differ by, as a multiple of [`LOUD`]; 1 at least.
fn loudness(patterns: &[Vec<f64>], noise: f64) -> f64 {
    let spread = spread(patterns).max(f64::MIN_POSITIVE);
    (noise / spread.sqrt() / LOUD).max(1.0)
}

/// For each pair of classes and XOR of keys how much taking one for the other costs: nothing as long as
/// the mean square distance, as a share of that of patterns that do not correlate, is what keys that count
/// as one may differ by.
fn losses_of(patterns: &[Vec<f64>], period: usize, noise: f64) -> Vec<f32> {
    let spread = spread(patterns).max(f64::MIN_POSITIVE);
    let loud = loudness(patterns, noise);
    let alike = ((1.0 - SAME_KEY) * loud).min(TOLERATED);
    let spectra: Vec<Vec<f64>> = patterns.iter().map(|p| spectrum(p, period)).collect();
    let square = |pattern: &[f64]| pattern.iter().map(|v| v * v).sum::<f64>();
    let mut losses = Vec::with_capacity(patterns.len() * patterns.len() * period);
    for (a, of_a) in patterns.iter().zip(&spectra) {
        for (b, of_b) in patterns.iter().zip(&spectra) {
            let both = square(a) + square(b);
            losses.extend(correlate(of_a, of_b, period).into_iter().map(|product| {
                let distance = (both - 2.0 * product).max(0.0) / period as f64;
                f32_of(((distance / (2.0 * spread) - alike) / RAMP).clamp(0.0, 1.0))
            }));
        }
    }
    losses
}

#[cfg(test)]
mod tests {
    use super::*;
    use isochrone_units::CoreId;

    fn verdict(code: u16, close: &[(u16, f32)]) -> Verdict {
        let mut listed = [(Code(0), 0.0); isochrone_atlas::CLOSE];
        listed.iter_mut().zip(close).for_each(|(slot, (c, share))| *slot = (Code(*c), *share));
        let error = close.iter().map(|(_, share)| share).sum();
        Verdict { code: Code(code), close: listed, count: close.len(), error }
    }

    /// Two classes; in the first, keys 0 and 1 differ in line 9 alone.
    fn chooser(height: f64) -> Chooser {
        let mut first: Vec<f64> = (0..64).map(|i| 100.0 + f64::from(i / 2 * 29 % 31)).collect();
        first[9] += height;
        let second = first.iter().map(|v| v + 60.0).collect();
        Chooser::new(&[Judge { core: CoreId(0), patterns: vec![first, second] }], &[], 1.0)
    }

    #[test]
    fn the_line_that_differs_is_read() {
        let mut chooser = chooser(40.0);
        let fixed = [0, 16, 32, 48, 8, 24];
        // Of a page with key 4, canonical line 9 is line 13, and 8 is 12.
        let next = chooser.next(0, &verdict(4, &[(5, 0.4)]), Read::default(), &fixed);
        assert!(next[0] == 13 || next[0] == 12, "{next:?}");
        for (nth, line) in next.iter().take(CHOSEN).enumerate() {
            assert!(next[..nth].iter().all(|other| other.abs_diff(*line) >= 8), "{next:?}");
        }
        let mut read = Read::default();
        (0..12).for_each(|line| read.insert(5 * line));
        let next = chooser.next(0, &verdict(4, &[(5, 0.4)]), read, &fixed);
        let known = |line: &u8| read.contains(*line) || fixed.contains(line);
        assert!(next.iter().take(CHOSEN).all(known), "no thirteenth line: {next:?}");
        assert_eq!(read.count(), 12);
    }

    /// DRAM of an EPYC 9005 in little: two of four groups of lines are near, and the two keys left exchange
    /// these. A third code is all but ruled out.
    #[test]
    fn all_lines_of_a_loud_round_tell_the_worst_rival() {
        let groups = [318.0, 330.0, 348.0, 349.0];
        let base: Vec<f64> = (0..64).map(|i| groups[i / 4 % 4]).collect();
        let mut chooser =
            Chooser::new(&[Judge { core: CoreId(0), patterns: vec![base.clone()] }], &[], 38.0);
        assert_eq!(chooser.reads(), CHOSEN_LOUD);
        let fixed = [15, 24, 7, 50, 3, 20, 62, 11, 58, 13, 5, 32];
        for key in [0_u8, 4, 8, 12] {
            let likely = verdict(u16::from(key), &[(u16::from(key ^ 4), 0.3), (33, 0.01)]);
            let mut read = Read::default();
            fixed[..4].iter().for_each(|line| read.insert(*line));
            for _ in 0..4 {
                let next = chooser.next(0, &likely, read, &fixed);
                let group = |line: u8| base[usize::from(line ^ key)];
                assert!(next.iter().all(|line| group(*line) < 340.0), "{next:?}");
                next.iter().for_each(|line| read.insert(*line));
            }
            assert!(read.count() <= MAX_LINES);
        }
    }

    #[test]
    fn what_is_alike_loses_nothing_and_what_is_far_loses_all() {
        let chooser = chooser(9.0);
        assert_eq!(chooser.loss(&verdict(0, &[(1, 0.5)])), 0.0, "they correlate at 0.98");
        let far = chooser.loss(&verdict(0, &[(64, 0.5)]));
        assert!((far - 0.5).abs() < 1e-6, "{far}");
        let unlisted = Verdict { error: 0.75, ..verdict(0, &[(1, 0.5)]) };
        assert!((chooser.loss(&unlisted) - 0.25).abs() < 1e-6);
    }
}
