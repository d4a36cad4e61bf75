//! The tile Cholesky factorisation of the task benchmarks, with their kernels and their order of updates, on
//! an area: what is reused is a panel, and what lies behind it is swept once for each panel.
//!
//! Workers are processes that share the area alone, so there is no task graph between them: each step is a
//! phase, and a phase's tiles are dealt out in order. A tile is updated by the same kernels in the same order
//! as by tasks, so the bits are the same.

use std::ops::Range;

use isochrone_tier::live::{Array, Gone, Phase, Worker};

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

/// The arrays of a run: the lower triangle, and copies of what a step reads.
pub(super) struct Arrays {
    triangle: Array<f64>,
    diagonal: Array<f64>,
    panel: Array<f64>,
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

    /// Elements of the lower triangle, and of the copies.
    #[must_use]
    pub const fn elements(&self) -> usize {
        (self.all() + 1 + self.tiles) * self.len()
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
            *value = element(self.seed, n, top + at % self.width, left + at / self.width);
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

    fn digest_of(&self, places: Range<usize>, values: &[f64]) -> u64 {
        let tiles = places.zip(values.chunks(self.len()));
        tiles
            .map(|(place, tile)| digest(place as u64, tile.iter().map(|value| value.to_bits())))
            .fold(0, u64::wrapping_add)
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
        self.digest_of(0..self.all(), &self.factor())
    }

    /// A worker's tiles of some that follow one another.
    fn share(places: Range<usize>, worker: &Worker<'_>) -> Range<usize> {
        let workers = usize::from(worker.workers());
        let cut = |worker: usize| places.start + places.len() * worker / workers;
        cut(usize::from(worker.index()))..cut(usize::from(worker.index()) + 1)
    }

    const fn elements_of(&self, places: &Range<usize>) -> Range<usize> {
        places.start * self.len()..places.end * self.len()
    }

    /// Takes the arrays and fills the triangle.
    pub(super) fn begin(&self, worker: &mut Worker<'_>) -> Result<Arrays, Gone> {
        let len = self.len();
        let arrays = Arrays {
            triangle: worker.array(self.all() * len)?,
            diagonal: worker.array(len)?,
            panel: worker.array(self.tiles * len)?,
        };
        let mine = Self::share(0..self.all(), worker);
        let phase = Phase::new().writes(&arrays.triangle, self.elements_of(&mine));
        worker.phase(&phase, |slices| {
            let tiles = slices.write(&arrays.triangle).chunks_mut(len);
            mine.zip(tiles).for_each(|(place, out)| self.fill(place, out));
        })?;
        Ok(arrays)
    }

    /// Factors.
    pub(super) fn run(&self, arrays: &Arrays, worker: &mut Worker<'_>) -> Result<(), Gone> {
        (0..self.tiles).try_for_each(|k| {
            self.factor_diagonal(k, arrays, worker)?;
            self.solve_column(k, arrays, worker)?;
            self.update_behind(k, arrays, worker)
        })
    }

    fn factor_diagonal(
        &self,
        k: usize,
        arrays: &Arrays,
        worker: &mut Worker<'_>,
    ) -> Result<(), Gone> {
        // One does it, in order: parts of the others are empty and lie behind.
        let first = worker.index() == 0;
        let place = self.place(k, k);
        let part = |place: usize| {
            let end = (place + 1) * self.len();
            if first { place * self.len()..end } else { end..end }
        };
        let phase =
            Phase::new().writes(&arrays.triangle, part(place)).writes(&arrays.diagonal, part(0));
        worker.phase(&phase, |slices| {
            if first {
                let tile = slices.write(&arrays.triangle);
                tile::factor(tile, self.width).expect("diagonally dominant");
                slices.write(&arrays.diagonal).copy_from_slice(tile);
            }
        })
    }

    fn solve_column(&self, k: usize, arrays: &Arrays, worker: &mut Worker<'_>) -> Result<(), Gone> {
        let first = self.place(k, k) + 1;
        let mine = Self::share(0..self.tiles - k - 1, worker);
        let phase = Phase::new()
            .reads(&arrays.diagonal)
            .writes(&arrays.triangle, self.elements_of(&(first + mine.start..first + mine.end)))
            .writes(&arrays.panel, self.elements_of(&mine));
        worker.phase(&phase, |slices| {
            let diagonal = slices.read(&arrays.diagonal);
            let tiles = slices.write(&arrays.triangle).chunks_mut(self.len());
            let copies = slices.write(&arrays.panel).chunks_mut(self.len());
            for (c, copy) in tiles.zip(copies) {
                tile::solve_right_transposed(diagonal, c, self.width);
                copy.copy_from_slice(c);
            }
        })
    }

    fn update_behind(
        &self,
        k: usize,
        arrays: &Arrays,
        worker: &mut Worker<'_>,
    ) -> Result<(), Gone> {
        let mine = Self::share(self.place(k, k) + self.tiles - k..self.all(), worker);
        let phase =
            Phase::new().reads(&arrays.panel).writes(&arrays.triangle, self.elements_of(&mine));
        worker.phase(&phase, |slices| {
            let panel = slices.read(&arrays.panel);
            let tiles = slices.write(&arrays.triangle).chunks_mut(self.len());
            mine.zip(tiles).for_each(|(place, c)| self.update(k, place, panel, c));
        })
    }

    /// A worker's part of the digest.
    pub(super) fn end(&self, arrays: &Arrays, worker: &mut Worker<'_>) -> Result<u64, Gone> {
        let mine = Self::share(0..self.all(), worker);
        worker.phase(&Phase::new().reads(&arrays.triangle), |slices| {
            let part = &slices.read(&arrays.triangle)[self.elements_of(&mine)];
            self.digest_of(mine, part)
        })
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
            factor[place * 64 + column % 8 * 8 + row % 8]
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
