//! A modelled machine as a stage: scenes run through a directory of who holds which line, and
//! each timed act costs what the synthetic memory says of the state that the line is then in.
//!
//! So a plan that does not bring lines into the states it claims gets an error here, not a
//! number. It models no cache capacity: a line stays where it was last used.

mod directory;

use isochrone_sim::synthetic::{Interaction, SampleError, SyntheticMemory, Transfer};
use isochrone_units::{CoreId, Cycles, LINES_PER_PAGE, Level, LineAddr, LineState};

use self::directory::Directory;
use super::scene::{Act, Operation, Samples, Scene, Stage, check};
use crate::target::{TargetClock, TargetError};

/// A synthetic memory on which cores play scenes.
#[derive(Debug)]
pub struct ModelStage {
    memory: SyntheticMemory,
    cores: Vec<CoreId>,
    directory: Directory,
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
        Self { cores: cores.collect(), directory: Directory::new(&memory), memory }
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
                    Act::Write(lines) => {
                        lines.iter().for_each(|&line| self.directory.write(core, line, 0));
                    }
                    Act::Own(lines) => {
                        lines.iter().for_each(|&line| self.directory.own(core, line));
                    }
                    Act::Read(lines) => {
                        lines.iter().for_each(|&line| self.directory.read(core, line));
                    }
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
            self.directory.forget_evicted(&mut self.memory);
            let now: Vec<Timed<'_>> =
                timed.iter().copied().filter(|timed| wave < timed.act.samples()).collect();
            self.wave(&now, wave, &polled, scenes, played)?;
        }
        for (_, core, line, value) in polled {
            let found = self.directory.value(line);
            if found != value {
                return Err(stalled(core, line, value, found));
            }
            self.directory.read(core, line);
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
        // Scene by scene, as they come.
        let scenes_of = timed.chunk_by(|a, b| a.scene == b.scene);
        for (beside, &one) in scenes_of.flat_map(|scene| scene.iter().map(move |one| (scene, one)))
        {
            let askers = count(beside.len());
            let line = line_of(one.act, wave);
            let same = beside.iter().filter(|other| line_of(other.act, wave) == line);
            let rivals: Vec<CoreId> = same.map(|other| other.core).collect();
            let same = count(rivals.len());
            let pollers = polled.iter().filter(|(s, _, l, _)| *s == one.scene && Some(*l) == line);
            let sample = match (one.act, line) {
                (Act::Copy { .. }, _) => {
                    let cycles = self.copy_cycles(one, askers)?;
                    Some(self.memory.sample_cycles(one.core, cycles))
                }
                (Act::Sweep(lines), _) => {
                    let cycles = self.sweep_cycles(one.core, lines)?;
                    Some(self.memory.sample_cycles(one.core, cycles))
                }
                (Act::Again(operation, _), Some(line)) if self.directory.holds(one.core, line) => {
                    let cycles = self.again_cycles(one.core, *operation, line);
                    Some(self.memory.sample_cycles(one.core, cycles))
                }
                (Act::Time(operation, _) | Act::Again(operation, _), Some(line)) => {
                    let crowd = Crowd { askers, same, pollers: count(pollers.count()) };
                    match self.costs(one.core, *operation, line, crowd, &rivals)? {
                        Cost::Interaction(kind, n) => {
                            Some(self.memory.sample_interaction(one.core, kind, n))
                        }
                        Cost::Cycles(cycles) => Some(self.memory.sample_cycles(one.core, cycles)),
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
        let copies = self.directory.get(line);
        let holders = self.directory.holders(line);
        let held = holders.contains(&asker);
        let others: Vec<CoreId> = holders.iter().copied().filter(|&core| core != asker).collect();
        let Some(&owner) = others.first() else {
            if !copies.is_some_and(|copies| copies.lost) {
                return Err(nonsense(asker, line, "no other core holds it"));
            }
            let alone = || Ok(self.again_cycles(asker, operation, line));
            let cycles = if held { alone() } else { self.memory_cycles(asker, line) };
            return cycles.map(Cost::Cycles);
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
                if terms.adjacent_cycles > 0.0
                    && self.directory.neighbour_is_anothers(asker, line) =>
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

    /// A load of a line that no cache has.
    fn memory_cycles(&self, core: CoreId, line: LineAddr) -> Result<f64, TargetError> {
        self.memory.truth_latency(core, Level::Dram, line).map_err(refused)
    }

    /// A copy of lines, of which those that no cache has come from memory one by one.
    fn copy_cycles(&self, one: Timed<'_>, askers: u32) -> Result<f64, TargetError> {
        let gone = one.act.lines().filter(|line| self.directory.is_in_memory(*line));
        let gone = gone.map(|line| self.memory_cycles(one.core, line));
        let gone: Vec<f64> = gone.collect::<Result<_, _>>()?;
        let there = count(one.act.lines().count() - gone.len());
        let transfers = &self.memory.spec().transfers.multi_line;
        Ok(transfers.cycles(there, askers) + gone.iter().sum::<f64>())
    }

    /// An operation on a line that the core has, and others perhaps too.
    fn again_cycles(&self, core: CoreId, operation: Operation, line: LineAddr) -> f64 {
        let terms = &self.memory.spec().transfers.terms;
        let others = self.directory.holders(line).iter().any(|&holder| holder != core);
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
            if self.directory.holds(core, line) {
                return Err(nonsense(core, line, "it holds it itself"));
            }
            if self.directory.is_in_memory(line) {
                cycles += self.memory_cycles(core, line)?;
                continue;
            }
            let Some(&owner) = self.directory.holders(line).first() else {
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
        self.memory.sample_round_trips(transfer, trips).map_err(refused)
    }

    /// Who holds what after a timed thing.
    fn after(&mut self, one: &Timed<'_>, wave: usize) {
        match one.act {
            Act::Time(Operation::Load, lines) | Act::Again(Operation::Load, lines) => {
                self.directory.read(one.core, lines[wave]);
            }
            Act::Time(Operation::Rfo, lines) | Act::Again(Operation::Rfo, lines) => {
                let value = self.directory.value(lines[wave]);
                self.directory.write(one.core, lines[wave], value + 1);
            }
            Act::Ping { lines, .. } => self.directory.write(one.core, lines[wave], 0),
            act @ (Act::Copy { .. } | Act::Sweep(_)) => {
                act.lines().for_each(|line| self.directory.read(one.core, line));
            }
            _ => {}
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
        self.memory.pass(self.memory.spec().costs.batch_cycles / self.memory.timer().hz);
        let steps = scenes.iter().flat_map(|scene| &scene.parts).map(|part| part.acts.len());
        let steps = steps.max().unwrap_or(0);
        for _ in 0..repeats {
            let begun = self.memory.seconds();
            for step in 0..steps {
                self.step(scenes, step, &mut played)?;
            }
            let took_s = self.memory.seconds() - begun;
            played.iter_mut().flatten().for_each(|samples| samples.took_s.push(took_s));
        }
        Ok(played)
    }

    fn seconds(&mut self) -> f64 {
        self.memory.seconds()
    }
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
