//! Registering a task: its place in the arena, its ranges, and whom it waits for.

use isochrone_os::cache::claim_line;
use isochrone_os::race;

use super::children::Children;
use super::goal::Wake;
use super::state::Scheduler;
use super::worker::Worker;
use crate::arena::objects::Refused;
use crate::arena::slot::{
    BLOCK_ACCESSES, CHILDREN, INLINE_ACCESSES, NONE, Slot, Stored, TaskRef, flag, lines_of,
};
use crate::arena::{FREE_BLOCKS, FREE_EDGES, FREE_SLOTS, KernelKind, ROOT, age};
use crate::error::TaskError;
use crate::footprint::{Access, Mode};
use crate::range::Range;
use crate::sync::Ordering;

/// Slots that are fetched before they are needed: whoever ran the last task there has their lines.
const CLAIMED_AHEAD: usize = 4;
/// The same for edges: those that the next task will need or so.
const EDGES_AHEAD: usize = 8;

/// How a task comes to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// By whoever takes it from a queue.
    Queued,
    /// By the worker that registers it, as soon as it waits for nothing.
    AtOnce,
}

impl How {
    fn flags(self) -> u32 {
        match self {
            Self::Queued => 0,
            Self::AtOnce => flag::SENTINEL,
        }
    }

    fn waiter(self, worker: &Worker) -> u32 {
        match self {
            Self::Queued => 0,
            Self::AtOnce => worker.seat + 1,
        }
    }
}

/// What became of a task that was to be registered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Submitted {
    /// It is registered, and will run.
    Done,
    /// There is no room; the driver lets some tasks run, and tries again.
    Full,
    /// It is registered, but there are no edges left from these tasks; the driver lets some tasks run,
    /// and tries [`Scheduler::connect`] again.
    Short(Vec<TaskRef>),
}

impl Scheduler {
    /// The program's own tasks.
    pub(crate) fn program(&self) -> Children {
        Children { window: self.window(), ..Children::of(ROOT) }
    }

    /// A free slot for a task that will wait for its turn. A quarter of the arena is spared for tasks
    /// that run at once.
    #[inline]
    pub(crate) fn slot_for(&self, worker: &mut Worker) -> Option<u32> {
        let pool = self.arena.pool(FREE_SLOTS);
        let spare = pool.len() / 4;
        if pool.free() < spare {
            // Some of what is at hand was spared.
            return None;
        }
        if let Some(ahead) = worker.slots.ahead(CLAIMED_AHEAD) {
            self.arena.slot(ahead).claim(worker.lines.registers);
        }
        worker.slots.take(pool, spare)
    }

    /// Whether only spared slots are left.
    pub(crate) fn is_low(&self) -> bool {
        let pool = self.arena.pool(FREE_SLOTS);
        pool.free() <= pool.len() / 4
    }

    /// A free slot for a task that runs at once, or for a sentinel.
    pub(crate) fn spare_slot(&self, worker: &mut Worker) -> Option<u32> {
        worker.slots.take(self.arena.pool(FREE_SLOTS), 0)
    }

    /// Registers the task whose arguments are in `slot` and whose footprint is the worker's. `Full`
    /// leaves everything as it was, and the slot with the caller.
    ///
    /// # Errors
    /// [`TaskError`] for a range that cannot be used, and for more kernels than there are numbers.
    #[inline]
    pub(crate) fn submit(
        &self,
        worker: &mut Worker,
        children: &mut Children,
        task: u32,
        kind: &'static KernelKind,
        how: How,
        wake: &impl Wake,
    ) -> Result<Submitted, TaskError> {
        if children.parent == ROOT && self.is_past_schedule() {
            return Err(TaskError::Schedule("the program registers more tasks".to_owned()));
        }
        let kernel = worker.kernel_id(kind, || self.arena.kernel_id(kind));
        let kernel = kernel.ok_or(TaskError::TooManyKernels)?;
        let slot = self.arena.slot(task);
        let count = worker.footprint.accesses().len();
        slot.kernel.store(kernel, Ordering::Relaxed);
        slot.parent.store(children.parent, Ordering::Relaxed);
        slot.priority.store(worker.footprint.urgency(), Ordering::Relaxed);
        slot.accesses.store(u32::try_from(count).unwrap_or(u32::MAX), Ordering::Relaxed);
        slot.more.store(NONE, Ordering::Relaxed);
        slot.hint.store(0, Ordering::Relaxed);
        let bare = count == 0 && kind.bytes == 0;
        let unnamed = count == 0 && !worker.named;
        let bits = if bare { flag::BARE } else { 0 } | if unnamed { flag::UNNAMED } else { 0 };
        worker.lines.registers = lines_of(u32::from(count > 0), bare);
        slot.flags.store(how.flags() | bits, Ordering::Relaxed);
        slot.children.store(CHILDREN, Ordering::Relaxed);
        slot.target.store(0, Ordering::Relaxed);
        slot.waiter.store(how.waiter(worker), Ordering::Relaxed);
        if count > 0 {
            let outcome = self.enter(worker, children, task, kind.name, how)?;
            if outcome == Submitted::Full {
                return Ok(outcome);
            }
            self.give_number(task, children.parent == ROOT);
            children.spawned += 1;
            let held = children.window.is_some();
            let outcome = self.connect_to(worker, task, held, wake);
            if let Some(window) = children.window.as_deref_mut() {
                if outcome != Submitted::Done {
                    // It will be connected when tasks have run, so it is not held back.
                    window.drop_last();
                } else if self.is_full(window) {
                    self.close_window(worker, children, wake);
                }
            }
            return Ok(outcome);
        }
        self.give_number(task, children.parent == ROOT);
        children.spawned += 1;
        slot.pending.store(0, Ordering::Relaxed);
        race::release(&slot.pending);
        let inside = children.parent != ROOT && how == How::Queued;
        if !inside || !self.nest(worker, task, wake) {
            self.make_ready(worker, task, false, wake);
        }
        Ok(Submitted::Done)
    }

