//! What a worker knows alone: free entries, tasks it took and has not begun, and what it has not told
//! the others yet.

use crate::arena::nest;
use crate::arena::outbox::{Ends, ROOM};
use crate::arena::pool::Hand;
use crate::arena::slot::{ALL_LINES, Lines, TaskRef};
use crate::arena::{Arena, KernelKind};
use crate::footprint::Footprint;
use crate::range::Range;

/// Kernels whose numbers a worker remembers.
const REMEMBERED: usize = 16;

/// What one region holds of the task at hand.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Held {
    /// Parts of ranges that lie there; those that are read and written may count twice.
    pub(super) ranges: f64,
    /// Their bytes.
    pub(super) bytes: f64,
}

/// A worker's own state.
#[derive(Debug)]
pub(crate) struct Worker {
    /// Its number.
    pub(crate) seat: u32,
    /// The queue it takes from first.
    pub(crate) queue: usize,
    /// Its region, by the topology's number.
    pub(crate) region: usize,
    pub(crate) slots: Hand,
    pub(crate) edges: Hand,
    pub(crate) blocks: Hand,
    /// Lines of the tasks that it registered and ran last: what comes next will need as many.
    pub(crate) lines: Lines,
    /// Whether the task that it registers may be waited for by its name.
    pub(crate) named: bool,
    /// What it knows of its outbox, and room for what it takes from there.
    pub(crate) outbox: Ends,
    pub(crate) letters: Vec<u32>,
    /// What it knows of its nest.
    pub(crate) nest: nest::Ends,
    /// A successor to run next.
    pub(crate) successor: Option<u32>,
    /// Tasks taken from a queue, the next one last.
    pub(crate) stash: Vec<u32>,
    /// Children that finished since their parent was told, all of one parent.
    pub(crate) finished: u32,
    pub(crate) parent: u32,
    /// The task last taken from another region's queue, and that region plus one.
    pub(crate) stolen: (u32, u32),
    /// The task last kept as a successor, where a trace is kept.
    pub(crate) kept: u32,
    /// Tasks of a schedule that it has begun.
    pub(crate) followed: u32,
    /// Since when there was nothing to do.
    pub(crate) idle_since: Option<u64>,
    /// Whether it lies in the list of its queue's resting seats.
    pub(crate) resting: bool,
    /// When tasks were last taken from a queue, and how many ran since.
    pub(crate) taken_at: u64,
    pub(crate) ran: u32,
    /// Nanoseconds a task, lately.
    pub(crate) task_ns: u64,
    /// Predecessors of the task at hand.
    pub(crate) before: Vec<TaskRef>,
    pub(crate) footprint: Footprint,
    /// Room for what views of the next task show.
    pub(crate) shown: Vec<(Range, bool)>,
    /// What each region holds of the task at hand.
    pub(super) held: Vec<Held>,
    /// The last part of its thread's stack, in which no task begins; nothing where that is not known.
    pub(crate) stack_last: core::ops::Range<usize>,
    /// Tasks inside of which the worker is.
    pub(crate) depth: u32,
    /// Whether that one runs at once, instead of from a queue.
    pub(crate) at_once: bool,
    /// The innermost of them.
    pub(crate) task: u32,
    /// Tasks it ran, and times it looked for work in vain.
    pub(crate) turns: u64,
    /// Only descendants of this task may be run: the worker is deep inside of others.
    pub(crate) only: Option<u32>,
    random: u64,
    kernels: [(usize, u32); REMEMBERED],
}

impl Worker {
    /// A worker in `seat`, which takes from `queue` and is in `region`.
    pub(crate) fn new(
        arena: &Arena,
        seat: u32,
        queue: usize,
        region: usize,
        regions: usize,
        seed: u64,
    ) -> Self {
        let workers = arena.seats.len();
        Self {
            seat,
            queue,
            region,
            slots: Hand::of(arena.slots.len(), workers),
            edges: Hand::of(arena.edges.len(), workers),
            blocks: Hand::of(arena.blocks.len(), workers),
            lines: Lines { registers: ALL_LINES, runs: ALL_LINES },
            named: true,
            outbox: arena.outboxes[seat as usize].ends(),
            letters: Vec::with_capacity(ROOM),
            nest: arena.nests[seat as usize].ends(),
            successor: None,
            stash: Vec::with_capacity(64),
            finished: 0,
            parent: 0,
            stolen: (0, 0),
            kept: 0,
            followed: 0,
            idle_since: None,
            resting: false,
            taken_at: 0,
            ran: 0,
            task_ns: u64::MAX,
            before: Vec::with_capacity(64),
            footprint: Footprint::new(),
            shown: Vec::new(),
            held: vec![Held::default(); regions],
            stack_last: 0..0,
            depth: 0,
            at_once: false,
            task: 0,
            turns: 0,
            only: None,
            random: seed ^ (u64::from(seat) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            kernels: [(0, 0); REMEMBERED],
        }
    }

    /// A random number; splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
    pub(crate) fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// True with chance `chance`.
    pub(crate) fn chance(&mut self, chance: f32) -> bool {
        // Compares the upper 24 bits, which a float holds.
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 0 to 2^24"
        )]
        let limit = (chance.clamp(0.0, 1.0) * 16_777_216.0) as u64;
        limit >= 1 << 24 || self.random() >> 40 < limit
    }

    /// The number of a kernel, asked once and remembered.
    #[inline]
    pub(crate) fn kernel_id(
        &mut self,
        kind: &'static KernelKind,
        ask: impl FnOnce() -> Option<u32>,
    ) -> Option<u32> {
        let address = core::ptr::from_ref(kind).addr();
        let place = address / align_of::<KernelKind>() % REMEMBERED;
        let (known, id) = self.kernels[place];
        if known == address {
            return Some(id);
        }
        let id = ask()?;
        self.kernels[place] = (address, id);
        Some(id)
    }

    /// Whether there are tasks that need no queue.
    pub(crate) fn holds_some(&self) -> bool {
        self.successor.is_some() || !self.stash.is_empty()
    }

    /// The task to run next that needs no queue.
    #[inline]
    pub(crate) fn at_hand(&mut self) -> Option<u32> {
        self.successor.take().or_else(|| self.stash.pop())
    }
}
