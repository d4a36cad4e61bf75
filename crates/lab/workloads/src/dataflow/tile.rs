//! Kernels on square tiles of a symmetric matrix: what a task of the Cholesky factorisation and of the
//! symmetric inversion computes. Tiles are row-major and `n` wide; the arithmetic is faer's.
//!
//! Row-major because of what takes nearly all of a factorisation's time, `C - A B^T`: faer copies the left operand
//! into its own order, and reads the right one where it lies, four columns side by side. Of a column-major
//! tile that is a walk in steps of `n` numbers, and where `n` is a power of two all of it falls into a few sets of
//! the caches. Of a row-major one the four columns are read from end to end.

use std::cell::RefCell;

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor;
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::linalg::{matmul, triangular_inverse, triangular_solve};
use faer::prelude::{Reborrow as _, ReborrowMut as _, default};
use faer::{Accum, MatMut, MatRef, Par};

/// A tile has a pivot that is not positive: the matrix is not positive definite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("pivot {0} of a diagonal tile is not positive: the matrix is not positive definite")]
pub struct NotPositive(pub usize);

/// A factorisation without pivots cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("pivot {0} of a diagonal tile is zero or no number: the matrix needs its rows exchanged")]
pub struct NoPivot(pub usize);

/// Numbers of a line of memory: a square of so many is turned at a time.
const TURNED: usize = 8;

thread_local! {
    /// Room for one tile, for kernels that cannot work in place.
    static SCRATCH: RefCell<Vec<f64>> = const { RefCell::new(Vec::new()) };
}

fn whole(tile: &[f64], n: usize) -> MatRef<'_, f64> {
    MatRef::from_row_major_slice(tile, n, n)
}

fn whole_mut(tile: &mut [f64], n: usize) -> MatMut<'_, f64> {
    MatMut::from_row_major_slice_mut(tile, n, n)
}

/// Hands `work` a copy of `tile` that lives beside it.
fn with_copy(tile: &mut [f64], work: impl FnOnce(&[f64], &mut [f64])) {
    SCRATCH.with_borrow_mut(|scratch| {
        scratch.clear();
        scratch.extend_from_slice(tile);
        work(scratch, tile);
    });
}

/// Hands `work` the transpose of `tile`, as a tile.
fn with_turned(tile: &[f64], n: usize, work: impl FnOnce(&[f64])) {
    SCRATCH.with_borrow_mut(|scratch| {
        // What was there is written over, all of it.
        scratch.resize(n * n, 0.0);
        for top in (0..n).step_by(TURNED) {
            for left in (0..n).step_by(TURNED) {
                for row in top..n.min(top + TURNED) {
                    for column in left..n.min(left + TURNED) {
                        scratch[column * n + row] = tile[row * n + column];
                    }
                }
            }
        }
        work(scratch);
    });
}

/// `A = L L^T`: the lower triangle of `a` becomes `L`; what lies above it is left alone (POTRF).
///
/// # Errors
/// [`NotPositive`] when there is no such `L`.
pub fn factor(a: &mut [f64], n: usize) -> Result<(), NotPositive> {
    let mut memory =
        MemBuffer::new(factor::cholesky_in_place_scratch::<f64>(n, Par::Seq, default()));
    let stack = MemStack::new(&mut memory);
    factor::cholesky_in_place(whole_mut(a, n), default(), Par::Seq, stack, default())
        .map(|_| ())
        .map_err(|factor::LltError::NonPositivePivot { index }| NotPositive(index))
}

/// `B <- B L^-T` (TRSM, right, lower, transposed).
pub fn solve_right_transposed(l: &[f64], b: &mut [f64], n: usize) {
    let rhs = whole_mut(b, n).transpose_mut();
    triangular_solve::solve_lower_triangular_in_place(whole(l, n), rhs, Par::Seq);
}

/// `B <- -B L^-1` (TRSM, right, lower).
pub fn solve_right_negated(l: &[f64], b: &mut [f64], n: usize) {
    let rhs = whole_mut(b, n).transpose_mut();
    triangular_solve::solve_upper_triangular_in_place(whole(l, n).transpose(), rhs, Par::Seq);
    for value in b {
        *value = -*value;
    }
}

/// `B <- L^-1 B` (TRSM, left, lower).
pub fn solve_left(l: &[f64], b: &mut [f64], n: usize) {
    triangular_solve::solve_lower_triangular_in_place(whole(l, n), whole_mut(b, n), Par::Seq);
}

/// `A = L U` without pivots: `a` becomes `U`, and below the diagonal `L`, whose diagonal is one (GETRF but for its
/// exchanges).
///
/// # Errors
/// [`NoPivot`] where a pivot is zero or no number.
pub fn lu(a: &mut [f64], n: usize) -> Result<(), NoPivot> {
    lu_in_place(whole_mut(a, n), 0)
}

/// Of a part whose first row is row `first` of the tile: in halves, so that most of it is products.
fn lu_in_place(mut a: MatMut<'_, f64>, first: usize) -> Result<(), NoPivot> {
    let n = a.nrows();
    if n <= TURNED {
        return lu_by_columns(a.as_mut(), first);
    }
    let half = n / 2;
    let (mut corner, mut right, mut below, mut rest) = a.split_at_mut(half, half);
    lu_in_place(corner.rb_mut(), first)?;
    let corner = corner.rb();
    triangular_solve::solve_unit_lower_triangular_in_place(corner, right.rb_mut(), Par::Seq);
    let turned = below.rb_mut().transpose_mut();
    triangular_solve::solve_lower_triangular_in_place(corner.transpose(), turned, Par::Seq);
    matmul::matmul(rest.rb_mut(), Accum::Add, below.rb(), right.rb(), -1.0, Par::Seq);
    lu_in_place(rest, first + half)
}

