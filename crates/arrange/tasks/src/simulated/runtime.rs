//! The runtime's own memory on a simulated machine: which lines its steps change, and what it takes until they come.
//! How each number was counted stands in docs/results/papers-runtime-lines.md.

use core::iter::once;
use std::collections::HashMap;

use isochrone_sim::coherence::engine::{Engine, Placed, RegionId, Touch};
use isochrone_sim::coherence::{Floor, Roofs};

use super::hardware::Step;
use crate::footprint::Access;
use crate::range::DataId;

/// Bytes of a line.
const LINE: u64 = 64;

/// Lines that a runtime's steps change, of memory that workers share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuntimeLines {
    /// Of a task, beside the one of its state: who registers it writes them, who runs it reads them.
    pub body: u32,
    /// Of the table of ranges for each that a task declares: who registers it changes them, and who ends it does so
    /// under the table's lock. 0 where the table is the program's alone.
    pub range: u32,
    /// Of a queue, under its lock.
    pub queue: u32,
    /// Whether one line counts all tasks at each step, and another those that are registered and not over.
    pub counters: bool,
    /// Ends after which the parent's line is changed.
    pub told: u64,
    /// Whether lines of tasks that wait for one another are asked for together, and not one by one.
    pub together: bool,
}

impl RuntimeLines {
    /// Our scheduler's, counted in its source.
    pub const OURS: Self =
        Self { body: 2, range: 0, queue: 2, counters: false, told: 64, together: true };
    /// Those of Nanos++ 0.10.3, counted in its public source by fields: assumed.
    pub const NANOS: Self =
        Self { body: 15, range: 3, queue: 3, counters: true, told: 1, together: false };

    /// The lines that count tasks.
    fn counts(self) -> impl Iterator<Item = Part> {
        [Part::Counts, Part::Graph].into_iter().filter(move |_| self.counters)
    }

    fn of(self, part: Part) -> u32 {
        match part {
            Part::Body(_) => self.body,
            Part::Range(..) => self.range,
            Part::Queue(_) => self.queue,
            _ => 1,
        }
    }
}

/// A part of the runtime's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Part {
    /// A task's lock, successors and predecessors, by its place.
    State(u32),
    /// The rest of a task.
    Body(u32),
    /// What the table of ranges has of one, by where it begins.
    Range(DataId, u64),
    /// A queue, and its lock.
    Queue(usize),
    /// The lock of the table of ranges.
    Table,
    /// Counters of all tasks.
    Counts,
    /// Tasks that are registered and not over.
    Graph,
    /// The program's own task.
    Parent,
}

/// The machine where a step is done.
pub(super) struct Place<'a> {
    pub(super) engine: &'a mut Engine,
    pub(super) roofs: &'a Roofs,
    pub(super) node: u8,
    /// Where memory of the program lies.
    pub(super) placed: Placed,
}

impl Place<'_> {
    /// What the lines touched since the last time take, if nothing holds them up.
    fn floor(&mut self) -> Floor {
        let floor = self.roofs.ask(usize::from(self.node), self.engine.tally(), &mut Vec::new());
        self.engine.begin_task();
        floor
    }
}

/// A runtime's memory, and until when its locks are held.
#[derive(Debug)]
pub(super) struct Runtime {
    lines: RuntimeLines,
    regions: HashMap<Part, RegionId>,
    free_at: HashMap<Part, f64>,
    ended: u64,
}

impl Runtime {
    pub(super) fn new(lines: RuntimeLines) -> Self {
        Self { lines, regions: HashMap::new(), free_at: HashMap::new(), ended: 0 }
    }

