//! How much of what a core sees a base explains, asked of a few lines.
//!
//! Each of some lines of reference pages is timed twice, in two orders. What two loads of a line have in common
//! repeats, and noise does not: so sums of products of the two are free of it, however few the loads. The share of what
//! repeats that base and codes leave over says whether this core sees pages as the cores did from which their codes
//! were learnt. Two shapes that are one to them would show here, though the mean over pages looks like a base.

use isochrone_stats::{derive_seed, rng, shuffle};
use isochrone_units::{CoreId, Level};

use super::base::{ReferenceCell, References, in_window, retry, time_batch};
use super::far::group_means;
use super::learn::{Learnt, class_means};
use crate::target::{Target, TargetError};

/// Standard error of the share that is asked for.
const PRECISE: f64 = 0.02;
/// Seconds of loads after which a share is taken as it is.
const SECONDS: f64 = 0.012;
/// Standard errors that what repeats must be worth for there to be a share of it.
const SIGNIFICANT_Z: f64 = 5.0;

/// What some lines say of a base.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Explained {
    /// Share of what repeats that the base explains, and its standard error.
    pub(super) share: f64,
    pub(super) error: f64,
    /// Whether what repeats is beyond the noise: else the share says nothing.
    pub(super) repeats: bool,
    /// Mean latency of the lines, cycles.
    pub(super) mean_cycles: f64,
    /// Timed loads behind it.
    pub(super) loads: u64,
}

impl Explained {
    /// Whether the base may explain so much, as far as the error tells.
    pub(super) fn may_reach(&self, share: f64, errors: f64) -> bool {
        !(self.repeats && self.share + errors * self.error < share)
    }
}

/// Two loads of a line, less what a flat base and the base say of it, cycles.
struct Twice {
    flat: [f64; 2],
    left: [f64; 2],
}

/// Sums over lines timed twice.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    repeats: f64,
    repeats_square: f64,
    left: f64,
    left_square: f64,
    cycles: f64,
    lines: f64,
}

impl Sums {
    /// Adds lines, less what they have in common.
    fn add(&mut self, lines: &[Twice], cycles: f64) {
        let count = lines.len().max(1) as f64;
        let mean = |of: &dyn Fn(&Twice) -> f64| lines.iter().map(of).sum::<f64>() / count;
        let flat = [0, 1].map(|pass| mean(&|line: &Twice| line.flat[pass]));
        let left = [0, 1].map(|pass| mean(&|line: &Twice| line.left[pass]));
        for line in lines {
            let repeats = (line.flat[0] - flat[0]) * (line.flat[1] - flat[1]);
            let remains = (line.left[0] - left[0]) * (line.left[1] - left[1]);
            self.repeats += repeats;
            self.repeats_square += repeats * repeats;
            self.left += remains;
            self.left_square += remains * remains;
        }
        self.cycles += cycles;
        self.lines += lines.len() as f64;
    }

    fn explained(&self, loads: u64) -> Explained {
        let scatter = |sum: f64, square: f64| {
            (square - sum * sum / self.lines.max(1.0)).max(0.0).sqrt().max(f64::MIN_POSITIVE)
        };
        let all = self.repeats.max(f64::MIN_POSITIVE);
        Explained {
            share: 1.0 - self.left / all,
            error: scatter(self.left, self.left_square) / all,
            repeats: self.repeats > SIGNIFICANT_Z * scatter(self.repeats, self.repeats_square),
            mean_cycles: self.cycles / (2.0 * self.lines).max(1.0),
            loads,
        }
    }
}

/// What is asked of a core.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question<'a> {
    pub(super) core: CoreId,
    pub(super) level: Level,
    /// Pages with known codes that are a fair sample.
    pub(super) references: &'a References,
    pub(super) learnt: &'a Learnt,
    /// `[class][canonical index]`, cycles.
    pub(super) base: &'a [Vec<f64>],
    pub(super) seed: u64,
}

