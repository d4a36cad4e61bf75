//! Repeated timing of whole pages, cut into stretches with one current base each.
//!
//! A round times every line once, in a fresh random order (see `apart`). Its values, less their common level,
//! are compared with what the stretch has seen so far: as long as the core stays where it is the
//! round repeats that pattern with slope 1; when the host moves the vCPU the slope falls at once,
//! often below zero. That is asked of lines within their pages and of the pages' means, each for itself:
//! pages on two nodes differ by so much more than the lines of one that a change there would not show.
//! The round in which that happens is dropped and counted, a new stretch
//! begins, and stretches with the same pattern are joined again. Nothing is averaged over a move.

use isochrone_stats::median;
use isochrone_units::{CoreId, LINES_PER_PAGE, Level, PageAddr};

use super::far::FAR_SHARE;
use super::in_step::Step;
use super::number::f32_of;
use super::sampler::{Round, Sampler};
use crate::target::{Target, TargetError};

/// Rounds before a stretch's pattern is firm enough to judge the next round by.
pub(super) const FIRM_ROUNDS: u32 = 4;
/// A round whose slope is this far below the usual one, as a share of it, is from another base
/// (if the difference is also beyond the noise): bases of neighbouring cores correlate at 0.6 or
/// less on the machines seen, frequency changes scale a pattern by a few per cent.
const SLOPE_DROP: f64 = 0.25;
/// Standard errors that a slope must differ by before it counts as a change.
const SLOPE_Z: f64 = 5.0;
/// Residuals kept for the density of the noise.
const RESIDUALS: usize = 1 << 17;
/// Samples behind a line's mean before residuals around it count.
const RESIDUAL_AFTER: u32 = 12;
/// Rounds that are judged together before they continue a stretch.
const ROUNDS_TOGETHER: u32 = 16;
/// Share of a pattern's mean square by which another base differs at least.
const OTHER_BASE: f64 = 0.1;
/// Standard errors that a difference or a pattern must be worth.
const SIGNIFICANT_Z: f64 = 5.0;

/// What to time and how often.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundsPlan {
    /// The core that asks.
    pub core: CoreId,
    /// Where the lines are put before each load.
    pub level: Level,
    /// Rounds wanted in one stretch (or in stretches of the same base together).
    pub rounds: u32,
    /// Rounds at which to give up waiting for a stretch that long.
    pub max_rounds: u32,
    /// Seconds at which to give up, on the target's clock.
    pub max_seconds: f64,
    /// Seed of the orders.
    pub seed: u64,
}

/// Means over the rounds of one base.
#[derive(Clone, Debug, Default)]
pub struct Stretch {
    sum: [Vec<f64>; 2],
    count: [Vec<u32>; 2],
    square: f64,
    squares: u64,
    level_sum: f64,
    residuals: Vec<f32>,
    /// Rounds behind it.
    pub rounds: u32,
}

/// A change of base that was noticed while timing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BaseChange {
    /// When, on the target's clock.
    pub at_s: f64,
    /// Index of the stretch before.
    pub from: usize,
    /// Index of the stretch after.
    pub to: usize,
}

/// All that the rounds gave.
#[derive(Clone, Debug)]
pub struct Rounds {
    /// Lines timed in one round; vectors of a stretch hold them page by page.
    pub lines: usize,
    /// Stretches of different bases, longest first.
    pub stretches: Vec<Stretch>,
    /// Changes of base, in order; indices are into `stretches`.
    pub changes: Vec<BaseChange>,
    /// Timed loads that were dropped because of a change.
    pub dropped: u64,
}

impl Rounds {
    /// Timed loads in all of it.
    #[must_use]
    pub fn loads(&self) -> u64 {
        let rounds: u64 = self.stretches.iter().map(|s| u64::from(s.rounds)).sum();
        rounds * self.lines as u64 + self.dropped
    }
}

impl Stretch {
    fn new(lines: usize) -> Self {
        Self {
            sum: [vec![0.0; lines], vec![0.0; lines]],
            count: [vec![0; lines], vec![0; lines]],
            ..Self::default()
        }
    }

    /// Deviation of each line from the level, cycles; `NaN` where no sample was kept.
    #[must_use]
    pub fn deviations(&self) -> Vec<f64> {
        (0..self.sum[0].len())
            .map(|i| {
                let n = self.count[0][i] + self.count[1][i];
                (self.sum[0][i] + self.sum[1][i]) / f64::from(n)
            })
            .collect()
    }

