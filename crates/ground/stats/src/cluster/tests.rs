//! Tests of clustering: against exhaustive search, and on mixtures like those of DRAM pages.

use super::*;
use crate::{Xoshiro256PlusPlus, normal, rng, shuffle, uniform};
use core::f64::consts::PI;
use proptest::prelude::*;

/// Shares and centres of the page classes seen on a Zen 4 server, in 4000 values.
fn page_classes(sd: f64, rng: &mut Xoshiro256PlusPlus) -> Vec<f64> {
    let mut values: Vec<f64> = [(411.0, 1000), (427.0, 1000), (441.0, 2000)]
        .iter()
        .flat_map(|(center, n)| core::iter::repeat_n(*center, *n))
        .map(|center| center + sd * normal(rng))
        .collect();
    shuffle(&mut values, rng);
    values
}

fn assert_page_classes(found: &Clusters) {
    assert_eq!(found.centers.len(), 3, "{:?}", found.centers);
    for (center, known) in found.centers.iter().zip([411.0, 427.0, 441.0]) {
        assert!((center - known).abs() < 0.3, "{:?}", found.centers);
    }
}

#[test]
fn page_classes_are_found() {
    for seed in 0..10 {
        let mut rng = rng(seed);
        let values = page_classes(2.0, &mut rng);
        let found = choose_k_1d(&values, 4, 2.0).unwrap();
        assert_page_classes(&found);
        let sd = found.within_variance.iter().map(|v| libm::sqrt(*v));
        assert!(sd.into_iter().all(|sd| (sd - 2.0).abs() < 0.2));
        assert_eq!(found.counts.iter().sum::<usize>() + found.outliers, 4000);
        assert!(found.outliers == 0 && found.counts[0].abs_diff(1000) < 5);
        let right = values
            .iter()
            .zip(&found.assignment)
            .filter(|(v, class)| (**v - found.centers[**class]).abs() < 8.01)
            .count();
        assert!(right >= 3998, "{right}");
    }
}

#[test]
fn outliers_neither_make_a_class_nor_hide_one() {
    for seed in 0..10 {
        let mut rng = rng(seed);
        let mut values = page_classes(2.0, &mut rng);
        // 1.5 % of pages measured across an interrupt or a refresh: far, and far apart.
        values.extend((0..60).map(|_| 480.0 - 200.0 * libm::log(1.0 - uniform(&mut rng))));
        shuffle(&mut values, &mut rng);
        let found = choose_k_1d(&values, 4, 2.0).unwrap();
        assert_page_classes(&found);
        assert!(found.outliers.abs_diff(60) <= 2, "{}", found.outliers);
        assert_eq!(found.assignment.len(), values.len());
        let slowest = values.iter().zip(&found.assignment).filter(|(v, _)| **v > 480.0);
        assert!(slowest.into_iter().all(|(_, class)| *class == 2));
    }
}

