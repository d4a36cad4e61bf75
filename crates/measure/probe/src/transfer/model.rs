//! A modelled machine as a stage: scenes run through a directory of who holds which line, and
//! each timed act costs what the synthetic memory says of the state that the line is then in.
//!
//! So a plan that does not bring lines into the states it claims gets an error here, not a
//! number. It models no cache capacity: a line stays where it was last used.

use std::collections::HashMap;

use isochrone_sim::synthetic::{Interaction, SampleError, SyntheticMemory, Transfer};
use isochrone_units::{CoreId, Cycles, LINES_PER_PAGE, Level, LineAddr, LineState};

use super::scene::{Act, Operation, Samples, Scene, Stage, check};
use crate::target::{TargetClock, TargetError};

/// A synthetic memory on which cores play scenes.
#[derive(Debug)]
pub struct ModelStage {
    memory: SyntheticMemory,
    cores: Vec<CoreId>,
    directory: HashMap<LineAddr, Copies>,
    /// How often each core had lost its lines when that was looked at last.
    evictions: Vec<u64>,
}

/// Who holds a line.
#[derive(Clone, Debug, Default)]
struct Copies {
    /// In the order in which they got it; the first is the owner.
    holders: Vec<CoreId>,
    dirty: bool,
    value: u64,
    /// Somebody else's work has pushed it out of the last cache that had it.
    evicted: bool,
}

/// One timed thing: by whom, in which scene and part, and of what kind.
#[derive(Clone, Copy)]
struct Timed<'a> {
    scene: usize,
    part: usize,
    core: CoreId,
    act: &'a Act,
}

impl ModelStage {
    /// A stage on all cores of a synthetic memory.
    #[must_use]
    pub fn new(memory: SyntheticMemory) -> Self {
        let cores = (0..memory.cores()).filter_map(|core| u16::try_from(core).ok().map(CoreId));
        let evictions = vec![0; memory.cores()];
        Self { cores: cores.collect(), memory, directory: HashMap::new(), evictions }
    }

    /// The memory, with its truth.
    #[must_use]
    pub fn memory(&self) -> &SyntheticMemory {
        &self.memory
    }

    /// One step of all scenes.
    fn step(
        &mut self,
        scenes: &[Scene],
        step: usize,
        played: &mut [Vec<Samples>],
    ) -> Result<(), TargetError> {
        let mut timed = Vec::new();
        let mut polled = Vec::new();
        for (scene, parts) in scenes.iter().enumerate() {
            for (part, acting) in parts.parts.iter().enumerate() {
                let Some(act) = acting.acts.get(step) else { continue };
                let core = acting.core;
                if !matches!(act, Act::Rest) {
                    self.memory.wait_for(core);
                }
                match act {
                    Act::Write(lines) => lines.iter().for_each(|&line| self.write(core, line, 0)),
                    Act::Own(lines) => lines.iter().for_each(|&line| self.own(core, line)),
                    Act::Read(lines) => lines.iter().for_each(|&line| self.read(core, line)),
                    Act::Poll { line, value } => polled.push((scene, core, *line, *value)),
                    Act::Rest | Act::Pong { .. } => {}
                    Act::Time(..)
                    | Act::Again(..)
                    | Act::Sweep(_)
                    | Act::Copy { .. }
                    | Act::Ping { .. } => {
                        timed.push(Timed { scene, part, core, act });
                    }
                }
            }
        }
        let waves = timed.iter().map(|timed| timed.act.samples()).max().unwrap_or(0);
        for wave in 0..waves {
            self.forget_evicted();
            let now: Vec<Timed<'_>> =
                timed.iter().copied().filter(|timed| wave < timed.act.samples()).collect();
            self.wave(&now, wave, &polled, scenes, played)?;
        }
        for (_, core, line, value) in polled {
            let found = self.directory.get(&line).map_or(0, |copies| copies.value);
            if found != value {
                return Err(stalled(core, line, value, found));
            }
            self.read(core, line);
        }
        Ok(())
    }