    /// The same from the even (`0`) or the odd (`1`) rounds alone.
    #[must_use]
    pub fn half(&self, which: usize) -> Vec<f64> {
        self.sum[which].iter().zip(&self.count[which]).map(|(s, n)| s / f64::from(*n)).collect()
    }

    /// Mean latency over all lines, cycles, the timer's cost taken off.
    #[must_use]
    pub fn level(&self) -> f64 {
        self.level_sum / f64::from(self.rounds)
    }

    /// Standard deviation of one timed load around its line's mean, cycles.
    #[must_use]
    pub fn noise(&self) -> f64 {
        if self.squares == 0 { 0.0 } else { (self.square / self.squares as f64).sqrt() }
    }

    /// Lines behind it.
    #[must_use]
    pub fn lines(&self) -> usize {
        self.sum[0].len()
    }

    /// Residuals of single loads around their lines' means, cycles: at most 2^17 of them.
    #[must_use]
    pub fn residuals(&self) -> &[f32] {
        &self.residuals
    }

    /// The part of the stretch that is about lines `range`; the level stays that of all lines.
    #[must_use]
    pub fn part(&self, range: std::ops::Range<usize>) -> Self {
        let cut = |half: usize| self.sum[half][range.clone()].to_vec();
        let cut_count = |half: usize| self.count[half][range.clone()].to_vec();
        Self { sum: [cut(0), cut(1)], count: [cut_count(0), cut_count(1)], ..self.clone() }
    }

    fn add(&mut self, round: &Round) {
        let half = (self.rounds % 2) as usize;
        for (i, value) in round.deviation.iter().enumerate() {
            if value.is_nan() {
                continue;
            }
            let n = self.count[0][i] + self.count[1][i];
            if n > 0 {
                let mean = (self.sum[0][i] + self.sum[1][i]) / f64::from(n);
                // The mean of n samples has noise of its own: n / (n + 1) makes it unbiased.
                self.square += (value - mean).powi(2) * f64::from(n) / f64::from(n + 1);
                self.squares += 1;
                if n >= RESIDUAL_AFTER && self.residuals.len() < RESIDUALS {
                    self.residuals.push(f32_of(value - mean));
                }
            }
            self.sum[half][i] += value;
            self.count[half][i] += 1;
        }
        self.level_sum += round.level;
        self.rounds += 1;
    }

    fn join(&mut self, other: &Self) {
        for half in 0..2 {
            for (a, b) in self.sum[half].iter_mut().zip(&other.sum[half]) {
                *a += b;
            }
            for (a, b) in self.count[half].iter_mut().zip(&other.count[half]) {
                *a += b;
            }
        }
        self.residuals.extend(&other.residuals);
        self.square += other.square;
        self.squares += other.squares;
        self.level_sum += other.level_sum;
        self.rounds += other.rounds;
    }
}

/// Times all lines of `pages` round after round until one base has been seen for `plan.rounds` rounds.
///
/// # Errors
/// Whatever the target refuses. A thread found on another core is not an error: the round is
/// dropped, counted and done again.
pub fn time_rounds(
    target: &mut dyn Target,
    pages: &[PageAddr],
    plan: &RoundsPlan,
    keep_going: &dyn Fn() -> bool,
) -> Result<Rounds, TargetError> {
    let sampler = Sampler::new(target.clock(), pages, plan.seed);
    timed_by(sampler, target, plan, keep_going)
}

/// The same beside others, each of which is at its own part of the pages at any time.
///
/// # Errors
/// As [`time_rounds`]; [`TargetError::Stopped`] where the others did not come.
pub(super) fn time_rounds_in_step(
    target: &mut dyn Target,
    pages: &[PageAddr],
    plan: &RoundsPlan,
    step: &Step<'_>,
    keep_going: &dyn Fn() -> bool,
) -> Result<Rounds, TargetError> {
    let sampler = Sampler::new(target.clock(), pages, plan.seed).in_step(step);
    timed_by(sampler, target, plan, keep_going)
}

