//! Holm's correction: how surprising each of several tests is, given that there are several.

use alloc::vec::Vec;

use crate::number::real;

/// p-values of tests that were made together, each adjusted so that comparing all of them with one level keeps the
/// chance of any false alarm below that level, whatever ties the tests to one another (Holm, Scandinavian Journal of
/// Statistics 6, 1979). In the order of `p`, each at most 1. `None` where a value is not between 0 and 1.
#[must_use]
pub fn holm(p: &[f64]) -> Option<Vec<f64>> {
    if !p.iter().all(|p| (0.0..=1.0).contains(p)) {
        return None;
    }
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut adjusted = alloc::vec![1.0; p.len()];
    let mut least = 0.0_f64;
    for (rank, place) in order.into_iter().enumerate() {
        // What is less surprising than another never becomes more so.
        least = least.max((real(p.len() - rank) * p[place]).min(1.0));
        adjusted[place] = least;
    }
    Some(adjusted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{rng, uniform};
    use proptest::prelude::*;

    #[test]
    fn adjusted_values_agree_with_r() {
        // R 4.2: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm").
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]).unwrap();
        for (found, known) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((found - known).abs() < 1e-12, "{adjusted:?}");
        }
        assert_eq!(holm(&[0.2]), Some(alloc::vec![0.2]));
        assert_eq!(holm(&[]), Some(Vec::new()));
        assert_eq!(holm(&[0.9, 0.8]), Some(alloc::vec![1.0, 1.0]));
    }

    #[test]
    fn no_answer_where_a_value_is_no_probability() {
        for wrong in [-0.1, 1.1, f64::NAN] {
            assert_eq!(holm(&[0.5, wrong]), None);
        }
    }

    #[test]
    fn false_alarms_of_a_family_stay_at_the_level() {
        let mut noise = rng(11);
        let families = 4000;
        let alarms = (0..families)
            .filter(|_| {
                let p: Vec<f64> = (0..6).map(|_| uniform(&mut noise)).collect();
                holm(&p).unwrap().iter().any(|p| *p <= 0.05)
            })
            .count();
        // 1 - (1 - 0.05/6)^6 = 0.049 are expected: 196 of 4000, with a standard error of 14.
        assert!((140..=250).contains(&alarms), "{alarms} of {families}");
    }

    proptest! {
        #[test]
        fn an_adjusted_value_is_never_less_and_keeps_the_order(
            p in prop::collection::vec(0.0..=1.0f64, 1..20),
        ) {
            let adjusted = holm(&p).unwrap();
            for at in 0..p.len() {
                prop_assert!(adjusted[at] >= p[at] && adjusted[at] <= 1.0);
                for other in 0..p.len() {
                    prop_assert!(p[at] > p[other] || adjusted[at] <= adjusted[other]);
                }
            }
        }
    }
}
