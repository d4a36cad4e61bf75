//! The tile Cholesky factorisation of the task benchmarks, tile after tile on plain memory: what every run on
//! an area must give. By tasks, too, a tile is updated by the same kernels in the same order, so the bits are
//! the same.

use super::stencil::digest;
use crate::dataflow::matrix::element;
use crate::dataflow::tile;

/// A problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cholesky {
    /// Tiles along one side.
    pub tiles: usize,
    /// Rows of a tile.
    pub width: usize,
    /// What the matrix is made from.
    pub seed: u64,
}

impl Cholesky {
    const fn len(&self) -> usize {
        self.width * self.width
    }

    /// The number of a tile among those of the lower triangle, of which a column's lie together.
    const fn place(&self, i: usize, j: usize) -> usize {
        j * (2 * self.tiles + 1 - j) / 2 + i - j
    }

    const fn all(&self) -> usize {
        self.tiles * (self.tiles + 1) / 2
    }

    /// Elements of the lower triangle.
    #[must_use]
    pub const fn elements(&self) -> usize {
        self.all() * self.len()
    }

    /// Row and column of a tile.
    fn at(&self, place: usize) -> (usize, usize) {
        let column = (0..self.tiles).take_while(|j| self.place(*j, *j) <= place).count() - 1;
        (place - self.place(column, column) + column, column)
    }

    fn fill(&self, place: usize, out: &mut [f64]) {
        let (i, j) = self.at(place);
        let (n, top, left) = (self.tiles * self.width, i * self.width, j * self.width);
        for (at, value) in out.iter_mut().enumerate() {
            *value = element(self.seed, n, top + at / self.width, left + at % self.width);
        }
    }

    /// Updates a tile behind column `k` with the column's tiles, the first of which is that of row `k + 1`.
    fn update(&self, k: usize, place: usize, panel: &[f64], c: &mut [f64]) {
        let (i, j) = self.at(place);
        let of = |row: usize| &panel[(row - k - 1) * self.len()..][..self.len()];
        if i == j {
            tile::update_diagonal(of(i), c, self.width);
        } else {
            tile::update(of(i), of(j), c, self.width);
        }
    }

    /// What any other bits of the lower triangle would change.
    pub(super) fn digest(&self, triangle: &[f64]) -> u64 {
        let tiles = (0..).zip(triangle.chunks(self.len()));
        let each = tiles.map(|(place, tile)| digest(place, tile.iter().map(|v| v.to_bits())));
        each.fold(0, u64::wrapping_add)
    }

    /// The factor on plain memory, tile after tile.
    ///
    /// # Panics
    /// If the matrix is not positive definite, which this one is.
    #[must_use]
    pub fn factor(&self) -> Vec<f64> {
        let len = self.len();
        let mut all = vec![0.0; self.all() * len];
        all.chunks_mut(len).enumerate().for_each(|(place, out)| self.fill(place, out));
        for k in 0..self.tiles {
            let first = self.place(k, k) * len;
            let (column, behind) = all[first..].split_at_mut((self.tiles - k) * len);
            let (diagonal, panel) = column.split_at_mut(len);
            tile::factor(diagonal, self.width).expect("diagonally dominant");
            for c in panel.chunks_mut(len) {
                tile::solve_right_transposed(diagonal, c, self.width);
            }
            for (number, c) in behind.chunks_mut(len).enumerate() {
                self.update(k, self.place(k + 1, k + 1) + number, panel, c);
            }
        }
        all
    }

    /// What every run must give.
    #[must_use]
    pub fn reference(&self) -> u64 {
        self.digest(&self.factor())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_factor_times_its_transpose_is_the_matrix() {
        let problem = Cholesky { tiles: 3, width: 8, seed: 5 };
        let factor = problem.factor();
        let lower = |row: usize, column: usize| {
            if column > row {
                return 0.0;
            }
            let place = problem.place(row / 8, column / 8);
            factor[place * 64 + row % 8 * 8 + column % 8]
        };
        for i in 0..24 {
            for j in 0..=i {
                let product: f64 = (0..24).map(|k| lower(i, k) * lower(j, k)).sum();
                assert!((product - element(5, 24, i, j)).abs() < 1e-12, "({i}, {j})");
            }
        }
    }

    #[test]
    fn tiles_are_numbered_column_by_column() {
        let problem = Cholesky { tiles: 5, width: 2, seed: 1 };
        let mut next = 0;
        for j in 0..5 {
            for i in j..5 {
                assert_eq!((problem.place(i, j), problem.at(next)), (next, (i, j)));
                next += 1;
            }
        }
        assert_eq!(problem.all(), next);
    }
}