fn lu_by_columns(mut a: MatMut<'_, f64>, first: usize) -> Result<(), NoPivot> {
    let n = a.nrows();
    for k in 0..n {
        let pivot = a[(k, k)];
        if pivot == 0.0 || !pivot.is_finite() {
            return Err(NoPivot(first + k));
        }
        for i in k + 1..n {
            a[(i, k)] /= pivot;
            for j in k + 1..n {
                a[(i, j)] -= a[(i, k)] * a[(k, j)];
            }
        }
    }
    Ok(())
}

/// `B <- L^-1 B`, where the diagonal of `L` is one and what lies above it is not looked at (TRSM, left, lower, unit).
pub fn solve_left_unit(l: &[f64], b: &mut [f64], n: usize) {
    let rhs = whole_mut(b, n);
    triangular_solve::solve_unit_lower_triangular_in_place(whole(l, n), rhs, Par::Seq);
}

/// `B <- B U^-1` (TRSM, right, upper).
pub fn solve_right_upper(u: &[f64], b: &mut [f64], n: usize) {
    let rhs = whole_mut(b, n).transpose_mut();
    triangular_solve::solve_lower_triangular_in_place(whole(u, n).transpose(), rhs, Par::Seq);
}

/// `C <- C - A B` (GEMM).
pub fn subtract_product(a: &[f64], b: &[f64], c: &mut [f64], n: usize) {
    matmul::matmul(whole_mut(c, n), Accum::Add, whole(a, n), whole(b, n), -1.0, Par::Seq);
}

/// `C <- C - A A^T`, lower triangle (SYRK).
pub fn update_diagonal(a: &[f64], c: &mut [f64], n: usize) {
    let a = whole(a, n);
    lower_product(whole_mut(c, n), Accum::Add, full(a), full(a.transpose()), -1.0);
}

/// `C <- C - A B^T` (GEMM).
pub fn update(a: &[f64], b: &[f64], c: &mut [f64], n: usize) {
    let b = whole(b, n).transpose();
    matmul::matmul(whole_mut(c, n), Accum::Add, whole(a, n), b, -1.0, Par::Seq);
}

/// `C <- C + A B` (GEMM).
pub fn add_product(a: &[f64], b: &[f64], c: &mut [f64], n: usize) {
    matmul::matmul(whole_mut(c, n), Accum::Add, whole(a, n), whole(b, n), 1.0, Par::Seq);
}

/// `C <- C + A^T B` (GEMM).
pub fn add_transposed_product(a: &[f64], b: &[f64], c: &mut [f64], n: usize) {
    // Turning a tile costs less than reading it in steps of `n`.
    with_turned(a, n, |a| add_product(a, b, c, n));
}

/// `C <- C + A^T A`, lower triangle (SYRK).
pub fn add_square(a: &[f64], c: &mut [f64], n: usize) {
    with_turned(a, n, |a| {
        let a = whole(a, n);
        lower_product(whole_mut(c, n), Accum::Add, full(a), full(a.transpose()), 1.0);
    });
}

/// The lower triangle of `l` becomes its inverse (TRTRI).
pub fn invert(l: &mut [f64], n: usize) {
    with_copy(l, |copy, l| {
        triangular_inverse::invert_lower_triangular(whole_mut(l, n), whole(copy, n), Par::Seq);
    });
}

/// `B <- L^T B` with `L` lower triangular (TRMM).
pub fn multiply_transposed(l: &[f64], b: &mut [f64], n: usize) {
    with_copy(b, |copy, b| {
        triangular::matmul(
            whole_mut(b, n),
            FULL,
            Accum::Replace,
            whole(l, n).transpose(),
            BlockStructure::TriangularUpper,
            whole(copy, n),
            FULL,
            1.0,
            Par::Seq,
        );
    });
}

/// The lower triangle of `l` becomes that of `L^T L` (LAUUM).
pub fn square(l: &mut [f64], n: usize) {
    with_copy(l, |copy, l| {
        let copy = whole(copy, n);
        lower_product(
            whole_mut(l, n),
            Accum::Replace,
            Shaped { values: copy.transpose(), shape: BlockStructure::TriangularUpper },
            Shaped { values: copy, shape: BlockStructure::TriangularLower },
            1.0,
        );
    });
}

const FULL: BlockStructure = BlockStructure::Rectangular;

/// A factor of a product, and which part of it counts.
struct Shaped<'a> {
    values: MatRef<'a, f64>,
    shape: BlockStructure,
}

/// A factor of which everything counts.
const fn full(values: MatRef<'_, f64>) -> Shaped<'_> {
    Shaped { values, shape: FULL }
}

/// The lower triangle of `c` becomes that of `c + alpha a b`, or of `alpha a b`.
fn lower_product(c: MatMut<'_, f64>, keep: Accum, a: Shaped<'_>, b: Shaped<'_>, alpha: f64) {
    triangular::matmul(
        c,
        BlockStructure::TriangularLower,
        keep,
        a.values,
        a.shape,
        b.values,
        b.shape,
        alpha,
        Par::Seq,
    );
}

/// Floating-point operations of the kernels on tiles of width `n` (LAPACK working note 41, leading
/// terms).
#[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
pub mod flops {
    /// [`super::factor()`], [`super::invert`] and [`super::square`].
    #[must_use]
    pub fn third(n: usize) -> f64 {
        one(n) / 3.0
    }

    /// The solves, [`super::multiply_transposed`], and the updates of a diagonal tile.
    #[must_use]
    pub fn one(n: usize) -> f64 {
        let n = n as f64;
        n * n * n
    }

    /// The products of two whole tiles.
    #[must_use]
    pub fn two(n: usize) -> f64 {
        2.0 * one(n)
    }
}
