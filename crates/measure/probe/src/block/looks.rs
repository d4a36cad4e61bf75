//! Looks at the training pages, from which form and codes are learnt: one core after the other, or several at the same
//! time, each of which is at another part of the pages.
//!
//! Whether that tells what one after the other tells is tried before anything is learnt, and is not assumed: some cores
//! time pages of their own together and alone, by turns. If latencies shift, or how far lines differ, or if nothing is
//! won, cores look one after the other. Held-out pages are timed in the same way.

use std::sync::atomic::{AtomicBool, Ordering};

use isochrone_stats::derive_seed;
use isochrone_units::{CoreId, PageAddr};

use super::base::retry;
use super::forks::on_forks;
use super::in_step::Meeting;
use super::level::{ENOUGH_ROUNDS, LOOKS_LEAVE, LevelRun};
use super::plan::{BlockPlan, PAGES_PER_BLOCK};
use super::rounds::{Rounds, RoundsPlan, time_rounds, time_rounds_in_step};
use super::sampler::{Glance, glance};
use crate::shift::{Shift, TURNS};
use crate::target::{Target, TargetError};
use crate::watch::Watch;

/// Cores at the same time, at most.
const MOST: usize = 8;
/// Cores without which it is not tried: the trial takes as long as some 20 rounds of one core do, or as 80 of the
/// shortest, and a core looks for some 100.
const WORTH_TRYING: usize = 4;
/// Pages of a part, at least: so many lines are moved together before they are timed, and no two of one page may be
/// among them (`apart`).
const PAGES_EACH: usize = 16;
/// Of the cores of the trial, those that are timed alone too.
const ALONE: usize = 4;
/// How much sooner cores have to be done together: where the second-level cache is swept for every batch, small parts
/// cost as much as large ones.
const SOONER: f64 = 1.5;

/// A core's series in the trial.
#[derive(Debug, Default)]
struct Series {
    together: Vec<Glance>,
    alone: Vec<Glance>,
    /// Seconds of those together.
    took_s: Vec<f64>,
}

