//! What workers wrote down of a run: as a trace, and as a schedule that another run can follow.

use isochrone_units::Reading;

use super::state::Scheduler;
use crate::arena::{Came, Entry, entries};
use crate::error::TaskError;
use crate::schedule::{Schedule, Wait};
use crate::trace::{TaskEvent, Trace};

impl Scheduler {
    /// What all seats wrote; nothing where no trace was asked for.
    pub(crate) fn trace(&self) -> Trace {
        let mut trace = Trace::default();
        for worker in (0_u32..).take(self.seats.len()) {
            let (entries, left_out) = entries(&self.arena, worker);
            trace.left_out += left_out;
            trace.events.extend(entries.into_iter().map(|entry| self.event(worker, entry)));
        }
        trace
    }

    fn event(&self, worker: u32, entry: Entry) -> TaskEvent {
        let Entry { start_ns, ns, kernel, number, order, local, remote, came } = entry;
        TaskEvent {
            kernel: self.arena.kernel(kernel).map_or("?", |kind| kind.name),
            number,
            order,
            worker,
            region: self.topology.region_id(self.seats[worker as usize].1),
            start_ns,
            ns,
            local_bytes: local,
            remote_bytes: remote,
            stolen_from: match came {
                Came::Stolen(region) => Some(region),
                Came::Queued | Came::Successor => None,
            },
            successor: came == Came::Successor,
        }
    }

    /// Which worker ran which task, and when.
    ///
    /// # Errors
    /// [`TaskError::Schedule`] where the run kept no trace, or not all of its tasks had room in it.
    pub(crate) fn schedule(&self, reading: Reading, waits: &[Wait]) -> Result<Schedule, TaskError> {
        Schedule::of(&self.trace(), self.seats.len(), reading, waits)
    }
}
