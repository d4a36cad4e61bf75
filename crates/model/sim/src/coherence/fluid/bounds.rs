//! Where one step of the rates goes: to delays of which none is below nothing. It knows no roofs, no tasks and no time.

use super::positive::solve_positive;

/// Sets of delays that one step tries at most.
const ROUNDS: usize = 300;
/// The part of a delay below which it is none.
const NOTHING: f64 = 1e-12;

/// A quadratic objective of delays that are not negative, and how far the search of its least value is, by the active
/// sets of Lawson and Hanson (1974).
#[derive(Debug)]
pub(super) struct Bounded<'a> {
    /// How the objective curves: symmetric, by rows, of which the lower half is read.
    matrix: &'a [f64],
    /// The delays from which the search begins.
    before: &'a [f64],
    /// What the matrix times the delays is where all may be negative.
    wanted: Vec<f64>,
    /// By how much that may be missed, for each delay.
    allowed: Vec<f64>,
    /// Where the search is.
    delays: Vec<f64>,
    /// Those that may differ from nothing, by place, in the order in which they came.
    free: Vec<usize>,
}

impl<'a> Bounded<'a> {
    /// The objective that falls from `before` by `excesses`, each delay's own; `allowed` of an excess is none.
    pub(super) fn new(
        matrix: &'a [f64],
        before: &'a [f64],
        excesses: &[f64],
        allowed: Vec<f64>,
    ) -> Self {
        let (delays, free) = (before.to_vec(), (0..before.len()).collect());
        let mut search = Self { matrix, before, wanted: Vec::new(), allowed, delays, free };
        let wanted = excesses.iter().enumerate();
        search.wanted = wanted.map(|(row, excess)| excess + search.times(row, before)).collect();
        search
    }

    /// The delays at which it is least. `factor` is working memory.
    pub(super) fn least(mut self, factor: &mut Vec<f64>) -> Vec<f64> {
        for _ in 0..ROUNDS {
            let Some(found) = self.least_of_free(factor) else { break };
            if self.go_towards(&found) < 1.0 {
                let delays = &self.delays;
                self.free.retain(|row| delays[*row] > 0.0);
                continue;
            }
            match self.who_comes_back() {
                Some(row) => self.free.push(row),
                None => break,
            }
        }
        self.delays
    }

    /// Where it would be least of the free ones alone, if these might be negative; `None` where that is nowhere.
    fn least_of_free(&self, factor: &mut Vec<f64>) -> Option<Vec<f64>> {
        factor.clear();
        for row in &self.free {
            factor.extend(self.free.iter().map(|column| self.curve(*row, *column)));
        }
        let mut found: Vec<f64> = self.free.iter().map(|row| self.wanted[*row]).collect();
        solve_positive(factor, &mut found).then_some(found)
    }

    /// Goes there with the free ones, and no farther than until the first is nothing: the part of the way.
    fn go_towards(&mut self, found: &[f64]) -> f64 {
        let too_far = self.free.iter().zip(found).filter(|(_, found)| **found <= 0.0);
        let part = too_far.map(|(row, found)| self.delays[*row] / (self.delays[*row] - found));
        let part = part.fold(1.0, f64::min);
        for (row, found) in self.free.iter().zip(found) {
            let delay = self.delays[*row] + part * (found - self.delays[*row]);
            let is_none = *found <= 0.0 && delay <= self.before[*row] * NOTHING;
            self.delays[*row] = if is_none { 0.0 } else { delay };
        }
        part
    }

    /// Of those that are left out, the one that would hold somebody up the most, if any would.
    fn who_comes_back(&self) -> Option<usize> {
        let missing = |row: usize| self.wanted[row] - self.times(row, &self.delays);
        let out = (0..self.delays.len()).filter(|row| !self.free.contains(row));
        let most = out.max_by(|a, b| missing(*a).total_cmp(&missing(*b)));
        most.filter(|row| missing(*row) > self.allowed[*row])
    }

    /// A row of the matrix times delays.
    fn times(&self, row: usize, delays: &[f64]) -> f64 {
        delays.iter().enumerate().map(|(column, delay)| self.curve(row, column) * delay).sum()
    }

    /// A cell of the matrix.
    fn curve(&self, a: usize, b: usize) -> f64 {
        self.matrix[a.max(b) * self.before.len() + a.min(b)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The least of a matrix of two, from delays and with excesses.
    fn least(matrix: [f64; 4], before: [f64; 2], excesses: [f64; 2]) -> Vec<f64> {
        Bounded::new(&matrix, &before, &excesses, vec![1e-9; 2]).least(&mut Vec::new())
    }

    fn close(found: &[f64], wanted: [f64; 2]) -> bool {
        found.iter().zip(wanted).all(|(found, wanted)| (found - wanted).abs() < 1e-9)
    }

    #[test]
    fn without_a_bound_in_the_way_it_is_newtons_step() {
        // 2 a + b = 4 and a + 3 b = 7.
        let found = least([2.0, 0.0, 1.0, 3.0], [0.0, 0.0], [4.0, 7.0]);
        assert!(close(&found, [1.0, 2.0]), "{found:?}");
    }

    #[test]
    fn a_delay_that_would_be_negative_is_nothing() {
        // 2 a + b = 4 and a + 3 b = -3 would have b = -2.
        let found = least([2.0, 0.0, 1.0, 3.0], [1.0, 1.0], [1.0, -7.0]);
        assert!(found[1] == 0.0 && close(&found, [2.0, 0.0]), "{found:?}");
    }

    #[test]
    fn one_that_was_left_out_comes_back() {
        // 10 a + 5 b = 1 and 5 a + 10 b = 8 has a = -0.4 and b = 1: of a alone both are above nothing.
        let found = least([10.0, 0.0, 5.0, 10.0], [0.0, 0.0], [1.0, 8.0]);
        assert!(found[0] == 0.0 && close(&found, [0.0, 0.8]), "{found:?}");
    }

    #[test]
    fn two_that_are_alike_are_left_where_they_are() {
        let found = least([0.0; 4], [0.5, 0.25], [1.0, 1.0]);
        assert_eq!(found, [0.5, 0.25], "nothing curves, so there is no least value");
    }
}
