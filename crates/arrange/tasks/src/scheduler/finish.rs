//! The end of a task: who waited for it, its parent, and its place in the arena.

use isochrone_os::race;

use super::fate::Fate;
use super::goal::Wake;
use super::state::Scheduler;
use super::worker::Worker;
use crate::arena::slot::{CHILDREN, NONE, Slot, TaskRef, flag, lines_of};
use crate::arena::{FAILURE_WORDS, FREE_BLOCKS, FREE_EDGES, FREE_SLOTS, ROOT};
use crate::failure::Failure;
use crate::sync::{Ordering, model_order};

/// Finished children after which a parent is told, at the latest.
const TELL_AT: u32 = 64;

impl Scheduler {
    /// The task's body is over, and registered `spawned` children. Where some of them are not, the last
    /// of them ends the task.
    #[inline]
    pub(crate) fn finish(&self, worker: &mut Worker, task: u32, spawned: u32, wake: &impl Wake) {
        worker.ran += 1;
        worker.turns += 1;
        if spawned > 0 {
            let children = &self.arena.slot(task).children;
            let rest = CHILDREN - spawned;
            race::release(children);
            // AcqRel, as in `satisfy`: whoever comes last sees what all children wrote.
            if children.fetch_sub(rest, Ordering::AcqRel) != rest {
                return;
            }
            race::acquire(children);
        }
        self.complete(worker, task, wake);
        if worker.finished >= TELL_AT {
            self.tell_parent(worker, wake);
        }
    }

    /// Ends a task whose body and children are over.
    #[inline]
    fn complete(&self, worker: &mut Worker, task: u32, wake: &impl Wake) {
        let slot = self.arena.slot(task);
        let flags = slot.flags.load(Ordering::Relaxed);
        let parent = slot.parent.load(Ordering::Relaxed);
        worker.lines.runs =
            lines_of(slot.accesses.load(Ordering::Relaxed), flags & flag::BARE != 0);
        if flags & (flag::TOKENS | flag::FAILED) != 0 {
            self.complete_flagged(worker, task, parent, flags, wake);
        }
        if flags & flag::UNNAMED == 0 {
            self.release(worker, task, wake);
        }
        self.vacate(worker, task, slot);
        if worker.parent != parent {
            self.tell_parent(worker, wake);
            worker.parent = parent;
        }
        worker.finished += 1;
    }

    /// The task is over for those that wait for it.
    #[inline]
    fn release(&self, worker: &mut Worker, task: u32, wake: &impl Wake) {
        let mut ready = core::mem::take(&mut worker.before);
        ready.clear();
        let edges = &mut worker.edges;
        self.arena.end(
            task,
            |after, waiter| ready.push(TaskRef { slot: after, age: waiter }),
            |edge| edges.give(edge, self.arena.pool(FREE_EDGES)),
        );
        for TaskRef { slot: after, age: waiter } in ready.iter().copied() {
            // A sentinel's slot may be another task's by now: only its seat is looked at.
            match waiter.checked_sub(1) {
                Some(seat) => {
                    self.wake_seat(seat, wake);
                }
                None => self.make_ready(worker, after, true, wake),
            }
        }
        worker.before = ready;
    }

    #[cold]
    fn complete_flagged(
        &self,
        worker: &mut Worker,
        task: u32,
        parent: u32,
        flags: u32,
        wake: &impl Wake,
    ) {
        if flags & flag::TOKENS != 0 {
            self.give_tokens(worker, task, wake);
        }
        if flags & flag::FAILED != 0 {
            // Nobody inside of the task waited for the child that failed, so it is the task that failed.
            let run = self.arena.run();
            run.failures.fetch_sub(1, Ordering::Relaxed);
            {
                let _guard = run.failure_lock.hold();
                if run.failure_of.load(Ordering::Relaxed) == task {
                    run.failure_of.store(parent, Ordering::Relaxed);
                }
            }
            self.mark(parent, flags & flag::CANCELLED);
        }
    }

    /// The slot is free again.
    #[inline]
    pub(crate) fn vacate(&self, worker: &mut Worker, task: u32, slot: &Slot) {
        let mut block = slot.more.load(Ordering::Relaxed);
        while block != NONE {
            let next = self.arena.blocks[block as usize].next.load(Ordering::Relaxed);
            worker.blocks.give(block, self.arena.pool(FREE_BLOCKS));
            block = next;
        }
        worker.slots.give(task, self.arena.pool(FREE_SLOTS));
    }

