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
use super::learn::{SAME_KEY, split_code, spread};
use super::lines::MAX_LINES;
use super::number::f32_of;
use super::walsh::{correlate, spectrum};

/// Lines of a page in a round, once they are chosen for the page: a few, so that the next are chosen
/// knowing what these said. On the base of a Granite Rapids two at a time take 14.8 loads of 6 cycles noise,
/// four 19.1, one 13.1.
pub(super) const CHOSEN: usize = 2;
/// Lines kept for each pair of codes, best first.
const KEPT: usize = 8;
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

/// Lines and losses by pair of classes and XOR of keys.
pub(super) struct Chooser {
    classes: usize,
    period: usize,
    /// For each judge the canonical indices of the first code at which the two differ most.
    lines: Vec<Vec<[u8; KEPT]>>,
    /// What taking one code for the other costs, the worst over all cores.
    losses: Vec<f32>,
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
        let pairs: Vec<(usize, usize, usize)> = (0..classes)
            .flat_map(|a| (0..classes).map(move |b| (a, b)))
            .flat_map(|(a, b)| (0..period).map(move |key| (a, b, key)))
            .collect();
        let of_judge = |judge: &Judge| {
            let patterns = &judge.patterns;
            pairs.iter().map(|(a, b, key)| apart(&patterns[*a], &patterns[*b], *key)).collect()
        };
        let mut losses = vec![0.0_f32; pairs.len()];
        for patterns in judges.iter().map(|judge| &judge.patterns).chain(others) {
            let of_base = losses_of(patterns, period, noise);
            losses.iter_mut().zip(of_base).for_each(|(most, loss)| *most = most.max(loss));
        }
        Self { classes, period, lines: judges.iter().map(of_judge).collect(), losses }
    }

    fn pair(&self, a: Code, b: Code) -> usize {
        let (class_a, key_a) = split_code(a.0, self.period);
        let (class_b, key_b) = split_code(b.0, self.period);
        ((class_a * self.classes + class_b) * self.period) | (key_a ^ key_b)
    }

    /// What a verdict may lose.
    pub(super) fn loss(&self, verdict: &Verdict) -> f32 {
        let listed: f32 = verdict.close().iter().map(|(_, share)| share).sum();
        let close = verdict.close().iter();
        let of_listed: f32 =
            close.map(|(code, share)| share * self.losses[self.pair(verdict.code, *code)]).sum();
        (verdict.error - listed).max(0.0) + of_listed
    }

    /// The lines that tell the best code from the second and the third, for the judge whose turn it is;
    /// `fixed` are lines to fall back on. Lines of one round are [`APART`], and at most [`MAX_LINES`] are
    /// ever read.
    pub(super) fn next(
        &self,
        judge: usize,
        verdict: &Verdict,
        read: Read,
        fixed: &[u8],
    ) -> [u8; CHOSEN] {
        let mut chosen = [0; CHOSEN];
        let mut room = MAX_LINES.saturating_sub(read.count());
        let (_, key) = split_code(verdict.code.0, self.period);
        let key = key.to_le_bytes()[0];
        for nth in 0..CHOSEN {
            let apart = |line: u8| chosen[..nth].iter().all(|c: &u8| c.abs_diff(line) >= far());
            let may = |line: u8| apart(line) && (room > 0 || read.contains(line));
            // Codes that cost nothing are left alone.
            let close = verdict.close();
            let worth = |place: usize| {
                close
                    .get(place)
                    .is_some_and(|(code, _)| self.losses[self.pair(verdict.code, *code)] > 0.0)
            };
            let other = (0..close.len()).filter(|place| worth(*place)).nth(nth);
            let other = other.or_else(|| (0..close.len()).find(|place| worth(*place)));
            let by_pair = other.and_then(|place| {
                let lines = &self.lines[judge][self.pair(verdict.code, close[place].0)];
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

/// The canonical indices of `a` at which it differs most from `b` turned by `key`.
fn apart(a: &[f64], b: &[f64], key: usize) -> [u8; KEPT] {
    let difference = |i: usize| (a[i] - b[i ^ key]).abs();
    let mut order: Vec<usize> = (0..a.len()).collect();
    let kept = KEPT.min(order.len());
    order.select_nth_unstable_by(kept - 1, |x, y| difference(*y).total_cmp(&difference(*x)));
    order.truncate(kept);
    order.sort_by(|x, y| difference(*y).total_cmp(&difference(*x)));
    let mut lines = [0; KEPT];
    lines.iter_mut().zip(order).for_each(|(line, i)| *line = i.to_le_bytes()[0]);
    lines
}

/// For each pair of classes and XOR of keys how much taking one for the other costs: nothing as long as
/// the mean square distance, as a share of that of patterns that do not correlate, is what keys that count
/// as one may differ by.
fn losses_of(patterns: &[Vec<f64>], period: usize, noise: f64) -> Vec<f32> {
    let spread = spread(patterns).max(f64::MIN_POSITIVE);
    let loud = (noise / spread.sqrt() / LOUD).max(1.0);
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
        let chooser = chooser(40.0);
        let fixed = [0, 16, 32, 48, 8, 24];
        // Of a page with key 4, canonical line 9 is line 13, and 8 is 12.
        let next = chooser.next(0, &verdict(4, &[(5, 0.4)]), Read::default(), &fixed);
        assert!(next[0] == 13 || next[0] == 12, "{next:?}");
        for (nth, line) in next.iter().enumerate() {
            assert!(next[..nth].iter().all(|other| other.abs_diff(*line) >= 8), "{next:?}");
        }
        let mut read = Read::default();
        (0..12).for_each(|line| read.insert(5 * line));
        let next = chooser.next(0, &verdict(4, &[(5, 0.4)]), read, &fixed);
        let known = |line: &u8| read.contains(*line) || fixed.contains(line);
        assert!(next.iter().all(known), "no thirteenth line: {next:?}");
        assert_eq!(read.count(), 12);
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
