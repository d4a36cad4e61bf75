//! Following a schedule: each worker has a queue of its own, and tasks enter it in the order in which the
//! schedule has them, each as soon as it and all before it are ready.

use super::followed::Followed;
use super::goal::Wake;
use super::state::Scheduler;
use super::worker::Worker;
use crate::arena::Came;
use crate::sync::Ordering;

impl Scheduler {
    /// Whether a schedule is followed with its times.
    pub(crate) fn keeps_times(&self) -> bool {
        self.followed.as_ref().is_some_and(|followed| followed.timed)
    }

    /// The number of one of the program's tasks; `None` for others, and where nobody asked for numbers.
    pub(crate) fn number(&self, task: u32) -> Option<u32> {
        self.arena.numbers.get(task as usize)?.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Gives a task of the program its number, or takes that of another away from its slot.
    #[inline]
    pub(super) fn give_number(&self, task: u32, of_program: bool) {
        if self.arena.numbers.is_empty() {
            return;
        }
        let numbered = &self.arena.run().numbered;
        let number = if of_program { numbered.load(Ordering::Relaxed) + 1 } else { 0 };
        self.arena.numbers[task as usize].store(number, Ordering::Relaxed);
        if of_program {
            // The program alone registers its tasks.
            numbered.store(number, Ordering::Relaxed);
        }
    }

    /// Whether a schedule is followed that has no more tasks.
    pub(super) fn is_past_schedule(&self) -> bool {
        let numbered = || self.arena.run().numbered.load(Ordering::Relaxed) as usize;
        self.followed.as_ref().is_some_and(|followed| numbered() >= followed.tasks.len())
    }

    /// A task is ready: it enters its worker's queue if it is next there, and so do those behind it.
    #[cold]
    pub(super) fn follow(&self, followed: &Followed, worker: &Worker, task: u32, wake: &impl Wake) {
        let Some(number) = self.number(task) else {
            // A task of a task: no schedule has these.
            return self.enqueue(worker.queue, task, wake);
        };
        let seat = followed.tasks[number as usize].worker as usize;
        followed.ready[number as usize].store(task, Ordering::SeqCst);
        loop {
            let at = followed.entered[seat].load(Ordering::SeqCst);
            let Some(next) = followed.orders[seat].get(at as usize) else { return };
            // Whoever takes it out makes it enter, and only then counts on: nobody can overtake.
            let ready = followed.ready[*next as usize].swap(0, Ordering::SeqCst);
            if ready == 0 {
                return;
            }
            self.arena.slot(ready).priority.store(0, Ordering::Relaxed);
            self.enqueue(seat, ready, wake);
            followed.entered[seat].store(at + 1, Ordering::SeqCst);
        }
    }

    /// When, and as which of those that begin then, a task has to begin; `None` for at once.
    #[inline]
    pub(crate) fn begins(&self, task: u32) -> Option<(u64, u32)> {
        let followed = self.followed.as_ref().filter(|followed| followed.timed)?;
        let turn = &followed.tasks[self.number(task)? as usize];
        Some((turn.start_ns, turn.order))
    }

    /// How a worker came by a task: as the schedule says, where one is followed.
    pub(super) fn came(&self, worker: &Worker, task: u32) -> Came {
        let recorded = self.followed.as_ref().zip(self.number(task));
        if let Some((followed, number)) = recorded {
            return followed.tasks[number as usize].came;
        }
        let (stolen, from) = worker.stolen;
        match from.checked_sub(1).filter(|_| stolen == task) {
            Some(region) => Came::Stolen(self.topology.region_id(region as usize)),
            None if worker.kept == task => Came::Successor,
            None => Came::Queued,
        }
    }
}
