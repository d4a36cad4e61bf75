//! The symmetric matrix of the Cholesky factorisation and of the inversion: the tiles of its lower
//! triangle, one after the other.

use isochrone_stats::derive_seed;
use isochrone_tasks::{Data, Failure, Footprint, Kernel, Mem, Part, TaskError, Tasks};

use super::first_touch::FirstTouch;

/// The lower triangle of a symmetric matrix, in square tiles, each row-major. Tiles of a column lie together.
#[derive(Clone, Copy, Debug)]
pub struct Matrix {
    values: Data<f64>,
    tiles: u32,
    width: u32,
}

impl Matrix {
    /// Registers a matrix of `tiles * width` rows.
    ///
    /// # Errors
    /// [`TaskError`] where there is no room.
    pub fn new(tasks: &mut impl Tasks, tiles: u32, width: u32) -> Result<Self, TaskError> {
        let count = tiles as usize * (tiles as usize + 1) / 2;
        let values = tasks.data(count * width as usize * width as usize)?;
        Ok(Self { values, tiles, width })
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

    /// Rows of the matrix.
    #[must_use]
    pub const fn rows(self) -> usize {
        self.tiles as usize * self.width as usize
    }

    /// The tile in row `i` and column `j <= i`.
    ///
    /// # Panics
    /// For a tile above the diagonal.
    #[must_use]
    pub fn tile(self, i: u32, j: u32) -> Part<f64> {
        assert!(j <= i && i < self.tiles, "tile ({i}, {j}) is not in the lower triangle");
        let (i, j, tiles) = (i as usize, j as usize, self.tiles as usize);
        let len = self.width() * self.width();
        // The columns before this one hold `tiles`, `tiles - 1`, ... tiles.
        let before = j * (2 * tiles + 1 - j) / 2;
        self.values.part((before + i - j) * len, len)
    }

    /// Frees the memory when the tasks that use it are over.
    ///
    /// # Errors
    /// [`TaskError`] where a task failed.
    pub fn free(self, tasks: &mut impl Tasks) -> Result<(), TaskError> {
        tasks.free(self.values)
    }

    /// All tiles.
    #[must_use]
    pub const fn all(self) -> Part<f64> {
        self.values.all()
    }

    /// All tiles from the diagonal down in column `j`.
    #[must_use]
    pub fn panel(self, j: u32) -> Part<f64> {
        let first = self.tile(j, j);
        self.values.part(first.first(), (self.tiles - j) as usize * first.len())
    }

    /// Fills the matrix with [`element`]s.
    ///
    /// # Errors
    /// [`TaskError`] where a task cannot be registered.
    pub fn fill(
        self,
        tasks: &mut impl Tasks,
        seed: u64,
        touch: FirstTouch,
    ) -> Result<(), TaskError> {
        if touch == FirstTouch::Serial {
            return tasks.spawn(FillColumns { matrix: self, seed, first: 0, columns: self.tiles });
        }
        for j in 0..self.tiles {
            if touch == FirstTouch::Panels {
                tasks.spawn(FillColumns { matrix: self, seed, first: j, columns: 1 })?;
                continue;
            }
            for i in j..self.tiles {
                tasks.spawn(FillTile { matrix: self, seed, i, j })?;
            }
        }
        Ok(())
    }

    fn write_tile(self, seed: u64, i: u32, j: u32, out: &mut [f64]) {
        let (n, width) = (self.rows(), self.width());
        let (top, left) = (i as usize * width, j as usize * width);
        for (at, value) in out.iter_mut().enumerate() {
            *value = element(seed, n, top + at / width, left + at % width);
        }
    }
}

/// Element `(i, j)` of the input: symmetric, in [-0.5, 0.5) beside the diagonal, where `n` is added. So
/// it is diagonally dominant, hence positive definite.
#[must_use]
#[allow(clippy::cast_precision_loss, reason = "a size below 2^52")]
pub fn element(seed: u64, n: usize, i: usize, j: usize) -> f64 {
    let value = random(seed, i.max(j), i.min(j));
    if i == j { value + n as f64 } else { value }
}

/// A number in [-0.5, 0.5) of its own for each place.
#[allow(clippy::cast_precision_loss, reason = "53 random bits")]
pub(super) fn random(seed: u64, i: usize, j: usize) -> f64 {
    let random = derive_seed(seed, ((i as u64) << 32) | j as u64) >> 11;
    random as f64 / (1_u64 << 53) as f64 - 0.5
}

/// Writes one tile of the input.
#[derive(Clone, Copy, Debug)]
struct FillTile {
    matrix: Matrix,
    seed: u64,
    i: u32,
    j: u32,
}

impl Kernel for FillTile {
    const NAME: &'static str = "fill tile";

    fn declare(&self, footprint: &mut Footprint) {
        footprint.output(self.matrix.tile(self.i, self.j));
    }

    fn run(&self, mem: &Mem<'_>) -> Result<(), Failure> {
        let mut tile = mem.write(self.matrix.tile(self.i, self.j))?;
        self.matrix.write_tile(self.seed, self.i, self.j, &mut tile);
        Ok(())
    }
}

/// Writes neighbouring columns of tiles of the input.
#[derive(Clone, Copy, Debug)]
struct FillColumns {
    matrix: Matrix,
    seed: u64,
    first: u32,
    columns: u32,
}

impl FillColumns {
    fn part(&self) -> Part<f64> {
        let first = self.matrix.tile(self.first, self.first);
        let last = self.matrix.panel(self.first + self.columns - 1);
        self.matrix.values.part(first.first(), last.first() + last.len() - first.first())
    }
}

impl Kernel for FillColumns {
    const NAME: &'static str = "fill columns";

    fn declare(&self, footprint: &mut Footprint) {
        footprint.output(self.part());
    }

    fn run(&self, mem: &Mem<'_>) -> Result<(), Failure> {
        let mut values = mem.write(self.part())?;
        let columns = self.first..self.first + self.columns;
        let at = columns.flat_map(|j| (j..self.matrix.tiles).map(move |i| (i, j)));
        let len = self.matrix.width() * self.matrix.width();
        for ((i, j), tile) in at.zip(values.chunks_exact_mut(len)) {
            self.matrix.write_tile(self.seed, i, j, tile);
        }
        Ok(())
    }
}
