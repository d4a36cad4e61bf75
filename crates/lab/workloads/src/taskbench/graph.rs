//! A graph of tasks: what each does, on any [`Tasks`].

use isochrone_tasks::{Data, Failure, Footprint, Kernel, Mem, Part, TaskError, Tasks};

use super::{Pattern, mix, spend};

/// What a task leaves: its step, its point, its value. A line, so that no two tasks write one.
type Cell = [u64; 8];

/// Generations of cells. A task writes over what the step before the last one wrote.
const FIELDS: u32 = 2;

/// The shape of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Graph {
    /// Who reads whom.
    pub pattern: Pattern,
    /// Points of each step.
    pub width: u32,
    /// How many steps.
    pub steps: u32,
    /// Turns of [`spend`] that each task takes.
    pub turns: u64,
}

/// The memory of a graph.
#[derive(Clone, Copy, Debug)]
pub struct Points {
    graph: Graph,
    cells: Data<Cell>,
}

impl Graph {
    /// How many tasks it has.
    #[must_use]
    pub const fn tasks(self) -> u64 {
        self.steps as u64 * self.width as u64
    }

    /// Calls `found` with each point that `point` of `step` reads.
    fn before(self, step: u32, point: u32, found: impl FnMut(u32)) {
        self.pattern.before(step, point, self.width, found);
    }

    /// The value of a task that read `inputs`.
    fn value(self, step: u32, point: u32, inputs: u64) -> u64 {
        let own = mix(u64::from(step), u64::from(point));
        spend(mix(inputs, own), self.turns)
    }

    /// The number that every run must end with, by one thread.
    #[must_use]
    pub fn reference(self) -> u64 {
        let mut old = vec![0; self.width as usize];
        let mut new = old.clone();
        for step in 0..self.steps {
            for point in 0..self.width {
                let mut inputs = 0;
                self.before(step, point, |at| inputs = mix(inputs, old[at as usize]));
                new[point as usize] = self.value(step, point, inputs);
            }
            core::mem::swap(&mut old, &mut new);
        }
        old.into_iter().fold(0, mix)
    }
}

impl Points {
    /// Registers the memory.
    ///
    /// # Errors
    /// [`TaskError`] where there is no room.
    pub fn new(tasks: &mut impl Tasks, graph: Graph) -> Result<Self, TaskError> {
        let cells = tasks.data((FIELDS * graph.width) as usize)?;
        Ok(Self { graph, cells })
    }

    /// Registers all tasks.
    ///
    /// # Errors
    /// [`TaskError`] where a task cannot be registered.
    pub fn submit(self, tasks: &mut impl Tasks) -> Result<(), TaskError> {
        for step in 0..self.graph.steps {
            for point in 0..self.graph.width {
                tasks.spawn(Node { points: self, step, point })?;
            }
        }
        Ok(())
    }

    /// The number that the last step's values make, when all tasks are over.
    ///
    /// # Errors
    /// [`TaskError`] where a task failed.
    pub fn result(self, tasks: &mut impl Tasks) -> Result<u64, TaskError> {
        let last = self.graph.steps.saturating_sub(1) % FIELDS;
        let cells = self.cells.part((last * self.graph.width) as usize, self.graph.width as usize);
        let values = tasks.values(cells, |_| [0; 8])?;
        Ok(values.into_iter().map(|[_, _, value, ..]| value).fold(0, mix))
    }

    fn cell(self, step: u32, point: u32) -> Part<Cell> {
        self.cells.part((step % FIELDS * self.graph.width + point) as usize, 1)
    }
}

/// One task.
#[derive(Clone, Copy, Debug)]
struct Node {
    points: Points,
    step: u32,
    point: u32,
}

impl Kernel for Node {
    const NAME: &'static str = "point";

    fn declare(&self, footprint: &mut Footprint) {
        let Self { points, step, point } = *self;
        points.graph.before(step, point, |at| {
            footprint.input(points.cell(step - 1, at));
        });
        footprint.output(points.cell(step, point));
    }

    fn run(&self, mem: &Mem<'_>) -> Result<(), Failure> {
        let Self { points, step, point } = *self;
        let mut inputs = 0;
        let mut wrong = None;
        points.graph.before(step, point, |at| {
            match mem.read(points.cell(step - 1, at)).map(|cell| cell[0]) {
                Ok([s, p, value, ..]) if (s, p) == (u64::from(step - 1), u64::from(at)) => {
                    inputs = mix(inputs, value);
                }
                Ok([s, p, ..]) => wrong = Some(format!("point {at} holds point {p} of step {s}")),
                Err(failure) => wrong = Some(failure.to_string()),
            }
        });
        if let Some(what) = wrong {
            return Err(Failure::new(format!("step {step}, point {point}: {what}")));
        }
        let value = points.graph.value(step, point, inputs);
        mem.write(points.cell(step, point))?[0] =
            [u64::from(step), u64::from(point), value, 0, 0, 0, 0, 0];
        Ok(())
    }
}
