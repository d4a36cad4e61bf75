//! The memory pass: the code of every page, each decoded from a few of its lines.
//!
//! It drives the one decoder (`isochrone_decode`) over a target: it gives pages, bases, reference pages with
//! known codes, seeded chance, and whole rounds of loads at once, and keeps the verdicts.

use std::sync::atomic::{AtomicUsize, Ordering};

use isochrone_atlas::{Codebook, Penalties};
use isochrone_decode::{Choice, Decided, Engine, Layout, Loads, Pace, Pages, Patterns, Reference};
use isochrone_decode::{Room, Slot, Step, Tables, Trust, Units, Window};
use isochrone_stats::{derive_seed, rng, shuffle};
use isochrone_units::{CoreId, Cycles, Level, LineAddr};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::base::ReferenceBlock;
use super::books::{ROWS_BYTES, codebook};
pub use super::decoding_core::{DecodePlan, DecodingCore};
use super::lines::MAX_LINES;
use crate::target::{Target, TargetError};

/// Pages in the window: enough that one round of them costs more than its preparation, few enough
/// that their translations stay in a second-level TLB of 2048 entries (a host may back a guest's
/// huge pages with small ones, so that each page needs its own).
pub(super) const WINDOW: usize = 1024;
/// What a safe decision may lose where one load says little.
const LOSS_MOST: f32 = 0.03;
/// Samples of a page that wait for an offset: as many as a page is ever read, so that none is lost.
const WAITING: usize = 512;

/// Codes and what they cost.
#[derive(Clone, Debug, Default)]
pub struct Decoded {
    /// Code of each page (or block), in the order asked for; `None` if the pass was cut short.
    pub codes: Vec<Option<u16>>,
    /// Timed loads spent on pages, references not counted.
    pub samples: u64,
    /// Timed loads spent on references.
    pub reference_samples: u64,
    /// Distinct lines read, summed over pages.
    pub lines_read: u64,
    /// Seconds in the target, of all threads together.
    pub timing_s: f64,
    /// Seconds of all threads together.
    pub busy_s: f64,
    /// Seconds in all.
    pub total_s: f64,
    /// Times that the thread was found elsewhere; those rounds were done again.
    pub thread_moves: u32,
    /// Timed loads of those rounds.
    pub moved_samples: u64,
    /// Places decided since the last check but one that found the base as it was.
    pub unverified: Vec<usize>,
    /// Set when the references no longer looked like their base: what is unverified is wrong.
    pub base_lost: bool,
}

/// Decodes the pages (or 16 KiB blocks) that begin at `first_lines`, beginning with the one at `queue`; others
/// may take of them at the same time.
///
/// # Errors
/// Whatever the target refuses.
pub(super) fn decode(
    target: &mut dyn Target,
    first_lines: &[LineAddr],
    queue: &AtomicUsize,
    plan: &DecodePlan<'_>,
    keep_going: &dyn Fn() -> bool,
) -> Result<Decoded, TargetError> {
    let begin = target.seconds();
    let mut work = Work::new(first_lines, queue, plan)?;
    let mut engine = engine_for(plan, first_lines.len())?;
    let mut loads = TargetLoads::new(target);
    loop {
        if engine.is_between_rounds() && !keep_going() {
            break;
        }
        loads.core = plan.decoding_cores[engine.turn()].core;
        match engine.advance(&mut loads, &mut work, u64::MAX)? {
            Step::Went | Step::Paused => {}
            Step::Elsewhere(count) => {
                work.done.thread_moves += 1;
                work.done.moved_samples += count as u64;
            }
            Step::Lost => {
                work.done.base_lost = true;
                break;
            }
            Step::Idle => break,
            Step::Cannot => {
                return Err(TargetError::Unsupported("the learnt form cannot be decoded".into()));
            }
        }
    }
    let mut done = work.done;
    [done.samples, done.reference_samples] = engine.loads();
    done.timing_s = loads.timing_s;
    done.unverified = work.before;
    done.unverified.extend(work.recent);
    done.total_s = target.seconds() - begin;
    done.busy_s = done.total_s;
    Ok(done)
}

/// Tables on the heap.
struct Heap;

impl Room for Heap {
    type Of<T> = Vec<T>;
}

