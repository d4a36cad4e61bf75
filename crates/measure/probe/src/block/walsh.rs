//! Cross-correlation under XOR by the Walsh-Hadamard transform.
//!
//! `c[k] = sum_i a[i] b[i ^ k]` for all keys `k` at once: the transform turns it into a product, as
//! Fourier's does for shifts (B. J. Fino, V. R. Algazi, IEEE Trans. Computers C-25, 1976). It is exact,
//! and takes 3 n log n additions where trying the keys one by one takes n^2 products. The transform is the
//! decoder's; here a row may have several parts.

use isochrone_decode::transform;

/// Transforms of the parts of `row`, each `period` long.
pub(super) fn spectrum(row: &[f64], period: usize) -> Vec<f64> {
    let mut spectrum = row.to_vec();
    spectrum.chunks_exact_mut(period).for_each(transform);
    spectrum
}

/// For each key `k` the sum over all parts of `a[i] b[i ^ k]`, from the parts' transforms.
pub(super) fn correlate(a: &[f64], b: &[f64], period: usize) -> Vec<f64> {
    let mut sums = vec![0.0; period];
    for (a, b) in a.chunks_exact(period).zip(b.chunks_exact(period)) {
        for (sum, (x, y)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += x * y;
        }
    }
    transform(&mut sums);
    sums.iter_mut().for_each(|sum| *sum /= period as f64);
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_sum_of_products_under_every_key() {
        let mut rng = isochrone_stats::rng(4);
        let mut draw = || (0..128).map(|_| isochrone_stats::uniform(&mut rng) - 0.3).collect();
        let (a, b): (Vec<f64>, Vec<f64>) = (draw(), draw());
        let found = correlate(&spectrum(&a, 64), &spectrum(&b, 64), 64);
        for (key, found) in found.iter().enumerate() {
            let of = |part: usize| (0..64).map(move |i| (64 * part + i, 64 * part + (i ^ key)));
            let sum: f64 = of(0).chain(of(1)).map(|(i, j)| a[i] * b[j]).sum();
            assert!((sum - found).abs() < 1e-9, "key {key}: {sum} {found}");
        }
    }
}
