//! How workers without work come to rest, and are woken without being missed.
//!
//! A worker lies down under its queue's lock, and only if the queue is empty; whoever appends a task
//! does so under the same lock, and sees there whether somebody lies. So either the worker finds the
//! task, or it is woken. For what else a worker may wait for (children, a sentinel), it looks once more
//! after it lay down, and whoever brings that about looks at its seat after that; both by `SeqCst`, so
//! that one of them sees the other.
//!
//! Where workers share cores, [crowd](super::crowd) says for whom of those who lie a task is worth waking.

use super::crowd::{Cores, Crowd};
use super::goal::{Goal, Next, Wake};
use super::state::Scheduler;
use super::worker::Worker;
use crate::arena::queue::Group;
use crate::arena::seat;
use crate::arena::slot::Slot;
use crate::policy::Steal;
use crate::sync::{Ordering, fence, model_order};

/// How often a worker looks again that waits for something nobody wakes it for: room in a full arena,
/// or a descendant when it may run nothing else.
const TURN_NS: u64 = 5_000;
/// Ready tasks beyond which Nanos6 takes from a near region at once, and how near that is.
const SCORE_READY: usize = 20;
const SCORE_NEAR: f64 = 15.0;

/// How a worker that wanted to sleep fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asleep {
    /// It sleeps; whoever wakes it tells the system.
    Yes,
    /// It was woken already.
    Woken,
}

impl Scheduler {
    /// What a worker without work does.
    pub(super) fn idle(&self, worker: &mut Worker, goal: Goal, now: u64, wake: &impl Wake) -> Next {
        let since = *worker.idle_since.get_or_insert(now);
        let steals = !self.victims[worker.queue].is_empty() && worker.only.is_none();
        let may_steal_at = since.saturating_add(self.policy.idle_ns);
        if steals && now >= may_steal_at && self.steal(worker) {
            // The caller asks again, and finds it at hand.
            return self.stolen(worker);
        }
        let turns = matches!(goal, Goal::Turn(_)) || worker.only.is_some();
        if let Some(look_at) =
            self.lingers(since, now).filter(|_| !turns && !self.is_crowded(worker))
        {
            return Next::RetryAt(look_at);
        }
        if !self.lie_down(worker) {
            if worker.only.is_some() {
                self.wake_any(worker.queue, wake);
            }
            return Next::RetryAt(now);
        }
        fence(Ordering::SeqCst);
        let seen = steals && now >= may_steal_at && self.sees_work(worker);
        if seen || self.sees_posted() || self.reached(goal, worker) || self.is_stuck(worker) {
            self.rise(worker);
            return Next::RetryAt(now);
        }
        if turns {
            worker.turns += 1;
            return Next::RetryAt(now + TURN_NS);
        }
        if steals && now < may_steal_at { Next::RetryAt(may_steal_at) } else { Next::Sleep }
    }

    fn stolen(&self, worker: &mut Worker) -> Next {
        match self.at_hand(worker) {
            Some(task) => {
                worker.idle_since = None;
                Next::Run(task)
            }
            // It must wait for its token.
            None => Next::RetryAt(0),
        }
    }

    /// Takes one task from another region.
    fn steal(&self, worker: &mut Worker) -> bool {
        let victims = &self.victims[worker.queue];
        let from = match self.policy.steal {
            Steal::Never => None,
            Steal::Nearest => {
                let loaded = victims.iter().max_by_key(|queue| self.arena.ready(**queue).len());
                loaded.copied().filter(|queue| self.arena.ready(*queue).len() > 0)
            }
            Steal::Any => victims.iter().copied().find(|queue| self.arena.ready(*queue).len() > 0),
            Steal::Score => self.scored(worker.region, victims),
        };
        let Some(queue) = from else { return false };
        let taken = self.arena.ready(queue).pop(1, &mut worker.stash);
        if taken > 0 {
            let region = self.region_of[queue];
            let number = u32::try_from(region + 1).unwrap_or(0);
            worker.stolen = (worker.stash.last().copied().unwrap_or(0), number);
            let ring = self.ring(worker.region, region);
            self.count(worker, super::counts::Count::Steals(ring), 1);
        }
        taken > 0
    }

    /// The queue that a task at hand was taken from; `None` where the worker made it ready and kept it.
    pub(crate) fn taken_from(&self, worker: &Worker, task: u32) -> Option<usize> {
        if worker.kept == task {
            return None;
        }
        let (stolen, number) = worker.stolen;
        let region = (number as usize).checked_sub(1).filter(|_| stolen == task);
        let queue = region.and_then(|from| self.region_of.iter().position(|at| *at == from));
        Some(queue.unwrap_or(worker.queue))
    }

