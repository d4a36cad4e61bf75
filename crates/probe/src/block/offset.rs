//! The reference pages of a decoding pass: the offset that they have in common with all others, and
//! whether the base that they are compared with is still the one worn.

use super::align::{Alignment, Ruler};
use super::lines::LINES_TOGETHER;
use super::rounds::keep_window;

/// Fall of the references' slope that means another base (see `rounds`).
const SLOPE_DROP: f64 = 0.4;
/// Standard errors that the fall must be worth.
const SLOPE_Z: f64 = 5.0;
/// Rounds over which the references' slope is judged.
const SLOPE_ROUNDS: u32 = 4;

/// What a base says of a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    pub(super) cycles: f64,
    /// Mean of the classes on the line's node.
    pub(super) node: f64,
}

/// Running comparison of the references with what a judge's base says.
#[derive(Clone, Debug, Default)]
pub(super) struct Offset {
    /// One for each pass of a round: the first pass after a sweep finds page translations gone.
    align: [Alignment; LINES_TOGETHER],
    /// References so far.
    pub(super) weight: f64,
    cross: f64,
    square: f64,
    rounds: u32,
}

impl Offset {
    /// The offset of a pass, cycles.
    pub(super) fn cycles(&self, pass: usize) -> f64 {
        self.align[pass].cycles()
    }

    /// Adds the `(expected, seen)` references of a pass; the slope counts those near what is expected,
    /// and what they differ by on their node.
    pub(super) fn add(&mut self, pass: usize, pairs: &[(Expected, f64)], tick: u32, ruler: &Ruler) {
        let expected: Vec<(f64, f64)> = pairs.iter().map(|(e, v)| (e.cycles, *v)).collect();
        self.align[pass].add(&expected, ruler);
        let residuals: Vec<f64> = expected.iter().map(|(e, v)| v - e).collect();
        let (low, high) = keep_window(&residuals, tick);
        let pairs = || pairs.iter().filter(|(e, v)| (low..=high).contains(&(v - e.cycles)));
        let n = pairs().count() as f64;
        if n < 2.0 {
            return;
        }
        self.weight += n;
        let shift = pairs().map(|(e, v)| v - e.cycles).sum::<f64>() / n;
        let centre = pairs().map(|(e, _)| e.cycles - e.node).sum::<f64>() / n;
        for (e, v) in pairs() {
            let above = e.cycles - e.node - centre;
            self.cross += (v - e.node - centre - shift) * above;
            self.square += above.powi(2);
        }
    }

    /// Ends a round. After a few of them: whether the references lost the pattern. Starts a new count.
    pub(super) fn judge(&mut self, noise: f64) -> Option<bool> {
        self.rounds += 1;
        if self.rounds < SLOPE_ROUNDS {
            return None;
        }
        let fall = 1.0 - self.cross / self.square;
        let beyond = SLOPE_DROP.max(SLOPE_Z * noise / self.square.sqrt());
        let lost = self.square > 0.0 && fall > beyond;
        (self.cross, self.square, self.rounds) = (0.0, 0.0, 0);
        Some(lost)
    }
}
