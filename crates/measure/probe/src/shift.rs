//! Does what was measured at the same time differ from what was measured alone?
//!
//! Two series of one quantity, taken by turns. Whoever measures several things at once may only where they do not
//! disturb each other, and finds out by a trial. Decides nothing but yes or no.

use isochrone_stats::{mann_whitney_u, median};

/// Measurements of each kind: with 8 against 8 the rank test can reach p = 0.0002.
pub const TURNS: usize = 8;

/// Chance, over all tests, of crying wolf.
const LEVEL: f64 = 0.01;

/// A shift below this share is no difference: it is what the cells themselves resolve.
const RESOLUTION: f64 = 0.01;

/// A quantity, together with others and alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// Median where others were measured at the same time.
    pub together: f64,
    /// Median alone.
    pub alone: f64,
    /// Chance of such a difference if there is none (Mann-Whitney).
    pub p: f64,
}

impl Shift {
    /// Of two series; `None` where one is empty or has what is no number.
    #[must_use]
    pub fn of(together: &[f64], alone: &[f64]) -> Option<Self> {
        Some(Self {
            together: median(together)?,
            alone: median(alone)?,
            p: mann_whitney_u(together, alone)?.p,
        })
    }

    /// By which share the quantity is larger together than alone.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.together / self.alone - 1.0
    }

    /// Whether the two differ, one of so many tests.
    #[must_use]
    pub fn differs(&self, tests: f64) -> bool {
        self.p < LEVEL / tests && self.share().abs() > RESOLUTION
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shift_counts_where_it_is_large_and_no_accident() {
        let series = |first: f64| (0..8).map(|i| first + 0.1 * f64::from(i)).collect::<Vec<f64>>();
        let of = |together: f64, alone: f64| Shift::of(&series(together), &series(alone)).unwrap();
        assert!(of(110.0, 100.0).differs(8.0) && of(90.0, 100.0).differs(8.0));
        assert!(!of(100.8, 100.0).differs(8.0), "less than a hundredth");
        assert!((of(110.0, 100.0).share() - 0.1).abs() < 1e-3);
        let wide: Vec<f64> = (0..8).map(|i| 50.0 + 15.0 * f64::from(i)).collect();
        assert!(!Shift::of(&wide, &series(100.0)).unwrap().differs(8.0), "it may be an accident");
        assert_eq!(Shift::of(&[], &series(1.0)), None);
    }
}
