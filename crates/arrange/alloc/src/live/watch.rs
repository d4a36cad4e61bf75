//! Whether pages of known code still look as the base says that they are decoded in: such pages run
//! along in every round, and notice a virtual CPU that was moved before pages are decided about.

use super::align::PASSES;
use super::identify::WORN_SLOPE;
use isochrone_units::CoreId;

/// Share of its weight that a round keeps for the next: a move is noticed by two rounds.
const MEMORY: f32 = 0.5;
/// Standard errors by which the slope must fall short.
const ERRORS: f32 = 4.0;
/// Known loads from which anything is believed.
const ENOUGH: f32 = 256.0;

/// Sums over the loads of one pass.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    count: f32,
    x: f32,
    y: f32,
    xx: f32,
    xy: f32,
}

/// What known pages showed.
#[derive(Clone, Debug)]
pub(super) struct Watch {
    of: Option<(CoreId, u16)>,
    /// What sums are taken around, so that small numbers are squared.
    origin: Option<(f32, f32)>,
    passes: [Sums; PASSES],
    count: f32,
    variance: f32,
    covariance: f32,
}

impl Watch {
    /// Nothing was seen.
    pub(super) const NEW: Self = Self {
        of: None,
        origin: None,
        passes: [Sums { count: 0.0, x: 0.0, y: 0.0, xx: 0.0, xy: 0.0 }; PASSES],
        count: 0.0,
        variance: 0.0,
        covariance: 0.0,
    };

    /// A round of a core that is taken to wear a base.
    pub(super) fn begin(&mut self, core: CoreId, base: u16) {
        if self.of != Some((core, base)) {
            *self = Self { of: Some((core, base)), ..Self::NEW };
        }
        self.passes = [Sums::default(); PASSES];
    }

    /// Adds a load of a known page: what was expected, and what was seen.
    pub(super) fn add(&mut self, pass: usize, expected: f32, seen: f32) {
        let (x0, y0) = *self.origin.get_or_insert((expected, seen));
        let Some(sums) = self.passes.get_mut(pass) else { return };
        let (x, y) = (expected - x0, seen - y0);
        sums.count += 1.0;
        (sums.x, sums.y) = (sums.x + x, sums.y + y);
        (sums.xx, sums.xy) = (sums.xx + x * x, sums.xy + x * y);
    }

    /// Ends a round. Passes have offsets of their own, so each is compared within itself.
    pub(super) fn end_round(&mut self) {
        (self.count, self.variance, self.covariance) =
            (self.count * MEMORY, self.variance * MEMORY, self.covariance * MEMORY);
        for sums in self.passes.iter().filter(|sums| sums.count > 1.0) {
            self.count += sums.count;
            self.variance += sums.xx - sums.x * sums.x / sums.count;
            self.covariance += sums.xy - sums.x * sums.y / sums.count;
        }
    }

    /// Whether the loads are not of this base, and not by chance. `noise` is a load's standard
    /// deviation.
    pub(super) fn is_strange(&self, noise: f32) -> bool {
        if self.count < ENOUGH || self.variance <= 0.01 * self.count {
            return false;
        }
        let slope = self.covariance / self.variance;
        let error = noise / libm::sqrtf(self.variance);
        slope + ERRORS * error < WORN_SLOPE
    }
}

#[cfg(test)]
mod tests {
    use super::super::dice::Dice;
    use super::*;

    /// Rounds of 512 loads whose pattern is as high as the noise; `slope` of it is there.
    fn watched(slope: f32, rounds: usize) -> Watch {
        let mut dice = Dice::new(5);
        let mut even = || f32::from(u16::try_from(dice.below(1000)).unwrap()) / 1000.0 - 0.5;
        let mut watch = Watch::NEW;
        for _ in 0..rounds {
            watch.begin(CoreId(1), 3);
            for load in 0..512_u16 {
                let pass = usize::from(load % 4);
                let x = 10.0 * even();
                let offset = 100.0 + 7.0 * f32::from(load % 4);
                watch.add(pass, x, offset + slope * x + 10.0 * even());
            }
            watch.end_round();
        }
        watch
    }

    #[test]
    fn a_strange_base_is_noticed_and_the_right_one_is_not() {
        let noise = 10.0 / libm::sqrtf(12.0);
        assert!(!watched(1.0, 3).is_strange(noise));
        assert!(watched(0.0, 1).is_strange(noise) && watched(-0.9, 1).is_strange(noise));
        assert!(watched(0.4, 3).is_strange(noise));
        assert!(!Watch::NEW.is_strange(noise));
        // Another core begins anew.
        let mut watch = watched(0.0, 2);
        watch.begin(CoreId(2), 3);
        assert!(!watch.is_strange(noise));
    }
}
