//! What the paper printed.

use super::cells::Smt;

/// A row of Table I or II: additional time in percent, for each number of threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TableRow {
    /// With hyper-threading or without.
    pub smt: Smt,
    /// With movers.
    pub prefetch: bool,
    /// Threads and percent.
    pub cells: [(u16, f64); 6],
    /// As the text says it.
    pub mean: f64,
}

/// All numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// Tables I and II.
    pub tables: [TableRow; 4],
    /// Cycles of a fault with separated tables, 2 to 64 cores (section IV-B).
    pub fault_separated: f64,
    /// With one set of tables, 32 cores.
    pub fault_shared: f64,
    /// Sweeps over the area.
    pub iterations: f64,
    /// Pages of the area: 2 GB of 4 kB.
    pub pages: f64,
}

/// Section IV.
pub const PUBLISHED: Published = Published {
    tables: [
        TableRow {
            smt: Smt::Off,
            prefetch: false,
            cells: [(2, 32.0), (4, 47.0), (8, 38.0), (16, 44.0), (32, 56.0), (56, 93.0)],
            mean: 51.0,
        },
        TableRow {
            smt: Smt::Off,
            prefetch: true,
            cells: [(2, 11.0), (4, 21.0), (8, 14.0), (16, 16.0), (32, 26.0), (56, 46.0)],
            mean: 22.0,
        },
        TableRow {
            smt: Smt::On,
            prefetch: false,
            cells: [(4, 36.0), (8, 32.0), (16, 32.0), (32, 37.0), (64, 45.0), (128, 33.0)],
            mean: 35.0,
        },
        TableRow {
            smt: Smt::On,
            prefetch: true,
            cells: [(4, 5.0), (8, 8.0), (16, 6.0), (32, 7.0), (64, 6.0), (128, 22.0)],
            mean: 9.0,
        },
    ],
    fault_separated: 45_000.0,
    fault_shared: 700_000.0,
    iterations: 25.0,
    pages: 524_288.0,
};