impl Question<'_> {
    /// Times lines until the share that the base explains is known well.
    ///
    /// # Errors
    /// Whatever the target refuses; a thread found on another core is tried again, eight times.
    pub(super) fn ask(&self, target: &mut dyn Target) -> Result<Explained, TargetError> {
        self.ask_for(target, SECONDS)
    }

    /// The same for so many seconds at most, with one batch of lines at least.
    pub(super) fn ask_for(
        &self,
        target: &mut dyn Target,
        seconds: f64,
    ) -> Result<Explained, TargetError> {
        let end = target.seconds() + seconds;
        let (mut sums, mut loads) = (Sums::default(), 0);
        for turn in 0_u64.. {
            let cells = self.references.batch(derive_seed(self.seed, 2 * turn));
            let order = derive_seed(self.seed, 2 * turn + 1);
            let both = retry(|| twice(target, self.core, self.level, &cells, order))?;
            loads += 2 * cells.len() as u64;
            self.add(&mut sums, &cells, &both, target.clock().tick);
            let found = sums.explained(loads);
            if (found.repeats && found.error < PRECISE) || target.seconds() > end {
                return Ok(found);
            }
        }
        unreachable!("time passes on every target")
    }

    fn add(&self, sums: &mut Sums, cells: &[ReferenceCell], both: &[Vec<f64>; 2], tick: u32) {
        let nodes = group_means(&class_means(self.base));
        let kept = [0, 1].map(|pass| in_window(cells, &both[pass], self.learnt, tick));
        let (mut lines, mut cycles) = (Vec::with_capacity(cells.len()), 0.0);
        for (at, (_, class, index)) in cells.iter().enumerate() {
            if kept[0][at] && kept[1][at] {
                let (class, index) = (usize::from(*class), usize::from(*index));
                let values = [both[0][at], both[1][at]];
                lines.push(Twice {
                    flat: values.map(|value| value - nodes[class]),
                    left: values.map(|value| value - self.base[class][index]),
                });
                cycles += values[0] + values[1];
            }
        }
        sums.add(&lines, cycles);
    }
}

/// All cells twice, the second time in another order.
fn twice(
    target: &mut dyn Target,
    core: CoreId,
    level: Level,
    cells: &[ReferenceCell],
    seed: u64,
) -> Result<[Vec<f64>; 2], TargetError> {
    let first = time_batch(target, core, level, cells)?;
    let mut order: Vec<usize> = (0..cells.len()).collect();
    shuffle(&mut order, &mut rng(seed));
    let shuffled: Vec<ReferenceCell> = order.iter().map(|at| cells[*at]).collect();
    let mut second = vec![0.0; cells.len()];
    for (at, value) in order.iter().zip(time_batch(target, core, level, &shuffled)?) {
        second[*at] = value;
    }
    Ok([first, second])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines whose latency is `seen`, a base that says `base` of them, and noise of so many cycles.
    fn found(seen: impl Fn(usize) -> f64, base: impl Fn(usize) -> f64, noise: f64) -> Explained {
        let mut rng = rng(7);
        let mut sums = Sums::default();
        let lines: Vec<Twice> = (0..4096)
            .map(|line| {
                let both = [0, 1].map(|_| seen(line) + noise * isochrone_stats::normal(&mut rng));
                Twice { flat: both, left: both.map(|value| value - base(line)) }
            })
            .collect();
        let cycles = lines.iter().map(|line| line.flat[0] + line.flat[1]).sum();
        sums.add(&lines, cycles);
        sums.explained(8192)
    }

    fn wave(line: usize) -> f64 {
        100.0 + 10.0 * (line as f64).sin()
    }

    #[test]
    fn noise_is_not_taken_for_what_a_base_leaves_over() {
        for noise in [0.0, 3.0, 20.0] {
            let right = found(wave, wave, noise);
            assert!(
                right.repeats && (right.share - 1.0).abs() <= 4.0 * right.error + 1e-9,
                "{right:?}"
            );
            assert!((right.mean_cycles - 100.0).abs() < 2.0, "{right:?}");
            assert!(right.may_reach(0.8, 3.0));
        }
        // An offset that all lines share is none of its business.
        let farther = found(|line| wave(line) + 7.0, wave, 3.0);
        assert!((farther.share - 1.0).abs() <= 4.0 * farther.error, "{farther:?}");
    }

    #[test]
    fn pages_of_two_shapes_are_not_explained_by_their_mean() {
        let shape = |line: usize| {
            if (line / 64).is_multiple_of(2) { wave(line) } else { 200.0 - wave(line) }
        };
        let mixed = found(shape, |_| 100.0, 5.0);
        assert!(mixed.share.abs() < 0.1 && !mixed.may_reach(0.8, 3.0), "{mixed:?}");
        let other = found(wave, |line| 100.0 + 10.0 * (line as f64).cos(), 5.0);
        assert!(!other.may_reach(0.8, 3.0), "{other:?}");
    }

    #[test]
    fn where_nothing_repeats_nothing_is_said() {
        let flat = found(|_| 100.0, |_| 100.0, 5.0);
        assert!(!flat.repeats && flat.may_reach(0.8, 3.0), "{flat:?}");
        // Too few loads for such noise.
        let drowned = found(wave, |_| 100.0, 100.0);
        assert!(drowned.may_reach(0.8, 3.0), "{drowned:?}");
    }
}
