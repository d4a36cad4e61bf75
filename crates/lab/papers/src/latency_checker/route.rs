//! The way of a load over a network of rows and columns, and what it costs.
//!
//! Core to the directory of the line, directory to the memory controller, controller to the core:
//! "it requests the line from the corresponding DTD and eventually, from the corresponding memory
//! controller" (Euro-Par paper, section 2). A chase meets all directories and controllers of its
//! memory alike, so its mean is over all pairs. Only expectations are here, for fitting; the
//! simulated machine adds up each load's own way.

/// Column and row, in whole steps of the drawing.
pub(super) type Place = (f64, f64);

/// Memory whose lines lie behind the same directories and controllers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Home {
    /// Where the directories are.
    pub(super) directories: Vec<Place>,
    /// Where the controllers are.
    pub(super) controllers: Vec<Place>,
}

/// What a load costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Network {
    /// Beside the way.
    pub(super) base_ns: f64,
    /// From one column to the next.
    pub(super) column_ns: f64,
    /// From one row to the next.
    pub(super) row_ns: f64,
}

impl Home {
    /// Columns and rows that a load from `core` crosses on average.
    fn steps(&self, core: Place) -> (f64, f64) {
        let along = |axis: fn(Place) -> f64| {
            let mean_to = |from: f64, to: &[Place]| {
                to.iter().map(|p| (axis(*p) - from).abs()).sum::<f64>() / to.len().max(1) as f64
            };
            let onward: f64 =
                self.directories.iter().map(|d| mean_to(axis(*d), &self.controllers)).sum();
            mean_to(axis(core), &self.directories)
                + onward / self.directories.len().max(1) as f64
                + mean_to(axis(core), &self.controllers)
        };
        (along(|p| p.0), along(|p| p.1))
    }
}

/// Columns and rows that a load from `core` crosses on average, over memory spread evenly over
/// `homes`.
pub(super) fn mean_steps(core: Place, homes: &[Home]) -> (f64, f64) {
    let count = homes.len().max(1) as f64;
    let sum = homes
        .iter()
        .map(|home| home.steps(core))
        .fold((0.0, 0.0), |sum, steps| (sum.0 + steps.0, sum.1 + steps.1));
    (sum.0 / count, sum.1 / count)
}

impl Network {
    /// What a load from `core` costs on average.
    pub(super) fn expected_ns(&self, core: Place, homes: &[Home]) -> f64 {
        let (columns, rows) = mean_steps(core, homes);
        self.base_ns + self.column_ns * columns + self.row_ns * rows
    }

    /// A place as a point from which distances are times.
    pub(super) fn point_ns(&self, place: Place) -> Place {
        (place.0 * self.column_ns, place.1 * self.row_ns)
    }
}

/// A coordinate of a drawing as a whole number, 0 where it is none.
pub(super) fn whole(coordinate: f64) -> u16 {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to the range of u16 first; drawings have fewer than 100 columns"
    )]
    let number = coordinate.round().clamp(0.0, f64::from(u16::MAX)) as u16;
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_is_the_three_legs_and_memory_is_the_mean_of_its_homes() {
        let home = Home { directories: vec![(1.0, 2.0)], controllers: vec![(4.0, 0.0)] };
        // (0,0) to (1,2) to (4,0) and back: 1 + 3 + 4 columns, 2 + 2 + 0 rows.
        assert_eq!(mean_steps((0.0, 0.0), std::slice::from_ref(&home)), (8.0, 4.0));
        let here = Home { directories: vec![(0.0, 0.0)], controllers: vec![(0.0, 0.0)] };
        assert_eq!(mean_steps((0.0, 0.0), &[home.clone(), here]), (4.0, 2.0));
        let network = Network { base_ns: 100.0, column_ns: 2.0, row_ns: 0.5 };
        assert_eq!(network.expected_ns((0.0, 0.0), &[home]), 118.0);
        assert_eq!(network.point_ns((3.0, 4.0)), (6.0, 2.0));
    }

    #[test]
    fn several_directories_and_controllers_are_averaged() {
        let home = Home {
            directories: vec![(0.0, 0.0), (2.0, 0.0)],
            controllers: vec![(0.0, 0.0), (4.0, 0.0)],
        };
        // To the directories 1, on to the controllers (0 + 4 + 2 + 2) / 4 = 2, back 2.
        assert_eq!(mean_steps((0.0, 0.0), &[home]), (5.0, 0.0));
    }
}