    /// Enters the ranges of the worker's footprint; whom the task waits for is in `worker.before`.
    fn enter(
        &self,
        worker: &mut Worker,
        children: &mut Children,
        task: u32,
        kernel: &'static str,
        how: How,
    ) -> Result<Submitted, TaskError> {
        let mut footprint = core::mem::take(&mut worker.footprint);
        if how == How::AtOnce {
            // It could not wait for a token in a list.
            footprint.order_all();
        }
        let outcome = self.enter_all(worker, children, task, kernel, footprint.accesses());
        worker.footprint = footprint;
        outcome
    }

    fn enter_all(
        &self,
        worker: &mut Worker,
        children: &mut Children,
        task: u32,
        kernel: &'static str,
        accesses: &[Access],
    ) -> Result<Submitted, TaskError> {
        for access in accesses {
            self.arena.object(access.range).map_err(|why| refused(why, kernel, access.range))?;
        }
        let slot = self.arena.slot(task);
        if accesses.len() > INLINE_ACCESSES && !self.take_blocks(worker, slot, accesses.len())? {
            return Ok(Submitted::Full);
        }
        let me = TaskRef { slot: task, age: age(slot.successors.load(Ordering::Relaxed)) };
        worker.before.clear();
        let mut flags = slot.flags.load(Ordering::Relaxed);
        let mut block = slot.more.load(Ordering::Relaxed);
        for (i, access) in accesses.iter().enumerate() {
            let domain = &mut children.domain;
            let token =
                domain.enter(&self.arena, me, access.range, access.mode, &mut worker.before);
            if let Some(window) = children.window.as_deref_mut() {
                window.share(access.range, worker.before.len());
            }
            if token != 0 && access.mode == Mode::Commutative {
                flags |= flag::TOKENS;
            }
            let stored = Stored { range: access.range, mode: access.mode, token };
            if let Some(cell) = slot.first.get(i) {
                cell.put(stored);
                continue;
            }
            let at = (i - INLINE_ACCESSES) % BLOCK_ACCESSES;
            if at == 0 && i > INLINE_ACCESSES {
                block = self.arena.blocks[block as usize].next.load(Ordering::Relaxed);
            }
            self.arena.blocks[block as usize].cells[at].put(stored);
        }
        slot.flags.store(flags, Ordering::Relaxed);
        if let Some(window) = children.window.as_deref_mut() {
            self.hold(worker, window, me);
        }
        tidy(&mut worker.before, me);
        Ok(Submitted::Done)
    }

    /// Takes the blocks for a task with many ranges; false if there are not enough free.
    fn take_blocks(
        &self,
        worker: &mut Worker,
        slot: &Slot,
        count: usize,
    ) -> Result<bool, TaskError> {
        let wanted = (count - INLINE_ACCESSES).div_ceil(BLOCK_ACCESSES);
        if wanted + 1 >= self.arena.blocks.len() {
            return Err(TaskError::TooManyRanges { ranges: count });
        }
        let (table, pool) = (&self.arena.blocks, self.arena.pool(FREE_BLOCKS));
        if !worker.blocks.reserve(wanted, pool) {
            worker.blocks.pass_on(0, pool);
            return Ok(false);
        }
        let mut next = NONE;
        for _ in 0..wanted {
            let Some(block) = worker.blocks.take(pool, 0) else { break };
            table[block as usize].next.store(next, Ordering::Relaxed);
            next = block;
        }
        slot.more.store(next, Ordering::Relaxed);
        Ok(true)
    }

