//! Tasks inside of tasks that wait for nothing stay with the worker that registers them, newest first: a recursive
//! program then is as deep as it is on one worker. Breadth first it fills the arena, and whoever waits looks
//! through all that is ready for what is its own. Workers without work take the oldest, which are the largest.
//!
//! Rest is as for [outboxes](super::outbox): a worker looks into all nests before it rests and before it sleeps, and
//! while one rests whoever registers a task brings one to the queue.

use super::goal::Wake;
use super::state::Scheduler;
use super::worker::Worker;
use crate::sync::Ordering;

impl Scheduler {
    /// Keeps a task that waits for nothing in the worker's nest. False if it has to go where all others go: it has
    /// a priority, the nest is full, or nobody would look there.
    #[inline]
    pub(super) fn nest(&self, worker: &mut Worker, task: u32, wake: &impl Wake) -> bool {
        if !self.keeps_outboxes || self.arena.slot(task).priority.load(Ordering::Relaxed) != 0 {
            return false;
        }
        let kept = self.arena.nests[worker.seat as usize].push(&mut worker.nest, task);
        if kept && self.arena.ready(worker.queue).rests() {
            self.pass_on_oldest(worker, wake);
        }
        kept
    }

    /// Whoever rests is woken for the oldest task.
    #[cold]
    fn pass_on_oldest(&self, worker: &Worker, wake: &impl Wake) {
        if let Some(oldest) = self.arena.nests[worker.seat as usize].steal() {
            self.enqueue(worker.queue, oldest, wake);
        }
    }

    /// The newest task of the worker's nest, if it may run that.
    #[inline]
    pub(super) fn nested(&self, worker: &mut Worker) -> Option<u32> {
        let nest = &self.arena.nests[worker.seat as usize];
        let task = nest.pop(&mut worker.nest)?;
        let may = worker.only.is_none_or(|ancestor| self.descends(task, ancestor));
        if !may {
            nest.push(&mut worker.nest, task);
        }
        may.then_some(task)
    }

    /// Takes the oldest task of another worker's nest.
    pub(super) fn take_nested(&self, worker: &mut Worker) -> usize {
        let seats = self.arena.nests.len();
        let others = (1..seats).map(|step| (worker.seat as usize + step) % seats);
        let found = others.into_iter().find_map(|seat| self.arena.nests[seat].steal());
        worker.stash.extend(found);
        usize::from(found.is_some())
    }

    /// Brings what is in all nests to the queue.
    pub(super) fn empty_nests(&self, wake: &impl Wake) {
        for nest in self.arena.nests.iter() {
            while let Some(task) = nest.steal() {
                self.enqueue(0, task, wake);
            }
        }
    }

    /// Whether a task is in some nest.
    pub(super) fn sees_nested(&self) -> bool {
        self.arena.nests.iter().any(crate::arena::nest::Nest::holds_some)
    }
}