fn timed_by(
    mut sampler: Sampler<'_>,
    target: &mut dyn Target,
    plan: &RoundsPlan,
    keep_going: &dyn Fn() -> bool,
) -> Result<Rounds, TargetError> {
    let lines = sampler.lines();
    let mut log = Log::new(lines);
    let end = target.seconds() + plan.max_seconds;
    for done in 0..plan.max_rounds {
        let enough = log.longest_rounds() >= plan.rounds;
        let late = done >= FIRM_ROUNDS && (target.seconds() > end || !keep_going());
        if enough || late {
            break;
        }
        match sampler.round(target, plan.core, plan.level) {
            Ok(round) => log.take(&round, target.seconds()),
            Err(TargetError::Moved { .. }) => log.dropped += lines as u64,
            Err(error) => return Err(error),
        }
    }
    Ok(log.finish(target.seconds()))
}

/// Assigns rounds to stretches: a few rounds at a time, so that a change too small to be seen in
/// one round is still not averaged over.
struct Log {
    stretches: Vec<Stretch>,
    open: Stretch,
    /// The stretch that the last closed rounds belong to.
    last: Option<usize>,
    /// Usual slopes of lines within pages, and of pages.
    slopes: [Vec<f64>; 2],
    changes: Vec<(f64, usize, usize)>,
    dropped: u64,
    lines: usize,
}

impl Log {
    fn new(lines: usize) -> Self {
        Self {
            stretches: Vec::new(),
            open: Stretch::new(lines),
            last: None,
            slopes: [Vec::new(), Vec::new()],
            changes: Vec::new(),
            dropped: 0,
            lines,
        }
    }

    fn longest_rounds(&self) -> u32 {
        self.stretches.iter().map(|s| s.rounds).max().unwrap_or(0)
    }

    fn take(&mut self, round: &Round, now: f64) {
        if self.is_from_another_base(round) {
            self.dropped += self.lines as u64;
            self.close(now);
            return;
        }
        self.open.add(round);
        if self.open.rounds == ROUNDS_TOGETHER {
            self.close(now);
        }
    }

    fn is_from_another_base(&mut self, round: &Round) -> bool {
        if self.open.rounds < FIRM_ROUNDS {
            return false;
        }
        let (lines, pages) = parts(&round.deviation);
        let (open_lines, open_pages) = parts(&self.open.deviations());
        let noise = self.open.noise();
        let mut found = [
            slope(&lines, &open_lines, noise),
            slope(&pages, &open_pages, noise / (LINES_PER_PAGE as f64).sqrt()),
        ];
        // Pages that hardly differ beside lines have no slope to lose: see `same_base`.
        if LINES_PER_PAGE as f64 * energy(&open_pages) < OTHER_BASE * energy(&open_lines) {
            found[1] = (1.0, f64::INFINITY);
        }
        if self.slopes[0].len() >= 3
            && self
                .slopes
                .iter()
                .zip(found)
                .any(|(usual, (slope, error))| fell(usual, slope, error))
        {
            return true;
        }
        self.slopes.iter_mut().zip(found).for_each(|(usual, (slope, _))| usual.push(slope));
        false
    }

    /// The open rounds continue a stretch of the same base, or begin a new one.
    fn close(&mut self, now: f64) {
        let open = std::mem::replace(&mut self.open, Stretch::new(self.lines));
        self.slopes.iter_mut().for_each(Vec::clear);
        if open.rounds < FIRM_ROUNDS {
            self.dropped += u64::from(open.rounds) * self.lines as u64;
            return;
        }
        let same = (0..self.stretches.len()).find(|i| same_base(&self.stretches[*i], &open));
        let place = same.unwrap_or(self.stretches.len());
        match same {
            Some(place) => self.stretches[place].join(&open),
            None => self.stretches.push(open),
        }
        if let Some(last) = self.last.filter(|last| *last != place) {
            self.changes.push((now, last, place));
        }
        self.last = Some(place);
    }

    fn finish(mut self, now: f64) -> Rounds {
        self.close(now);
        if self.stretches.is_empty() {
            self.stretches.push(Stretch::new(self.lines));
        }
        let mut order: Vec<usize> = (0..self.stretches.len()).collect();
        order.sort_by_key(|i| std::cmp::Reverse(self.stretches[*i].rounds));
        let place = |old: usize| order.iter().position(|i| *i == old).unwrap_or(0);
        let changes = self
            .changes
            .iter()
            .map(|(at_s, from, to)| BaseChange { at_s: *at_s, from: place(*from), to: place(*to) })
            .collect();
        let stretches = order.iter().map(|i| self.stretches[*i].clone()).collect();
        Rounds { lines: self.lines, stretches, changes, dropped: self.dropped }
    }
}

