//! How far one more value may lie from those that are there.

use alloc::vec::Vec;

use crate::number::real;
use crate::order::{median, quantile};

/// Of further values, how many lie within the bound.
const LEVEL: f64 = 0.95;
/// Values at least for a bound.
const VALUES_MIN: usize = 3;

/// Within so much of the median of `values` a further one lies in 95 of 100 cases; `None` of fewer than three, or
/// where one is not finite.
///
/// With Student's t it is that of a further draw from a normal distribution around a centre that is itself uncertain,
/// `t * s * sqrt(1 + 1/n)`. Values with several centres are not normal: so it is no less than what 95 of 100 of them
/// keep.
#[must_use]
pub fn further(values: &[f64]) -> Option<f64> {
    let centre = median(values).filter(|_| values.len() >= VALUES_MIN)?;
    let count = real(values.len());
    let squares: f64 = values.iter().map(|value| (value - centre) * (value - centre)).sum();
    let sd = libm::sqrt(squares / (count - 1.0));
    let normal = student_t(values.len() - 1) * sd * libm::sqrt(1.0 + 1.0 / count);
    let mut apart: Vec<f64> = values.iter().map(|value| (value - centre).abs()).collect();
    apart.sort_by(f64::total_cmp);
    // So many of n + 1 that are as good as one another.
    let found = quantile(&apart, (LEVEL * (count + 1.0) / count).min(1.0))?;
    Some(normal.max(found))
}

/// Student's t at 97.5 %: how many standard errors half of a 95 % interval has. From 9 degrees of freedom on that of
/// 9, which is a little wide.
#[must_use]
pub fn student_t(degrees: usize) -> f64 {
    const T: [f64; 9] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262];
    T[degrees.clamp(1, T.len()) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{normal, rng, uniform};

    #[test]
    fn the_bound_holds_for_nineteen_of_twenty_whatever_the_shape() {
        let (mut one, mut two, mut three) = (rng(1), rng(2), rng(3));
        let mut normals = || 100.0 + 5.0 * normal(&mut one);
        let mut even = || 100.0 + 20.0 * uniform(&mut two);
        let mut two_distances = || if uniform(&mut three) < 0.5 { 90.0 } else { 140.0 };
        let shapes: [&mut dyn FnMut() -> f64; 3] = [&mut normals, &mut even, &mut two_distances];
        for draw in shapes {
            for n in [4, 16, 60] {
                let (mut inside, mut of) = (0, 0);
                for _ in 0..2000 {
                    let sample: Vec<f64> = (0..n).map(|_| draw()).collect();
                    let bound = further(&sample).unwrap();
                    let centre = median(&sample).unwrap();
                    inside += u32::from((draw() - centre).abs() <= bound);
                    of += 1;
                }
                let share = f64::from(inside) / f64::from(of);
                assert!(share > 0.92, "{share} of {n}");
            }
        }
        assert_eq!(further(&[1.0, 2.0]), None);
    }
}
