//! What the thread of one core does: it plays its part of scenes on shared lines.
//!
//! Threads meet before every step (see [`super::meeting`]). Every wait has a deadline, so a core
//! that does not run gives an error, never a hang.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Instant;

use isochrone_os::affinity;
use isochrone_os::line_transfer::{
    Deadline, SharedLine, Stalled, pong, settle, time_copy, time_load, time_loads, time_nothing,
    time_ping, time_rfo,
};
use isochrone_os::mapping::Mapping;
use isochrone_stats::{Xoshiro256PlusPlus, below, derive_seed, rng, shuffle, tick_mean};
use isochrone_units::{CoreId, Cycles, LineAddr};

use super::meeting::{Meeting, cycles};
use super::scene::{Act, Operation, Part, Samples};
use crate::target::{TargetClock, TargetError};

/// Longest wait for another core. A host that takes a virtual CPU away does so for milliseconds.
const WAIT_S: f64 = 2.0;

/// Turns of the longest delay before a sample: several steps of any counter seen so far.
const DELAY_TURNS: u64 = 64;

/// Empty timed regions from which the overhead is learnt.
const EMPTY_REGIONS: u32 = 20_000;

/// One part to be played.
pub(super) struct Job {
    pub(super) part: Part,
    pub(super) place: usize,
    pub(super) repeats: u32,
    pub(super) meeting: Arc<Meeting>,
}

/// What runs on a core.
pub(super) struct Player {
    core: CoreId,
    arena: Arc<Mapping>,
    /// Where copied lines go.
    copies: Vec<SharedLine>,
    /// Empty timed regions of the job under way.
    nothing: Vec<f64>,
    random: Xoshiro256PlusPlus,
    wait_cycles: u64,
    tick: u32,
    given_up: Arc<AtomicBool>,
}

impl Player {
    /// For the thread of this core: it plays on the lines of `arena` until a play is given up.
    pub(super) fn new(
        core: CoreId,
        arena: Arc<Mapping>,
        clock: TargetClock,
        seed: u64,
        given_up: Arc<AtomicBool>,
    ) -> Self {
        Self {
            core,
            arena,
            copies: Vec::new(),
            nothing: Vec::new(),
            random: rng(derive_seed(seed, u64::from(core.0))),
            wait_cycles: cycles(WAIT_S, clock.hz),
            tick: clock.tick,
            given_up,
        }
    }

    /// Answers one job after another until there is no stage any more. The first answer comes
    /// unasked: whether the core can be had, with samples of nothing.
    pub(super) fn serve(
        mut self,
        jobs: &Receiver<Job>,
        answers: &Sender<Result<Samples, TargetError>>,
    ) {
        let first = self.pin().map(|()| Samples {
            per_repeat: 1,
            raw: (0..EMPTY_REGIONS).map(|_| Cycles(time_nothing())).collect(),
            ..Samples::default()
        });
        if answers.send(first).is_err() {
            return;
        }
        for job in jobs {
            if answers.send(self.job(&job)).is_err() {
                return;
            }
        }
    }

    fn pin(&self) -> Result<(), TargetError> {
        affinity::pin(self.core).map_err(|error| TargetError::System {
            what: format!("cannot run on {}", self.core),
            why: error.to_string(),
            advice: "measure only the cores that this process may use".to_owned(),
        })
    }

    fn job(&mut self, job: &Job) -> Result<Samples, TargetError> {
        // Again before every job: whoever moved this thread moved it once.
        self.pin()?;
        let per_repeat = job.part.acts.iter().map(Act::samples).sum();
        let repeats = job.repeats as usize;
        let mut raw = Vec::with_capacity(per_repeat * repeats);
        let mut took_s = Vec::with_capacity(repeats);
        self.nothing.clear();
        let longest = job.part.acts.iter().map(copied).max().unwrap_or(0);
        self.copies.resize_with(self.copies.len().max(longest), SharedLine::new);
        let played = self.play(job, &mut raw, &mut took_s);
        let found = affinity::current_core();
        if found != self.core {
            return Err(TargetError::Moved { asked: self.core.0, found: found.0 });
        }
        played.map_err(|stalled| TargetError::System {
            what: format!("{} waited for another core", self.core),
            why: format!("no answer for {} cycles", stalled.cycles),
            advice: "stop what else runs on the measured cores, or measure fewer of them"
                .to_owned(),
        })?;
        let nothing = tick_mean(&self.nothing, f64::from(self.tick)).map(|found| found.mean);
        Ok(Samples { per_repeat, raw, overhead: nothing, took_s })
    }

