//! Symmetric matrix inversion in three stages, each tiled: factor `A = L L^T`, invert `L`, multiply
//! `L^-T L^-1` (Agullo et al., VECPAR 2010). Nothing waits between the stages.

use isochrone_tasks::{TaskError, Tasks};

use super::cholesky;
use super::kernels::{
    AddProduct, AddSquare, AddTransposed, Invert, MultiplyTransposed, SolveLeft, SolveNegated,
    Square,
};
use super::matrix::Matrix;

/// Registers the tasks that turn the lower triangle of `matrix` into that of its inverse.
///
/// # Errors
/// [`TaskError`] where a task cannot be registered.
pub fn submit(tasks: &mut impl Tasks, matrix: Matrix) -> Result<(), TaskError> {
    cholesky::submit(tasks, matrix)?;
    invert(tasks, matrix)?;
    multiply(tasks, matrix)
}

/// Floating-point operations of the inversion of `n` rows.
#[must_use]
#[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
pub fn flops(n: usize) -> f64 {
    let n = n as f64;
    n * n * n
}

/// `L` becomes `L^-1`.
fn invert(tasks: &mut impl Tasks, matrix: Matrix) -> Result<(), TaskError> {
    for k in 0..matrix.tiles() {
        for i in k + 1..matrix.tiles() {
            tasks.spawn(SolveNegated { matrix, a: (k, k), c: (i, k) })?;
        }
        for i in k + 1..matrix.tiles() {
            for j in 0..k {
                tasks.spawn(AddProduct { matrix, a: (i, k), b: (k, j), c: (i, j) })?;
            }
        }
        for j in 0..k {
            tasks.spawn(SolveLeft { matrix, a: (k, k), c: (k, j) })?;
        }
        tasks.spawn(Invert { matrix, c: (k, k) })?;
    }
    Ok(())
}

/// `L` becomes the lower triangle of `L^T L`.
fn multiply(tasks: &mut impl Tasks, matrix: Matrix) -> Result<(), TaskError> {
    for m in 0..matrix.tiles() {
        for j in 0..m {
            tasks.spawn(AddSquare { matrix, a: (m, j), c: (j, j) })?;
            for i in j + 1..m {
                tasks.spawn(AddTransposed { matrix, a: (m, i), b: (m, j), c: (i, j) })?;
            }
        }
        for j in 0..m {
            tasks.spawn(MultiplyTransposed { matrix, a: (m, m), c: (m, j) })?;
        }
        tasks.spawn(Square { matrix, c: (m, m) })?;
    }
    Ok(())
}
