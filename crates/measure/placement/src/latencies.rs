//! The two matrices that placement reads, checked once at the door. They hold what was measured
//! and know nothing of shapes.

use super::error::PlacementError;

/// Most cores or columns that one call handles: the tables of more take hundreds of megabytes.
pub(super) const MOST_ITEMS: usize = 1024;

/// Core-to-core latency, the same in both directions.
#[derive(Clone, Debug, PartialEq)]
pub struct PairLatencies {
    cores: usize,
    cells: Vec<Option<f64>>,
    noise: Option<f64>,
}

impl PairLatencies {
    /// Takes a row-major `cores x cores` matrix. The diagonal is ignored; two directions of a
    /// pair are averaged, and their disagreement, where there is any, is taken as the noise.
    ///
    /// # Errors
    /// [`PlacementError::Cells`], [`PlacementError::NotFinite`] or [`PlacementError::TooMany`].
    pub fn new(cores: usize, cells: &[Option<f64>]) -> Result<Self, PlacementError> {
        check(cores, cores, cells)?;
        let mut merged = vec![None; cells.len()];
        let mut disagreements = Vec::new();
        for i in 0..cores {
            for j in i + 1..cores {
                let both = match (cells[i * cores + j], cells[j * cores + i]) {
                    (Some(there), Some(back)) => {
                        disagreements.push(there - back);
                        Some(f64::midpoint(there, back))
                    }
                    (one, other) => one.or(other),
                };
                merged[i * cores + j] = both;
                merged[j * cores + i] = both;
            }
        }
        // There and back differ by two independent errors; their mean keeps half of that spread.
        let squares: f64 = disagreements.iter().map(|d| d * d).sum();
        let noise = (squares > 0.0).then(|| (squares / disagreements.len() as f64).sqrt() / 2.0);
        Ok(Self { cores, cells: merged, noise })
    }

    /// Sets the standard error of one cell, where it is known from repeats.
    #[must_use]
    pub fn with_noise(mut self, standard_error: f64) -> Self {
        self.noise = Some(standard_error);
        self
    }

    /// Number of cores.
    #[must_use]
    pub fn cores(&self) -> usize {
        self.cores
    }

    /// Latency between two different cores.
    #[must_use]
    pub fn get(&self, a: usize, b: usize) -> Option<f64> {
        self.cells.get(a * self.cores + b).copied().flatten()
    }

    /// Standard error of one cell, given or estimated.
    #[must_use]
    pub fn noise(&self) -> Option<f64> {
        self.noise
    }

    /// The same matrix between groups of cores: the median over the members.
    pub(super) fn between(&self, groups: &[Vec<usize>]) -> Self {
        let n = groups.len();
        let mut cells = vec![None; n * n];
        for (i, a) in groups.iter().enumerate() {
            for (j, b) in groups.iter().enumerate().filter(|&(j, _)| j != i) {
                let members: Vec<f64> =
                    a.iter().flat_map(|&u| b.iter().filter_map(move |&v| self.get(u, v))).collect();
                cells[i * n + j] = isochrone_stats::median(&members);
            }
        }
        Self { cores: n, cells, noise: self.noise }
    }
}

/// Latency from cores (rows) to memory regions, controllers or slices (columns).
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnLatencies {
    cores: usize,
    columns: Vec<String>,
    cells: Vec<Option<f64>>,
}

impl ColumnLatencies {
    /// Takes a row-major `cores x columns` matrix.
    ///
    /// # Errors
    /// [`PlacementError::Cells`], [`PlacementError::NotFinite`] or [`PlacementError::TooMany`].
    pub fn new(
        cores: usize,
        columns: Vec<String>,
        cells: Vec<Option<f64>>,
    ) -> Result<Self, PlacementError> {
        check(cores, columns.len(), &cells)?;
        Ok(Self { cores, columns, cells })
    }

    /// Number of cores.
    #[must_use]
    pub fn cores(&self) -> usize {
        self.cores
    }

    /// Labels of the columns.
    #[must_use]
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Latency from a core to a column.
    #[must_use]
    pub fn get(&self, core: usize, column: usize) -> Option<f64> {
        self.cells.get(core * self.columns.len() + column).copied().flatten()
    }

    /// One column, a value for each core.
    pub(super) fn column(&self, column: usize) -> Vec<Option<f64>> {
        (0..self.cores).map(|core| self.get(core, column)).collect()
    }
}

/// Refuses matrices of the wrong size, too large, or with cells that are no numbers.
fn check(rows: usize, columns: usize, cells: &[Option<f64>]) -> Result<(), PlacementError> {
    for (what, found) in [("cores", rows), ("columns", columns)] {
        if found > MOST_ITEMS {
            return Err(PlacementError::TooMany { what, found, most: MOST_ITEMS });
        }
    }
    if cells.len() != rows * columns {
        return Err(PlacementError::Cells { cells: cells.len(), rows, columns });
    }
    match cells.iter().position(|c| c.is_some_and(|v| !v.is_finite())) {
        Some(at) => Err(PlacementError::NotFinite {
            row: at / columns,
            column: at % columns,
            value: cells[at].unwrap_or(f64::NAN),
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_are_averaged_and_their_disagreement_is_the_noise() {
        let cells = [None, Some(10.0), Some(14.0), None];
        let pairs = PairLatencies::new(2, &cells).unwrap();
        assert_eq!(pairs.get(0, 1), Some(12.0));
        assert_eq!(pairs.noise(), Some(2.0));
        assert_eq!(pairs.get(0, 0), None);
    }

    #[test]
    fn one_direction_alone_is_kept_and_says_nothing_of_noise() {
        let cells = [Some(1.0), None, Some(14.0), None];
        let pairs = PairLatencies::new(2, &cells).unwrap();
        assert_eq!(pairs.get(0, 1), Some(14.0));
        assert_eq!(pairs.noise(), None);
    }

    #[test]
    fn bad_matrices_are_refused_with_their_place() {
        let short = PairLatencies::new(2, &[None]).unwrap_err();
        assert_eq!(short, PlacementError::Cells { cells: 1, rows: 2, columns: 2 });
        let columns = vec!["a".to_owned(), "b".to_owned()];
        let cells = vec![Some(1.0), Some(2.0), Some(3.0), Some(f64::INFINITY)];
        let error = ColumnLatencies::new(2, columns, cells).unwrap_err();
        assert!(matches!(error, PlacementError::NotFinite { row: 1, column: 1, .. }));
        let many = MOST_ITEMS + 1;
        assert!(matches!(
            PairLatencies::new(many, &vec![None; many * many]),
            Err(PlacementError::TooMany { .. })
        ));
    }
}