    /// Tells a parent of its children that finished.
    pub(crate) fn tell_parent(&self, worker: &mut Worker, wake: &impl Wake) {
        while worker.finished > 0 {
            let (parent, count) = (worker.parent, worker.finished);
            worker.finished = 0;
            let slot = self.arena.slot(parent);
            race::release(&slot.children);
            // SeqCst: against a parent that says whom to wake and then looks once more.
            let left = slot.children.fetch_sub(count, Ordering::SeqCst) - count;
            model_order();
            if left == 0 && parent != ROOT {
                race::acquire(&slot.children);
                self.complete(worker, parent, wake);
            } else if left == slot.target.load(Ordering::SeqCst)
                && slot.waiter.load(Ordering::SeqCst) != worker.seat + 1
            {
                self.wake_waiter(slot, wake);
            }
        }
    }

    /// A task failed: its parent must know, and what it should have written is undone.
    pub(crate) fn fail(&self, task: u32, failure: &Failure) {
        let slot = self.arena.slot(task);
        let parent = slot.parent.load(Ordering::Relaxed);
        self.leave_undone(task);
        let run = self.arena.run();
        let guard = run.failure_lock.hold();
        // What fails since it was cancelled is not worth a word.
        let cancelled =
            self.arena.slot(parent).flags.load(Ordering::Relaxed) & flag::CANCELLED != 0;
        if !cancelled && run.failure_kernel.load(Ordering::Relaxed) == 0 {
            run.failure_of.store(parent, Ordering::Relaxed);
            run.failure_kernel.store(slot.kernel.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            let bytes = failure.text().as_bytes();
            let kept = bytes.len().min(8 * FAILURE_WORDS);
            for (word, bytes) in run.failure_text.iter().zip(bytes[..kept].chunks(8)) {
                let mut eight = [0; 8];
                eight[..bytes.len()].copy_from_slice(bytes);
                word.store(u64::from_le_bytes(eight), Ordering::Relaxed);
            }
            run.failure_len.store(u32::try_from(kept).unwrap_or(0), Ordering::Relaxed);
        }
        drop(guard);
        self.mark(parent, 0);
    }

    /// Children of a task that have not begun are left out, and theirs, and whoever waits for them is told.
    pub(crate) fn cancel(&self, parent: u32) {
        self.mark(parent, flag::CANCELLED);
    }

    /// The same of all tasks, by any thread; nothing where the program has none.
    pub(crate) fn cancel_all(&self) {
        let run = self.arena.run();
        let _guard = run.failure_lock.hold();
        if run.busy.load(Ordering::Relaxed) != 0 {
            self.cancel(ROOT);
        }
    }

    /// The program has waited for all of its tasks: what is cancelled from here on are later ones.
    pub(crate) fn is_over(&self) {
        let run = self.arena.run();
        let _guard = run.failure_lock.hold();
        run.busy.store(0, Ordering::Relaxed);
    }

    /// Whether somebody cancelled the children of a task, or of one above it.
    fn is_cancelled(&self, parent: u32) -> bool {
        let mut above = parent;
        loop {
            let slot = self.arena.slot(above);
            if slot.flags.load(Ordering::Relaxed) & flag::CANCELLED != 0 {
                return true;
            }
            if above == ROOT {
                return false;
            }
            above = slot.parent.load(Ordering::Relaxed);
        }
    }

    /// Whether what a task does is of no use any more: a task beside it, or above it, failed or was cancelled.
    pub(crate) fn is_in_vain(&self, task: u32) -> bool {
        let mut above = task;
        while above != ROOT {
            above = self.arena.slot(above).parent.load(Ordering::Relaxed);
            if self.arena.slot(above).flags.load(Ordering::Relaxed) & flag::FAILED != 0 {
                return true;
            }
        }
        false
    }

    /// A task is not run, since another failed; what its arguments own ends.
    pub(crate) fn leave_out(&self, worker: &Worker, task: u32) {
        race::acquire(&self.arena.slot(task).pending);
        self.arena.discard(task);
        self.leave_undone(task);
        self.count(worker, super::counts::Count::LeftOut, 1);
    }

    /// See [`Scheduler::is_void`], where something failed before.
    #[cold]
    pub(super) fn is_void_after_failures(&self, task: u32) -> bool {
        let slot = self.arena.slot(task);
        let parent = slot.parent.load(Ordering::Relaxed);
        if self.arena.slot(parent).flags.load(Ordering::Relaxed) & flag::FAILED != 0 {
            return true;
        }
        if self.is_cancelled(parent) {
            // Its parent goes on, and must know that this one did not run.
            self.mark(parent, flag::CANCELLED);
            return true;
        }
        let looked_at = self.arena.accesses(task).filter(|access| access.mode.reads());
        for range in looked_at.map(|access| access.range) {
            if let Some((undone, kernel)) = self.arena.undone().of(range) {
                let name = self.arena.kernel(kernel).map_or("a task", |kind| kind.name);
                let words =
                    format!("it looks at {undone}, which {name} left undone when it failed");
                self.fail(task, &Failure::new(words));
                return true;
            }
        }
        let written = self.arena.accesses(task).filter(|access| !access.mode.reads());
        written.for_each(|access| self.arena.undone().mend(access.range));
        false
    }

    /// What a task should have written is undone.
    fn leave_undone(&self, task: u32) {
        let kernel = self.arena.slot(task).kernel.load(Ordering::Relaxed);
        let written = self.arena.accesses(task).filter(|access| access.mode.writes());
        written.for_each(|access| self.arena.undone().add(access.range, kernel));
    }

    /// A task was told of the failure of its own tasks: what they left undone is its to mend, or to fail with.
    fn take_over_undone(&self, parent: u32) {
        let written = self.arena.accesses(parent).filter(|access| access.mode.writes());
        written.for_each(|access| self.arena.undone().mend(access.range));
    }

    /// A child of the task failed, or its children were cancelled: `more` than [`flag::FAILED`].
    fn mark(&self, parent: u32, more: u32) {
        let flags = &self.arena.slot(parent).flags;
        if flags.fetch_or(flag::FAILED | more, Ordering::AcqRel) & flag::FAILED == 0 {
            self.arena.run().failures.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// What became of a task's children, of which `all` are over or not; it is forgotten by asking. What is cancelled
    /// stays so as long as some of it might begin.
    pub(crate) fn take_fate(&self, parent: u32, all: bool) -> Fate {
        let run = self.arena.run();
        if run.failures.load(Ordering::Acquire) == 0 {
            return Fate::Well;
        }
        let take = |flags: u32| {
            let stays = flags & flag::CANCELLED != 0 && !all;
            (!stays).then_some(flags & !(flag::FAILED | flag::CANCELLED))
        };
        let flags = &self.arena.slot(parent).flags;
        let Ok(flags) = flags.fetch_update(Ordering::AcqRel, Ordering::Acquire, take) else {
            return Fate::StillCancelled;
        };
        if flags & flag::FAILED == 0 {
            return Fate::Well;
        }
        run.failures.fetch_sub(1, Ordering::AcqRel);
        if parent != ROOT {
            self.take_over_undone(parent);
        }
        match self.take_words(parent) {
            None if flags & flag::CANCELLED != 0 => Fate::Cancelled,
            words => Fate::Failed(words),
        }
    }

    /// The kernel that failed first and what it said, where these words are for this task.
    fn take_words(&self, parent: u32) -> Option<(&'static str, String)> {
        let run = self.arena.run();
        let _guard = run.failure_lock.hold();
        if run.failure_of.load(Ordering::Relaxed) != parent {
            return None;
        }
        let kernel = run.failure_kernel.swap(0, Ordering::Relaxed).checked_sub(1)?;
        let len = run.failure_len.load(Ordering::Relaxed) as usize;
        let words = run.failure_text.iter().map(|word| word.load(Ordering::Relaxed).to_le_bytes());
        let bytes: Vec<u8> = words.flatten().take(len).collect();
        let kernel = self.arena.kernel(kernel).map_or("?", |kind| kind.name);
        Some((kernel, String::from_utf8_lossy(&bytes).into_owned()))
    }
}
