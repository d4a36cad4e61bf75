//! A square matrix of tiles and its factorisation `A = L U` without pivots: how it is stored and made, who computes
//! it serially, and how far a factor is from what it should be.

use isochrone_tasks::{Data, Failure, Footprint, Kernel, Mem, Part, TaskError, Tasks};

use super::matrix::random;
use super::residual::{largest, scaled, vector};
use super::tile::{self, NoPivot};

/// A square matrix in square tiles, each row-major. Tiles of a row lie together.
#[derive(Clone, Copy, Debug)]
pub struct Square {
    values: Data<f64>,
    tiles: u32,
    width: u32,
}

impl Square {
    /// Registers a matrix of `tiles * width` rows.
    ///
    /// # Errors
    /// [`TaskError`] where there is no room.
    pub fn new(tasks: &mut impl Tasks, tiles: u32, width: u32) -> Result<Self, TaskError> {
        let rows = tiles as usize * width as usize;
        Ok(Self { values: tasks.data(rows * rows)?, tiles, width })
    }

    /// Tiles along one side.
    #[must_use]
    pub const fn tiles(self) -> u32 {
        self.tiles
    }

    /// Rows of a tile.
    #[must_use]
    pub const fn width(self) -> usize {
        self.width as usize
    }

    /// The tile in row `i` and column `j`.
    ///
    /// # Panics
    /// For a tile outside of the matrix.
    #[must_use]
    pub fn tile(self, i: u32, j: u32) -> Part<f64> {
        assert!(i < self.tiles && j < self.tiles, "tile ({i}, {j}) is not in the matrix");
        let len = self.width() * self.width();
        self.values.part((i as usize * self.tiles as usize + j as usize) * len, len)
    }

    /// All tiles.
    #[must_use]
    pub const fn all(self) -> Part<f64> {
        self.values.all()
    }

    /// Fills the matrix with [`element`]s, a task for each tile.
    ///
    /// # Errors
    /// [`TaskError`] where a task cannot be registered.
    pub fn fill(self, tasks: &mut impl Tasks, seed: u64) -> Result<(), TaskError> {
        for i in 0..self.tiles {
            for j in 0..self.tiles {
                tasks.spawn(Fill { matrix: self, seed, i, j })?;
            }
        }
        Ok(())
    }

    /// Frees the memory when the tasks that use it are over.
    ///
    /// # Errors
    /// [`TaskError`] where a task failed.
    pub fn free(self, tasks: &mut impl Tasks) -> Result<(), TaskError> {
        tasks.free(self.values)
    }
}

/// Writes one tile of the input.
#[derive(Clone, Copy, Debug)]
struct Fill {
    matrix: Square,
    seed: u64,
    i: u32,
    j: u32,
}

impl Kernel for Fill {
    const NAME: &'static str = "fill tile of a square";

    fn declare(&self, footprint: &mut Footprint) {
        footprint.output(self.matrix.tile(self.i, self.j));
    }

    fn run(&self, mem: &Mem<'_>) -> Result<(), Failure> {
        let mut tile = mem.write(self.matrix.tile(self.i, self.j))?;
        write_tile(&mut tile, self.seed, self.matrix.tiles as usize, (self.i, self.j));
        Ok(())
    }
}

fn write_tile(tile: &mut [f64], seed: u64, tiles: usize, place: (u32, u32)) {
    let width = tile.len().isqrt();
    let (top, left) = (place.0 as usize * width, place.1 as usize * width);
    for (at, value) in tile.iter_mut().enumerate() {
        *value = element(seed, tiles * width, top + at / width, left + at % width);
    }
}

/// Element `(i, j)` of the input: in [-0.5, 0.5) beside the diagonal, where `n` is added. So it is diagonally
/// dominant, and needs no pivots.
#[must_use]
#[allow(clippy::cast_precision_loss, reason = "a size below 2^52")]
pub fn element(seed: u64, n: usize, i: usize, j: usize) -> f64 {
    let value = random(seed, i, j);
    if i == j { value + n as f64 } else { value }
}

/// The input as one slice, tile after tile as [`Square`] has them.
#[must_use]
pub fn input(seed: u64, tiles: u32, width: usize) -> Vec<f64> {
    let mut values = vec![0.0; (tiles as usize * width).pow(2)];
    let places = (0..tiles).flat_map(|i| (0..tiles).map(move |j| (i, j)));
    for (place, tile) in places.zip(values.chunks_exact_mut(width * width)) {
        write_tile(tile, seed, tiles as usize, place);
    }
    values
}

/// A step of the factorisation, on the tile `(i, j)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// What is done.
    pub what: What,
    /// Row of the tile that changes.
    pub i: u32,
    /// Column of the tile that changes.
    pub j: u32,
    /// The row and column of tiles that is over with this step's turn.
    pub k: u32,
}

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The diagonal tile `(k, k)` becomes its factors: [`tile::lu`].
    Factor,
    /// A tile in the row of the diagonal tile: [`tile::solve_left_unit`].
    Right,
    /// A tile in its column: [`tile::solve_right_upper`].
    Below,
    /// A tile loses the product of `(i, k)` and `(k, j)`: [`tile::subtract_product`].
    Update,
}