/// The engine as `map` uses it: lines chosen for each page, whole rounds at once, and a megabyte of rows for
/// each decoding core.
fn engine_for(plan: &DecodePlan<'_>, pages: usize) -> Result<Engine<Heap>, TargetError> {
    let layout = Layout {
        window: plan.window.min(pages).max(1),
        slots: plan.decoding_cores.len(),
        classes: plan.learnt.classes(),
        period: plan.learnt.period,
        rows_bytes: ROWS_BYTES,
        waiting: WAITING,
        lines_most: MAX_LINES,
        dither: false,
        units: Units::Coarse,
        loss_most: LOSS_MOST,
        choice: Choice::Adaptive,
        pace: Pace::WHOLE,
    };
    let tables = Tables {
        cells: vec![0; layout.cells()],
        slots: vec![Slot::EMPTY; layout.slots],
        aligns: vec![0.0; layout.aligns()],
        ruler: vec![0.0; layout.ruler()],
        losses: vec![0.0; layout.losses()],
        pair_lines: vec![[0; 8]; layout.pair_lines()],
        scratch: vec![0.0; layout.scratch()],
        open: vec![Default::default(); layout.window],
        standing: vec![0; layout.window],
        scores: vec![Default::default(); layout.scores()],
        list_codes: vec![[0; 64]; layout.window],
        list_behind: vec![[0; 64]; layout.window],
        waits: vec![[0; 2]; layout.waits()],
        known: vec![Default::default(); layout.known()],
        lines: vec![LineAddr(0); layout.loads()],
        raw: vec![Cycles(0); layout.loads()],
        whats: vec![0; layout.loads()],
        order: vec![0; layout.pass()],
        room: vec![0.0; layout.pass()],
    };
    let no_room = || TargetError::Unsupported("there is nobody to decode".into());
    Engine::new(layout, tables).ok_or_else(no_room)
}

/// A target, sampled a whole round at a time.
struct TargetLoads<'t> {
    target: &'t mut dyn Target,
    /// Who is asked; who was found, after a batch during which the thread was moved.
    core: CoreId,
    overhead: f64,
    tick: u32,
    timing_s: f64,
}

impl<'t> TargetLoads<'t> {
    fn new(target: &'t mut dyn Target) -> Self {
        let clock = target.clock();
        let (overhead, tick) = (clock.overhead, clock.tick);
        Self { target, core: CoreId(u16::MAX), overhead, tick, timing_s: 0.0 }
    }
}

impl Loads for TargetLoads<'_> {
    type Error = TargetError;

    fn core(&self) -> CoreId {
        self.core
    }

    // Rounds follow one another without a pause, so nothing in them becomes old.
    fn now_ns(&self) -> u64 {
        0
    }

    fn overhead_cycles(&self) -> f64 {
        self.overhead
    }

    fn tick_cycles(&self) -> u32 {
        self.tick
    }

    fn together(&self, _: Level) -> usize {
        usize::MAX
    }

    // A target puts lines where they belong when it samples them.
    fn prepare(&mut self, _: Level, _: &[LineAddr], _: u64) -> Result<bool, TargetError> {
        Ok(true)
    }

    fn abandon(&mut self) {}

    fn time(
        &mut self,
        level: Level,
        lines: &[LineAddr],
        out: &mut [Cycles],
    ) -> Result<(), TargetError> {
        let before = self.target.seconds();
        match self.target.sample(self.core, level, lines, out) {
            Ok(()) => self.timing_s += self.target.seconds() - before,
            Err(TargetError::Moved { found, .. }) => self.core = CoreId(found),
            Err(error) => return Err(error),
        }
        let clock = self.target.clock();
        (self.overhead, self.tick) = (clock.overhead, clock.tick);
        Ok(())
    }
}

/// A base as the map keeps it.
struct Base<'a>(&'a [Vec<f64>]);

impl Patterns for Base<'_> {
    fn classes(&self) -> usize {
        self.0.len()
    }

    fn period(&self) -> usize {
        self.0.first().map_or(0, Vec::len)
    }

    fn cycles(&self, class: usize, index: usize) -> f64 {
        self.0.get(class).and_then(|pattern| pattern.get(index)).copied().unwrap_or(0.0)
    }
}

