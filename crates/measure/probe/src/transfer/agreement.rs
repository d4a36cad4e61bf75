//! Does measuring pairs in parallel give what measuring them alone gives?
//!
//! Some pairs of the widest round are measured together with all others and alone, by turns, and
//! the two series are compared. Disjoint pairs share no core and no line, but they share links,
//! caches and power, and on some machines that shows. Decides nothing but yes or no.

use isochrone_stats::median;
use isochrone_units::CoreId;

use super::plan::{Exchange, TransferPlan, WARM_REPEATS};
use super::scene::{Samples, Scene, Stage};
use super::series::means_ns;
use crate::shift::{Shift, TURNS};
use crate::target::TargetError;

/// Pairs that are measured alone too.
const PAIRS: usize = 4;

/// The fewest that can tell: with 6 against 6 it can reach 0.0022, below the level of one of four pairs.
const TURNS_MIN: usize = 6;

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
        Shift { together: self.together_ns, alone: self.alone_ns, p: self.p }.differs(pairs)
    }
}

/// What the check found.
#[derive(Clone, Debug, PartialEq)]
pub struct Agreement {
    /// The pairs compared; empty where no two pairs can run together.
    pub checks: Vec<PairCheck>,
    /// Whether parallel may stand for serial.
    pub agrees: bool,
    /// Why it was not tried, where there is something to try.
    pub untried: Option<Untried>,
}

/// Why parallel and serial were not compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untried {
    /// There was no time.
    Hurried,
    /// Pairs that are measured together take too long.
    TooLong,
    /// The system refused some of the pairs.
    Refused,
}

impl Agreement {
    /// What is true where every round holds one pair.
    #[must_use]
    pub const fn trivial() -> Self {
        Self { checks: Vec::new(), agrees: true, untried: None }
    }

    /// What is taken to be true where it was not tried.
    #[must_use]
    pub const fn untried(why: Untried) -> Self {
        Self { checks: Vec::new(), agrees: true, untried: Some(why) }
    }

    /// In one sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let shift = |c: &PairCheck| (c.together_ns / c.alone_ns - 1.0) * 100.0;
        let worst = self.checks.iter().max_by(|a, b| shift(a).abs().total_cmp(&shift(b).abs()));
        let Some(worst) = worst else {
            let why = match self.untried {
                Some(Untried::TooLong) => "pairs that are measured together take too long",
                Some(Untried::Hurried) => "there was no time to measure pairs alone as well",
                Some(Untried::Refused) => {
                    "some pairs were refused, so that none were measured alone as well"
                }
                None => "no two pairs were measured together",
            };
            return why.to_owned();
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

/// Compares some pairs of the widest round, together and alone. `ends` is told the time before all that cores play;
/// once it says yes, what was measured until then decides, if it is enough to.
///
/// # Errors
/// What the stage says.
pub fn check(
    stage: &mut dyn Stage,
    plan: &TransferPlan,
    ends: &mut dyn FnMut(f64) -> bool,
) -> Result<Agreement, TargetError> {
    let widest = plan.rounds.iter().flatten().max_by_key(|leg| leg.len());
    let Some(leg) = widest.filter(|leg| leg.len() > 1) else {
        return Ok(Agreement::trivial());
    };
    let step = leg.len().div_ceil(PAIRS);
    let chosen: Vec<usize> = (0..leg.len()).step_by(step).collect();
    let mut together = vec![Vec::new(); chosen.len()];
    let mut alone = vec![Vec::new(); chosen.len()];
    'turns: for turn in 0..TURNS {
        // ABBA, so that a slow drift touches both alike.
        for half in [turn % 2, 1 - turn % 2] {
            if ends(stage.seconds()) {
                break 'turns;
            }
            if half == 0 {
                let Some(medians) = medians_ns(stage, plan, leg, ends)? else { break 'turns };
                for (series, &pair) in together.iter_mut().zip(&chosen) {
                    series.push(medians[pair]);
                }
            } else {
                for (series, &pair) in alone.iter_mut().zip(&chosen) {
                    if ends(stage.seconds()) {
                        break 'turns;
                    }
                    let Some(medians) = medians_ns(stage, plan, &leg[pair..=pair], ends)? else {
                        break 'turns;
                    };
                    series.extend(medians);
                }
            }
        }
    }
    if together.iter().chain(&alone).any(|series| series.len() < TURNS_MIN) {
        return Ok(Agreement::untried(Untried::Hurried));
    }
    let checks: Vec<PairCheck> = chosen
        .iter()
        .zip(together.iter().zip(&alone))
        .filter_map(|(&pair, (together, alone))| compare(&leg[pair], together, alone))
        .collect();
    let pairs: f64 = checks.iter().map(|_| 1.0).sum();
    let agrees = !checks.iter().any(|check| check.differs(pairs));
    Ok(Agreement { checks, agrees, ..Agreement::trivial() })
}

fn compare(exchange: &Exchange, together: &[f64], alone: &[f64]) -> Option<PairCheck> {
    let Shift { together: together_ns, alone: alone_ns, p } = Shift::of(together, alone)?;
    Some(PairCheck { owner: exchange.owner, asker: exchange.asker, together_ns, alone_ns, p })
}

/// Plays exchanges at once; the median over lines of each. `None` where that was stopped.
fn medians_ns(
    stage: &mut dyn Stage,
    plan: &TransferPlan,
    exchanges: &[Exchange],
    ends: &mut dyn FnMut(f64) -> bool,
) -> Result<Option<Vec<f64>>, TargetError> {
    let scenes: Vec<Scene> = exchanges.iter().map(|exchange| plan.scene(exchange)).collect();
    let warm = WARM_REPEATS;
    let played = match stage.play_until(&scenes, plan.options.repeats + warm, ends) {
        Err(TargetError::Stopped) => return Ok(None),
        played => played?,
    };
    let clock = stage.clock();
    let divisor = plan.options.kind.divisor();
    let one = |parts: &Vec<Samples>| {
        let means = means_ns(&parts[0], &clock, warm as usize, divisor);
        means.and_then(|means| median(&means)).unwrap_or(f64::NAN)
    };
    Ok(Some(played.iter().map(one).collect()))
}
