//! Rounds whose pattern and drift are known.

use super::*;
use isochrone_stats::{rng, uniform};

const PAGES: usize = 64;

/// Sixteen rounds of lines whose pattern is `high` cycles to either side, on pages `far` apart.
fn rounds(high: f64, far: f64, turned: usize, seed: u64) -> Stretch {
    rounds_at(40.0, high, far, turned, seed)
}

fn rounds_at(level: f64, high: f64, far: f64, turned: usize, seed: u64) -> Stretch {
    let mut rng = rng(seed);
    let mut stretch = Stretch::new(PAGES * LINES_PER_PAGE);
    let pages: Vec<f64> = (0..PAGES).map(|_| far * (uniform(&mut rng) - 0.5)).collect();
    for _ in 0..ROUNDS_TOGETHER {
        let line = |i: usize| if (i ^ turned) & 4 == 0 { high } else { -high };
        let noise: Vec<f64> =
            (0..PAGES * LINES_PER_PAGE).map(|_| 20.0 * (uniform(&mut rng) - 0.5)).collect();
        let deviation = (0..PAGES * LINES_PER_PAGE)
            .map(|i| line(i % LINES_PER_PAGE) + pages[i / LINES_PER_PAGE] + noise[i])
            .collect();
        stretch.add(&Round { deviation, level });
    }
    stretch
}

#[test]
fn pages_that_wander_by_less_than_lines_differ_are_no_other_base() {
    let (calm, restless) = (rounds(4.0, 0.0, 0, 1), rounds(4.0, 2.0, 0, 2));
    assert!(same_base(&calm, &restless) && same_base(&restless, &calm));
    assert!(same_base(&restless, &rounds(4.0, 2.0, 0, 3)), "other pages wander");
}

#[test]
fn other_lines_or_pages_far_apart_are_another_base() {
    let here = rounds(4.0, 0.0, 0, 1);
    assert!(!same_base(&here, &rounds(4.0, 0.0, 4, 2)), "lines change places");
    assert!(!same_base(&here, &rounds(4.0, 12.0, 0, 2)), "pages lie elsewhere");
    let flat = rounds(0.0, 12.0, 0, 4);
    assert!(same_base(&flat, &rounds(0.0, 12.0, 0, 4)));
    assert!(!same_base(&flat, &rounds(0.0, 12.0, 0, 5)), "nothing but pages");
}

#[test]
fn one_pattern_on_another_node_is_another_base_and_one_that_wanders_is_not() {
    let here = rounds(4.0, 0.0, 0, 1);
    assert!(same_base(&here, &rounds_at(42.0, 4.0, 0.0, 0, 2)));
    assert!(!same_base(&here, &rounds_at(60.0, 4.0, 0.0, 0, 2)));
    assert!(!same_base(&rounds_at(60.0, 0.0, 0.0, 0, 3), &rounds(0.0, 0.0, 0, 4)), "flat");
}
