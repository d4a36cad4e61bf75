//! Whether pairs that play at once take less time than in turns, and not so much that there is none for other rounds.
//!
//! They do not where fewer cores run than are seen: under a limit on processor time, or on an emulated machine. Each
//! handover then waits until the system lets the other core run, the longer the more cores wait at once, and a round
//! of many pairs may take longer than all the time that there is. Where a pair alone is quick nothing is tried.

use super::effort::{Effort, with_effort, without_rounds};
use super::plan::{Exchange, TransferPlan};
use super::runner::{Ending, Runner};
use super::scene::Stage;
use crate::target::TargetError;

/// Of the time that is left at most, what a leg may take in turns without being tried, and what a play may take at all:
/// the reference alone is played more often.
const SHARE: f64 = 0.25;
/// Of the time in turns, what pairs at once may take.
const OF_TURNS: f64 = 0.75;
/// The shortest of so many plays counts.
const PLAYS: usize = 2;

/// Whether the pairs of the widest leg play at once in vain. They are played with the least effort, twice as many at a
/// time, as long as that takes a part of the time that is left.
pub(super) fn is_in_vain(
    stage: &mut dyn Stage,
    plan: &TransferPlan,
    ending: &mut Ending<'_>,
) -> Result<bool, TargetError> {
    let widest = plan.rounds.iter().flatten().max_by_key(|leg| leg.len());
    let Some(leg) = widest.filter(|leg| leg.len() > 1) else { return Ok(false) };
    let [.., little] = Effort::all(&plan.options);
    let bare = with_effort(&without_rounds(plan), little);
    let Some(alone_s) = shortest_s(stage, &bare, &leg[..1], ending)? else { return Ok(false) };
    let now_s = stage.seconds();
    if alone_s * leg.len() as f64 <= SHARE * ending.left_s(now_s) {
        return Ok(false);
    }
    let enough_s = SHARE * ending.most_left_s(now_s);
    let mut width = 1;
    while width < leg.len() {
        let (before, now) = (width, (2 * width).min(leg.len()));
        let Some(seconds) = shortest_s(stage, &bare, &leg[..now], ending)? else {
            // Either one of those that came is refused whatever plays beside it, or there are too many.
            return Ok(shortest_s(stage, &bare, &leg[before..now], ending)?.is_some());
        };
        if seconds > OF_TURNS * alone_s * now as f64 || seconds > enough_s {
            return Ok(true);
        }
        width = now;
    }
    Ok(false)
}

/// Seconds of the quicker of two plays; `None` where the system refuses it.
fn shortest_s(
    stage: &mut dyn Stage,
    plan: &TransferPlan,
    pairs: &[Exchange],
    ending: &mut Ending<'_>,
) -> Result<Option<f64>, TargetError> {
    let mut shortest_s = f64::INFINITY;
    for _ in 0..PLAYS {
        let before_s = stage.seconds();
        match Runner::new(stage, plan, ending).measure(pairs) {
            Err(TargetError::System { .. }) => return Ok(None),
            measured => measured?,
        };
        shortest_s = shortest_s.min(stage.seconds() - before_s);
    }
    Ok(Some(shortest_s))
}
