//! Which lines of a page tell the codes apart best.
//!
//! Two codes are told apart by the lines at which their patterns differ. The union bound on the
//! error of a decision is the sum over pairs of codes of exp(-d^2 / 8 sigma^2), d^2 the squared
//! distance of their patterns over the lines read; lines are chosen greedily to make it smallest.

use isochrone_stats::variance;

use super::apart::APART;
use super::learn::{Learnt, split_code};

/// Most lines of a page that are ever read to decode it: whole groups of [`LINES_TOGETHER`].
pub const MAX_LINES: usize = 12;
/// Lines of a page that are timed in one batch; within such a group lines are [`APART`] apart, or
/// one of them would be read early by what another brings along.
pub const LINES_TOGETHER: usize = 4;
/// Pairs of codes that are compared; beyond that every second, third ... pair is taken.
const MAX_PAIRS: usize = 4096;
/// Lines tried as the next one; a period of 256 lines has more than are worth trying.
const MAX_CANDIDATES: usize = 64;

/// Up to [`MAX_LINES`] line indices, best first, in groups of [`LINES_TOGETHER`] that may be timed
/// together. `noise` is that of one timed load, cycles.
#[must_use]
pub fn choose_lines(learnt: &Learnt, noise: f64) -> Vec<u8> {
    let codes = learnt.distinct_codes();
    let pairs = pairs_of(&codes);
    let step = (learnt.period / MAX_CANDIDATES).max(1);
    let mut left: Vec<usize> = (0..learnt.period).step_by(step).collect();
    let mut bound_log: Vec<f64> = vec![0.0; pairs.len()];
    let mut chosen = Vec::new();
    // With less noise than that every pair is told apart by any line, and nothing would be chosen.
    let spread = variance(&learnt.patterns.concat()).unwrap_or(0.0).sqrt();
    let scale = 8.0 * noise.max(spread / 4.0).max(1e-6).powi(2);
    while chosen.len() < MAX_LINES {
        let group = &chosen[chosen.len() - chosen.len() % LINES_TOGETHER..];
        let fits = |line: usize| group.iter().all(|c| usize::from(*c).abs_diff(line) >= APART);
        let gain = |line: usize, pair: &(u16, u16)| separation(learnt, pair, line) / scale;
        // Where a single reading separates nothing (d far below the noise) every bound is 1 and
        // the distance itself decides; the exponent's first order is just that.
        let score = |line: usize| -> f64 {
            pairs.iter().zip(&bound_log).map(|(p, b)| (-(b + gain(line, p))).exp()).sum()
        };
        let candidates = left.iter().copied().enumerate().filter(|(_, line)| fits(*line));
        let best = candidates.min_by(|a, b| score(a.1).total_cmp(&score(b.1)));
        let Some((place, line)) = best else { break };
        for (bound, pair) in bound_log.iter_mut().zip(&pairs) {
            *bound += gain(line, pair);
        }
        left.swap_remove(place);
        left.retain(|other| other.abs_diff(line) >= 2);
        chosen.push(line.to_le_bytes()[0]);
    }
    chosen.truncate(chosen.len() - chosen.len() % LINES_TOGETHER);
    chosen
}

fn separation(learnt: &Learnt, pair: &(u16, u16), line: usize) -> f64 {
    let at = |code: u16| {
        let (class, key) = split_code(code, learnt.period);
        learnt.patterns[class][line ^ key]
    };
    (at(pair.0) - at(pair.1)).powi(2)
}

fn pairs_of(codes: &[u16]) -> Vec<(u16, u16)> {
    let all = codes.len() * codes.len().saturating_sub(1) / 2;
    let step = all.div_ceil(MAX_PAIRS).max(1);
    let pairs =
        codes.iter().enumerate().flat_map(|(i, a)| codes[..i].iter().map(move |b| (*b, *a)));
    pairs.step_by(step).collect()
}