/// Draws of one shape, from a standard normal and a uniform variable.
type Shape = (&'static str, fn(f64, f64) -> f64);

const ONE_CLASS: [Shape; 5] = [
    ("normal", |z, _| 430.0 + 3.0 * z),
    ("uniform", |_, u| 400.0 + 50.0 * u),
    ("lognormal", |z, _| 400.0 + 10.0 * libm::exp(z)),
    ("Cauchy", |_, u| 400.0 + libm::tan(PI * (u - 0.5))),
    ("exponential", |_, u| 400.0 - 30.0 * libm::log(1.0 - u)),
];

/// In how many of 100 samples of `n` values a draw shows `k` classes. The noise is not known.
fn samples_with(k: usize, n: u32, draw: impl Fn(u32, &mut Xoshiro256PlusPlus) -> f64) -> usize {
    (0..100)
        .filter(|seed| {
            let mut rng = rng(*seed);
            let values: Vec<f64> = (0..n).map(|i| draw(i, &mut rng)).collect();
            choose_k_1d(&values, 4, 0.0).unwrap().centers.len() == k
        })
        .count()
}

#[test]
fn one_class_stays_one() {
    // A gap may open by chance: seen in 0.7 % of 1000 samples at worst (50 lognormal values).
    for (what, shape) in ONE_CLASS {
        for n in [6, 20, 50, 200] {
            let single = samples_with(1, n, |_, rng| shape(normal(rng), uniform(rng)));
            assert!(single >= 97, "{what}, {n} values: {single} of 100");
        }
    }
}

#[test]
fn two_classes_are_two_from_five_deviations_on() {
    let at = |apart: f64| move |i, rng: &mut _| f64::from(i % 2) * apart + normal(rng);
    assert_eq!(samples_with(2, 400, at(3.0)), 0);
    assert!(samples_with(2, 400, at(5.0)) >= 96);
    assert!(samples_with(2, 100, at(6.0)) >= 96);
    assert_eq!(samples_with(2, 400, at(6.0)), 100);
}

#[test]
fn noise_forbids_what_it_cannot_tell_apart() {
    let values = page_classes(2.0, &mut rng(1));
    assert_eq!(choose_k_1d(&values, 4, 6.0).unwrap().centers.len(), 1);
    // Readings of a clock that steps by 26: its steps are no classes (26 / sqrt(12) = 7.5).
    let ticks: Vec<f64> = (0..900).map(|i| 52.0 + 26.0 * f64::from(i % 3)).collect();
    assert_eq!(choose_k_1d(&ticks, 4, 7.5).unwrap().centers.len(), 1);
    assert_eq!(choose_k_1d(&ticks, 4, 2.0).unwrap().centers.len(), 3);
}

#[test]
fn a_class_below_two_per_cent_does_not_count() {
    let mut rng = rng(2);
    let mut values: Vec<f64> = (0..1000).map(|_| 400.0 + normal(&mut rng)).collect();
    values.extend((0..15).map(|_| 440.0 + normal(&mut rng)));
    let found = choose_k_1d(&values, 4, 1.0).unwrap();
    assert_eq!(found.centers.len(), 1);
    values.extend((0..15).map(|_| 440.0 + normal(&mut rng)));
    let found = choose_k_1d(&values, 4, 1.0).unwrap();
    assert_eq!((found.centers.len(), found.counts[1]), (2, 30));
}

#[test]
fn no_answer_where_there_is_none() {
    assert_eq!(kmeans_1d(&[], 1), None);
    assert_eq!(kmeans_1d(&[1.0, 1.0], 2), None);
    assert_eq!(kmeans_1d(&[1.0], 0), None);
    assert_eq!(kmeans_1d(&[1.0, f64::NAN], 1), None);
    assert_eq!(choose_k_1d(&[], 4, 0.0), None);
    assert_eq!(choose_k_1d(&[1.0], 0, 0.0), None);
    assert_eq!(choose_k_1d(&[1.0], 1, f64::NAN), None);
    assert_eq!(choose_k_1d(&[1.0; 40], 4, 0.0).unwrap().centers, [1.0]);
}

#[test]
fn many_values_need_no_square_of_steps() {
    // Quadratic work would be 4 * 10^10 steps; this is some 10^7.
    let mut rng = rng(3);
    let values: Vec<f64> = (0..200_000).map(|_| normal(&mut rng)).collect();
    let halves = kmeans_1d(&values, 2).unwrap();
    // The halves of a normal distribution: centres at sqrt(2 / pi), variance 1 - 2 / pi.
    assert!((halves.centers[1] - libm::sqrt(2.0 / PI)).abs() < 0.01);
    assert!((halves.within_variance[0] - (1.0 - 2.0 / PI)).abs() < 0.01);
    // Nor does a tail without an end (Cauchy), or a k without a bound.
    let wild: Vec<f64> = (0..20_000).map(|_| libm::tan(PI * (uniform(&mut rng) - 0.5))).collect();
    assert_eq!(choose_k_1d(&wild, 4, 0.0).unwrap().centers.len(), 1);
    assert_eq!(choose_k_1d(&wild[..400], usize::MAX, 0.0).unwrap().centers.len(), 1);
}

fn square_error(run: &[f64]) -> f64 {
    let m = crate::mean(run).unwrap_or(0.0);
    run.iter().map(|v| (v - m) * (v - m)).sum()
}

/// The least cost of `k` runs, by trying every place of the last one.
fn exhaustive(ascending: &[f64], k: usize) -> f64 {
    if k == 1 {
        return square_error(ascending);
    }
    (k - 1..ascending.len())
        .map(|cut| exhaustive(&ascending[..cut], k - 1) + square_error(&ascending[cut..]))
        .fold(f64::INFINITY, f64::min)
}

proptest! {
    #[test]
    fn the_split_is_optimal(
        values in prop::collection::vec(prop_oneof![-50.0..50.0f64, (0i8..6).prop_map(f64::from)], 1..14),
        k in 1usize..5,
    ) {
        let ascending = sorted(&values).unwrap();
        let different = ascending.chunk_by(|a, b| a == b).count();
        let Some(found) = kmeans_1d(&values, k) else {
            prop_assert!(k > different);
            return Ok(());
        };
        let cost: f64 = found
            .within_variance
            .iter()
            .zip(&found.counts)
            .map(|(v, n)| v * real(*n))
            .sum();
        prop_assert!((cost - exhaustive(&ascending, k)).abs() < 1e-8 * (1.0 + cost));
        prop_assert!(found.centers.is_sorted_by(|a, b| a < b));
        prop_assert_eq!(found.counts.iter().sum::<usize>(), values.len());
        for (value, class) in values.iter().zip(&found.assignment) {
            let own = (value - found.centers[*class]).abs();
            prop_assert!(found.centers.iter().all(|c| own <= (value - c).abs() + 1e-9));
        }
    }

    #[test]
    fn order_and_level_do_not_matter(
        seed: u64,
        level in -500i16..500,
        gap in 20.0..60.0f64,
    ) {
        let mut rng = rng(seed);
        let mut values: Vec<f64> = (0..300)
            .map(|i| if i % 3 == 0 { gap } else { 0.0 } + 3.0 * uniform(&mut rng))
            .collect();
        let found = choose_k_1d(&values, 4, 1.0).unwrap();
        prop_assert_eq!(&found.counts, &[200, 100]);
        shuffle(&mut values, &mut rng);
        values.iter_mut().for_each(|v| *v += f64::from(level));
        let moved = choose_k_1d(&values, 4, 1.0).unwrap();
        prop_assert_eq!(found.counts, moved.counts);
        prop_assert!((moved.centers[1] - found.centers[1] - f64::from(level)).abs() < 1e-6);
    }
}
