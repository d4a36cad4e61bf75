//! What a task will do with memory, said before it runs: ranges, how each is used, and what a
//! simulated machine needs beside.

use crate::range::Range;

/// How a task uses a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// Reads what earlier tasks wrote.
    In,
    /// Writes without looking at what was there.
    Out,
    /// Reads and writes.
    InOut,
    /// Reads and writes, in any order among neighbours that say the same of the same range; never two
    /// at once.
    Commutative,
    /// Adds to what is there by an operation whose order does not matter; neighbours that say the same
    /// run at once, each on values of its own.
    Reduce(Op),
}

/// What a reduction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Op {
    /// Sum; integers wrap.
    Sum,
    /// Smaller of both.
    Min,
    /// Larger of both.
    Max,
}

impl Mode {
    /// Whether the task may change the range.
    #[must_use]
    pub const fn writes(self) -> bool {
        !matches!(self, Self::In)
    }

    /// Whether the task needs what was there.
    #[must_use]
    pub const fn reads(self) -> bool {
        !matches!(self, Self::Out)
    }
}

/// One range of a footprint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Access {
    /// The bytes.
    pub range: Range,
    /// How they are used.
    pub mode: Mode,
    /// How often the kernel goes through the range as the last-level cache sees it: what a simulated
    /// machine charges beyond the first time. With 0 it is declared and not touched.
    pub passes: f32,
}

/// What a kernel declares.
#[derive(Clone, Debug, Default)]
pub struct Footprint {
    accesses: Vec<Access>,
    unseen: Vec<Access>,
    flops: f64,
    priority: i32,
}

impl Footprint {
    /// Nothing declared yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The task reads `range`.
    pub fn input(&mut self, range: impl Into<Range>) -> &mut Self {
        self.access(range.into(), Mode::In)
    }

    /// The task writes `range` and does not look at what was there.
    pub fn output(&mut self, range: impl Into<Range>) -> &mut Self {
        self.access(range.into(), Mode::Out)
    }

    /// The task reads and writes `range`.
    pub fn inout(&mut self, range: impl Into<Range>) -> &mut Self {
        self.access(range.into(), Mode::InOut)
    }

    /// The task reads and writes `range`; its order among neighbours that say the same is free.
    pub fn commutative(&mut self, range: impl Into<Range>) -> &mut Self {
        self.access(range.into(), Mode::Commutative)
    }

    /// The task adds to `range` by `op`.
    pub fn reduce(&mut self, range: impl Into<Range>, op: Op) -> &mut Self {
        self.access(range.into(), Mode::Reduce(op))
    }

    /// One more range. An empty one is left out.
    pub fn access(&mut self, range: Range, mode: Mode) -> &mut Self {
        if range.bytes > 0 {
            self.accesses.push(Access { range, mode, passes: 1.0 });
        }
        self
    }

    /// The task uses `range` without a word to the scheduler, as through a pointer: on a simulated machine it costs
    /// what another range costs, but it orders no tasks, counts for no region, and gets no home. A live task cannot
    /// reach it, since nothing keeps others from it.
    pub fn touched(&mut self, range: impl Into<Range>, mode: Mode) -> &mut Self {
        let range = range.into();
        if range.bytes > 0 {
            self.unseen.push(Access { range, mode, passes: 1.0 });
        }
        self
    }

    /// The range declared last is gone through `passes` times; one that was only touched is gone through once.
    pub fn passes(&mut self, passes: f32) -> &mut Self {
        if let Some(last) = self.accesses.last_mut() {
            last.passes = passes;
        }
        self
    }

    /// Floating-point operations of the task.
    pub const fn flops(&mut self, flops: f64) -> &mut Self {
        self.flops = flops;
        self
    }

    /// Tasks with a larger number go first among ready ones of a queue; 0 where nothing is said.
    pub const fn priority(&mut self, priority: i32) -> &mut Self {
        self.priority = priority;
        self
    }

    /// The ranges, in the order in which they were declared.
    #[must_use]
    pub fn accesses(&self) -> &[Access] {
        &self.accesses
    }

    /// What is used without a word to the scheduler, in the order in which it was named.
    #[must_use]
    pub fn unseen(&self) -> &[Access] {
        &self.unseen
    }

    /// Floating-point operations, 0 where nothing was said.
    #[must_use]
    pub const fn total_flops(&self) -> f64 {
        self.flops
    }

    /// The priority.
    #[must_use]
    pub const fn urgency(&self) -> i32 {
        self.priority
    }

    /// Bytes of all ranges that the scheduler sees.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.accesses.iter().map(|access| access.range.bytes).sum()
    }

    /// Says the same as `other`.
    pub(crate) fn assign(&mut self, other: &Self) {
        self.accesses.clone_from(&other.accesses);
        self.unseen.clone_from(&other.unseen);
        (self.flops, self.priority) = (other.flops, other.priority);
    }

    /// Takes back the leave to change the order.
    pub(crate) fn order_all(&mut self) {
        for access in &mut self.accesses {
            if access.mode == Mode::Commutative {
                access.mode = Mode::InOut;
            }
        }
    }

    /// Forgets everything; keeps the memory.
    pub fn clear(&mut self) {
        self.accesses.clear();
        self.unseen.clear();
        (self.flops, self.priority) = (0.0, 0);
    }
}