/// What is decoded, from what, and what came of it.
struct Work<'a> {
    plan: &'a DecodePlan<'a>,
    bases: Vec<Base<'a>>,
    others: Vec<Base<'a>>,
    books: Vec<Codebook>,
    first_lines: &'a [LineAddr],
    /// The next of them that nobody has opened.
    queue: &'a AtomicUsize,
    references: Vec<ReferenceBlock>,
    /// Places decided since the last check, and between that and the one before: a move in the
    /// last round before a check is only seen by the next.
    recent: Vec<usize>,
    before: Vec<usize>,
    rng: Xoshiro256PlusPlus,
    done: Decoded,
}

impl<'a> Work<'a> {
    fn new(
        first_lines: &'a [LineAddr],
        queue: &'a AtomicUsize,
        plan: &'a DecodePlan<'a>,
    ) -> Result<Self, TargetError> {
        let (part, parts) = plan.part;
        let references = plan.references.blocks(plan.seed).into_iter().skip(part).step_by(parts);
        let books = plan.decoding_cores.iter().map(|decoding_core| codebook(plan, decoding_core));
        Ok(Self {
            bases: plan
                .decoding_cores
                .iter()
                .map(|decoding_core| Base(&decoding_core.patterns))
                .collect(),
            others: plan.others.iter().map(|patterns| Base(patterns)).collect(),
            books: books.collect::<Result<_, _>>()?,
            first_lines,
            queue,
            references: references.collect(),
            recent: Vec::new(),
            before: Vec::new(),
            rng: rng(derive_seed(plan.seed, part as u64)),
            done: Decoded { codes: vec![None; first_lines.len()], ..Decoded::default() },
            plan,
        })
    }
}

impl<'a> Pages for Work<'a> {
    type Base = Base<'a>;

    fn level(&self) -> Level {
        self.plan.level
    }

    fn noise_cycles(&self) -> f64 {
        self.plan.noise
    }

    fn penalties(&self) -> &Penalties {
        self.plan.penalties
    }

    fn lines(&self) -> &[u8] {
        self.plan.lines
    }

    fn decoding_cores(&self) -> usize {
        self.plan.decoding_cores.len()
    }

    fn decoding_core(&self, nth: usize) -> (CoreId, u32) {
        (self.plan.decoding_cores[nth].core, u32::try_from(nth).unwrap_or(u32::MAX))
    }

    fn base(&self, nth: usize) -> &Base<'a> {
        &self.bases[nth]
    }

    fn book(&mut self, nth: usize) -> Option<&Codebook> {
        self.books.get(nth)
    }

    fn others(&self) -> usize {
        self.others.len()
    }

    fn other(&self, nth: usize) -> &Base<'a> {
        &self.others[nth]
    }

    fn next(&mut self) -> Option<(u32, LineAddr)> {
        // Each number is given once, and nothing else is handed over by it.
        let place = self.queue.fetch_add(1, Ordering::Relaxed);
        let first = self.first_lines.get(place).copied()?;
        Some((u32::try_from(place).ok()?, first))
    }

    fn references(&self) -> usize {
        self.references.len()
    }

    // Their codes were learnt from all of their lines.
    fn trust(&self) -> Trust {
        Trust::Certain
    }

    fn passes_apart(&self) -> bool {
        true
    }

    fn reference(&mut self, nth: usize) -> Option<Reference> {
        self.references.get(nth).map(ReferenceBlock::as_reference)
    }

    // Reference pages are known from the start.
    fn expected(&self, _: usize, _: u8, _: Window) -> Option<f64> {
        None
    }

    fn shuffle(&mut self, order: &mut [u32]) {
        shuffle(order, &mut self.rng);
    }

    fn decided(&mut self, verdict: Decided) {
        let place = usize::try_from(verdict.tag).unwrap_or(usize::MAX);
        if let Some(code) = self.done.codes.get_mut(place) {
            *code = Some(verdict.code.0);
        }
        self.done.lines_read += u64::from(verdict.lines);
        self.recent.push(place);
    }

    fn verified(&mut self) {
        self.before = std::mem::take(&mut self.recent);
    }
}
