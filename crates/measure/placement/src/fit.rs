//! Items in a space, with the line from distance to latency: what every arranging ends with. It looks for nothing.

use super::line::{self, Sums};
use super::observations::{Link, Observations};
use super::space::Space;

/// How much work an arrangement is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effort {
    /// One guess and a few random improvements: for the many permuted data sets of a test, and
    /// for the real data that they are compared with.
    Glance,
    /// Several guesses, improved until nothing gains.
    Careful,
    /// Careful, then annealed.
    Full,
}

/// Items in a space, with the line from distance to latency.
#[derive(Clone, Debug)]
pub(super) struct Fit {
    /// The ring or grid that items lie in.
    pub(super) space: Space,
    /// The cell of each item.
    pub(super) cells: Vec<usize>,
    /// The cell of each column, where columns were measured.
    pub(super) column_cells: Vec<usize>,
    /// Latency at distance 0: one, or one for each column.
    pub(super) bases: Vec<f64>,
    /// Latency of a hop (left to right on a grid).
    pub(super) hop: f64,
    /// Sum of squared residuals.
    pub(super) sse: f64,
    /// Share of the variance explained.
    pub(super) r2: f64,
}

impl Fit {
    /// Distance along a link.
    pub(super) fn distance(&self, link: &Link) -> f64 {
        let far = self.column_cells.get(link.b).copied();
        self.space.distance(self.cells[link.a], far.unwrap_or_else(|| self.cells[link.b]))
    }

    /// The fitted latency of a link.
    pub(super) fn predict(&self, link: &Link) -> f64 {
        let base = if self.bases.len() == 1 { self.bases[0] } else { self.bases[link.b] };
        base + self.hop * self.distance(link)
    }

    /// Items joined by links, from their cells: fits the line.
    pub(super) fn of_pairs(observations: &Observations, space: &Space, cells: Vec<usize>) -> Self {
        let mut sums = Sums::default();
        for link in &observations.links {
            sums.add(space.distance(cells[link.a], cells[link.b]), link.latency);
        }
        let (base, hop) = sums.line();
        let (column_cells, bases) = (Vec::new(), vec![base]);
        Self { space: space.clone(), cells, column_cells, bases, hop, sse: 0.0, r2: 0.0 }
            .scored(observations)
    }

    /// Adds to each cell's cost what an item there is wrong by, squared: it is `above` the latency at distance 0 from
    /// what lies in cell `from`.
    pub(super) fn add_costs(&self, costs: &mut [f64], from: usize, above: f64) {
        for (cost, distance) in costs.iter_mut().zip(self.space.from(from)) {
            let residual = above - self.hop * distance;
            *cost += residual * residual;
        }
    }

    /// Fills in the sums of squares. A fit by which the far is faster explains nothing.
    pub(super) fn scored(mut self, observations: &Observations) -> Self {
        let latencies = observations.latencies();
        let predicted: Vec<f64> = observations.links.iter().map(|l| self.predict(l)).collect();
        self.r2 = if self.hop > 0.0 { line::explained(&latencies, &predicted) } else { 0.0 };
        self.sse = (1.0 - self.r2) * line::scatter(&latencies);
        self
    }
}
