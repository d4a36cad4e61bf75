//! The tiled Cholesky factorisation, right-looking (Buttari et al., Parallel Computing 2009): a task for
//! each kernel on a tile.

use isochrone_tasks::{TaskError, Tasks};

use super::kernels::{Factor, Solve, Update, UpdateDiagonal};
use super::matrix::Matrix;

/// Registers the tasks that turn the lower triangle of `matrix` into its factor `L`.
///
/// # Errors
/// [`TaskError`] where a task cannot be registered.
pub fn submit(tasks: &mut impl Tasks, matrix: Matrix) -> Result<(), TaskError> {
    for k in 0..matrix.tiles() {
        tasks.spawn(Factor { matrix, c: (k, k) })?;
        for i in k + 1..matrix.tiles() {
            tasks.spawn(Solve { matrix, a: (k, k), c: (i, k) })?;
        }
        for i in k + 1..matrix.tiles() {
            tasks.spawn(UpdateDiagonal { matrix, a: (i, k), c: (i, i) })?;
            for j in k + 1..i {
                tasks.spawn(Update { matrix, a: (i, k), b: (j, k), c: (i, j) })?;
            }
        }
    }
    Ok(())
}

/// Floating-point operations of the factorisation of `n` rows.
#[must_use]
#[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
pub fn flops(n: usize) -> f64 {
    let n = n as f64;
    n * n * n / 3.0 + n * n / 2.0
}