    fn scored(&self, here: usize, victims: &[usize]) -> Option<usize> {
        let ready = |queue: usize| self.arena.ready(queue).len();
        let distance = |queue: usize| self.topology.cost(here, self.region_of[queue]);
        let near = victims
            .iter()
            .copied()
            .find(|queue| distance(*queue) < SCORE_NEAR && ready(*queue) > SCORE_READY);
        let score = |queue: usize| {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 100")]
            let nearness = (100.0 / distance(queue)) as usize;
            nearness + ready(queue) / 5
        };
        let loaded = victims.iter().copied().filter(|queue| ready(*queue) > 0);
        near.or_else(|| loaded.max_by_key(|queue| score(*queue)))
    }

    fn sees_work(&self, worker: &Worker) -> bool {
        self.victims[worker.queue].iter().any(|queue| self.arena.ready(*queue).len() > 0)
    }

    /// The seat is seen as resting, unless a task came.
    fn lie_down(&self, worker: &mut Worker) -> bool {
        let state = &self.arena.seats[worker.seat as usize].state;
        let group = self.group(worker.seat);
        worker.resting = self.arena.ready(worker.queue).rest(group, || {
            state.store(seat::WATCHING, Ordering::SeqCst);
            if let Some(group) = group {
                group.last.store(worker.seat + 1, Ordering::Relaxed);
            }
        });
        worker.resting
    }

    /// The worker is up: by itself, or because somebody woke it, who then has said so everywhere.
    pub(super) fn rise(&self, worker: &mut Worker) {
        if core::mem::take(&mut worker.resting) {
            self.stand_up(worker.seat);
        }
    }

    /// Takes a seat off its queue's resting ones; `None` if it was not among them, else its state.
    fn stand_up(&self, number: u32) -> Option<u32> {
        let state = &self.arena.seats[number as usize].state;
        model_order();
        let old = state.swap(seat::AWAKE, Ordering::SeqCst);
        if old == seat::AWAKE {
            return None;
        }
        if old == seat::ASLEEP {
            // After the state, and before whoever wakes can sleep itself: see `all_asleep`.
            self.arena.run().wakes.fetch_add(1, Ordering::SeqCst);
            self.arena.run().asleep.fetch_sub(1, Ordering::SeqCst);
        }
        self.arena.ready(self.seats[number as usize].0).rise(self.group(number));
        Some(old)
    }

    /// Wakes a seat if it rests.
    pub(crate) fn wake_seat(&self, number: u32, wake: &impl Wake) -> bool {
        let Some(old) = self.stand_up(number) else { return false };
        wake.wake(number, old != seat::WATCHING);
        true
    }

    /// Wakes one seat of a queue, if one rests that it is worth waking.
    pub(super) fn wake_one(&self, queue: usize, wake: &impl Wake) {
        loop {
            let chosen = match &self.crowd {
                Some(crowd) => self.resting_with_core(crowd, queue),
                None => wake.choose(&mut self.resting(queue)),
            };
            match chosen {
                // It may have risen by itself meanwhile; then another is looked for.
                Some(number) if !self.wake_seat(number, wake) => {}
                _ => return,
            }
        }
    }

    /// Wakes one seat of a queue, if one rests: who is awake may not take what is there.
    #[cold]
    fn wake_any(&self, queue: usize, wake: &impl Wake) {
        if let Some(number) = self.resting(queue).next() {
            self.wake_seat(number, wake);
        }
    }

    fn resting(&self, queue: usize) -> impl Iterator<Item = u32> {
        self.members[queue].iter().copied().filter(|number| !self.arena.is_awake(*number))
    }

    /// Says on what the workers are, before any of them begins.
    pub(crate) fn seat_on(&mut self, cores: Cores<'_>) {
        let queues: Vec<usize> = self.seats.iter().map(|seat| seat.0).collect();
        self.crowd = Crowd::new(&queues, cores);
        if let Some(crowd) = &self.crowd {
            self.takers = (0..self.members.len()).map(|queue| crowd.takers(queue)).collect();
        }
    }