    /// What a step takes, ns.
    pub(super) fn step(&mut self, place: &mut Place<'_>, now: f64, step: Step<'_>) -> f64 {
        place.engine.begin_task();
        match step {
            Step::Registered { task, accesses, before } => {
                let own = self.together(place, [Part::State(task), Part::Body(task)]);
                let shared = ranges(accesses).chain(self.lines.counts());
                own + self.others(place, before) + self.one_by_one(place, shared)
            }
            Step::Pushed { queue } => self.queued(place, now, queue),
            Step::Taken { task, queue } => {
                let queued = queue.map_or(0.0, |queue| self.queued(place, now, queue));
                queued + self.together(place, [Part::State(task), Part::Body(task)])
            }
            Step::Ended { task, accesses, after } => {
                let mut ns = self.one_by_one(place, once(Part::State(task)));
                if self.lines.range > 0 {
                    let held = self.one_by_one(place, once(Part::Table).chain(ranges(accesses)));
                    ns += self.hold(Part::Table, now + ns, held);
                }
                self.ended += 1;
                let told = self.ended.is_multiple_of(self.lines.told).then_some(Part::Parent);
                let shared = self.lines.counts().chain(told);
                ns + self.others(place, after) + self.one_by_one(place, shared)
            }
        }
    }

    /// Changes the state of tasks that wait for one another.
    fn others(&mut self, place: &mut Place<'_>, tasks: &[u32]) -> f64 {
        let states = tasks.iter().map(|task| Part::State(*task));
        match self.lines.together {
            true => self.together(place, states),
            false => self.one_by_one(place, states),
        }
    }

    /// Changes a queue under its lock.
    fn queued(&mut self, place: &mut Place<'_>, now: f64, queue: usize) -> f64 {
        let counts = self.lines.counts().take(1);
        let held = self.one_by_one(place, once(Part::Queue(queue)).chain(counts));
        self.hold(Part::Queue(queue), now, held)
    }

    /// Waits for a lock, first come, first served, and holds it; how long both take.
    fn hold(&mut self, lock: Part, now: f64, held: f64) -> f64 {
        let free = self.free_at.entry(lock).or_insert(0.0);
        *free = free.max(now) + held;
        *free - now
    }

    /// Lines that are asked for together.
    fn together(&mut self, place: &mut Place<'_>, parts: impl IntoIterator<Item = Part>) -> f64 {
        self.touch(place, parts);
        place.floor().lines_ns
    }

    /// Lines each of which is asked for when the one before has come.
    fn one_by_one(&mut self, place: &mut Place<'_>, parts: impl IntoIterator<Item = Part>) -> f64 {
        self.touch(place, parts);
        let floor = place.floor();
        floor.lines_ns * floor.window
    }

    fn touch(&mut self, place: &mut Place<'_>, parts: impl IntoIterator<Item = Part>) {
        for part in parts {
            let bytes = u64::from(self.lines.of(part)) * LINE;
            if bytes == 0 {
                continue;
            }
            let new = || place.engine.register(bytes, place.placed);
            let region = *self.regions.entry(part).or_insert_with(new);
            place.engine.touch(place.node, region, 0, bytes, Touch::Write, 1.0);
        }
    }
}

/// What the table has of the ranges that a task declares.
fn ranges(accesses: &[Access]) -> impl Iterator<Item = Part> {
    accesses.iter().map(|access| Part::Range(access.range.data, access.range.start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_held_by_one_at_a_time_and_by_who_came_first() {
        let mut runtime = Runtime::new(RuntimeLines::NANOS);
        let took: Vec<f64> = [(100.0, 10.0), (101.0, 5.0), (102.0, 5.0), (500.0, 5.0)]
            .into_iter()
            .map(|(now, held)| runtime.hold(Part::Queue(0), now, held))
            .collect();
        // The second comes at 101 and has it from 110 to 115, the third until 120.
        let same = |(a, b): (&f64, f64)| (a - b).abs() < 1e-9;
        assert!(took.iter().zip([10.0, 14.0, 18.0, 5.0]).all(same), "{took:?}");
        assert!((runtime.hold(Part::Queue(1), 102.0, 5.0) - 5.0).abs() < 1e-9, "another lock");
    }
}
