//! One round over whole pages: draws the orders, times every line once, and cleans what came of it. It never judges
//! what a core sees.

use std::ops::Range;

use isochrone_decode::Window;
use isochrone_stats::{median, rng};
use isochrone_units::{CoreId, Cycles, LINES_PER_PAGE, Level, LineAddr, PageAddr};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::apart::batches;
use super::far::far_groups;
use super::in_step::Step;
use crate::target::{Target, TargetClock, TargetError};

/// One value a line, less the round's level.
pub(super) struct Round {
    pub(super) deviation: Vec<f64>,
    pub(super) level: f64,
}

/// Draws the orders and cleans the samples of one round.
pub(super) struct Sampler<'a> {
    clock: TargetClock,
    pages: &'a [PageAddr],
    /// Parts of the pages, in the order in which they are timed.
    parts: Vec<Range<usize>>,
    step: Option<&'a Step<'a>>,
    batch: Vec<LineAddr>,
    raw: Vec<Cycles>,
    rng: Xoshiro256PlusPlus,
}

impl<'a> Sampler<'a> {
    pub(super) fn new(clock: TargetClock, pages: &'a [PageAddr], seed: u64) -> Self {
        let all = 0..pages.len();
        Self {
            clock,
            pages,
            parts: std::iter::once(all).collect(),
            step: None,
            batch: Vec::new(),
            raw: Vec::new(),
            rng: rng(seed),
        }
    }

    /// Part after part of the pages, as its turn among others says.
    pub(super) fn in_step(self, step: &'a Step<'a>) -> Self {
        Self { parts: step.parts(self.pages.len()), step: Some(step), ..self }
    }

    /// Lines of a round.
    pub(super) fn lines(&self) -> usize {
        self.pages.len() * LINES_PER_PAGE
    }

    pub(super) fn round(
        &mut self,
        target: &mut dyn Target,
        core: CoreId,
        level: Level,
    ) -> Result<Round, TargetError> {
        let mut values = vec![f64::NAN; self.lines()];
        let mut lost = Ok(());
        for part in self.parts.clone() {
            if lost.is_ok() {
                lost = self.part(target, core, level, part, &mut values);
            }
            match (self.step, &lost) {
                // The others count on the order, so a round that is lost goes through its parts all the same.
                (Some(step), Ok(()) | Err(TargetError::Moved { .. })) => step.meet()?,
                _ => lost.clone()?,
            }
        }
        lost.map(|()| cleaned(values, self.clock.tick))
    }

    /// Times every line of some of the pages.
    fn part(
        &mut self,
        target: &mut dyn Target,
        core: CoreId,
        level: Level,
        part: Range<usize>,
        values: &mut [f64],
    ) -> Result<(), TargetError> {
        for batch in batches(part.len(), &mut self.rng) {
            let page = |page: &u32| part.start + *page as usize;
            self.batch.clear();
            self.batch.extend(batch.iter().map(|(at, i)| self.pages[page(at)].line(*i)));
            self.raw.resize(batch.len(), Cycles(0));
            target.sample(core, level, &self.batch, &mut self.raw)?;
            for ((at, i), raw) in batch.iter().zip(&self.raw) {
                let place = page(at) * LINES_PER_PAGE + usize::from(*i);
                values[place] = f64::from(raw.0) - self.clock.overhead;
            }
        }
        Ok(())
    }
}

/// What two rounds say of a core's sight, without a form.
#[derive(Clone, Copy, Debug)]
pub(super) struct Glance {
    /// Mean latency, cycles.
    pub(super) mean_cycles: f64,
    /// How far lines differ: mean square, of what both rounds have in common.
    pub(super) energy: f64,
}

/// Two rounds over these pages.
pub(super) fn glance(
    target: &mut dyn Target,
    pages: &[PageAddr],
    core: CoreId,
    level: Level,
    seed: u64,
) -> Result<Glance, TargetError> {
    let mut sampler = Sampler::new(target.clock(), pages, seed);
    let [one, other] = [sampler.round(target, core, level)?, sampler.round(target, core, level)?];
    let both = one.deviation.iter().zip(&other.deviation).map(|(a, b)| a * b);
    let (sum, count) =
        both.filter(|v| v.is_finite()).fold((0.0, 0.0), |(sum, count), v| (sum + v, count + 1.0));
    Ok(Glance { mean_cycles: 0.5 * (one.level + other.level), energy: sum / count })
}

/// Takes the level off and drops what cannot be a load from where the line was put: what lies outside
/// of the window of its page's node.
fn cleaned(mut values: Vec<f64>, tick: u32) -> Round {
    let centre = |page: &[f64]| median(page).unwrap_or(f64::NAN);
    let centres: Vec<f64> = values.chunks_exact(LINES_PER_PAGE).map(centre).collect();
    let nodes = far_groups(&centres);
    for node in 0..=nodes.iter().copied().max().unwrap_or(0) {
        let pages =
            || nodes.iter().enumerate().filter(|(_, of)| **of == node).map(|(page, _)| page);
        let lines = |page: usize| page * LINES_PER_PAGE..(page + 1) * LINES_PER_PAGE;
        let of_node: Vec<f64> = pages().flat_map(|page| values[lines(page)].to_vec()).collect();
        let window = keep_window(&of_node, tick);
        for value in pages().flat_map(lines) {
            if !window.holds(values[value]) {
                values[value] = f64::NAN;
            }
        }
    }
    let kept = || values.iter().filter(|v| v.is_finite());
    let level = kept().sum::<f64>() / kept().count().max(1) as f64;
    values.iter_mut().for_each(|value| *value -= level);
    Round { deviation: values, level }
}

/// Samples outside this window are interrupts, or lines that were not where they were put.
pub(super) fn keep_window(values: &[f64], tick: u32) -> Window {
    isochrone_decode::keep_window(&mut values.to_vec(), tick)
}
