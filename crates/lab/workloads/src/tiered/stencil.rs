//! Heat diffusion on a grid: each point becomes a weighted mean of its neighbours within a radius, which is
//! the 9-point stencil of the paper for a radius of 1 (Gerofi et al., CCGrid 2013, section IV-A). Larger
//! radii are more work for the same pages.
//!
//! Two grids, static bands of rows, and only rows at the borders of bands are read by two workers. Every
//! point is summed in one fixed order, so that every way of running it gives the same bits.

use std::array::from_fn;
use std::ops::Range;

/// A problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stencil {
    /// Rows of the grid.
    pub rows: usize,
    /// Points of a row; 512 fill a page.
    pub columns: usize,
    /// Neighbours count up to this far in every direction: 1 is the 9-point stencil.
    pub radius: usize,
    /// Sweeps over the grid.
    pub iterations: u32,
    /// Every other sweep goes from the last row to the first, so that it begins with what the sweep before
    /// touched last. The paper's go all in one direction.
    pub serpentine: bool,
}

/// Points summed side by side.
const LANES: usize = 8;

impl Stencil {
    /// Points of one grid.
    #[must_use]
    pub const fn points(&self) -> usize {
        self.rows * self.columns
    }

    /// Bytes of both grids.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        2 * self.points() * size_of::<f64>()
    }

    /// What a point holds at first: an even plate with hot spots.
    #[must_use]
    pub fn initial(row: usize, column: usize) -> f64 {
        // SplitMix64's finalizer (Steele, Lea, Flood 2014).
        let mut x = (row as u64) << 32 | column as u64;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^= x >> 31;
        let [.., spread, _] = x.to_le_bytes();
        if x.is_multiple_of(1021) { 100.0 } else { 20.0 + f64::from(spread) / 256.0 }
    }

    /// Fills a band.
    pub fn fill(&self, rows: Range<usize>, band: &mut [f64]) {
        for (row, points) in rows.zip(band.chunks_mut(self.columns)) {
            for (column, point) in points.iter_mut().enumerate() {
                *point = Self::initial(row, column);
            }
        }
    }

    /// Weights of the neighbours, row by row: nearer ones weigh more, and all sum to 1.
    #[must_use]
    pub fn weights(&self) -> Vec<f64> {
        let side = 2 * self.radius + 1;
        let from_centre = |at: usize| at.abs_diff(self.radius);
        let raw = |n: usize| {
            let (dy, dx) = (from_centre(n / side), from_centre(n % side));
            1.0 / (1 + dy * dy + dx * dx) as f64
        };
        let sum: f64 = (0..side * side).map(raw).sum();
        (0..side * side).map(|n| raw(n) / sum).collect()
    }

    /// The rows of a band in the order of a sweep.
    pub fn order(&self, rows: Range<usize>, sweep: u32) -> impl Iterator<Item = usize> {
        let back = self.serpentine && sweep % 2 == 1;
        let (first, last) = (rows.start, rows.end);
        rows.map(move |row| if back { first + last - 1 - row } else { row })
    }

    /// One sweep over a band: `out` holds the band's rows, `source` the whole grid.
    pub fn sweep(
        &self,
        source: &[f64],
        rows: Range<usize>,
        out: &mut [f64],
        weights: &[f64],
        sweep: u32,
    ) {
        let first = rows.start;
        for row in self.order(rows, sweep) {
            let to = &mut out[(row - first) * self.columns..][..self.columns];
            self.row(source, row, to, weights);
        }
    }

    /// One row. Points nearer to an edge than the radius stay as they are.
    pub fn row(&self, source: &[f64], row: usize, out: &mut [f64], weights: &[f64]) {
        let (columns, radius) = (self.columns, self.radius);
        let here = &source[row * columns..][..columns];
        let edge = row < radius || row + radius >= self.rows || columns <= 2 * radius;
        if edge {
            return out.copy_from_slice(here);
        }
        out[..radius].copy_from_slice(&here[..radius]);
        out[columns - radius..].copy_from_slice(&here[columns - radius..]);
        let above = &source[(row - radius) * columns..];
        if columns < 2 * radius + LANES {
            for (column, point) in out.iter_mut().enumerate().take(columns - radius).skip(radius) {
                *point = self.points_at::<1>(above, column, weights)[0];
            }
            return;
        }
        match radius {
            1 => self.blocks(out, |column| self.points_of::<3>(above, column, weights)),
            2 => self.blocks(out, |column| self.points_of::<5>(above, column, weights)),
            _ => self.blocks(out, |column| self.points_at::<LANES>(above, column, weights)),
        }
    }

    /// All points of a row that are not at an edge, `LANES` by `LANES`; there are so many. The last of them are
    /// summed twice where they are no multiple: every point gives the same bits wherever its block begins.
    fn blocks(&self, out: &mut [f64], points: impl Fn(usize) -> [f64; LANES]) {
        let end = self.columns - self.radius;
        for column in (self.radius..end).step_by(LANES) {
            let column = column.min(end - LANES);
            if let Some(to) = out[column..].first_chunk_mut() {
                *to = points(column);
            }
        }
    }

    /// Neighbouring points, each summed from the top left neighbour to the bottom right one.
    #[inline]
    fn points_at<const N: usize>(&self, above: &[f64], column: usize, weights: &[f64]) -> [f64; N] {
        let side = 2 * self.radius + 1;
        let mut sums = [0.0; N];
        for (line, weights) in above.chunks(self.columns).zip(weights.chunks(side)) {
            let line = &line[column - self.radius..][..side + N - 1];
            for (dx, weight) in weights.iter().enumerate() {
                for (sum, value) in sums.iter_mut().zip(&line[dx..dx + N]) {
                    *sum += weight * value;
                }
            }
        }
        sums
    }

    /// The same in the same order for a side that the compiler knows: all sums stay in registers.
    #[inline]
    fn points_of<const SIDE: usize>(
        &self,
        above: &[f64],
        column: usize,
        weights: &[f64],
    ) -> [f64; LANES] {
        let mut sums = [0.0; LANES];
        for (dy, weights) in weights.as_chunks::<SIDE>().0.iter().enumerate() {
            let line = &above[dy * self.columns + column - SIDE / 2..];
            for (dx, weight) in weights.iter().enumerate() {
                if let Some(values) = line[dx..].first_chunk::<LANES>() {
                    sums = from_fn(|lane| sums[lane] + weight * values[lane]);
                }
            }
        }
        sums
    }

    /// A number that any other bits would change, the sum over rows, however they are dealt out.
    #[must_use]
    pub fn digest(&self, rows: Range<usize>, band: &[f64]) -> u64 {
        let rows = rows.zip(band.chunks(self.columns));
        rows.map(|(row, points)| digest(row as u64, points.iter().map(|point| point.to_bits())))
            .fold(0, u64::wrapping_add)
    }

    /// The same on plain memory: what every other run must give.
    #[must_use]
    pub fn reference(&self) -> u64 {
        let mut grids = [vec![0.0; self.points()], vec![0.0; self.points()]];
        self.fill(0..self.rows, &mut grids[0]);
        let weights = self.weights();
        for sweep in 0..self.iterations {
            let [a, b] = &mut grids;
            let (source, out) = if sweep % 2 == 0 { (&*a, b) } else { (&*b, a) };
            self.sweep(source, 0..self.rows, out, &weights, sweep);
        }
        self.digest(0..self.rows, &grids[self.iterations as usize % 2])
    }
}