impl LevelRun<'_> {
    /// Looks from several cores at the same time, where they may. Returns those that still have to, alone.
    pub(super) fn look_abreast(&mut self, from: &[CoreId]) -> Result<Vec<CoreId>, TargetError> {
        let mut alone = Vec::new();
        self.try_looking_width(from)?;
        let width = self.abreast_on(self.training.len());
        let wanted = BlockPlan::rounds(self.plan.training_rounds, self.level);
        for cores in from.chunks(width) {
            let may = self.looks.is_empty() || self.may_go_on(LOOKS_LEAVE);
            if cores.len() < 2 || !may {
                alone.extend(cores);
                continue;
            }
            self.watch.step(&format!("{}: learning what {} cores see", self.level, cores.len()));
            let pages = self.training.clone();
            let frames = self.frames(&pages);
            let found = self.rounds_abreast(cores, &pages, wanted);
            let loads = found.iter().flatten().map(Rounds::loads).sum();
            let gone = self.replaced(cores[0], &frames, loads);
            if !gone.is_empty() {
                self.train_without(&gone);
                alone.extend(cores);
                continue;
            }
            for (core, rounds) in cores.iter().zip(found) {
                match rounds {
                    Some(rounds) => self.keep_look(*core, rounds),
                    // Alone it says what is wrong.
                    None => alone.push(*core),
                }
            }
        }
        Ok(alone)
    }

    /// Rounds over pages from these cores at the same time; nothing of a core that could not go on.
    pub(super) fn rounds_abreast(
        &mut self,
        cores: &[CoreId],
        pages: &[PageAddr],
        wanted: u32,
    ) -> Vec<Option<Rounds>> {
        let meeting = Meeting::of(cores.len());
        // One waits for the others, and all together have the time that they would have one after the other.
        let longer = cores.len() as f64;
        let plans: Vec<RoundsPlan> = cores
            .iter()
            .map(|core| self.rounds_plan(*core, wanted))
            .map(|plan| RoundsPlan { max_seconds: plan.max_seconds * longer, ..plan })
            .collect();
        let watch = &*self.watch;
        let work = |number: usize, fork: &mut dyn Target, going: &AtomicBool| {
            let step = meeting.step(number);
            let keep_going = || going.load(Ordering::Relaxed);
            time_rounds_in_step(fork, pages, &plans[number], &step, &keep_going)
        };
        let all = on_forks(&*self.target, cores.len(), &|| watch.keep_going(), &work);
        let Some(all) = all else { return cores.iter().map(|_| None).collect() };
        let found: Vec<Option<Rounds>> = all.done.into_iter().map(Result::ok).collect();
        for (core, rounds) in cores.iter().zip(&found) {
            rounds.iter().for_each(|rounds| self.note_changes(*core, rounds));
        }
        found
    }

    /// How many cores may time so many pages at the same time, as far as that was tried.
    pub(super) fn abreast_on(&self, pages: usize) -> usize {
        self.looking.unwrap_or(1).min(pages / PAGES_EACH).max(1)
    }

    /// Finds out how many cores may time whole pages at the same time, unless that is known; 1 where they would disturb
    /// each other.
    fn try_looking_width(&mut self, from: &[CoreId]) -> Result<(), TargetError> {
        let width = from.len().min(MOST).min(self.training.len() / PAGES_EACH);
        let forks = || self.target.fork().is_some();
        if self.looking.is_none() && from.len() >= WORTH_TRYING && width > 1 && forks() {
            self.looking = Some(self.try_looking(&from[..width])?);
        }
        Ok(())
    }

    /// Tries whether these cores can look at the same time: so many, or 1.
    fn try_looking(&mut self, tried: &[CoreId]) -> Result<usize, TargetError> {
        self.watch.step(&format!("{}: whether cores disturb each other", self.level));
        let (level, seed, pages) = (self.level, self.plan.seed, self.training.clone());
        let begun = self.target.seconds();
        let target = &mut *self.target;
        retry(|| glance(target, &pages, tried[0], level, derive_seed(seed, 13_000)))?;
        let whole_s = self.target.seconds() - begun;
        let Some(series) = self.glances(tried)? else { return Ok(1) };
        let took_s = series.iter().flat_map(|one| &one.took_s).copied().fold(0.0, f64::max);
        let shifts: Vec<Shift> = series.iter().flat_map(shifts).collect();
        let tests = shifts.len().max(1) as f64;
        let differs = shifts.iter().filter(|shift| shift.differs(tests));
        let worst = differs.max_by(|a, b| a.share().abs().total_cmp(&b.share().abs()));
        if let Some(worst) = worst {
            self.notes.push(format!(
                "{level} latency: timing whole pages from {} cores at the same time shifts what they see by {:+.1} %; \
                 they were learnt one after the other",
                tried.len(),
                100.0 * worst.share(),
            ));
            return Ok(1);
        }
        Ok(if SOONER * took_s < whole_s { tried.len() } else { 1 })
    }

    /// Glances of these cores at parts of the pages, together and alone; `None` where it was stopped.
    fn glances(&mut self, tried: &[CoreId]) -> Result<Option<Vec<Series>>, TargetError> {
        let meeting = Meeting::of(tried.len());
        let parts: Vec<Vec<PageAddr>> = (0..tried.len())
            .map(|number| self.training[meeting.part(number, self.training.len())].to_vec())
            .collect();
        let (level, seed) = (self.level, self.plan.seed);
        let look = |target: &mut dyn Target, number: usize, turn: usize| {
            let stream = 13_001 + turn * MOST + number;
            let seed = derive_seed(seed, stream as u64);
            retry(|| glance(target, &parts[number], tried[number], level, seed))
        };
        let mut series: Vec<Series> = tried.iter().map(|_| Series::default()).collect();
        let step = tried.len().div_ceil(ALONE);
        for turn in 0..TURNS {
            // ABBA, so that a slow drift touches both alike.
            for half in [turn % 2, 1 - turn % 2] {
                if !self.may_go_on(LOOKS_LEAVE) {
                    return Ok(None);
                }
                if half == 1 {
                    for number in (0..tried.len()).step_by(step) {
                        series[number].alone.push(look(self.target, number, TURNS + turn)?);
                    }
                    continue;
                }
                let all = on_forks(&*self.target, tried.len(), &|| true, &|number, fork, _| {
                    let begun = fork.seconds();
                    look(fork, number, turn).map(|found| (found, fork.seconds() - begun))
                });
                let Some(all) = all else { return Ok(None) };
                for (series, found) in series.iter_mut().zip(all.done) {
                    let (found, took_s) = found?;
                    series.together.push(found);
                    series.took_s.push(took_s);
                }
            }
        }
        Ok(Some(series))
    }

    /// Times the training pages from a core, in its current base, whichever that is.
    pub(super) fn look(&mut self, core: CoreId) -> Result<(), TargetError> {
        self.watch.step(&format!("{}: learning what {core} sees", self.level));
        let rounds = self.time_training(core)?;
        self.keep_look(core, rounds);
        Ok(())
    }

    fn keep_look(&mut self, core: CoreId, rounds: Rounds) {
        let stretches = rounds.stretches.into_iter().enumerate();
        let enough = stretches.filter(|(i, stretch)| *i == 0 || stretch.rounds >= ENOUGH_ROUNDS);
        let found = enough.map(|(_, stretch)| (core, stretch));
        // Of the looks that shapes are learnt from, one must be of a core that the others could not speak for.
        let place = if self.is_unlike(core) { 1.min(self.looks.len()) } else { self.looks.len() };
        self.looks.splice(place..place, found);
    }

    /// Whether a core is learnt since those that were to be learnt do not speak for it.
    fn is_unlike(&self, core: CoreId) -> bool {
        let planned = self.plan.learners(&self.cores);
        self.learners.contains(&core) && !planned.contains(&core)
    }

    fn time_training(&mut self, core: CoreId) -> Result<Rounds, TargetError> {
        let wanted = BlockPlan::rounds(self.plan.training_rounds, self.level);
        for _ in 0..3 {
            let frames = self.frames(&self.training.clone());
            let rounds = self.time(core, &self.training.clone(), wanted)?;
            let gone = self.replaced(core, &frames, rounds.loads());
            if gone.is_empty() {
                return Ok(rounds);
            }
            self.train_without(&gone);
        }
        self.time(core, &self.training.clone(), wanted)
    }

    /// Leaves pages out that have another frame: whole blocks, else a period of 256 lines would begin in the middle of
    /// one.
    fn train_without(&mut self, gone: &[PageAddr]) {
        let block = |page: &PageAddr| page.0 / PAGES_PER_BLOCK;
        self.training.retain(|page| gone.iter().all(|g| block(g) != block(page)));
    }

    /// Times pages from a core, alone.
    pub(super) fn time(
        &mut self,
        core: CoreId,
        pages: &[PageAddr],
        wanted: u32,
    ) -> Result<Rounds, TargetError> {
        let plan = self.rounds_plan(core, wanted);
        let watch: &dyn Watch = self.watch;
        let rounds = time_rounds(self.target, pages, &plan, &|| watch.keep_going())?;
        self.note_changes(core, &rounds);
        Ok(rounds)
    }

    fn rounds_plan(&self, core: CoreId, wanted: u32) -> RoundsPlan {
        let stream = u64::from(core.0) * 8 + self.level as u64 + self.drift.len() as u64 * 4096;
        RoundsPlan {
            core,
            level: self.level,
            rounds: wanted,
            max_rounds: wanted * 4,
            max_seconds: self.plan.max_seconds,
            seed: derive_seed(self.plan.seed, 100 + stream),
        }
    }
}

/// How mean latency and what lines differ by differ; nothing of who was not timed alone.
fn shifts(series: &Series) -> Vec<Shift> {
    let quantities: [fn(&Glance) -> f64; 2] = [|found| found.mean_cycles, |found| found.energy];
    let shift = |of: fn(&Glance) -> f64| {
        let values = |found: &[Glance]| found.iter().map(of).collect::<Vec<f64>>();
        Shift::of(&values(&series.together), &values(&series.alone))
    };
    quantities.into_iter().filter_map(shift).collect()
}