    #[inline]
    fn group(&self, seat: u32) -> Option<Group<'_>> {
        let (seats, cores) = self.crowd.as_ref()?.group(seat);
        let first = &self.arena.seats[seats[0] as usize];
        let (resting, last) = (&first.group_resting, &first.group_last);
        Some(Group { resting, last, seats: u32::try_from(seats.len()).unwrap_or(u32::MAX), cores })
    }

    /// Seats that share cores with this one, and how many cores; none where it may have one for itself.
    pub(crate) fn sharers(&self, seat: u32) -> Option<(&[u32], u32)> {
        let group = self.crowd.as_ref()?.group(seat);
        Some(group).filter(|(seats, cores)| seats.len() > *cores as usize)
    }

    /// A seat of the queue that rests and would have a core: the one that lay down last there, whose data that core
    /// has, or which still watches.
    fn resting_with_core(&self, crowd: &Crowd, queue: usize) -> Option<u32> {
        let rests = |seat: &u32| !self.arena.is_awake(*seat);
        crowd.groups_of(queue).find_map(|seats| {
            let group = self.group(seats[0]).filter(|group| group.has_room())?;
            let last = group.last.load(Ordering::Relaxed).checked_sub(1).filter(rests);
            last.or_else(|| seats.iter().copied().find(rests))
        })
    }

    /// Whether a worker that is awake has its core with another that is.
    #[inline]
    fn is_crowded(&self, worker: &Worker) -> bool {
        self.group(worker.seat).is_some_and(|group| group.awake() > group.cores)
    }

    /// Whether a seat that rests may watch for work without taking a core from one that is awake.
    #[inline]
    pub(crate) fn may_watch(&self, seat: u32) -> bool {
        self.group(seat).is_none_or(Group::has_room)
    }

    /// Whether there is work that the worker might take.
    pub(crate) fn sees_left(&self, worker: &Worker) -> bool {
        let steals = worker.only.is_none() && self.sees_work(worker);
        self.arena.ready(worker.queue).len() > 0 || steals || self.sees_posted()
    }

    /// Wakes whoever waits for a task's children, or for a sentinel.
    pub(super) fn wake_waiter(&self, slot: &Slot, wake: &impl Wake) {
        if let Some(number) = slot.waiter.load(Ordering::SeqCst).checked_sub(1) {
            self.wake_seat(number, wake);
        }
    }

    /// The worker wants to sleep until it is woken, and is counted among the sleepers. Where all sleep
    /// and somebody waits inside of a task, nothing will ever happen again: those are woken, and told.
    pub(crate) fn fall_asleep(&self, worker: &Worker, wake: &impl Wake) -> Asleep {
        let state = &self.arena.seats[worker.seat as usize].state;
        let run = self.arena.run();
        // Before the state: whoever finds it takes the number away again.
        let asleep = run.asleep.fetch_add(1, Ordering::SeqCst) + 1;
        let slept = state.compare_exchange(
            seat::WATCHING,
            seat::ASLEEP,
            Ordering::SeqCst,
            Ordering::SeqCst,
        );
        if slept.is_err() {
            run.asleep.fetch_sub(1, Ordering::SeqCst);
            return Asleep::Woken;
        }
        if asleep as usize == self.seats.len() {
            self.all_asleep(wake);
        }
        Asleep::Yes
    }

    /// As [`Self::fall_asleep`], for a while: the worker comes back by itself, so it is not counted.
    pub(crate) fn doze(&self, worker: &Worker) -> Asleep {
        let state = &self.arena.seats[worker.seat as usize].state;
        let dozed = state.compare_exchange(
            seat::WATCHING,
            seat::DOZING,
            Ordering::SeqCst,
            Ordering::SeqCst,
        );
        if dozed.is_ok() { Asleep::Yes } else { Asleep::Woken }
    }

    /// Whether the worker waits inside of a task, and nothing will come.
    #[inline]
    pub(crate) fn is_stuck(&self, worker: &Worker) -> bool {
        self.arena.run().deadlock.load(Ordering::Relaxed) == worker.seat + 1
    }

    /// A worker that was stuck goes on with an error.
    pub(crate) fn unstick(&self) {
        self.arena.run().deadlock.store(0, Ordering::SeqCst);
    }

    /// Finds out whether all seats sleep at one moment. Each is looked at by itself; but only somebody
    /// awake wakes another, and says so in `wakes` before it sleeps itself. So if all were seen asleep
    /// and `wakes` has not changed, all of them still were when the last was looked at.
    #[cold]
    fn all_asleep(&self, wake: &impl Wake) {
        let run = self.arena.run();
        let before = run.wakes.load(Ordering::SeqCst);
        let all = self.arena.seats.iter().all(|s| s.state.load(Ordering::SeqCst) == seat::ASLEEP);
        if !all || run.wakes.load(Ordering::SeqCst) != before {
            return;
        }
        let numbered = (0_u32..).zip(self.arena.seats.iter());
        let inside = numbered.map(|(number, s)| (s.inside.load(Ordering::SeqCst), number));
        if let Some((_, number)) = inside.filter(|(waits, _)| *waits > 0).max() {
            run.deadlock.store(number + 1, Ordering::SeqCst);
            self.wake_seat(number, wake);
        }
    }
}

#[cfg(not(any(loom, shuttle)))]
#[cfg(test)]
mod tests;

#[cfg(loom)]
#[cfg(test)]
mod loom_tests;

#[cfg(shuttle)]
#[cfg(test)]
mod shuttle_tests;
