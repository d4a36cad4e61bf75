//! What to read next of a page of which something is known, and whether enough is.
//!
//! The first lines are the same for all pages. After them a handful of codes is left, and the line that
//! tells two codes apart best is a matter of these two alone: of their classes and of the XOR of their keys.
//! So it is looked up. A page is done when what it may lose by a wrong code is little: the chance of each
//! other code times how unlike its pattern is. Codes whose patterns correlate at 0.98 cost nothing. Where
//! one load says little, because its noise is several times what lines differ by, neither do codes that are
//! a little less alike: to rule them out would take more loads than all the rest of the code.

use crate::number::{byte, narrow, real};
use crate::offset::PASSES;
use crate::patterns::{Patterns, lines_of, spread};
use crate::rows::Verdict;
use crate::walsh::{correlate, transform};
use isochrone_atlas::Code;

/// Distance, in lines, of lines of one page that are timed together: a load brings its neighbours along.
pub(crate) const APART: usize = 8;
/// Lines of a page in a round, once they are chosen for the page: a few, so that the next are chosen
/// knowing what these said. On the base of a Granite Rapids two at a time take 14.8 loads of 6 cycles noise,
/// four 19.1, one 13.1.
const CHOSEN: usize = 2;
/// The same where the noise of one load is larger than what lines differ by.
pub(crate) const CHOSEN_LOUD: usize = 4;
const _: () = assert!(CHOSEN_LOUD == PASSES);
/// Lines kept for each pair of codes, best first.
pub(crate) const KEPT: usize = 8;
/// Rivals of the best code that lines are chosen for are worth at least this share of the first: a load
/// for a code that is nearly ruled out says nothing about the one that is not.
const WORTH: f32 = 0.125;
/// Correlation at which two keys' patterns are one.
const SAME_KEY: f64 = 0.98;
/// How unlike patterns may be at most to cost nothing, whatever the noise (correlation 0.9).
const TOLERATED: f64 = 0.1;
/// What may be lost grows with the noise over what lines differ by, beyond this ratio: the loads that
/// tell two codes apart grow with its square over their distance, so that the same distance a load is
/// worth the same.
const LOUD: f64 = 4.0 / 3.0;
/// How much more unlike than that codes are before they cost all of it.
const RAMP: f64 = 0.05;
/// Loss at which a decision is safe, as a share of that of a code that has nothing to do with the page.
pub const SAFE_ERROR: f32 = 0.01;

/// How the lines of a page are chosen once something is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// For each page those that tell its best code from its worst rivals.
    Adaptive,
    /// The probe lines of the atlas in their order, for every page the same.
    Fixed,
}

/// Which lines of a page were read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Read([u64; 4]);

impl Read {
    pub(crate) fn insert(&mut self, line: u8) {
        self.0[usize::from(line >> 6)] |= 1 << (line & 63);
    }

    fn contains(self, line: u8) -> bool {
        self.0[usize::from(line >> 6)] >> (line & 63) & 1 == 1
    }

    pub(crate) fn count(self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }
}

/// The shape of what is looked up by pair of classes and XOR of keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pairs {
    pub(crate) classes: usize,
    pub(crate) period: usize,
}

impl Pairs {
    pub(crate) const fn count(self) -> usize {
        self.classes * self.classes * self.period
    }

    fn split(self, code: Code) -> (usize, usize) {
        let code = usize::from(code.0);
        (code / self.period.max(1), code % self.period.max(1))
    }

    fn pair(self, a: Code, b: Code) -> usize {
        let ((class_a, key_a), (class_b, key_b)) = (self.split(a), self.split(b));
        (class_a * self.classes + class_b) * self.period + (key_a ^ key_b)
    }
}

/// What choosing looks up; the tables are the caller's.
pub(crate) struct Chooser<'c> {
    pub(crate) pairs: Pairs,
    /// Lines of a page that are ever read, at most.
    pub(crate) lines_most: usize,
    /// Loss at which a decision is safe, at most: where one load says little it grows with the noise over what
    /// lines differ by, since loads grow with the logarithm of its inverse and with the square of that ratio.
    pub(crate) loss_most: f32,
    /// Noise of one load over what lines differ by, beyond [`LOUD`]; 1 at least.
    pub(crate) loud: f64,
    /// What taking one code for the other costs, the worst over all cores.
    pub(crate) losses: &'c [f32],
}

