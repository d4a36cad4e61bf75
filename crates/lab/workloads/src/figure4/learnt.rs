//! What was learnt of a memory, beside an oracle: nodes placed on near lines by somebody who
//! measured with noise, by somebody who knows the truth, and on any lines.
//!
//! The oracle places as the allocator does, each core nearest lines first. That need not be the
//! best that cores which share lines could do together, so a part of its gain may exceed 1.

use isochrone_alloc::Mode;
use isochrone_machine::Machine;
use isochrone_stats::{Interval, bootstrap_median_ci, derive_seed, mean};

use super::{
    Believes, CoreRun, Costs, Database, Figure4Error, First, Knowledge, Learn, Plan, Recorded,
    Scene, SearchPlan, Stage,
};
use crate::at_once::all_at_once;
use crate::number::real;

/// The seed of the second oblivious arm, derived from the run's.
const AGAIN: u64 = 71;
/// The seed of intervals, derived from the plan's.
const RESAMPLES_SEED: u64 = 72;
/// Resamples behind an interval, and its confidence.
const RESAMPLES: usize = 2000;
const CONFIDENCE: f64 = 0.95;

/// How nodes are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arm {
    /// On any lines.
    Oblivious,
    /// The same with another seed: the control.
    Again,
    /// On lines that are near by what was learnt.
    Learnt,
    /// By the codes that were learnt, but with each core's true base: what is lost by codes.
    LearntCodes,
    /// On lines that are near.
    Oracle,
}

impl Arm {
    /// All of them, as they stand in [`Arms`].
    pub const ALL: [Self; 5] =
        [Self::Oblivious, Self::Again, Self::Learnt, Self::LearntCodes, Self::Oracle];
}

/// One run in all arms.
#[derive(Clone, Debug, PartialEq)]
pub struct Arms([Vec<CoreRun>; 5]);

/// What is compared of arms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Nodes explored in unit time, over the oblivious arm's, minus 1: Figure 4's gain.
    Speed,
    /// Cycles of all cores that are saved, as a part of the oblivious arm's.
    Time,
    /// Share of nodes on lines that are truly near, minus the oblivious arm's.
    NearShare,
}

impl Arms {
    /// What each core did in an arm.
    #[must_use]
    pub fn of(&self, arm: Arm) -> &[CoreRun] {
        &self.0[arm as usize]
    }

    /// What an arm gains over the oblivious one.
    #[must_use]
    pub fn gain(&self, measure: Measure, arm: Arm) -> f64 {
        let speed = |arm| {
            let runs = self.of(arm).iter();
            runs.map(|run| real(run.expansions) / run.cycles).sum::<f64>()
        };
        match measure {
            Measure::Speed => speed(arm) / speed(Arm::Oblivious) - 1.0,
            Measure::Time => 1.0 - self.time(arm),
            Measure::NearShare => self.near_share(arm) - self.near_share(Arm::Oblivious),
        }
    }

    /// Cycles of all cores over those of the oblivious arm, for the same work.
    #[must_use]
    pub fn time(&self, arm: Arm) -> f64 {
        let cycles = |arm| self.of(arm).iter().map(|run| run.cycles).sum::<f64>();
        cycles(arm) / cycles(Arm::Oblivious)
    }

    /// Share of nodes on lines that are truly near, the mean over cores.
    #[must_use]
    pub fn near_share(&self, arm: Arm) -> f64 {
        let shares: Vec<f64> = self.of(arm).iter().map(|run| run.near_share).collect();
        mean(&shares).unwrap_or(f64::NAN)
    }
}

/// One number of cores.
#[derive(Clone, Debug, PartialEq)]
pub struct Beside {
    /// Cores that searched.
    pub cores: u16,
    /// One entry a seed.
    pub runs: Vec<Arms>,
    seed: u64,
}