/// Lines less their pages' means, and the means of pages.
fn parts(deviations: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let mut lines = deviations.to_vec();
    let mut pages = Vec::with_capacity(lines.len() / LINES_PER_PAGE);
    for page in lines.chunks_exact_mut(LINES_PER_PAGE) {
        let known = || page.iter().filter(|v| v.is_finite());
        let mean = known().sum::<f64>() / known().count() as f64;
        page.iter_mut().for_each(|value| *value -= mean);
        pages.push(mean);
    }
    (lines, pages)
}

fn energy(values: &[f64]) -> f64 {
    values.iter().filter(|v| v.is_finite()).map(|v| v * v).sum()
}

/// Whether a slope is below the usual ones by more than its error allows. There is no pattern to lose
/// where the usual slope is itself within the noise.
fn fell(usual: &[f64], slope: f64, error: f64) -> bool {
    let usual = median(usual).unwrap_or(slope);
    let drop = usual - slope;
    usual > SLOPE_Z * error && drop > SLOPE_DROP * usual && drop > SLOPE_Z * error
}

/// Least-squares slope of `values` on `pattern` and its standard error, over lines that have both.
fn slope(values: &[f64], pattern: &[f64], noise: f64) -> (f64, f64) {
    let (mut cross, mut square) = (0.0, 0.0);
    for (v, p) in values.iter().zip(pattern) {
        if v.is_finite() && p.is_finite() {
            cross += v * p;
            square += p * p;
        }
    }
    if square > 0.0 { (cross / square, noise / square.sqrt()) } else { (0.0, f64::INFINITY) }
}

/// Whether two stretches saw one base, as far, in lines within their pages and in pages. Pages must differ by a share
/// of what lines differ by as well: means of pages wander by a cycle where translations, or other users of
/// the caches, come and go, on a machine on which they hardly differ.
fn same_base(a: &Stretch, b: &Stretch) -> bool {
    let halves = [a.half(0), a.half(1), b.half(0), b.half(1)].map(|half| parts(&half));
    let noise = |s: &Stretch| s.noise().powi(2) / f64::from((s.rounds / 2).max(1));
    let noise = noise(a) + noise(b);
    let lines = Compared::of(halves.each_ref().map(|half| &half.0[..]), noise);
    let pages =
        Compared::of(halves.each_ref().map(|half| &half.1[..]), noise / LINES_PER_PAGE as f64);
    lines.is_same(0.0) && pages.is_same(lines.energy / LINES_PER_PAGE as f64) && as_far(a, b)
}

/// Whether all lines of two stretches are as far, but for less than what tells nodes of a machine apart: the clock
/// wanders, and so does what others do.
fn as_far(a: &Stretch, b: &Stretch) -> bool {
    (a.level() - b.level()).abs() <= FAR_SHARE * a.level().abs().max(b.level().abs())
}

/// Two patterns: the squares of their difference and of themselves, summed. Both are products of independent
/// halves, so noise adds nothing.
struct Compared {
    difference: f64,
    energy: f64,
    /// The noise of such a sum.
    error: f64,
}

impl Compared {
    /// `noise` is the variance of the four together.
    fn of(halves: [&[f64]; 4], noise: f64) -> Self {
        let (mut difference, mut energy, mut count) = (0.0, 0.0, 0.0);
        let lines = halves[0].iter().zip(halves[1]).zip(halves[2].iter().zip(halves[3]));
        for ((a0, a1), (b0, b1)) in lines {
            if [a0, a1, b0, b1].iter().all(|v| v.is_finite()) {
                difference += (a0 - b0) * (a1 - b1);
                energy += 0.5 * (a0 * a1 + b0 * b1);
                count += 1.0;
            }
        }
        Self { difference, energy, error: noise * f64::sqrt(count) }
    }

    /// Whether they are one: what they differ by is little beside them and `beside`, or there is no pattern that
    /// could differ.
    fn is_same(&self, beside: f64) -> bool {
        let noise = SIGNIFICANT_Z * self.error;
        self.energy < noise || self.difference < OTHER_BASE * (self.energy + beside) + noise
    }
}

#[cfg(test)]
mod tests;