/// FNV-1a by words, begun with a number.
pub(super) fn digest(begin: u64, words: impl Iterator<Item = u64>) -> u64 {
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(29);
    words.fold(mix(0xcbf2_9ce4_8422_2325, begin), mix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small(radius: usize) -> Stencil {
        Stencil { rows: 30, columns: 37, radius, iterations: 4, serpentine: false }
    }

    #[test]
    fn an_even_plate_stays_even_and_heat_is_kept_in() {
        let stencil = small(2);
        let weights = stencil.weights();
        assert_eq!(weights.len(), 25);
        assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        let even = vec![3.0; stencil.points()];
        let mut out = vec![0.0; stencil.points()];
        stencil.sweep(&even, 0..30, &mut out, &weights, 0);
        assert!(out.iter().all(|point| (point - 3.0).abs() < 1e-12));
    }

    #[test]
    fn a_point_is_the_weighted_sum_of_its_nine() {
        let stencil = small(1);
        let mut grid = vec![0.0; stencil.points()];
        stencil.fill(0..30, &mut grid);
        let weights = stencil.weights();
        let mut out = vec![0.0; stencil.points()];
        stencil.sweep(&grid, 0..30, &mut out, &weights, 0);
        for (row, column) in [(1, 1), (5, 9), (28, 35), (17, 30)] {
            let mut sum = 0.0;
            for dy in 0..3 {
                for dx in 0..3 {
                    sum += weights[dy * 3 + dx] * grid[(row + dy - 1) * 37 + column + dx - 1];
                }
            }
            assert_eq!(out[row * 37 + column].to_bits(), sum.to_bits());
        }
        assert_eq!(out[5 * 37], grid[5 * 37], "the edge stays");
    }

    /// Whatever the width and the radius, a point is the same as summed alone.
    #[test]
    fn blocks_give_the_bits_of_single_points() {
        for (columns, radius) in [(37, 1), (12, 2), (9, 1), (16, 2), (37, 3), (13, 3)] {
            let stencil = Stencil { columns, ..small(radius) };
            let mut grid = vec![0.0; stencil.points()];
            stencil.fill(0..30, &mut grid);
            let weights = stencil.weights();
            let mut out = vec![0.0; columns];
            stencil.row(&grid, 10, &mut out, &weights);
            let above = &grid[(10 - radius) * columns..];
            let points = out.iter().enumerate().take(columns - radius).skip(radius);
            for (column, point) in points {
                let alone = stencil.points_at::<1>(above, column, &weights)[0];
                assert_eq!(point.to_bits(), alone.to_bits(), "{columns} {radius} {column}");
            }
        }
    }

    #[test]
    fn bands_and_directions_give_the_same_bits() {
        for radius in [1, 3] {
            let stencil = small(radius);
            let whole = stencil.reference();
            assert_eq!(Stencil { serpentine: true, ..stencil }.reference(), whole);
            let weights = stencil.weights();
            let mut grid = vec![0.0; stencil.points()];
            stencil.fill(0..30, &mut grid);
            for sweep in 0..4 {
                let mut next = vec![0.0; stencil.points()];
                for rows in [0..7, 7..8, 8..30] {
                    let out = &mut next[rows.start * 37..rows.end * 37];
                    stencil.sweep(&grid, rows, out, &weights, sweep);
                }
                grid = next;
            }
            let parts =
                [0..3, 3..30].map(|r| stencil.digest(r.clone(), &grid[r.start * 37..r.end * 37]));
            assert_eq!(parts[0].wrapping_add(parts[1]), whole);
            assert_ne!(Stencil { iterations: 5, ..stencil }.reference(), whole);
        }
    }
}