/// All steps, right-looking, in the order in which they can be done one after the other.
///
/// # Errors
/// That of `step`.
pub fn steps<E>(tiles: u32, mut step: impl FnMut(Step) -> Result<(), E>) -> Result<(), E> {
    for k in 0..tiles {
        step(Step { what: What::Factor, i: k, j: k, k })?;
        for j in k + 1..tiles {
            step(Step { what: What::Right, i: k, j, k })?;
        }
        for i in k + 1..tiles {
            step(Step { what: What::Below, i, j: k, k })?;
            for j in k + 1..tiles {
                step(Step { what: What::Update, i, j, k })?;
            }
        }
    }
    Ok(())
}

/// Factors a matrix that lies as [`input`] makes it.
///
/// # Errors
/// [`NoPivot`] where a pivot is zero or no number.
pub fn serial(values: &mut [f64], tiles: u32, width: usize) -> Result<(), NoPivot> {
    let len = width * width;
    let at = |i: u32, j: u32| (i as usize * tiles as usize + j as usize) * len;
    let copy = |values: &[f64], i, j| values[at(i, j)..at(i, j) + len].to_vec();
    steps(tiles, |Step { what, i, j, k }| {
        let (left, above) = (copy(values, i, k), copy(values, k, j));
        let corner = copy(values, k, k);
        let changed = &mut values[at(i, j)..at(i, j) + len];
        match what {
            What::Factor => tile::lu(changed, width)?,
            What::Right => tile::solve_left_unit(&corner, changed, width),
            What::Below => tile::solve_right_upper(&corner, changed, width),
            What::Update => tile::subtract_product(&left, &above, changed, width),
        }
        Ok(())
    })
}

/// `|A x - L (U x)| / (n eps |A| |x|)` in the maximum norm, for the input of `seed`, of factors that lie as
/// [`input`] makes it. What lies on and above the diagonal is `U`, what lies below it `L`, whose diagonal is one.
#[must_use]
pub fn residual(values: &[f64], tiles: u32, seed: u64) -> f64 {
    let tiles = tiles as usize;
    let width = (values.len() / tiles.pow(2).max(1)).isqrt();
    let n = tiles * width;
    let x = vector(n);
    let (mut wanted, mut sums) = (vec![0.0; n], vec![0.0; n]);
    let (mut middle, mut got) = (vec![0.0; n], vec![0.0; n]);
    let each = |visit: &mut dyn FnMut(usize, usize, f64)| {
        for (number, tile) in values.chunks_exact(width * width).enumerate() {
            let (top, left) = (number / tiles * width, number % tiles * width);
            for (at, value) in tile.iter().enumerate() {
                visit(top + at / width, left + at % width, *value);
            }
        }
    };
    each(&mut |row, column, value| {
        let wants = element(seed, n, row, column);
        wanted[row] += wants * x[column];
        sums[row] += wants.abs();
        if row <= column {
            middle[row] += value * x[column];
        }
    });
    got.copy_from_slice(&middle);
    each(&mut |row, column, value| {
        if row > column {
            got[row] += value * middle[column];
        }
    });
    scaled(&got, &wanted, largest(&sums) * largest(&x))
}

/// Floating-point operations of the factorisation of `n` rows (LAPACK working note 41, leading terms).
#[must_use]
#[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
pub fn flops(n: usize) -> f64 {
    let n = n as f64;
    2.0 * n * n * n / 3.0 - n * n / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataflow::residual::RESIDUAL_MAX;

    #[test]
    fn a_matrix_becomes_its_factors_and_a_wrong_one_is_seen() {
        for (tiles, width) in [(1, 1), (1, 19), (4, 8), (3, 13)] {
            let mut values = input(5, tiles, width);
            serial(&mut values, tiles, width).unwrap();
            let right = residual(&values, tiles, 5);
            assert!(right < RESIDUAL_MAX, "{tiles} of {width}: {right}");
            for at in [0, values.len() / 2, values.len() - 1] {
                let mut other = values.clone();
                other[at] += 0.001;
                assert!(residual(&other, tiles, 5) > RESIDUAL_MAX, "{tiles} of {width}, {at}");
                other[at] = f64::NAN;
                assert!(residual(&other, tiles, 5) > RESIDUAL_MAX, "{tiles} of {width}, {at}");
            }
        }
    }

    #[test]
    fn what_needs_pivots_is_refused() {
        for bad in [0.0, f64::NAN, f64::INFINITY] {
            let mut values = input(5, 2, 16);
            let second = 17;
            values[second] = bad;
            // The first row and column leave the second pivot as it is.
            values[1] = 0.0;
            assert_eq!(serial(&mut values, 2, 16), Err(NoPivot(1)), "{bad}");
        }
    }
}
