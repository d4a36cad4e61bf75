//! The best arrangement of the items in one given space: a guess by scaling, cells by
//! assignment, then local search. Which space is right is decided elsewhere.

use super::fit::{Effort, Fit};
use super::guesses::guesses;
use super::means::Means;
use super::observations::Observations;
use super::search::{Arrangement, Dense};
use super::space::Space;
use super::unfold;

/// Sweeps over all moves before a descent is given up; ten are many.
const MOST_SWEEPS: usize = 30;

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