    /// Pushes an edge from each task of `worker.before`; true if `task` then waits for nothing. The hand
    /// must hold as many edges. A task that is `held` waits once more, for who lets it go.
    fn link(&self, worker: &mut Worker, task: u32, held: bool) -> bool {
        let pool = self.arena.pool(FREE_EDGES);
        let before = u32::try_from(worker.before.len()).unwrap_or(u32::MAX);
        // One more, so that the task is not ready before all are counted.
        self.arena.slot(task).pending.store(before + 1, Ordering::Relaxed);
        let mut over = u32::from(!held);
        for at in 0..worker.before.len() {
            let predecessor = worker.before[at];
            if !self.arena.is_live(predecessor) {
                over += 1;
                continue;
            }
            match worker.edges.take(pool, 0) {
                Some(edge) if self.arena.follow(predecessor, task, edge) => {}
                Some(edge) => {
                    worker.edges.give(edge, pool);
                    over += 1;
                }
                None => debug_assert!(false, "edges were reserved"),
            }
        }
        self.arena.satisfy(task, over)
    }

    /// Registers with an entered task those that it waits for, which are in `worker.before`. `Short` if
    /// there are not enough edges now.
    pub(crate) fn connect(&self, worker: &mut Worker, task: u32, wake: &impl Wake) -> Submitted {
        self.connect_to(worker, task, false, wake)
    }

    fn connect_to(
        &self,
        worker: &mut Worker,
        task: u32,
        held: bool,
        wake: &impl Wake,
    ) -> Submitted {
        worker.before.retain(|task| self.arena.is_live(*task));
        // An edge to each will be pushed: all their lines are asked for before the first is waited for.
        worker.before.iter().for_each(|task| self.arena.slot(task.slot).claim(1));
        if let Some(ahead) = worker.edges.ahead(EDGES_AHEAD) {
            claim_line(core::ptr::from_ref(&self.arena.edges[ahead as usize]).cast());
        }
        let wanted = worker.before.len();
        let pool = self.arena.pool(FREE_EDGES);
        if worker.edges.len() < wanted && !worker.edges.reserve(wanted, pool) {
            worker.edges.pass_on(0, pool);
            return Submitted::Short(core::mem::take(&mut worker.before));
        }
        if self.link(worker, task, held) {
            self.make_ready(worker, task, false, wake);
        }
        Submitted::Done
    }

    /// Makes `task` a sentinel that waits for the tasks in `worker.before`.
    pub(crate) fn sentinel(&self, worker: &mut Worker, task: u32, wake: &impl Wake) -> Submitted {
        let slot = self.arena.slot(task);
        slot.flags.store(flag::SENTINEL, Ordering::Relaxed);
        slot.accesses.store(0, Ordering::Relaxed);
        slot.more.store(NONE, Ordering::Relaxed);
        slot.waiter.store(worker.seat + 1, Ordering::SeqCst);
        slot.pending.store(1, Ordering::Relaxed);
        let mut before = core::mem::take(&mut worker.before);
        tidy(&mut before, TaskRef { slot: task, age: 0 });
        worker.before = before;
        self.connect(worker, task, wake)
    }

    /// The sentinel was waited for.
    pub(crate) fn retire(&self, worker: &mut Worker, task: u32) {
        self.arena.end(task, |_, _| (), |_| ());
        self.vacate(worker, task, self.arena.slot(task));
    }
}

/// Leaves out the task itself and what stands there twice.
fn tidy(before: &mut Vec<TaskRef>, me: TaskRef) {
    const FEW: usize = 24;
    if before.len() <= FEW {
        let mut kept = 0;
        for at in 0..before.len() {
            let task = before[at];
            // All of them are looked at: they are few, and no branch is guessed wrong.
            let same = |other: &&TaskRef| other.key() == task.key();
            if task != me && before[..kept].iter().filter(same).count() == 0 {
                before[kept] = task;
                kept += 1;
            }
        }
        before.truncate(kept);
        return;
    }
    before.retain(|task| *task != me);
    before.sort_unstable();
    before.dedup();
}

/// The error for a range that cannot be used.
pub(crate) fn refused(why: Refused, kernel: &'static str, range: Range) -> TaskError {
    match why {
        Refused::Unknown => TaskError::UnknownData { kernel, range },
        Refused::Freed => TaskError::FreedData { kernel, range },
        Refused::Outside { bytes } => TaskError::OutOfRange { kernel, range, bytes },
    }
}