    fn play(
        &mut self,
        job: &Job,
        raw: &mut Vec<Cycles>,
        took_s: &mut Vec<f64>,
    ) -> Result<(), Stalled> {
        let (arena, given_up) = (Arc::clone(&self.arena), Arc::clone(&self.given_up));
        let lines = arena.shared_lines();
        let wait_cycles = self.wait_cycles;
        let wait = || Deadline::after(wait_cycles).or_once(&given_up);
        let mut step = 0;
        for _ in 0..job.repeats {
            wait().check()?;
            let begun = Instant::now();
            for act in &job.part.acts {
                step += 1;
                // What an act needs that is not to be timed is made ready before the meeting.
                let order = self.order(act);
                job.meeting.meet(job.place, step, wait())?;
                self.act(act, lines, &order, raw, &wait)?;
            }
            took_s.push(begun.elapsed().as_secs_f64());
        }
        Ok(())
    }

    /// A fresh order for an act that times line by line, so that no prefetcher learns it, and a
    /// random delay before each, so that no sample keeps in step with the clock's.
    fn order(&mut self, act: &Act) -> Vec<(usize, u64)> {
        let (Act::Time(_, lines) | Act::Again(_, lines)) = act else { return Vec::new() };
        let mut order: Vec<usize> = (0..lines.len()).collect();
        shuffle(&mut order, &mut self.random);
        order.into_iter().map(|k| (k, below(&mut self.random, DELAY_TURNS))).collect()
    }

    fn act<'a>(
        &mut self,
        act: &Act,
        arena: &[SharedLine],
        order: &[(usize, u64)],
        raw: &mut Vec<Cycles>,
        wait: &dyn Fn() -> Deadline<'a>,
    ) -> Result<(), Stalled> {
        match act {
            Act::Rest => {}
            Act::Write(lines) => {
                lines.iter().for_each(|&line| at(arena, line).store(0));
                settle();
            }
            Act::Own(lines) => {
                lines.iter().for_each(|&line| at(arena, line).flush());
                settle();
                read(arena, lines);
            }
            Act::Read(lines) => read(arena, lines),
            Act::Time(operation, lines) | Act::Again(operation, lines) => {
                self.time(*operation, arena, lines, order, raw);
            }
            Act::Sweep(lines) => {
                let lines: Vec<&SharedLine> = lines.iter().map(|&line| at(arena, line)).collect();
                dawdle(below(&mut self.random, DELAY_TURNS));
                raw.push(Cycles(time_loads(&lines)));
                self.nothing.push(f64::from(time_nothing()));
            }
            Act::Copy { first, count } => {
                let from = index(*first);
                let source = &arena[from..from + *count as usize];
                dawdle(below(&mut self.random, DELAY_TURNS));
                raw.push(Cycles(time_copy(source, &self.copies)));
                self.nothing.push(f64::from(time_nothing()));
            }
            Act::Poll { line, value } => at(arena, *line).poll_for(*value, wait())?,
            Act::Ping { lines, trips } => {
                for &line in lines {
                    raw.push(Cycles(time_ping(at(arena, line), *trips, wait())?));
                }
            }
            Act::Pong { lines, trips } => {
                for &line in lines {
                    pong(at(arena, line), *trips, wait())?;
                }
            }
        }
        Ok(())
    }

    /// Times one operation on each line, in `order`, and nothing in between; samples are stored
    /// in the order of `lines`.
    fn time(
        &mut self,
        operation: Operation,
        arena: &[SharedLine],
        lines: &[LineAddr],
        order: &[(usize, u64)],
        raw: &mut Vec<Cycles>,
    ) {
        let start = raw.len();
        raw.resize(start + lines.len(), Cycles(0));
        for &(k, delay) in order {
            let line = at(arena, lines[k]);
            dawdle(delay);
            raw[start + k] = Cycles(match operation {
                Operation::Load => time_load(line),
                Operation::Rfo => time_rfo(line),
            });
            self.nothing.push(f64::from(time_nothing()));
        }
    }
}

/// Takes a few cycles a turn. The counter may step by 26 cycles, and a mean is right only if
/// samples begin anywhere in a step: a loop of constant length would keep in step with it.
fn dawdle(turns: u64) {
    (0..turns).for_each(|turn| {
        std::hint::black_box(turn);
    });
}

fn read(arena: &[SharedLine], lines: &[LineAddr]) {
    for &line in lines {
        std::hint::black_box(at(arena, line).load());
    }
    settle();
}

/// Lines that an act copies.
fn copied(act: &Act) -> usize {
    if let Act::Copy { count, .. } = act { *count as usize } else { 0 }
}

fn at(arena: &[SharedLine], line: LineAddr) -> &SharedLine {
    &arena[index(line)]
}

/// A line's place in the arena. Plans are checked against the arena before they are played, so
/// the number is one that indexes memory.
fn index(line: LineAddr) -> usize {
    usize::try_from(line.0).unwrap_or(usize::MAX)
}
