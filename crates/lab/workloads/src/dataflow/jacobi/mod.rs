//! Jacobi's method with the five-point stencil, by blocks of rows: the arithmetic and its serial
//! reference.
//!
//! The equation is Laplace's on a rectangle whose first row above is held at 1 and whose other borders
//! are held at 0, the usual heated edge. A sweep reads the old grid and writes the new one.

mod tasks;

pub use tasks::Grids;

/// The grid, in blocks of whole rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// How many blocks.
    pub blocks: usize,
    /// Rows of a block.
    pub rows: usize,
    /// Columns of every row.
    pub columns: usize,
}

/// What the row above the first one is held at.
const HOT: f64 = 1.0;

impl Grid {
    /// The paper's input: 6400 blocks of 800 x 20000 (section 5).
    pub const PAPER: Self = Self { blocks: 6400, rows: 800, columns: 20_000 };

    /// Values in a block.
    #[must_use]
    pub const fn block_len(self) -> usize {
        self.rows * self.columns
    }

    /// Values in the grid.
    #[must_use]
    pub const fn len(self) -> usize {
        self.blocks * self.block_len()
    }

    /// Whether the grid has no value at all.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }
}

/// Sets a block to the value from which the iteration starts.
pub fn start(block: &mut [f64]) {
    block.fill(0.0);
}

/// One sweep of a block. `above` is the last row of the block before, `below` the first row of the one
/// after; none where the border of the grid is.
///
/// # Panics
/// If a slice has another length than the block's shape says.
pub fn sweep(
    old: &[f64],
    above: Option<&[f64]>,
    below: Option<&[f64]>,
    new: &mut [f64],
    columns: usize,
) {
    let rows = old.len() / columns;
    for (row, new) in new.chunks_exact_mut(columns).enumerate() {
        let here = &old[row * columns..][..columns];
        let up = match row {
            0 => above,
            _ => Some(&old[(row - 1) * columns..][..columns]),
        };
        let down =
            if row + 1 == rows { below } else { Some(&old[(row + 1) * columns..][..columns]) };
        sweep_row(here, up, down, new);
    }
}

fn sweep_row(here: &[f64], up: Option<&[f64]>, down: Option<&[f64]>, new: &mut [f64]) {
    match (up, down) {
        (Some(up), Some(down)) => relax(here, |i| up[i], |i| down[i], new),
        (None, Some(down)) => relax(here, |_| HOT, |i| down[i], new),
        (Some(up), None) => relax(here, |i| up[i], |_| 0.0, new),
        (None, None) => relax(here, |_| HOT, |_| 0.0, new),
    }
}

fn relax(here: &[f64], up: impl Fn(usize) -> f64, down: impl Fn(usize) -> f64, new: &mut [f64]) {
    let last = here.len() - 1;
    let mean = |i: usize, left: f64, right: f64| 0.25 * ((up(i) + down(i)) + (left + right));
    new[0] = mean(0, 0.0, if last == 0 { 0.0 } else { here[1] });
    for i in 1..last {
        new[i] = mean(i, here[i - 1], here[i + 1]);
    }
    if last > 0 {
        new[last] = mean(last, here[last - 1], 0.0);
    }
}

/// The grid after `sweeps` sweeps, by one loop over all points: the reference. Bit for bit what the
/// blocks give, since each value comes from the same four by the same operations.
#[must_use]
pub fn reference(grid: Grid, sweeps: usize) -> Vec<f64> {
    let height = grid.blocks * grid.rows;
    let mut old = vec![0.0; grid.len()];
    let mut new = old.clone();
    for _ in 0..sweeps {
        for y in 0..height {
            for x in 0..grid.columns {
                let at = |y: usize, x: usize| old[y * grid.columns + x];
                let up = if y == 0 { HOT } else { at(y - 1, x) };
                let down = if y + 1 == height { 0.0 } else { at(y + 1, x) };
                let left = if x == 0 { 0.0 } else { at(y, x - 1) };
                let right = if x + 1 == grid.columns { 0.0 } else { at(y, x + 1) };
                new[y * grid.columns + x] = 0.25 * ((up + down) + (left + right));
            }
        }
        std::mem::swap(&mut old, &mut new);
    }
    old
}
