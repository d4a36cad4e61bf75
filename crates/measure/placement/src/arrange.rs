//! The best arrangement of the items in one given space: a guess by scaling, cells by
//! assignment, then local search. Which space is right is decided elsewhere.

use super::assign::assign;
use super::fit::{Effort, Fit};
use super::guesses::guesses;
use super::means::Means;
use super::observations::Observations;
use super::search::{Arrangement, Dense};
use super::space::{Shape, Space};
use super::unfold;

/// Sweeps over all moves before a descent is given up; ten are many.
const MOST_SWEEPS: usize = 30;

/// The same for items that have found their cells by a sample: what is left are strays.
const SPREAD_SWEEPS: usize = 10;

/// Moves proposed in one annealing, at most: 50 ms.
const MOST_PROPOSALS: usize = 150_000;

/// A correlation that nothing can improve.
const EXACT: f64 = 1.0 - 1e-9;

/// Arranges the items in `space`. There must be a cell for each.
pub(super) fn arrange(
    observations: &Observations,
    space: &Space,
    effort: Effort,
    means: &mut Means<'_>,
) -> Fit {
    if observations.columns.is_some() {
        return unfold::arrange(observations, space, effort, means);
    }
    let dense = Dense::new(observations);
    let mut starts = guesses(observations, space, effort, means);
    starts.truncate(if effort == Effort::Glance { 1 } else { 2 });
    let items = observations.items;
    let improved = starts.into_iter().map(|cells| {
        let mut arrangement = Arrangement::new(space, &dense, cells);
        match effort {
            Effort::Glance => arrangement.nudge(20 * items, &mut means.rng),
            Effort::Careful | Effort::Full => arrangement.descend(MOST_SWEEPS, means),
        }
        arrangement
    });
    let mut best = improved.max_by(|a, b| a.score().total_cmp(&b.score()));
    if let Some(found) = best.as_mut().filter(|a| effort == Effort::Full && a.score() < EXACT) {
        found.anneal((25 * items * space.cells()).min(MOST_PROPOSALS), means);
        found.descend(MOST_SWEEPS, means);
    }
    let cells = best.map_or_else(|| (0..items).collect(), |found| found.cell_of);
    Fit::of_pairs(observations, space, cells)
}

/// The same fit for all items, of which those of `sample` were placed: each takes the cell that suits its latencies to
/// these best, then all are improved together.
pub(super) fn spread(
    observations: &Observations,
    sample: &[usize],
    fit: &Fit,
    means: &Means<'_>,
) -> Fit {
    if observations.columns.is_some() {
        return unfold::spread(observations, fit, means);
    }
    let (items, cells) = (observations.items, fit.space.cells());
    let mut placed = vec![None; items];
    sample.iter().zip(&fit.cells).for_each(|(&item, &cell)| placed[item] = Some(cell));
    let mut cost = vec![0.0; items * cells];
    for link in &observations.links {
        for (item, other) in [(link.a, link.b), (link.b, link.a)] {
            if let Some(from) = placed[other] {
                let row = &mut cost[item * cells..(item + 1) * cells];
                fit.add_costs(row, from, link.latency - fit.bases[0]);
            }
        }
    }
    let dense = Dense::new(observations);
    let mut all = Arrangement::new(&fit.space, &dense, assign(items, cells, &cost));
    all.settle(SPREAD_SWEEPS, means);
    Fit::of_pairs(observations, &fit.space, all.cell_of)
}

/// The same order around a ring without empty stops.
pub(super) fn closed(observations: &Observations, fit: &Fit, means: &Means<'_>) -> Fit {
    let mut order: Vec<usize> = (0..observations.items).collect();
    order.sort_by_key(|&item| fit.cells[item]);
    let mut cells = vec![0; order.len()];
    order.iter().enumerate().for_each(|(stop, &item)| cells[item] = stop);
    let space = Space::new(Shape::Ring { stops: order.len() }, 1.0);
    let dense = Dense::new(observations);
    let mut all = Arrangement::new(&space, &dense, cells);
    all.settle(SPREAD_SWEEPS, means);
    Fit::of_pairs(observations, &space, all.cell_of)
}
