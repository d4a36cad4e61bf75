//! Where a ready task goes.

use super::counts::Count;
use super::goal::Wake;
use super::state::Scheduler;
use super::worker::{Held, Worker};
use crate::arena::objects::Home;
use crate::arena::slot::flag;
use crate::policy::{Rank, Tie};
use crate::sync::Ordering;

/// Costs that differ by less are the same: latencies of like regions are measured a little apart, and whoever went by
/// that would send all that could go to several regions to one of them (the bullion's far ones: 410 to 428 ns).
const SAME: f64 = 0.02;

impl Scheduler {
    /// A task that waits for nothing: the worker keeps it for itself as a successor, or it goes to the
    /// queue where it belongs.
    pub(crate) fn make_ready(
        &self,
        worker: &mut Worker,
        task: u32,
        may_keep: bool,
        wake: &impl Wake,
    ) {
        let slot = self.arena.slot(task);
        if slot.flags.load(Ordering::Relaxed) & flag::SENTINEL != 0 {
            self.wake_waiter(slot, wake);
            return;
        }
        if let Some(followed) = &self.followed {
            return self.follow(followed, worker, task, wake);
        }
        let queue = self.queue_for(worker, task);
        if may_keep
            && queue == worker.queue
            && worker.successor.is_none()
            && worker.chance(self.policy.successor)
        {
            slot.claim(worker.lines.runs);
            (worker.successor, worker.kept) = (Some(task), task);
            self.count(worker, Count::Successors, 1);
            self.share(worker, wake);
            return;
        }
        if self.keeps_outboxes && slot.priority.load(Ordering::Relaxed) == 0 {
            self.post(worker, task, wake);
            return;
        }
        self.enqueue(queue, task, wake);
    }

    /// Appends a task to a queue, and wakes somebody who rests there; where nobody does and the queue
    /// grows, somebody who may take from it.
    pub(crate) fn enqueue(&self, queue: usize, task: u32, wake: &impl Wake) {
        let ready = self.arena.ready(queue);
        let priority = self.arena.slot(task).priority.load(Ordering::Relaxed);
        let rests = ready.push(task, priority);
        wake.pushed(queue);
        if rests {
            self.wake_one(queue, wake);
        } else if self.victims.len() > 1 && ready.len() > self.takers[queue] {
            let thieves = self.victims.iter().enumerate().filter(|(_, from)| from.contains(&queue));
            for (thief, _) in thieves {
                if self.arena.ready(thief).rests() {
                    self.wake_one(thief, wake);
                    return;
                }
            }
        }
    }

    fn queue_for(&self, worker: &mut Worker, task: u32) -> usize {
        if self.members.len() == 1 {
            return 0;
        }
        let hint = self.arena.slot(task).hint.load(Ordering::Relaxed) as usize;
        if let Some(queue) = hint.checked_sub(1) {
            return queue.min(self.members.len() - 1);
        }
        if self.policy.deal
            && let Some(queue) = self.dealt(task)
        {
            return queue;
        }
        self.ranked(worker, task)
    }

    /// The next queue in turn, for a task that outputs ranges which nobody has touched.
    fn dealt(&self, task: u32) -> Option<usize> {
        let outputs = || self.arena.accesses(task).filter(|access| access.mode.writes());
        if !outputs().any(|access| self.arena.is_fresh(access.range)) {
            return None;
        }
        let turn = self.arena.run().deal.fetch_add(1, Ordering::Relaxed) as usize;
        let queue = turn % self.members.len();
        for access in outputs() {
            self.arena.promise(access.range, self.region_of[queue]);
        }
        Some(queue)
    }

    fn ranked(&self, worker: &mut Worker, task: u32) -> usize {
        let mut held = core::mem::take(&mut worker.held);
        held.iter_mut().for_each(|held| *held = Held::default());
        let mut known = false;
        for access in self.arena.accesses(task) {
            let twice = self.policy.rank.moves_twice(access.mode);
            let factor = if twice { 2.0 } else { 1.0 };
            let mut before = None;
            self.arena.homes_of(access.range, |home, bytes| {
                if let Home::Region(region) = home {
                    known = true;
                    let held = &mut held[region];
                    // A count of bytes below 2^53.
                    held.bytes += factor * bytes as f64;
                    held.ranges += if before == Some(region) { 0.0 } else { factor };
                    before = Some(region);
                }
            });
        }
        let queue = if known { self.best(worker, &held) } else { worker.queue };
        worker.held = held;
        queue
    }

    /// What a region pays for all that a task uses.
    fn price(&self, here: usize, held: &[Held]) -> f64 {
        let all = held.iter().enumerate().filter(|(_, held)| held.ranges > 0.0);
        all.map(|(there, held)| self.topology.transfer(here, there, held.ranges, held.bytes)).sum()
    }

    /// The queue that is worth most, by what each region holds.
    fn best(&self, worker: &mut Worker, held: &[Held]) -> usize {
        let by_cost = matches!(self.policy.rank, Rank::LatencyWeighted | Rank::Partition);
        let same = if by_cost { SAME } else { 0.0 };
        let worth = |queue: usize| {
            if by_cost {
                return -self.price(self.region_of[queue], held);
            }
            let homes = held.iter().enumerate();
            homes.filter(|(r, _)| self.queue_of[*r] == queue).map(|(_, held)| held.bytes).sum()
        };
        let worths: Vec<f64> = (0..self.members.len()).map(worth).collect();
        let most = worths.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let least = most - same * most.abs();
        let ties: Vec<usize> = (0..worths.len()).filter(|queue| worths[*queue] >= least).collect();
        if ties.len() == 1 {
            return ties[0];
        }
        match self.policy.tie {
            Tie::Lowest => ties[0],
            Tie::Random => {
                let at = worker.random() % ties.len() as u64;
                ties[usize::try_from(at).unwrap_or(0)]
            }
        }
    }
}
