//! Classical multidimensional scaling (Torgerson 1952) into the plane: a first guess of where
//! items lie, from a full matrix of distances. Later steps make the guess exact.

use rand::{Rng, RngExt};

/// Directions iterated together; two are wanted, the rest speed the iteration up.
const DIRECTIONS: usize = 4;

/// Rounds of the subspace iteration. The guess is refined anyway.
const ROUNDS: usize = 30;

/// A point for each item, the first axis along the longest extent.
pub(super) fn plane(n: usize, distances: &[f64], rng: &mut impl Rng) -> Vec<(f64, f64)> {
    let gram = centred(n, distances);
    let width = DIRECTIONS.min(n);
    let mut basis: Vec<Vec<f64>> =
        (0..width).map(|_| (0..n).map(|_| rng.random_range(-1.0..1.0)).collect()).collect();
    orthonormalise(&mut basis);
    for _ in 0..ROUNDS {
        basis = basis.iter().map(|v| times(n, &gram, v)).collect();
        orthonormalise(&mut basis);
    }
    let images: Vec<Vec<f64>> = basis.iter().map(|v| times(n, &gram, v)).collect();
    let mut small = vec![0.0; width * width];
    for (i, v) in basis.iter().enumerate() {
        for (j, image) in images.iter().enumerate() {
            small[i * width + j] = dot(v, image);
        }
    }
    let (values, vectors) = eigen(width, small);
    let mut order: Vec<usize> = (0..width).collect();
    order.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
    let axis = |rank: usize| -> Vec<f64> {
        let Some(&k) = order.get(rank) else { return vec![0.0; n] };
        let stretch = values[k].max(0.0).sqrt();
        let coefficient = |j: usize| vectors[j * width + k] * stretch;
        (0..n).map(|i| (0..width).map(|j| coefficient(j) * basis[j][i]).sum()).collect()
    };
    axis(0).into_iter().zip(axis(1)).collect()
}

/// Double-centred squares of distances: the inner products of the points they come from.
fn centred(n: usize, distances: &[f64]) -> Vec<f64> {
    let mut gram: Vec<f64> = distances.iter().map(|d| -d * d / 2.0).collect();
    for i in 0..n {
        gram[i * n + i] = 0.0;
    }
    let means: Vec<f64> = gram.chunks(n).map(|row| row.iter().sum::<f64>() / n as f64).collect();
    let all = means.iter().sum::<f64>() / n as f64;
    for i in 0..n {
        for j in 0..n {
            gram[i * n + j] += all - means[i] - means[j];
        }
    }
    gram
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

fn times(n: usize, matrix: &[f64], v: &[f64]) -> Vec<f64> {
    matrix.chunks(n).map(|row| dot(row, v)).collect()
}

/// Gram and Schmidt, in place. A direction that vanishes but for rounding becomes zero and stays
/// out of the way.
fn orthonormalise(basis: &mut [Vec<f64>]) {
    for k in 0..basis.len() {
        let (done, rest) = basis.split_at_mut(k);
        let v = &mut rest[0];
        let before = dot(v, v).sqrt();
        for u in done {
            let along = dot(u, v);
            v.iter_mut().zip(u.iter()).for_each(|(x, y)| *x -= along * y);
        }
        let length = dot(v, v).sqrt();
        let scale = if length > 1e-10 * before { 1.0 / length } else { 0.0 };
        v.iter_mut().for_each(|x| *x *= scale);
    }
}

/// Eigenvalues and eigenvectors (in columns) of a small symmetric matrix, by Jacobi's rotations.
fn eigen(n: usize, mut a: Vec<f64>) -> (Vec<f64>, Vec<f64>) {
    let mut vectors = vec![0.0; n * n];
    (0..n).for_each(|i| vectors[i * n + i] = 1.0);
    for _ in 0..20 {
        for p in 0..n {
            for q in p + 1..n {
                if a[p * n + q].abs() > 1e-300 {
                    rotate(n, &mut a, &mut vectors, p, q);
                }
            }
        }
    }
    ((0..n).map(|i| a[i * n + i]).collect(), vectors)
}

/// One Jacobi rotation that makes element (p, q) zero.
fn rotate(n: usize, a: &mut [f64], vectors: &mut [f64], p: usize, q: usize) {
    let theta = (a[q * n + q] - a[p * n + p]) / (2.0 * a[p * n + q]);
    let t = theta.signum() / (theta.abs() + theta.hypot(1.0));
    let cos = 1.0 / t.hypot(1.0);
    let sin = t * cos;
    for k in 0..n {
        let (x, y) = (a[k * n + p], a[k * n + q]);
        a[k * n + p] = cos * x - sin * y;
        a[k * n + q] = sin * x + cos * y;
    }
    for k in 0..n {
        let (x, y) = (a[p * n + k], a[q * n + k]);
        a[p * n + k] = cos * x - sin * y;
        a[q * n + k] = sin * x + cos * y;
        let (x, y) = (vectors[k * n + p], vectors[k * n + q]);
        vectors[k * n + p] = cos * x - sin * y;
        vectors[k * n + q] = sin * x + cos * y;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;

    #[test]
    fn points_in_the_plane_come_back_with_their_distances() {
        let points: Vec<(f64, f64)> =
            (0..12).map(|i| (f64::from(i % 4) * 3.0, f64::from(i / 4))).collect();
        let apart = |a: (f64, f64), b: (f64, f64)| (a.0 - b.0).hypot(a.1 - b.1);
        let distances: Vec<f64> =
            (0..144).map(|at| apart(points[at / 12], points[at % 12])).collect();
        let found = plane(12, &distances, &mut Xoshiro256PlusPlus::seed_from_u64(1));
        for a in 0..12 {
            for b in 0..12 {
                assert!((apart(found[a], found[b]) - distances[a * 12 + b]).abs() < 1e-6);
            }
        }
        let wide = found.iter().map(|p| p.0.abs()).fold(0.0, f64::max);
        assert!((wide - 4.5).abs() < 1e-6, "the long side lies along the first axis");
    }
}
