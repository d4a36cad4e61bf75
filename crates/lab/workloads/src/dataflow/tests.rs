//! The kernels against their references: tiles and blocks put together serially.

use super::histogram::{self, BINS, Image};
use super::jacobi::{self, Grid};
use super::tile;

/// `f(row, column)` as a row-major tile.
fn matrix(n: usize, f: impl Fn(usize, usize) -> f64) -> Vec<f64> {
    (0..n * n).map(|i| f(i / n, i % n)).collect()
}

fn value(i: usize, j: usize) -> f64 {
    f64::from(u32::try_from((i * 37 + j * 101 + i * j * 7) % 97).unwrap()) / 97.0 - 0.4
}

fn lower(n: usize) -> Vec<f64> {
    matrix(n, |i, j| match i.cmp(&j) {
        std::cmp::Ordering::Less => 0.0,
        std::cmp::Ordering::Equal => 2.0 + value(i, j),
        std::cmp::Ordering::Greater => value(i, j),
    })
}

/// `op(a) op(b)` by three loops.
fn product(n: usize, a: impl Fn(usize, usize) -> f64, b: impl Fn(usize, usize) -> f64) -> Vec<f64> {
    matrix(n, |i, j| (0..n).map(|k| a(i, k) * b(k, j)).sum())
}

fn close(got: &[f64], want: &[f64], which: impl Fn(usize, usize) -> bool, n: usize) {
    for (at, (got, want)) in got.iter().zip(want).enumerate() {
        let (i, j) = (at / n, at % n);
        assert!(!which(i, j) || (got - want).abs() < 1e-9, "({i}, {j}): {got} is not {want}");
    }
}

#[test]
fn tile_kernels_do_what_their_formulas_say() {
    let n = 19;
    let l = lower(n);
    let a = matrix(n, value);
    let c = matrix(n, |i, j| value(j + 3, i + 1));
    let at = |m: &[f64]| {
        let m = m.to_vec();
        move |i: usize, j: usize| m[i * n + j]
    };
    let turned = |m: &[f64]| {
        let m = m.to_vec();
        move |i: usize, j: usize| m[j * n + i]
    };
    let is_lower = |i: usize, j: usize| i >= j;
    let all = |_: usize, _: usize| true;

    let mut got = product(n, at(&l), turned(&l));
    tile::factor(&mut got, n).unwrap();
    close(&got, &l, is_lower, n);

    let mut got = product(n, at(&a), turned(&l));
    tile::solve_right_transposed(&l, &mut got, n);
    close(&got, &a, all, n);

    let mut got = product(n, at(&a), at(&l));
    tile::solve_right_negated(&l, &mut got, n);
    close(&got, &a.iter().map(|x| -x).collect::<Vec<_>>(), all, n);

    let mut got = product(n, at(&l), at(&a));
    tile::solve_left(&l, &mut got, n);
    close(&got, &a, all, n);

    let sum = |p: Vec<f64>, sign: f64| -> Vec<f64> {
        c.iter().zip(p).map(|(c, p)| c + sign * p).collect()
    };
    let mut got = c.clone();
    tile::update_diagonal(&a, &mut got, n);
    close(&got, &sum(product(n, at(&a), turned(&a)), -1.0), is_lower, n);
    let mut got = c.clone();
    tile::update(&a, &l, &mut got, n);
    close(&got, &sum(product(n, at(&a), turned(&l)), -1.0), all, n);
    let mut got = c.clone();
    tile::add_product(&a, &l, &mut got, n);
    close(&got, &sum(product(n, at(&a), at(&l)), 1.0), all, n);
    let mut got = c.clone();
    tile::add_transposed_product(&a, &l, &mut got, n);
    close(&got, &sum(product(n, turned(&a), at(&l)), 1.0), all, n);
    let mut got = c.clone();
    tile::add_square(&a, &mut got, n);
    close(&got, &sum(product(n, turned(&a), at(&a)), 1.0), is_lower, n);

    let mut got = a.clone();
    tile::multiply_transposed(&l, &mut got, n);
    close(&got, &product(n, turned(&l), at(&a)), all, n);
    let mut got = l.clone();
    tile::square(&mut got, n);
    close(&got, &product(n, turned(&l), at(&l)), is_lower, n);
    let mut got = l.clone();
    tile::invert(&mut got, n);
    let one = matrix(n, |i, j| f64::from(u8::from(i == j)));
    close(&product(n, at(&l), at(&got)), &one, all, n);
}

#[test]
fn a_matrix_that_is_not_positive_definite_is_refused() {
    let mut a = matrix(4, |i, j| if i == j { -1.0 } else { 0.0 });
    assert_eq!(tile::factor(&mut a, 4), Err(tile::NotPositive(0)));
}

#[test]
fn blocks_of_rows_give_the_grid_of_one_loop() {
    let grid = Grid { blocks: 3, rows: 4, columns: 7 };
    let mut old = vec![0.0; grid.len()];
    let mut new = old.clone();
    for block in old.chunks_mut(grid.block_len()) {
        jacobi::start(block);
    }
    for _ in 0..9 {
        for b in 0..grid.blocks {
            let begin = b * grid.block_len();
            let end = begin + grid.block_len();
            let above = (b > 0).then(|| &old[begin - grid.columns..begin]);
            let below = (b + 1 < grid.blocks).then(|| &old[end..end + grid.columns]);
            jacobi::sweep(&old[begin..end], above, below, &mut new[begin..end], grid.columns);
        }
        std::mem::swap(&mut old, &mut new);
    }
    assert_eq!(old, jacobi::reference(grid, 9));
    assert!(old[grid.columns / 2] > 0.1, "heat has come in");
}

#[test]
fn two_scans_by_blocks_give_the_integral_histogram() {
    let image = Image { blocks: 3, side: 5 };
    let width = image.blocks * image.side;
    let pixel = |y: usize, x: usize| u8::try_from((y * 31 + x * 17 + y * x) % 256).unwrap();
    let mut blocks = vec![vec![0; image.counts()]; image.blocks * image.blocks];
    for by in 0..image.blocks {
        let mut edge = vec![0; image.side * BINS];
        for bx in 0..image.blocks {
            let at = |i: usize| {
                pixel(by * image.side + i / image.side, bx * image.side + i % image.side)
            };
            let pixels: Vec<u8> = (0..image.pixels()).map(at).collect();
            let here = &mut blocks[by * image.blocks + bx];
            histogram::scan_rows(&pixels, &mut edge, here, image.side);
        }
    }
    for b in 0..blocks.len() {
        let (before, here) = blocks.split_at_mut(b);
        let above =
            b.checked_sub(image.blocks).map(|a| histogram::last_row(&before[a], image.side));
        histogram::scan_columns(above, &mut here[0], image.side);
    }
    let want = histogram::reference(width, pixel);
    for (at, want) in want.iter().enumerate() {
        let (y, x, bin) = (at / BINS / width, at / BINS % width, at % BINS);
        let block = &blocks[y / image.side * image.blocks + x / image.side];
        let got = block[((y % image.side) * image.side + x % image.side) * BINS + bin];
        assert_eq!(got, *want, "row {y}, column {x}, bin {bin}");
    }
}
