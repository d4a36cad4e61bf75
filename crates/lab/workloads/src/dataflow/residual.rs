//! How far a factor or an inverse is from what it should be, by products with one random vector: `n^2`
//! operations, where the work took `n^3`.

use isochrone_stats::{rng, uniform};
use isochrone_tasks::TaskError;
use isochrone_tasks::live::Runtime;

use super::matrix::{Matrix, element};

/// What a residual in units of rounding may be (as in the tests of LAPACK and HPL).
pub const RESIDUAL_MAX: f64 = 16.0;

/// `|A x - L (L^T x)| / (n eps |A| |x|)` in the maximum norm, for the input of `seed`.
///
/// # Errors
/// [`TaskError`] if a task failed.
pub fn factor(run: &mut Runtime, matrix: Matrix, seed: u64) -> Result<f64, TaskError> {
    let n = matrix.rows();
    let x = vector(n);
    let (wanted, norm) = input_times(seed, &x);
    let mut middle = vec![0.0; n];
    each_tile(run, matrix, |row, column, value| {
        if row >= column {
            middle[column] += value * x[row];
        }
    })?;
    let mut got = vec![0.0; n];
    each_tile(run, matrix, |row, column, value| {
        if row >= column {
            got[row] += value * middle[column];
        }
    })?;
    Ok(scaled(&got, &wanted, norm * largest(&x)))
}

/// `|A (W x) - x| / (n eps |A| |W| |x|)` in the maximum norm, where `W` is the inverse whose lower
/// triangle the matrix holds.
///
/// # Errors
/// [`TaskError`] if a task failed.
pub fn inverse(run: &mut Runtime, matrix: Matrix, seed: u64) -> Result<f64, TaskError> {
    let n = matrix.rows();
    let x = vector(n);
    let (mut middle, mut sums) = (vec![0.0; n], vec![0.0; n]);
    each_tile(run, matrix, |row, column, value| {
        if row >= column {
            middle[row] += value * x[column];
            sums[row] += value.abs();
        }
        if row > column {
            middle[column] += value * x[row];
            sums[column] += value.abs();
        }
    })?;
    let (got, norm) = input_times(seed, &middle);
    Ok(scaled(&got, &x, norm * largest(&sums) * largest(&x)))
}

pub(super) fn vector(n: usize) -> Vec<f64> {
    let mut random = rng(n as u64);
    (0..n).map(|_| uniform(&mut random) - 0.5).collect()
}

/// `A x` and the largest row sum of `|A|`.
fn input_times(seed: u64, x: &[f64]) -> (Vec<f64>, f64) {
    let n = x.len();
    let (mut product, mut sums) = (vec![0.0; n], vec![0.0; n]);
    for i in 0..n {
        for j in 0..=i {
            let value = element(seed, n, i, j);
            product[i] += value * x[j];
            sums[i] += value.abs();
            if j < i {
                product[j] += value * x[i];
                sums[j] += value.abs();
            }
        }
    }
    let norm = largest(&sums);
    (product, norm)
}

/// Calls `visit(row, column, value)` for every value that the matrix holds.
fn each_tile(
    run: &mut Runtime,
    matrix: Matrix,
    mut visit: impl FnMut(usize, usize, f64),
) -> Result<(), TaskError> {
    let width = matrix.width();
    for j in 0..matrix.tiles() {
        for i in j..matrix.tiles() {
            let (top, left) = (i as usize * width, j as usize * width);
            for (at, value) in run.read(matrix.tile(i, j))?.iter().enumerate() {
                visit(top + at / width, left + at % width, *value);
            }
        }
    }
    Ok(())
}

/// The largest magnitude; infinite where a value is no number, which `max` would pass over.
pub(super) fn largest(values: &[f64]) -> f64 {
    let size = |value: &f64| if value.is_nan() { f64::INFINITY } else { value.abs() };
    values.iter().map(size).fold(0.0, f64::max)
}

#[allow(clippy::cast_precision_loss, reason = "a size far below 2^52")]
pub(super) fn scaled(got: &[f64], wanted: &[f64], scale: f64) -> f64 {
    let gap: Vec<f64> = got.iter().zip(wanted).map(|(got, wanted)| got - wanted).collect();
    largest(&gap) / (got.len() as f64 * f64::EPSILON * scale)
}
