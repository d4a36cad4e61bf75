//! Seeded randomness: orders of measurement, resampling, and the noise of synthetic machines.
//!
//! The atlas records a seed, and that seed must give the same order in ten years. So the ways
//! from random bits to an order or a normal variable are written out here and pinned by tests,
//! and not taken from a library that may improve them. It never seeds itself.

use crate::number::real;

pub use rand_xoshiro::Xoshiro256PlusPlus;
pub use rand_xoshiro::rand_core::Rng;
use rand_xoshiro::rand_core::SeedableRng;

/// The odd constant of SplitMix64, 2^64 over the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The generator for a seed: xoshiro256++ (Blackman and Vigna, "Scrambled Linear Pseudorandom
/// Number Generators", ACM TOMS 47(4), 2021), its state filled by SplitMix64.
#[must_use]
pub fn rng(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

/// A seed for one of many independent streams of an experiment, so that adding draws to one
/// part does not shift the others. Different streams of one seed never share a seed.
#[must_use]
pub fn derive_seed(seed: u64, stream: u64) -> u64 {
    mix(mix(seed.wrapping_add(GOLDEN)).wrapping_add(stream.wrapping_mul(GOLDEN)))
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
/// Generators", OOPSLA 2014, with Stafford's variant 13): a permutation of 64-bit words.
fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// A number in 0..1, one of 2^53 equally likely ones.
pub fn uniform(rng: &mut impl Rng) -> f64 {
    let scale = 1.0 / (1_u64 << 53) as f64;
    (rng.next_u64() >> 11) as f64 * scale
}

/// An integer in `0..bound`, every one equally likely (Lemire, "Fast Random Integer Generation
/// in an Interval", ACM TOMACS 29(1), 2019). 0 if `bound` is 0.
pub fn below(rng: &mut impl Rng, bound: u64) -> u64 {
    if bound == 0 {
        return 0;
    }
    loop {
        let product = u128::from(rng.next_u64()) * u128::from(bound);
        let (high, low) = halves(product);
        // The low half is below 2^64 mod bound exactly for the words that are too many.
        if low >= bound || low >= bound.wrapping_neg() % bound {
            return high;
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the two halves together lose nothing")]
fn halves(wide: u128) -> (u64, u64) {
    ((wide >> 64) as u64, wide as u64)
}

/// An index in `0..len`, every one equally likely.
pub(crate) fn index_below(rng: &mut impl Rng, len: usize) -> usize {
    // The result is below a usize, so the conversion cannot fail.
    usize::try_from(below(rng, len as u64)).unwrap_or(0)
}

/// Puts the items into a random order, every order equally likely (Fisher and Yates).
pub fn shuffle<T>(items: &mut [T], rng: &mut impl Rng) {
    for last in (1..items.len()).rev() {
        items.swap(last, index_below(rng, last + 1));
    }
}

/// A standard normal variable (Box and Muller, Ann. Math. Stat. 29, 1958). Two uniforms make
/// one variable and the second is not kept, so that a draw depends on nothing before it.
pub fn normal(rng: &mut impl Rng) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - uniform(rng)));
    radius * libm::cos(2.0 * core::f64::consts::PI * uniform(rng))
}

/// Fills `out` with indices in `0..population`, drawn with replacement.
pub(crate) fn resample(out: &mut [usize], population: usize, rng: &mut impl Rng) {
    debug_assert!(real(population) > 0.0, "resampling from nothing");
    for slot in out {
        *slot = index_below(rng, population);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    #[test]
    fn the_streams_of_a_seed_are_pinned() {
        // SplitMix64 from state 0: its first two outputs, as published with the algorithm.
        assert_eq!(mix(GOLDEN), 0xe220_a839_7b1d_cdaf);
        assert_eq!(mix(GOLDEN.wrapping_mul(2)), 0x6e78_9e6a_a1b9_65f4);
        let mut order: Vec<u32> = (0..10).collect();
        shuffle(&mut order, &mut rng(1));
        // Made by a second implementation, in Python, from the papers cited above.
        assert_eq!(order, [4, 7, 9, 3, 2, 1, 5, 0, 6, 8]);
        assert_eq!(derive_seed(1, 2), 0xf18d_6ce9_3d6c_f1ee);
    }

    #[test]
    fn every_order_is_equally_likely() {
        // 24 orders of 4 items, 24 000 shuffles: chi-squared with 23 degrees of freedom is
        // below 49.7 in 99.9 % of cases.
        let mut rng = rng(5);
        let mut seen = [0_u32; 256];
        for _ in 0..24_000 {
            let mut items = [0_usize, 1, 2, 3];
            shuffle(&mut items, &mut rng);
            seen[items.iter().fold(0, |code, i| 4 * code + i)] += 1;
        }
        let orders: Vec<f64> = seen.iter().filter(|s| **s > 0).map(|s| f64::from(*s)).collect();
        assert_eq!(orders.len(), 24);
        let chi2: f64 = orders.iter().map(|s| (s - 1000.0) * (s - 1000.0) / 1000.0).sum();
        assert!(chi2 < 49.7, "{chi2}");
    }

    #[test]
    fn below_is_fair_where_the_bound_does_not_divide() {
        // With bound 3 * 2^62 a plain multiplication would favour every third value by half.
        let mut rng = rng(9);
        let bound = 3_u64 << 62;
        let thirds = (0..30_000).fold([0_u32; 3], |mut count, _| {
            count[usize::try_from(below(&mut rng, bound) % 3).unwrap()] += 1;
            count
        });
        assert!(thirds.iter().all(|c| c.abs_diff(10_000) < 400), "{thirds:?}");
        assert_eq!(below(&mut rng, 0), 0);
    }

    #[test]
    fn normal_variables_have_the_moments_and_tails() {
        let mut rng = rng(2);
        let draws: Vec<f64> = (0..100_000).map(|_| normal(&mut rng)).collect();
        let moment = |p: i32| draws.iter().map(|d| libm::pow(*d, f64::from(p))).sum::<f64>() / 1e5;
        // Standard errors 0.003, 0.0045, 0.012, 0.031.
        assert!(moment(1).abs() < 0.015 && (moment(2) - 1.0).abs() < 0.02);
        assert!(moment(3).abs() < 0.05 && (moment(4) - 3.0).abs() < 0.15);
        let beyond = draws.iter().filter(|d| d.abs() > crate::order::Z_975).count();
        assert!(beyond.abs_diff(5000) < 350, "{beyond}");
    }

    proptest! {
        #[test]
        fn shuffling_loses_nothing(items in prop::collection::vec(any::<u8>(), 0..100), seed: u64) {
            let mut mixed = items.clone();
            shuffle(&mut mixed, &mut rng(seed));
            let mut again = items.clone();
            shuffle(&mut again, &mut rng(seed));
            prop_assert_eq!(&mixed, &again);
            let (mut a, mut b) = (items, mixed);
            a.sort_unstable();
            b.sort_unstable();
            prop_assert_eq!(a, b);
        }

        #[test]
        fn derived_seeds_differ(seed: u64, a: u64, b: u64) {
            prop_assume!(a != b);
            prop_assert_ne!(derive_seed(seed, a), derive_seed(seed, b));
            prop_assert_ne!(derive_seed(seed, a), derive_seed(seed.wrapping_add(1), a));
        }

        #[test]
        fn draws_stay_in_range(seed: u64, bound in 1..u64::MAX) {
            let mut rng = rng(seed);
            prop_assert!(below(&mut rng, bound) < bound);
            let u = uniform(&mut rng);
            prop_assert!((0.0..1.0).contains(&u));
            prop_assert!(normal(&mut rng).is_finite());
        }
    }
}
