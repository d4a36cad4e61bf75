//! Ready tasks on their way to the one queue: a worker leaves them in its outbox, where all others find them, and
//! brings them to the queue when there are many or somebody rests.
//!
//! The queue's lock costs whoever appends what its line costs to fetch, since an idle worker has looked at it
//! just before; for small tasks that is more than the rest together. A worker without work looks into outboxes
//! for a while before it rests, and again before it sleeps. While it rests nobody leaves tasks in an outbox:
//! whoever has one asks whether somebody rests after the task can be found. That the two do not miss each other
//! rests on stores becoming visible within the time that a worker watches before it sleeps. A worker that rests
//! itself has nothing in its outbox, so no task is ever lost by that: at worst it waits for its owner.

use super::goal::Wake;
use super::state::Scheduler;
use super::worker::Worker;
use crate::arena::outbox::ROOM;

/// How long a worker without work looks into outboxes before it rests.
const LINGER_NS: u64 = if cfg!(all(loom, test)) { 0 } else { 2_000 };
/// How often it does: each look takes the line from the owner, who then must fetch it for the next task.
const LOOK_NS: u64 = 150;
impl Scheduler {
    /// Leaves a task in the worker's outbox.
    #[inline]
    pub(super) fn post(&self, worker: &mut Worker, task: u32, wake: &impl Wake) {
        let outbox = &self.arena.outboxes[worker.seat as usize];
        if !outbox.push(&mut worker.outbox, task) {
            self.send(worker, wake);
            let _ = outbox.push(&mut worker.outbox, task);
        }
        if self.arena.ready(worker.queue).rests() {
            self.send(worker, wake);
        }
    }

    /// A worker that runs a successor while another rests brings half of the tasks that it took and has not begun to
    /// the queue. Each of them might have a successor too, so that with some in hand it could go on alone for ever.
    #[inline]
    pub(super) fn share(&self, worker: &mut Worker, wake: &impl Wake) {
        let may = self.keeps_outboxes && worker.only.is_none() && !worker.stash.is_empty();
        if may && self.arena.ready(worker.queue).rests() {
            self.share_stash(worker, wake);
        }
    }

    #[cold]
    fn share_stash(&self, worker: &mut Worker, wake: &impl Wake) {
        // Those that it would begin last stand first.
        let half = worker.stash.len().div_ceil(2);
        for task in worker.stash.drain(..half).rev() {
            self.enqueue(worker.queue, task, wake);
        }
    }

    /// Brings what is in the worker's outbox to the queue.
    #[cold]
    pub(super) fn send(&self, worker: &mut Worker, wake: &impl Wake) {
        let mut tasks = core::mem::take(&mut worker.letters);
        tasks.clear();
        self.arena.outboxes[worker.seat as usize].take(ROOM, &mut tasks);
        self.deliver(worker.queue, &tasks, wake);
        worker.letters = tasks;
    }

    fn deliver(&self, queue: usize, tasks: &[u32], wake: &impl Wake) {
        if tasks.is_empty() {
            return;
        }
        let resting = self.arena.ready(queue).push_all(tasks) as usize;
        for _ in 0..resting.min(tasks.len()) {
            self.wake_one(queue, wake);
        }
    }

    /// Brings what is in all outboxes and nests to the queue.
    #[cold]
    pub(super) fn send_all(&self, wake: &impl Wake) {
        let mut tasks = Vec::new();
        for outbox in self.arena.outboxes.iter() {
            tasks.clear();
            outbox.take(ROOM, &mut tasks);
            self.deliver(0, &tasks, wake);
        }
        self.empty_nests(wake);
    }

    /// Takes some tasks from an outbox: the worker's own, or the next one that has some.
    #[inline]
    pub(super) fn take_posted(&self, worker: &mut Worker, most: usize) -> usize {
        let seats = self.arena.outboxes.len();
        for step in 0..seats {
            let outbox = &self.arena.outboxes[(worker.seat as usize + step) % seats];
            let len = outbox.len();
            if len > 0 {
                // The others may want some as well.
                let taken = outbox.take(len.div_ceil(2).min(most), &mut worker.stash);
                if taken > 0 {
                    return taken;
                }
            }
        }
        0
    }

    /// Whether a task is in some outbox or nest.
    pub(crate) fn sees_posted(&self) -> bool {
        let posted = || self.arena.outboxes.iter().any(|outbox| outbox.len() > 0);
        self.keeps_outboxes && (posted() || self.sees_nested())
    }

    /// Until when a worker that has had no work `since` then looks into outboxes only.
    #[inline]
    pub(super) fn lingers(&self, since: u64, now: u64) -> Option<u64> {
        let lingers = self.keeps_outboxes && now < since.saturating_add(LINGER_NS);
        lingers.then_some(now + LOOK_NS)
    }
}
