//! Cores that are verified at the same time, each by a thread of its own with its own part of the reference pages.
//!
//! Whether that tells what one after the other tells is tried, and is not assumed: some cores that were learnt time
//! their lines together and alone, by turns. If latencies or patterns shift, cores are verified one after the other.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use isochrone_stats::derive_seed;
use isochrone_units::CoreId;

use super::base::References;
use super::explained::{Explained, Question};
use super::forks::on_forks;
use super::level::{LevelRun, SCORES_LEAVE};
use super::verify::{Verdict, Verifier};
use crate::shift::{Shift, TURNS};
use crate::target::TargetError;

/// Cores at the same time, at most.
const MOST: usize = 8;
/// Cores without which it is not tried: the trial takes as long as some twenty.
const WORTH_TRYING: usize = 32;
/// Reference pages that each needs for itself.
const PAGES_EACH: usize = 32;
/// Of the cores of the trial, those that are timed alone too.
const ALONE: usize = 4;

/// What was found of cores at the same time, by their numbers. Those that nobody came to are not in it.
pub(super) type Found = BTreeMap<u16, Result<Verdict, TargetError>>;

/// A core's series in the trial.
#[derive(Debug, Default)]
struct Series {
    together: Vec<Explained>,
    alone: Vec<Explained>,
}

impl LevelRun<'_> {
    /// Verifies cores at the same time, beginning with the first ones; nothing where they have to be verified one after
    /// the other.
    pub(super) fn abreast(&mut self, cores: &[CoreId]) -> Result<Found, TargetError> {
        let width = match self.width {
            Some(width) => width,
            None if cores.len() < WORTH_TRYING || self.target.fork().is_none() => 1,
            None => self.try_abreast()?,
        };
        self.width = Some(width);
        if width < 2 {
            return Ok(Found::new());
        }
        self.watch.step(&format!("{}: verifying {} cores", self.level, cores.len()));
        let parts = self.references.dealt(width, PAGES_EACH);
        let bases: Vec<Vec<Vec<f64>>> = self.bases.iter().map(|base| base.1.clone()).collect();
        let (level, learnt, seed) = (self.level, &self.learnt, self.verifying_seed());
        let verifier = |references| Verifier { level, learnt, references, bases: &bases, seed };
        let verifiers: Vec<Verifier<'_>> = parts.iter().map(verifier).collect();
        let queue = AtomicUsize::new(0);
        let keep_going = || self.may_go_on(SCORES_LEAVE);
        let all = on_forks(&*self.target, parts.len(), &keep_going, &|number, fork, going| {
            let mut found = Found::new();
            while going.load(Ordering::Relaxed) {
                // Each number is given once, and nothing else is handed over by it.
                let Some(core) = cores.get(queue.fetch_add(1, Ordering::Relaxed)) else { break };
                found.insert(core.0, verifiers[number].verdict(fork, *core));
            }
            found
        });
        Ok(all.into_iter().flat_map(|all| all.done).flatten().collect())
    }

    /// How many cores may be verified at the same time; 1 where they would disturb each other.
    fn try_abreast(&mut self) -> Result<usize, TargetError> {
        let current = |core: &CoreId| {
            let place = self.cores.iter().position(|other| other == core)?;
            Some((*core, usize::from(self.current[place]?)))
        };
        let mut tried: Vec<(CoreId, usize)> = self.learners.iter().filter_map(current).collect();
        tried.truncate(MOST);
        let parts = self.references.dealt(tried.len(), PAGES_EACH);
        tried.truncate(parts.len());
        if tried.len() < 2 {
            return Ok(1);
        }
        self.watch.step(&format!("{}: whether cores disturb each other", self.level));
        let Some(series) = self.series(&tried, &parts)? else { return Ok(1) };
        let shifts: Vec<Shift> = series.iter().flat_map(shifts).collect();
        let tests = shifts.len().max(1) as f64;
        let Some(worst) = shifts.iter().filter(|shift| shift.differs(tests)).max_by(larger) else {
            return Ok(tried.len());
        };
        self.notes.push(format!(
            "{} latency: verifying {} cores at the same time shifts what they see by {:+.1} %; they were verified one \
             after the other",
            self.level,
            tried.len(),
            100.0 * worst.share(),
        ));
        Ok(1)
    }

    /// Times lines of these cores together and alone; `None` where it was stopped.
    fn series(
        &mut self,
        tried: &[(CoreId, usize)],
        parts: &[References],
    ) -> Result<Option<Vec<Series>>, TargetError> {
        let parts: Vec<References> = parts.iter().map(References::fair).collect();
        let bases: Vec<Vec<Vec<f64>>> =
            tried.iter().map(|one| self.bases[one.1].1.clone()).collect();
        let (level, learnt) = (self.level, self.learnt.clone());
        let question = |number: usize, turn: usize| Question {
            core: tried[number].0,
            level,
            references: &parts[number],
            learnt: &learnt,
            base: &bases[number],
            seed: derive_seed(self.plan.seed, (12_000 + turn * MOST + number) as u64),
        };
        let mut series: Vec<Series> = tried.iter().map(|_| Series::default()).collect();
        let step = tried.len().div_ceil(ALONE);
        for turn in 0..TURNS {
            // ABBA, so that a slow drift touches both alike.
            for half in [turn % 2, 1 - turn % 2] {
                if !self.may_go_on(SCORES_LEAVE) {
                    return Ok(None);
                }
                if half == 1 {
                    for number in (0..tried.len()).step_by(step) {
                        let found = question(number, TURNS + turn).ask_for(self.target, 0.0)?;
                        series[number].alone.push(found);
                    }
                    continue;
                }
                let all = on_forks(&*self.target, tried.len(), &|| true, &|number, fork, _| {
                    question(number, turn).ask_for(fork, 0.0)
                });
                let Some(all) = all else { return Ok(None) };
                for (series, found) in series.iter_mut().zip(all.done) {
                    series.together.push(found?);
                }
            }
        }
        Ok(Some(series))
    }
}

/// How mean latency and the share that a base explains differ; nothing of who was not timed alone.
fn shifts(series: &Series) -> Vec<Shift> {
    let quantities: [fn(&Explained) -> f64; 2] = [|found| found.mean_cycles, |found| found.share];
    let shift = |of: fn(&Explained) -> f64| {
        let values = |found: &[Explained]| found.iter().map(of).collect::<Vec<f64>>();
        Shift::of(&values(&series.together), &values(&series.alone))
    };
    quantities.into_iter().filter_map(shift).collect()
}

fn larger(a: &&Shift, b: &&Shift) -> std::cmp::Ordering {
    a.share().abs().total_cmp(&b.share().abs())
}