    /// The `wave`-th timed thing of every timing part: costs by the states before any of them.
    fn wave(
        &mut self,
        timed: &[Timed<'_>],
        wave: usize,
        polled: &[(usize, CoreId, LineAddr, u64)],
        scenes: &[Scene],
        played: &mut [Vec<Samples>],
    ) -> Result<(), TargetError> {
        let mut transfers: Vec<(Timed<'_>, Transfer)> = Vec::new();
        for &one in timed {
            let beside = timed.iter().filter(|other| other.scene == one.scene);
            let askers = count(beside.clone().count());
            let line = line_of(one.act, wave);
            let same = beside.filter(|other| line_of(other.act, wave) == line);
            let rivals: Vec<CoreId> = same.map(|other| other.core).collect();
            let same = count(rivals.len());
            let pollers = polled.iter().filter(|(s, _, l, _)| *s == one.scene && Some(*l) == line);
            let sample = match (one.act, line) {
                (Act::Copy { count, .. }, _) => Some(self.memory.sample_multi_line(*count, askers)),
                (Act::Sweep(lines), _) => {
                    let cycles = self.sweep_cycles(one.core, lines)?;
                    Some(self.memory.sample_cycles(cycles))
                }
                (Act::Again(operation, _), Some(line)) if self.holds(one.core, line) => {
                    let cycles = self.again_cycles(one.core, *operation, line);
                    Some(self.memory.sample_cycles(cycles))
                }
                (Act::Time(operation, _) | Act::Again(operation, _), Some(line)) => {
                    let crowd = Crowd { askers, same, pollers: count(pollers.count()) };
                    match self.costs(one.core, *operation, line, crowd, &rivals)? {
                        Cost::Interaction(kind, n) => Some(self.memory.sample_interaction(kind, n)),
                        Cost::Cycles(cycles) => Some(self.memory.sample_cycles(cycles)),
                        Cost::Transfer(transfer) => {
                            transfers.push((one, transfer));
                            None
                        }
                    }
                }
                (Act::Ping { trips, .. }, Some(line)) => {
                    Some(self.ping(one, line, *trips, scenes)?)
                }
                _ => None,
            };
            if let Some(sample) = sample {
                played[one.scene][one.part].raw.push(sample);
            }
        }
        let batch: Vec<Transfer> = transfers.iter().map(|(_, transfer)| *transfer).collect();
        let mut out = vec![Cycles(0); batch.len()];
        if !batch.is_empty() {
            self.memory.sample_transfers(&batch, &mut out).map_err(refused)?;
        }
        for ((one, _), sample) in transfers.iter().zip(out) {
            played[one.scene][one.part].raw.push(sample);
        }
        timed.iter().for_each(|one| self.after(one, wave));
        Ok(())
    }

    /// What a single timed operation is in the model's terms.
    fn costs(
        &self,
        asker: CoreId,
        operation: Operation,
        line: LineAddr,
        crowd: Crowd,
        rivals: &[CoreId],
    ) -> Result<Cost, TargetError> {
        let copies = self.directory.get(&line);
        let holders = copies.map(|copies| copies.holders.as_slice()).unwrap_or_default();
        let held = holders.contains(&asker);
        let others: Vec<CoreId> = holders.iter().copied().filter(|&core| core != asker).collect();
        let Some(&owner) = others.first() else {
            if copies.is_some_and(|copies| copies.evicted) {
                let cycles = self.memory.truth_latency(asker, Level::Dram, line);
                return cycles.map(Cost::Cycles).map_err(refused);
            }
            return Err(nonsense(asker, line, "no other core holds it"));
        };
        let shared = held || others.len() > 1;
        let state = match (shared, copies.is_some_and(|copies| copies.dirty)) {
            (true, _) => LineState::Shared,
            (false, true) => LineState::Modified,
            (false, false) => LineState::Exclusive,
        };
        let transfer = Transfer { owner, asker, line, state };
        let terms = &self.memory.spec().transfers.terms;
        let beyond = |cycles: f64| -> Result<Cost, TargetError> {
            Ok(Cost::Cycles(self.memory.truth_transfer(transfer).map_err(refused)? + cycles))
        };
        let far = |&rival: &CoreId| terms.apart(owner, rival) && !terms.apart(owner, asker);
        match operation {
            Operation::Load if held => Err(nonsense(asker, line, "it holds it itself")),
            Operation::Load if rivals.iter().any(far) => beyond(terms.remote_reader_cycles),
            Operation::Load
                if terms.adjacent_cycles > 0.0 && self.neighbour_is_anothers(asker, line) =>
            {
                beyond(terms.adjacent_cycles)
            }
            Operation::Load if crowd.same > 1 => {
                Ok(Cost::Interaction(Interaction::Contention, crowd.same))
            }
            Operation::Load if crowd.askers > 1 => {
                Ok(Cost::Interaction(Interaction::Congestion, crowd.askers))
            }
            Operation::Rfo if crowd.pollers > 0 && crowd.same == 1 => {
                Ok(Cost::Interaction(Interaction::Readers, crowd.pollers))
            }
            Operation::Rfo if crowd.pollers > 0 => {
                Ok(Cost::Interaction(Interaction::Writers, crowd.same))
            }
            Operation::Rfo if shared => {
                Ok(Cost::Interaction(Interaction::RfoShared, count(others.len())))
            }
            Operation::Load | Operation::Rfo => Ok(Cost::Transfer(transfer)),
        }
    }

    /// Takes lines from the cores that somebody else's work has pushed them out of.
    fn forget_evicted(&mut self) {
        for (&core, seen) in self.cores.iter().zip(&mut self.evictions) {
            let evictions = self.memory.evictions(core);
            if evictions == *seen {
                continue;
            }
            *seen = evictions;
            for copies in self.directory.values_mut().filter(|c| c.holders.contains(&core)) {
                copies.holders.retain(|holder| *holder != core);
                copies.evicted = copies.holders.is_empty();
            }
        }
    }

    fn holders(&self, line: LineAddr) -> &[CoreId] {
        self.directory.get(&line).map_or(&[], |copies| &copies.holders)
    }

    fn holds(&self, core: CoreId, line: LineAddr) -> bool {
        self.holders(line).contains(&core)
    }

    /// Whether only others have the other half of the line's pair.
    fn neighbour_is_anothers(&self, core: CoreId, line: LineAddr) -> bool {
        let holders = self.holders(neighbour(line));
        !holders.is_empty() && !holders.contains(&core)
    }

    /// An operation on a line that the core has, and others perhaps too.
    fn again_cycles(&self, core: CoreId, operation: Operation, line: LineAddr) -> f64 {
        let terms = &self.memory.spec().transfers.terms;
        let others = self.holders(line).iter().any(|&holder| holder != core);
        let left = match operation {
            Operation::Load => terms.left_read_cycles,
            Operation::Rfo => terms.left_shared_cycles,
        };
        terms.local_cycles + if others { left } else { 0.0 }
    }

    /// Loads of lines of others that do not wait for one another.
    fn sweep_cycles(&self, core: CoreId, lines: &[LineAddr]) -> Result<f64, TargetError> {
        let mut cycles = 0.0;
        for (place, &line) in lines.iter().enumerate() {
            if self.holds(core, line) {
                return Err(nonsense(core, line, "it holds it itself"));
            }
            let Some(&owner) = self.holders(line).first() else {
                return Err(nonsense(core, line, "no other core holds it"));
            };
            let state = LineState::Modified;
            let transfer = Transfer { owner, asker: core, line, state };
            let first = self.memory.truth_transfer(transfer).map_err(refused)?;
            let overlapped = self.memory.spec().transfers.terms.overlapped_cycles;
            cycles += if place == 0 { first } else { overlapped };
        }
        Ok(cycles)
    }

    /// Round trips: each half is a transfer of a modified line.
    fn ping(
        &mut self,
        one: Timed<'_>,
        line: LineAddr,
        trips: u32,
        scenes: &[Scene],
    ) -> Result<Cycles, TargetError> {
        let parts = &scenes[one.scene].parts;
        let answers = |core: &CoreId| {
            let theirs = parts.iter().find(|part| part.core == *core);
            theirs.is_some_and(|part| part.acts.iter().any(|a| matches!(a, Act::Pong { .. })))
        };
        let owner = parts.iter().map(|part| part.core).find(answers);
        let Some(owner) = owner.filter(|&owner| owner != one.core) else {
            return Err(stalled(one.core, line, 0, 1));
        };
        let state = LineState::Modified;
        let transfer = Transfer { owner, asker: one.core, line, state };
        let mut out = [Cycles(0)];
        self.memory.sample_transfers(&[transfer], &mut out).map_err(refused)?;
        let overhead = self.memory.timer().overhead_cycles;
        let half = f64::from(out[0].0) - overhead;
        Ok(Cycles(whole(half * 2.0 * f64::from(trips) + overhead)))
    }

    /// Who holds what after a timed thing.
    fn after(&mut self, one: &Timed<'_>, wave: usize) {
        match one.act {
            Act::Time(Operation::Load, lines) | Act::Again(Operation::Load, lines) => {
                self.read(one.core, lines[wave]);
            }
            Act::Time(Operation::Rfo, lines) | Act::Again(Operation::Rfo, lines) => {
                let value = self.directory.get(&lines[wave]).map_or(0, |copies| copies.value);
                self.write(one.core, lines[wave], value + 1);
            }
            Act::Ping { lines, .. } => self.write(one.core, lines[wave], 0),
            act @ (Act::Copy { .. } | Act::Sweep(_)) => {
                act.lines().for_each(|line| self.read(one.core, line))
            }
            _ => {}
        }
    }

    fn write(&mut self, core: CoreId, line: LineAddr, value: u64) {
        self.directory
            .insert(line, Copies { holders: vec![core], dirty: true, value, evicted: false });
    }

    fn own(&mut self, core: CoreId, line: LineAddr) {
        let copies = self.directory.entry(line).or_default();
        (copies.holders, copies.dirty, copies.evicted) = (vec![core], false, false);
    }

    fn read(&mut self, core: CoreId, line: LineAddr) {
        let missed = !self.holds(core, line);
        self.share(core, line);
        let pair = neighbour(line);
        let prefetches = self.memory.spec().transfers.terms.pair_prefetch;
        if prefetches && missed && !self.holders(pair).is_empty() {
            self.share(core, pair);
        }
    }

    fn share(&mut self, core: CoreId, line: LineAddr) {
        let copies = self.directory.entry(line).or_default();
        if !copies.holders.contains(&core) {
            copies.holders.push(core);
            (copies.dirty, copies.evicted) = (false, false);
        }
    }
}

/// How many do the same in a scene at once.
#[derive(Clone, Copy)]
struct Crowd {
    askers: u32,
    same: u32,
    pollers: u32,
}

enum Cost {
    Cycles(f64),
    Transfer(Transfer),
    Interaction(Interaction, u32),
}

impl Stage for ModelStage {
    fn cores(&self) -> &[CoreId] {
        &self.cores
    }

    fn lines(&self) -> u64 {
        self.memory.pages() * LINES_PER_PAGE as u64
    }

    fn clock(&self) -> TargetClock {
        let timer = self.memory.timer();
        TargetClock { hz: timer.hz, tick: timer.tick_cycles, overhead: timer.overhead_cycles }
    }

    fn play(&mut self, scenes: &[Scene], repeats: u32) -> Result<Vec<Vec<Samples>>, TargetError> {
        check(scenes, &self.cores, self.lines())?;
        let empty = |scene: &Scene| {
            let samples = |part: &super::scene::Part| Samples {
                per_repeat: part.acts.iter().map(Act::samples).sum(),
                ..Samples::default()
            };
            scene.parts.iter().map(samples).collect()
        };
        let mut played: Vec<Vec<Samples>> = scenes.iter().map(empty).collect();
        let steps = scenes.iter().flat_map(|scene| &scene.parts).map(|part| part.acts.len());
        let steps = steps.max().unwrap_or(0);
        for _ in 0..repeats {
            for step in 0..steps {
                self.step(scenes, step, &mut played)?;
            }
        }
        Ok(played)
    }

    fn seconds(&mut self) -> f64 {
        self.memory.seconds()
    }
}

/// The other half of a line's 128-byte pair.
const fn neighbour(line: LineAddr) -> LineAddr {
    LineAddr(line.0 ^ 1)
}

/// The line of the `wave`-th timed thing of an act.
fn line_of(act: &Act, wave: usize) -> Option<LineAddr> {
    match act {
        Act::Time(_, lines) | Act::Again(_, lines) | Act::Ping { lines, .. } => {
            lines.get(wave).copied()
        }
        _ => None,
    }
}

fn refused(error: SampleError) -> TargetError {
    match error {
        SampleError::Moved { asked, found } => {
            TargetError::Moved { asked: asked.0, found: found.0 }
        }
        other => TargetError::Unsupported(other.to_string()),
    }
}

fn nonsense(asker: CoreId, line: LineAddr, why: &str) -> TargetError {
    TargetError::Unsupported(format!(
        "{asker} asks for line {} as from another core, but {why}; prepare the line first",
        line.0
    ))
}

fn stalled(core: CoreId, line: LineAddr, wanted: u64, found: u64) -> TargetError {
    TargetError::System {
        what: format!("{core} waited for another core"),
        why: format!("line {} is {found}, never {wanted}", line.0),
        advice: "let another core of the scene write it".to_owned(),
    }
}

/// A small count of cores as the model takes it.
fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Cycles rounded to whole ones.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to the range of the target just before"
)]
fn whole(cycles: f64) -> u32 {
    cycles.round().clamp(0.0, f64::from(u32::MAX)) as u32
}
