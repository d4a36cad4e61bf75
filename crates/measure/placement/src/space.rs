//! The two layouts that are tried, as sets of cells with distances between them: stops around a
//! ring and crossings of a grid. Pure geometry, no latencies.

/// A layout of a given size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Stops around a ring that is walked the shorter way.
    Ring {
        /// Number of stops, used or not.
        stops: usize,
    },
    /// A grid whose messages go along one axis, then along the other.
    Grid {
        /// Cells from left to right.
        columns: usize,
        /// Cells from top to bottom.
        rows: usize,
    },
}

impl Shape {
    /// Number of cells.
    #[must_use]
    pub fn cells(self) -> usize {
        match self {
            Shape::Ring { stops } => stops,
            Shape::Grid { columns, rows } => columns * rows,
        }
    }

    /// The word for the record.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Shape::Ring { .. } => "ring",
            Shape::Grid { .. } => "grid",
        }
    }

    /// Hops along each axis between two cells; a ring has only the first.
    pub(super) fn hops(self, a: usize, b: usize) -> (f64, f64) {
        match self {
            Shape::Ring { stops } => {
                let d = a.abs_diff(b);
                (d.min(stops - d) as f64, 0.0)
            }
            Shape::Grid { columns, .. } => (
                (a % columns).abs_diff(b % columns) as f64,
                (a / columns).abs_diff(b / columns) as f64,
            ),
        }
    }

    /// Where a cell is drawn. A grid has column and row, counted from 0 at the top left; the
    /// stops of a ring lie on a circle, neighbours one apart along it.
    #[must_use]
    pub fn place(self, cell: usize) -> (f64, f64) {
        match self {
            Shape::Ring { stops } => {
                let angle = std::f64::consts::TAU * cell as f64 / stops as f64;
                let radius = stops as f64 / std::f64::consts::TAU;
                (radius * angle.cos(), radius * angle.sin())
            }
            Shape::Grid { columns, .. } => ((cell % columns) as f64, (cell / columns) as f64),
        }
    }

    /// The ways to relabel the cells that change no distance: what latencies can never tell.
    /// Each is a list that gives a cell its new name.
    pub(super) fn images(self, turnable: bool) -> Vec<Vec<usize>> {
        match self {
            Shape::Ring { stops } => (0..2 * stops)
                .map(|k| {
                    let turn = |s: usize| (s + k) % stops;
                    let mirrored = |s: usize| (2 * stops - s + k) % stops;
                    (0..stops).map(|s| if k < stops { turn(s) } else { mirrored(s) }).collect()
                })
                .collect(),
            Shape::Grid { columns, rows } => {
                let diagonal = turnable && columns == rows;
                let each = (0..if diagonal { 8 } else { 4 }).map(|k: usize| {
                    let image = |cell: usize| {
                        let (mut x, mut y) = (cell % columns, cell / columns);
                        if k & 1 != 0 {
                            x = columns - 1 - x;
                        }
                        if k & 2 != 0 {
                            y = rows - 1 - y;
                        }
                        if k & 4 != 0 { x * columns + y } else { y * columns + x }
                    };
                    (0..columns * rows).map(image).collect()
                });
                each.collect()
            }
        }
    }
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Shape::Ring { stops } => write!(f, "a ring of {stops} stops"),
            Shape::Grid { columns, rows } => write!(f, "a grid of {columns} x {rows}"),
        }
    }
}

/// A shape with the table of its distances.
#[derive(Clone, Debug)]
pub(super) struct Space {
    /// Which shape.
    pub(super) shape: Shape,
    /// Cost of a hop from top to bottom, in hops from left to right.
    pub(super) y_over_x: f64,
    cells: usize,
    table: Vec<f64>,
}

impl Space {
    /// Prepares a shape. `y_over_x` means nothing for a ring.
    pub(super) fn new(shape: Shape, y_over_x: f64) -> Self {
        let cells = shape.cells();
        let table = (0..cells * cells)
            .map(|at| {
                let (x, y) = shape.hops(at / cells, at % cells);
                x + y_over_x * y
            })
            .collect();
        Self { shape, y_over_x, cells, table }
    }

    /// Number of cells.
    pub(super) fn cells(&self) -> usize {
        self.cells
    }

    /// Distances from one cell to all.
    pub(super) fn from(&self, cell: usize) -> &[f64] {
        &self.table[cell * self.cells..(cell + 1) * self.cells]
    }

    /// Distance between two cells.
    pub(super) fn distance(&self, a: usize, b: usize) -> f64 {
        self.table[a * self.cells + b]
    }

    /// The largest distance.
    pub(super) fn diameter(&self) -> f64 {
        self.table.iter().copied().fold(0.0, f64::max)
    }

    /// Whether a quarter turn changes no distance.
    pub(super) fn turnable(&self) -> bool {
        (self.y_over_x - 1.0).abs() < 1e-9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_keep_every_distance() {
        let grids = [Shape::Grid { columns: 4, rows: 4 }, Shape::Grid { columns: 5, rows: 2 }];
        for shape in grids.into_iter().chain([Shape::Ring { stops: 7 }]) {
            let space = Space::new(shape, 1.0);
            let images = shape.images(true);
            let distinct: std::collections::HashSet<_> = images.iter().cloned().collect();
            assert_eq!(distinct.len(), images.len());
            for image in images {
                for a in 0..space.cells() {
                    for b in 0..space.cells() {
                        let before = space.distance(a, b);
                        assert!((before - space.distance(image[a], image[b])).abs() < 1e-12);
                    }
                }
            }
        }
    }

    #[test]
    fn a_ring_goes_the_shorter_way() {
        let space = Space::new(Shape::Ring { stops: 10 }, 1.0);
        assert!((space.distance(1, 9) - 2.0).abs() < 1e-12);
        assert!((space.diameter() - 5.0).abs() < 1e-12);
    }
}
