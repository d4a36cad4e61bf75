//! Does measuring pairs in parallel give what measuring them alone gives?
//!
//! Some pairs of the widest round are measured together with all others and alone, by turns, and
//! the two series are compared. Disjoint pairs share no core and no line, but they share links,
//! caches and power, and on some machines that shows. Decides nothing but yes or no.

use isochrone_stats::{mann_whitney_u, median};
use isochrone_units::CoreId;

use super::plan::{Exchange, TransferPlan, WARM_REPEATS};
use super::scene::{Scene, Stage};
use super::series::means_ns;
use crate::target::TargetError;

/// Pairs that are measured alone too.
const PAIRS: usize = 4;

/// Measurements of each kind: with 8 against 8 the rank test can reach p = 0.0002.
const TURNS: usize = 8;

/// Chance, over all pairs, of crying wolf.
const LEVEL: f64 = 0.01;

/// A shift below this share is no difference: it is what the cells themselves resolve.
const RESOLUTION: f64 = 0.01;

/// One pair, together and alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairCheck {
    /// Holds the line.
    pub owner: CoreId,
    /// Asks for it.
    pub asker: CoreId,
    /// Nanoseconds when all pairs of the round run.
    pub together_ns: f64,
    /// Nanoseconds when it runs alone.
    pub alone_ns: f64,
    /// Chance of such a difference if there is none (Mann-Whitney).
    pub p: f64,
}

impl PairCheck {
    /// Whether the two differ, one of `pairs` tests.
    fn differs(&self, pairs: f64) -> bool {
        let shift = (self.together_ns / self.alone_ns - 1.0).abs();
        self.p < LEVEL / pairs && shift > RESOLUTION
    }
}

/// What the check found.
#[derive(Clone, Debug, PartialEq)]
pub struct Agreement {
    /// The pairs compared; empty where no two pairs can run together.
    pub checks: Vec<PairCheck>,
    /// Whether parallel may stand for serial.
    pub agrees: bool,
}

impl Agreement {
    /// What is true where every round holds one pair.
    #[must_use]
    pub const fn trivial() -> Self {
        Self { checks: Vec::new(), agrees: true }
    }

    /// In one sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let shift = |c: &PairCheck| (c.together_ns / c.alone_ns - 1.0) * 100.0;
        let worst = self.checks.iter().max_by(|a, b| shift(a).abs().total_cmp(&shift(b).abs()));
        let Some(worst) = worst else {
            return "no two pairs were measured together".to_owned();
        };
        let (verdict, then) = if self.agrees {
            ("agree", "")
        } else {
            ("differ", ", so all pairs were measured one at a time")
        };
        format!(
            "parallel and serial {verdict} on {} pairs (largest shift {:+.1} %, {} -> {}){then}",
            self.checks.len(),
            shift(worst),
            worst.owner,
            worst.asker,
        )
    }
}

/// Compares some pairs of the widest round, together and alone.
///
/// # Errors
/// What the stage says, and [`TargetError::Stopped`].
pub fn check(
    stage: &mut dyn Stage,
    plan: &TransferPlan,
    stop: &mut dyn FnMut() -> bool,
) -> Result<Agreement, TargetError> {
    let widest = plan.rounds.iter().flatten().max_by_key(|leg| leg.len());
    let Some(leg) = widest.filter(|leg| leg.len() > 1) else {
        return Ok(Agreement::trivial());
    };
    let step = leg.len().div_ceil(PAIRS);
    let chosen: Vec<usize> = (0..leg.len()).step_by(step).collect();
    let mut together = vec![Vec::new(); chosen.len()];
    let mut alone = vec![Vec::new(); chosen.len()];
    for turn in 0..TURNS {
        // ABBA, so that a slow drift touches both alike.
        for half in [turn % 2, 1 - turn % 2] {
            if stop() {
                return Err(TargetError::Stopped);
            }
            if half == 0 {
                let medians = medians_ns(stage, plan, leg)?;
                for (series, &pair) in together.iter_mut().zip(&chosen) {
                    series.push(medians[pair]);
                }
            } else {
                for (series, &pair) in alone.iter_mut().zip(&chosen) {
                    if stop() {
                        return Err(TargetError::Stopped);
                    }
                    series.extend(medians_ns(stage, plan, &leg[pair..=pair])?);
                }
            }
        }
    }
    let checks: Vec<PairCheck> = chosen
        .iter()
        .zip(together.iter().zip(&alone))
        .filter_map(|(&pair, (together, alone))| compare(&leg[pair], together, alone))
        .collect();
    let pairs: f64 = checks.iter().map(|_| 1.0).sum();
    let agrees = !checks.iter().any(|check| check.differs(pairs));
    Ok(Agreement { checks, agrees })
}

fn compare(exchange: &Exchange, together: &[f64], alone: &[f64]) -> Option<PairCheck> {
    Some(PairCheck {
        owner: exchange.owner,
        asker: exchange.asker,
        together_ns: median(together)?,
        alone_ns: median(alone)?,
        p: mann_whitney_u(together, alone)?.p,
    })
}

/// Plays exchanges at once; the median over lines of each.
fn medians_ns(
    stage: &mut dyn Stage,
    plan: &TransferPlan,
    exchanges: &[Exchange],
) -> Result<Vec<f64>, TargetError> {
    let scenes: Vec<Scene> = exchanges.iter().map(|exchange| plan.scene(exchange)).collect();
    let warm = WARM_REPEATS;
    let played = stage.play(&scenes, plan.options.repeats + warm)?;
    let clock = stage.clock();
    let divisor = plan.options.kind.divisor();
    Ok(played
        .iter()
        .map(|parts| {
            let means = means_ns(&parts[0], &clock, warm as usize, divisor);
            means.and_then(|means| median(&means)).unwrap_or(f64::NAN)
        })
        .collect())
}
