//! Places cores and memory columns together from latencies between the two alone
//! (multidimensional unfolding, Coombs 1950). With the columns' cells known, the best cells for
//! the cores are an assignment problem, and the other way round; the two are solved by turns.

use super::assign::assign;
use super::fit::{Effort, Fit};
use super::guesses::guesses;
use super::line::Sums;
use super::means::Means;
use super::observations::Observations;
use super::space::Space;

/// Turns after which a start is given up; most settle in five.
const MOST_TURNS: usize = 25;

/// The same where a sample has told the columns' cells: what is left is small.
const SPREAD_TURNS: usize = 3;

/// Arranges cores and columns in `space`. Columns may share cells with cores and one another.
pub(super) fn arrange(
    observations: &Observations,
    space: &Space,
    effort: Effort,
    means: &mut Means<'_>,
) -> Fit {
    let stand_in = observations.profile_distances();
    let mut starts = guesses(&stand_in, space, effort, means);
    let (most_starts, most_turns) = match effort {
        Effort::Glance => (1, 1),
        Effort::Careful => (2, MOST_TURNS),
        Effort::Full => (starts.len(), MOST_TURNS),
    };
    starts.truncate(most_starts);
    let refined =
        starts.into_iter().map(|cells| by_turns(observations, space, cells, most_turns, means));
    let best = refined.min_by(|a, b| a.sse.total_cmp(&b.sse));
    best.unwrap_or_else(|| settle(observations, space, (0..observations.items).collect(), None))
}

/// The same fit for all cores, of which some were placed.
pub(super) fn spread(observations: &Observations, fit: &Fit, means: &Means<'_>) -> Fit {
    let cells = cores(observations, &fit.space, fit);
    by_turns(observations, &fit.space, cells, SPREAD_TURNS, means)
}

/// Moves columns and cores by turns until nothing gains.
fn by_turns(
    observations: &Observations,
    space: &Space,
    cells: Vec<usize>,
    turns: usize,
    means: &Means<'_>,
) -> Fit {
    let mut best = settle(observations, space, cells, None);
    for _ in 0..turns {
        if best.hop <= 0.0 || !means.keep_going() {
            return best;
        }
        let cells = cores(observations, space, &best);
        let next = settle(observations, space, cells, Some(best.hop));
        if next.sse >= best.sse * (1.0 - 1e-9) {
            return best;
        }
        best = next;
    }
    best
}

/// Places every column for given cores, then fits one base a column and a common hop. Without a
/// hop to go by, each column takes the cell whose distances correlate best.
fn settle(observations: &Observations, space: &Space, cells: Vec<usize>, hop: Option<f64>) -> Fit {
    let columns = observations.columns.unwrap_or(0);
    let mut seen: Vec<Vec<(usize, f64)>> = vec![Vec::new(); columns];
    for link in &observations.links {
        seen[link.b].push((cells[link.a], link.latency));
    }
    let column_cells: Vec<usize> = seen.iter().map(|from| column(space, from, hop)).collect();
    let mut each = vec![Sums::default(); columns];
    for link in &observations.links {
        each[link.b].add(space.distance(cells[link.a], column_cells[link.b]), link.latency);
    }
    let sxx: f64 = each.iter().map(|s| s.xx - s.x * s.x / s.n.max(1.0)).sum();
    let sxy: f64 = each.iter().map(|s| s.xy - s.x * s.y / s.n.max(1.0)).sum();
    let hop = if sxx > 1e-12 { sxy / sxx } else { 0.0 };
    let bases = each.iter().map(|s| (s.y - hop * s.x) / s.n.max(1.0)).collect();
    Fit { space: space.clone(), cells, column_cells, bases, hop, sse: 0.0, r2: 0.0 }
        .scored(observations)
}

/// The best cell for a column that is seen `from` these cells with these latencies.
fn column(space: &Space, from: &[(usize, f64)], hop: Option<f64>) -> usize {
    let cost = |cell: usize| {
        let distances = space.from(cell);
        let mut sums = Sums::default();
        match hop {
            None => {
                from.iter().for_each(|&(at, latency)| sums.add(distances[at], latency));
                -sums.correlation()
            }
            Some(hop) => {
                let (mut sum, mut squares) = (0.0, 0.0);
                for &(at, latency) in from {
                    let left = latency - hop * distances[at];
                    sum += left;
                    squares += left * left;
                }
                squares - sum * sum / (from.len() as f64).max(1.0)
            }
        }
    };
    let costs: Vec<f64> = (0..space.cells()).map(cost).collect();
    (0..costs.len()).min_by(|&a, &b| costs[a].total_cmp(&costs[b])).unwrap_or(0)
}

/// The best cells for the cores, columns, bases and hop as they stand.
fn cores(observations: &Observations, space: &Space, fit: &Fit) -> Vec<usize> {
    let cells = space.cells();
    let mut cost = vec![0.0; observations.items * cells];
    for link in &observations.links {
        let above = link.latency - fit.bases[link.b];
        let row = &mut cost[link.a * cells..(link.a + 1) * cells];
        fit.add_costs(row, fit.column_cells[link.b], above);
    }
    assign(observations.items, cells, &cost)
}
