//! Equations with a matrix that is symmetric and positive, or nearly so.

/// What is added to the diagonal, of itself: two roofs that are always full together have one delay.
const DAMPING: f64 = 1e-11;

/// Solves `matrix x = side` in place by Cholesky's method; of the matrix, which is symmetric and not negative,
/// the lower half is given. False where it is no such matrix.
pub(super) fn solve_positive(matrix: &mut [f64], side: &mut [f64]) -> bool {
    let size = side.len();
    for row in 0..size {
        for column in 0..=row {
            let mut sum = matrix[row * size + column];
            if row == column {
                sum *= 1.0 + DAMPING;
            }
            for k in 0..column {
                sum -= matrix[row * size + k] * matrix[column * size + k];
            }
            if row == column {
                if sum <= 0.0 || !sum.is_finite() {
                    return false;
                }
                matrix[row * size + row] = sum.sqrt();
            } else {
                matrix[row * size + column] = sum / matrix[column * size + column];
            }
        }
    }
    for row in 0..size {
        let known: f64 = (0..row).map(|k| matrix[row * size + k] * side[k]).sum();
        side[row] = (side[row] - known) / matrix[row * size + row];
    }
    for row in (0..size).rev() {
        let known: f64 = (row + 1..size).map(|k| matrix[k * size + row] * side[k]).sum();
        side[row] = (side[row] - known) / matrix[row * size + row];
    }
    true
}
