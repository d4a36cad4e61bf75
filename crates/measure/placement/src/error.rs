//! What can be wrong with the numbers handed to placement. A layout that cannot be inferred is
//! not an error: that is a finding, and it says why.

/// Input that cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlacementError {
    /// A matrix with the wrong number of cells
    #[error(
        "{cells} cells do not fill {rows} rows of {columns}: \
         pass one cell for each row and column, None where nothing was measured"
    )]
    Cells {
        /// Cells passed.
        cells: usize,
        /// Rows expected.
        rows: usize,
        /// Columns expected.
        columns: usize,
    },
    /// A latency that is no number
    #[error(
        "the latency in row {row}, column {column} is {value}: pass None where nothing was measured"
    )]
    NotFinite {
        /// Row of the cell.
        row: usize,
        /// Column of the cell.
        column: usize,
        /// What stands there.
        value: f64,
    },
    /// Parts of the input that speak of different numbers of cores
    #[error("{what} has {found} cores, but {expected} labels were given: pass one for each core")]
    Cores {
        /// Which part.
        what: &'static str,
        /// Cores in that part.
        found: usize,
        /// Cores by the labels.
        expected: usize,
    },
    /// More items than the search is made for
    #[error("{found} {what} are more than {most}: place one socket or region at a time")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How many.
        found: usize,
        /// The bound.
        most: usize,
    },
}
