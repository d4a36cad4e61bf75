//! Arithmetic for a page, so that eight cores with separated tables take 38 % longer (Table I).

use isochrone_tier::simulated::Stuck;

use super::cells::{Mode, Smt, one};
use super::machine::Card;
use super::plan::Plan;
use super::published::PUBLISHED;

const CORES: u16 = 8;
/// A first guess: section IV-B's fault over Table I's share.
const GUESS: f64 = 45_000.0 / 0.38;
/// Each step makes the error some ten times smaller.
const STEPS: u32 = 4;

pub(super) fn compute(plan: &Plan, card: &Card) -> Result<f64, Stuck> {
    let cell = PUBLISHED.tables[0].cells.iter().find(|(cores, _)| *cores == CORES);
    let wanted = cell.map_or(0.38, |(_, percent)| percent / 100.0);
    let mut compute = GUESS;
    for _ in 0..STEPS {
        let base = one(plan, card, (Mode::InMemory, Smt::Off, CORES), compute)?.outcome.sweep;
        let with = one(plan, card, (Mode::Pspt, Smt::Off, CORES), compute)?.outcome.sweep;
        // What a page costs beside stays nearly the same, whatever the arithmetic.
        compute *= (with / base - 1.0) / wanted;
    }
    Ok(compute)
}