impl Beside {
    /// The median over seeds of what one run says, with its interval.
    #[must_use]
    pub fn over_runs(&self, of: impl Fn(&Arms) -> f64) -> Option<Interval> {
        let all: Vec<f64> = self.runs.iter().map(of).collect();
        let seed = derive_seed(self.seed, RESAMPLES_SEED);
        bootstrap_median_ci(&all, RESAMPLES, CONFIDENCE, seed)
    }

    /// The part of the oracle's gain that an arm has. `None` where the oracle gains nothing
    /// beyond the control: there is no part of nothing.
    #[must_use]
    pub fn of_oracle(&self, measure: Measure, arm: Arm) -> Option<Interval> {
        let gain = |arm| self.over_runs(|run| run.gain(measure, arm));
        let gains = gain(Arm::Oracle)?.lo > gain(Arm::Again)?.hi.max(0.0);
        let part = |run: &Arms| run.gain(measure, arm) / run.gain(measure, Arm::Oracle);
        gains.then(|| self.over_runs(part)).flatten()
    }
}

/// One shape of A*.
#[derive(Clone, Debug, PartialEq)]
pub struct BesideCurve {
    /// The shape and its extent.
    pub search: SearchPlan,
    /// By number of cores.
    pub points: Vec<Beside>,
}

/// All of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Learning {
    /// What was learnt, one entry a seed.
    pub knowledge: Vec<Knowledge>,
    /// One curve a shape.
    pub curves: Vec<BesideCurve>,
}

/// Runs the plan's searches in all arms; what `learn` says is believed by one of them.
///
/// # Errors
/// As for [`super::figure4`].
pub fn learnt(
    machine: &Machine,
    plan: &Plan,
    recorded: &Recorded,
    learn: Learn<'_>,
) -> Result<Learning, Figure4Error> {
    let lacks = Figure4Error::Machine { name: machine.name.clone(), what: "costs of memory" };
    let stage = Stage::new(machine, &Costs::of(machine).ok_or(lacks)?)?;
    let beside = |cores: &u16| Beside { cores: *cores, runs: Vec::new(), seed: plan.seed };
    let mut curves: Vec<BesideCurve> = recorded
        .curves
        .iter()
        .map(|(search, _)| BesideCurve {
            search: *search,
            points: plan.learnt_at.iter().map(beside).collect(),
        })
        .collect();
    let mut knowledge = Vec::new();
    for repeat in 0..plan.repeats {
        let scene = stage.scene(plan, repeat, learn)?;
        knowledge.push(scene.database.knowledge(&scene.map, plan.heap_pages as usize));
        for (shape, curve) in curves.iter_mut().enumerate() {
            for point in &mut curve.points {
                let first = recorded.first(shape, point.cores);
                point.runs.push(arms(&stage, plan, &scene, first)?);
            }
        }
    }
    Ok(Learning { knowledge, curves })
}

fn arms(stage: &Stage, plan: &Plan, scene: &Scene, first: First<'_>) -> Result<Arms, Figure4Error> {
    let Scene { map, database, seed } = scene;
    let truth = &Database::of_map(map);
    let codes = &database.with_bases_of(map);
    let again = derive_seed(*seed, AGAIN);
    let arm = |arm: &Arm| {
        let of = |database, mode, seed| Believes { database, mode, seed };
        let believes = match arm {
            Arm::Oblivious => of(truth, Mode::Oblivious, *seed),
            Arm::Again => of(truth, Mode::Oblivious, again),
            Arm::Learnt => of(database, Mode::Aware, *seed),
            Arm::LearntCodes => of(codes, Mode::Aware, *seed),
            Arm::Oracle => of(truth, Mode::Aware, *seed),
        };
        stage.arm(plan, map, believes, first)
    };
    // Where all codes are right, one of them is the oracle, and the figure has replayed it.
    let mut all = all_at_once(&Arm::ALL, &arm).into_iter();
    let mut next = || all.next().unwrap_or_else(|| Ok(Vec::new()));
    Ok(Arms([next()?, next()?, next()?, next()?, next()?]))
}
