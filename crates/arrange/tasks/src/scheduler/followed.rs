//! A schedule that is followed, and how far.

use super::worker::Worker;
use crate::schedule::{Schedule, Turn, Wait};
use crate::sync::AtomicU32;

/// A schedule, and how far it was followed.
#[derive(Debug)]
pub(crate) struct Followed {
    pub(super) tasks: Vec<Turn>,
    /// The program's waits.
    waits: Vec<Wait>,
    /// Whether tasks begin at the recorded times.
    pub(super) timed: bool,
    /// Numbers of the tasks of each seat, in their order.
    pub(super) orders: Vec<Vec<u32>>,
    /// How many of these have entered the seat's queue.
    pub(super) entered: Vec<AtomicU32>,
    /// The slot of each task that is ready and has not entered; 0 for others.
    pub(super) ready: Vec<AtomicU32>,
}

impl Followed {
    pub(crate) fn new(schedule: &Schedule, timed: bool) -> Self {
        let mut orders = vec![Vec::new(); schedule.workers as usize];
        let mut numbered: Vec<(u32, &Turn)> = (0..).zip(&schedule.tasks).collect();
        numbered.sort_by_key(|(_, turn)| (turn.start_ns, turn.order));
        for (number, turn) in numbered {
            orders[turn.worker as usize].push(number);
        }
        Self {
            tasks: schedule.tasks.clone(),
            waits: schedule.waits.clone(),
            timed,
            entered: orders.iter().map(|_| AtomicU32::new(0)).collect(),
            ready: schedule.tasks.iter().map(|_| AtomicU32::new(0)).collect(),
            orders,
        }
    }

    /// The program's wait number `at`, where times are kept.
    pub(crate) fn wait(&self, at: usize) -> Option<Wait> {
        self.waits.get(at).copied().filter(|_| self.timed)
    }

    /// When a worker that has begun so many of its tasks begins the next, where times are kept.
    pub(crate) fn next_start(&self, worker: &Worker) -> Option<u64> {
        let number = self.orders[worker.seat as usize].get(worker.followed as usize)?;
        self.timed.then(|| self.tasks[*number as usize].start_ns)
    }
}
