//! What a worker does next.

use super::counts::Count;
use super::goal::{Goal, Next, Wake};
use super::state::Scheduler;
use super::worker::Worker;
use crate::arena::ROOT;
use crate::arena::slot::{CHILDREN, flag};
use crate::sync::Ordering;

/// Tasks that a worker takes at once, at most.
const BATCH_MAX: usize = 32;
/// How long the tasks that a worker takes at once should last: what is in its hand nobody else can take.
const BATCH_NS: u64 = 2_000;

impl Scheduler {
    /// The next task that needs no look at the clock, if there is one.
    #[inline]
    pub(crate) fn at_hand(&self, worker: &mut Worker) -> Option<u32> {
        while let Some(task) = worker.at_hand() {
            if self.admit(task) {
                return Some(task);
            }
        }
        None
    }

    /// What the worker shall do. The clock `now` is read where it looks beyond what it has itself.
    pub(crate) fn next(
        &self,
        worker: &mut Worker,
        goal: Goal,
        now: impl Fn() -> u64,
        wake: &impl Wake,
    ) -> Next {
        self.rise(worker);
        let now = loop {
            if let Some(task) = self.at_hand(worker) {
                worker.idle_since = None;
                return Next::Run(task);
            }
            self.tell_parent(worker, wake);
            if worker.holds_some() {
                // A parent ended by this, and what waited for it is ready.
                continue;
            }
            if self.reached(goal, worker) {
                // Inside of a task, what ran is counted with what the task runs on top of.
                if worker.depth == 0 {
                    self.settle(worker, now());
                }
                return Next::Reached;
            }
            if let Some(task) = self.nested(worker) {
                worker.idle_since = None;
                return Next::Run(task);
            }
            let now = now();
            if !self.take(worker, now, wake) {
                break now;
            }
        };
        self.idle(worker, goal, now, wake)
    }

    /// Takes tasks from the worker's queue; false if there are none.
    fn take(&self, worker: &mut Worker, now: u64, wake: &impl Wake) -> bool {
        self.settle(worker, now);
        worker.taken_at = now;
        if let Some(ancestor) = worker.only {
            if self.keeps_outboxes {
                self.send_all(wake);
            }
            return self.take_below(worker, ancestor);
        }
        let ready = self.arena.ready(worker.queue);
        let fair = ready.len() / (2 * self.takers[worker.queue]);
        let quick = usize::try_from(BATCH_NS / worker.task_ns.max(1)).unwrap_or(BATCH_MAX);
        let batch = if self.followed.is_some() { 1 } else { BATCH_MAX };
        let most = fair.min(quick).clamp(1, batch);
        let mut taken = ready.pop(most, &mut worker.stash);
        if taken == 0 && self.keeps_outboxes {
            taken = self.take_posted(worker, quick.clamp(1, BATCH_MAX));
        }
        if taken == 0 && self.keeps_outboxes {
            taken = self.take_nested(worker);
        }
        // All at once, while the first is begun.
        let lines = worker.lines.runs;
        worker.stash.iter().for_each(|task| self.arena.slot(*task).claim(lines));
        worker.stash.reverse();
        taken > 0
    }

    /// Counts the time since tasks were taken, if some ran.
    fn settle(&self, worker: &mut Worker, now: u64) {
        if worker.ran > 0 {
            let busy = now.saturating_sub(worker.taken_at);
            self.count(worker, Count::BusyNs, busy);
            worker.task_ns = busy / u64::from(worker.ran);
            worker.ran = 0;
        }
    }

    /// Takes a task that descends from `ancestor`, from whichever queue has one.
    #[cold]
    fn take_below(&self, worker: &mut Worker, ancestor: u32) -> bool {
        let descends = |task: u32| self.descends(task, ancestor);
        let queues = 0..self.members.len();
        let found = queues.into_iter().find_map(|queue| self.arena.ready(queue).pop_if(descends));
        worker.stash.extend(found);
        found.is_some()
    }

    /// Whether a task is `ancestor`, or was registered by a task that descends from it.
    pub(super) fn descends(&self, task: u32, ancestor: u32) -> bool {
        let mut above = task;
        while above != ROOT && above != ancestor {
            above = self.arena.slot(above).parent.load(Ordering::Relaxed);
        }
        above == ancestor
    }

    /// From here on the worker runs descendants of `ancestor` only; what it has at hand goes back.
    pub(crate) fn restrict(&self, worker: &mut Worker, ancestor: u32, wake: &impl Wake) {
        while let Some(task) = worker.at_hand() {
            self.enqueue(worker.queue, task, wake);
        }
        worker.only = Some(ancestor);
    }

    /// Whether what a worker works for is reached.
    #[inline]
    pub(crate) fn reached(&self, goal: Goal, worker: &Worker) -> bool {
        match goal {
            Goal::Stop => self.arena.run().stop.load(Ordering::Acquire) != 0,
            Goal::Children(slot, spawned) => {
                let left = CHILDREN - spawned;
                self.arena.slot(slot).children.load(Ordering::SeqCst) == left
            }
            Goal::Ready(slot) => self.arena.slot(slot).pending.load(Ordering::SeqCst) == 0,
            Goal::Backlog(most) => self.arena.ready(worker.queue).len() <= most,
            Goal::Turn(turns) => worker.turns > turns,
        }
    }

    /// Whether a task may begin: it has the tokens it needs.
    #[inline]
    fn admit(&self, task: u32) -> bool {
        let flags = self.arena.slot(task).flags.load(Ordering::Relaxed);
        flags & flag::TOKENS == 0 || self.take_tokens(task)
    }

    /// Whether a task is not worth running: another child of its parent failed, or it would look at what a task that
    /// failed left undone, which then fails it as well. What it writes without a look is no longer undone.
    #[inline]
    pub(crate) fn is_void(&self, task: u32) -> bool {
        self.arena.run().failures.load(Ordering::Relaxed) > 0 && self.is_void_after_failures(task)
    }
}