impl Chooser<'_> {
    /// Loss at which a decision is safe.
    pub(crate) fn safe(&self) -> f32 {
        (SAFE_ERROR * narrow(self.loud)).min(self.loss_most.max(SAFE_ERROR))
    }

    /// Lines to read in a round once they are chosen for the page: where one load says little the next
    /// are chosen as well after four.
    pub(crate) fn reads(&self) -> usize {
        if self.loud > 1.0 { CHOSEN_LOUD } else { CHOSEN }
    }

    fn loss_of(&self, a: Code, b: Code) -> f32 {
        self.losses.get(self.pairs.pair(a, b)).copied().unwrap_or(1.0)
    }

    /// What a verdict may lose.
    pub(crate) fn loss(&self, verdict: &Verdict) -> f32 {
        let listed: f32 = verdict.close().iter().map(|(_, share)| share).sum();
        let close = verdict.close().iter();
        let of_listed: f32 =
            close.map(|(code, share)| share * self.loss_of(verdict.code, *code)).sum();
        (verdict.error - listed).max(0.0) + of_listed
    }

    /// The codes that a wrong decision would most likely and most dearly fall on, the worst first.
    fn rivals(&self, verdict: &Verdict) -> [Option<Code>; CHOSEN_LOUD] {
        let mut costs = [0.0; CHOSEN_LOUD];
        let mut rivals = [None; CHOSEN_LOUD];
        for close in verdict.close() {
            let cost = close.1 * self.loss_of(verdict.code, close.0);
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

    /// The lines that tell the best code from its worst rivals, for the core whose base is `base`, whose lines
    /// by pair are remembered in `lines`; `fixed` are lines to fall back on. Lines of one round are
    /// [`APART`], and at most so many are ever read.
    pub(crate) fn next<B: Patterns + ?Sized>(
        &self,
        base: &B,
        lines: &mut [[u8; KEPT]],
        verdict: &Verdict,
        read: Read,
        fixed: &[u8],
    ) -> [u8; CHOSEN_LOUD] {
        let mut chosen = [0; CHOSEN_LOUD];
        let mut room = self.lines_most.saturating_sub(crate::number::index(read.count()));
        let key = byte(self.pairs.split(verdict.code).1);
        let rivals = self.rivals(verdict);
        for nth in 0..self.reads() {
            let apart =
                |line: u8| chosen[..nth].iter().all(|c: &u8| c.abs_diff(line) >= byte(APART));
            let may = |line: u8| apart(line) && (room > 0 || read.contains(line));
            let other = rivals.iter().flatten().nth(nth).or(rivals[0].as_ref());
            let by_pair = other.copied().and_then(|code| {
                let lines = self.lines_apart(base, lines, verdict.code, code);
                lines.iter().map(|canonical| canonical ^ key).find(|line| may(*line))
            });
            let fallback = || fixed.iter().copied().find(|line| may(*line));
            let last = || fixed.get(nth % fixed.len().max(1)).copied().unwrap_or(0);
            let line = by_pair.or_else(fallback).unwrap_or_else(last);
            room -= usize::from(room > 0 && !read.contains(line));
            chosen[nth] = line;
        }
        chosen
    }

    /// The canonical indices of `a` at which the core whose base is `base` sees `b` differ most.
    fn lines_apart<B: Patterns + ?Sized>(
        &self,
        base: &B,
        lines: &mut [[u8; KEPT]],
        a: Code,
        b: Code,
    ) -> [u8; KEPT] {
        let ((class_a, key_a), (class_b, key_b)) = (self.pairs.split(a), self.pairs.split(b));
        let Some(slot) = lines.get_mut(self.pairs.pair(a, b)) else {
            return apart(base, class_a, class_b, key_a ^ key_b);
        };
        // Lines kept for a pair differ, so eight zeros are none.
        if *slot == [0; KEPT] {
            *slot = apart(base, class_a, class_b, key_a ^ key_b);
        }
        *slot
    }
}

/// The canonical indices of class `a` at which it differs most from class `b` turned by `key`, best first:
/// one of each eight neighbours, so that they can be read together. Where lines are alike these are eight
/// apart, whatever key the page has.
fn apart<B: Patterns + ?Sized>(base: &B, a: usize, b: usize, key: usize) -> [u8; KEPT] {
    let difference = |i: usize| (base.cycles(a, i) - base.cycles(b, i ^ key)).abs();
    // The best of each group of neighbours, kept in order as they come.
    let mut kept = [(f64::NEG_INFINITY, 0_usize); KEPT];
    let mut count = 0;
    for first in (0..base.period()).step_by(APART) {
        let mut best = (f64::NEG_INFINITY, first);
        for i in first..first + APART {
            let found = difference(i);
            if found > best.0 {
                best = (found, i);
            }
        }
        // Of equal ones the first comes first: they are gone through in order.
        let place = kept[..count].iter().position(|other| best.0 > other.0).unwrap_or(count);
        if place < KEPT {
            count = (count + 1).min(KEPT);
            kept[place..count].rotate_right(1);
            kept[place] = best;
        }
    }
    kept.map(|(_, i)| byte(i))
}

/// Noise of one load over what lines differ by, as a multiple of [`LOUD`]; 1 at least.
pub(crate) fn loudness(spread: f64, noise: f64) -> f64 {
    (noise / libm::sqrt(spread.max(f64::MIN_POSITIVE)) / LOUD).max(1.0)
}

/// For one pair of classes and each XOR of keys how much taking one for the other costs; the worst of that
/// and of what is there. Nothing as long as the mean square distance, as a share of that of patterns that
/// do not correlate, is what keys that count as one may differ by.
pub(crate) fn add_losses<B: Patterns + ?Sized>(
    base: &B,
    a: usize,
    b: usize,
    noise: f64,
    losses: &mut [f32],
    scratch: &mut [f64],
) {
    let period = base.period();
    let spread = spread(base).max(f64::MIN_POSITIVE);
    let loud = loudness(spread, noise);
    let alike = ((1.0 - SAME_KEY) * loud).min(TOLERATED);
    let square = |class: usize| lines_of(base, class).map(|v| v * v).sum::<f64>();
    let both = square(a) + square(b);
    let Some((of_a, rest)) = scratch.split_at_mut_checked(period) else { return };
    let Some(of_b) = rest.get_mut(..period) else { return };
    for (spectrum, class) in [(&mut *of_a, a), (&mut *of_b, b)] {
        spectrum.iter_mut().zip(lines_of(base, class)).for_each(|(slot, value)| *slot = value);
        transform(spectrum);
    }
    correlate(of_a, of_b);
    let first = (a * base.classes() + b) * period;
    let of_pair = losses.get_mut(first..first + period).unwrap_or(&mut []);
    for (most, product) in of_pair.iter_mut().zip(&*of_a) {
        let distance = (both - 2.0 * product).max(0.0) / real(period);
        let loss = narrow(((distance / (2.0 * spread) - alike) / RAMP).clamp(0.0, 1.0));
        *most = most.max(loss);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isochrone_atlas::{PatternTable, Period};
    use std::vec;
    use std::vec::Vec;

    const MAX_LINES: usize = 12;

    fn verdict(code: u16, close: &[(u16, f32)]) -> Verdict {
        let mut listed = [(Code(0), 0.0); crate::CLOSE];
        listed.iter_mut().zip(close).for_each(|(slot, (c, share))| *slot = (Code(*c), *share));
        let error = close.iter().map(|(_, share)| share).sum();
        Verdict { code: Code(code), close: listed, count: close.len(), error }
    }

    /// What choosing needs of one base.
    struct Own {
        base: PatternTable,
        losses: Vec<f32>,
        lines: Vec<[u8; KEPT]>,
        loud: f64,
    }

    impl Own {
        fn new(patterns: &[Vec<f32>], noise: f64) -> Self {
            let base = PatternTable::new(Period::Lines64, patterns.iter().map(Vec::as_slice));
            let base = base.expect("a sound base");
            let classes = patterns.len();
            let mut losses = vec![0.0; classes * classes * 64];
            let mut scratch = [0.0; 128];
            for (a, b) in (0..classes).flat_map(|a| (0..classes).map(move |b| (a, b))) {
                add_losses(&base, a, b, noise, &mut losses, &mut scratch);
            }
            let lines = vec![[0; KEPT]; losses.len()];
            Self { loud: loudness(spread(&base), noise), base, losses, lines }
        }

        fn chooser(&self) -> Chooser<'_> {
            Chooser {
                pairs: Pairs { classes: Patterns::classes(&self.base), period: 64 },
                lines_most: MAX_LINES,
                loss_most: 0.03,
                loud: self.loud,
                losses: &self.losses,
            }
        }

        fn next(&mut self, verdict: &Verdict, read: Read, fixed: &[u8]) -> [u8; CHOSEN_LOUD] {
            let mut lines = core::mem::take(&mut self.lines);
            let next = self.chooser().next(&self.base, &mut lines, verdict, read, fixed);
            self.lines = lines;
            next
        }
    }

    /// Two classes; in the first, keys 0 and 1 differ in line 9 alone.
    fn own(height: f32) -> Own {
        let mut first: Vec<f32> =
            (0..64_u8).map(|i| 100.0 + f32::from(u16::from(i / 2) * 29 % 31)).collect();
        first[9] += height;
        let second = first.iter().map(|v| v + 60.0).collect();
        Own::new(&[first, second], 1.0)
    }

    #[test]
    fn the_line_that_differs_is_read() {
        let mut own = own(40.0);
        let fixed = [0, 16, 32, 48, 8, 24];
        // Of a page with key 4, canonical line 9 is line 13, and 8 is 12.
        let next = own.next(&verdict(4, &[(5, 0.4)]), Read::default(), &fixed);
        assert!(next[0] == 13 || next[0] == 12, "{next:?}");
        for (nth, line) in next.iter().take(CHOSEN).enumerate() {
            assert!(next[..nth].iter().all(|other| other.abs_diff(*line) >= 8), "{next:?}");
        }
        let mut read = Read::default();
        (0..12).for_each(|line| read.insert(5 * line));
        let next = own.next(&verdict(4, &[(5, 0.4)]), read, &fixed);
        let known = |line: &u8| read.contains(*line) || fixed.contains(line);
        assert!(next.iter().take(CHOSEN).all(known), "no thirteenth line: {next:?}");
        assert_eq!(read.count(), 12);
    }

    /// DRAM of an EPYC 9005 in little: two of four groups of lines are near, and the two keys left exchange
    /// these. A third code is all but ruled out.
    #[test]
    fn all_lines_of_a_loud_round_tell_the_worst_rival() {
        let groups = [318.0, 330.0, 348.0, 349.0];
        let base: Vec<f32> = (0..64).map(|i| groups[i / 4 % 4]).collect();
        let mut own = Own::new(core::slice::from_ref(&base), 38.0);
        assert_eq!(own.chooser().reads(), CHOSEN_LOUD);
        let fixed = [15, 24, 7, 50, 3, 20, 62, 11, 58, 13, 5, 32];
        for key in [0_u8, 4, 8, 12] {
            let likely = verdict(u16::from(key), &[(u16::from(key ^ 4), 0.3), (33, 0.01)]);
            let mut read = Read::default();
            fixed[..4].iter().for_each(|line| read.insert(*line));
            for _ in 0..4 {
                let next = own.next(&likely, read, &fixed);
                let group = |line: u8| base[usize::from(line ^ key)];
                assert!(next.iter().all(|line| group(*line) < 340.0), "{next:?}");
                next.iter().for_each(|line| read.insert(*line));
            }
            assert!(read.count() <= 12);
        }
    }

    #[test]
    fn what_is_alike_loses_nothing_and_what_is_far_loses_all() {
        let own = own(9.0);
        let chooser = own.chooser();
        assert_eq!(chooser.loss(&verdict(0, &[(1, 0.5)])), 0.0, "they correlate at 0.98");
        let far = chooser.loss(&verdict(0, &[(64, 0.5)]));
        assert!((far - 0.5).abs() < 1e-6, "{far}");
        let unlisted = Verdict { error: 0.75, ..verdict(0, &[(1, 0.5)]) };
        assert!((chooser.loss(&unlisted) - 0.25).abs() < 1e-6);
    }
}
