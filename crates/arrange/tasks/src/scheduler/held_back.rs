//! The next tasks of the program, held back until there are enough of them to see who shares bytes with
//! whom; then a partition says for each where it belongs.

use super::children::Children;
use super::goal::Wake;
use super::state::Scheduler;
use super::window::Window;
use super::worker::Worker;
use crate::arena::objects::Home;
use crate::arena::slot::TaskRef;
use crate::partition::split;
use crate::policy::Rank;
use crate::sync::Ordering;

/// Work of a task beside its bytes, in bytes: so that tasks of few bytes count as well.
const TASK_BYTES: u64 = 4096;

impl Scheduler {
    /// A window for the program's tasks, if the policy has one.
    pub(super) fn window(&self) -> Option<Box<Window>> {
        let wanted = self.policy.rank == Rank::Partition && self.members.len() > 1;
        wanted.then(Box::default)
    }

    /// Adds a task that was entered, with all that it waits for in `worker.before`, before those that
    /// stand there twice are left out.
    pub(super) fn hold(&self, worker: &Worker, window: &mut Window, me: TaskRef) {
        let number = u32::try_from(window.tasks.len()).unwrap_or(u32::MAX);
        let mut work = TASK_BYTES;
        let mut first = 0;
        for (end, bytes) in window.shared.drain(..) {
            for before in &worker.before[first..end] {
                if let Some(other) = window.numbers.get(before) {
                    window.graph.edges.push((*other, number, bytes));
                }
            }
            first = end;
        }
        for access in self.arena.accesses(me.slot) {
            work += access.range.bytes;
            let times = if self.policy.rank.moves_twice(access.mode) { 2 } else { 1 };
            self.arena.homes_of(access.range, |home, bytes| {
                if let Home::Region(region) = home {
                    let queue = u32::try_from(self.queue_of[region]).unwrap_or(0);
                    window.graph.anchors.push((number, queue, times * bytes));
                }
            });
        }
        window.graph.work.push(work);
        window.numbers.insert(me, number);
        window.tasks.push(me.slot);
    }

    /// Whether a window has as many tasks as it should.
    pub(super) fn is_full(&self, window: &Window) -> bool {
        let most = (self.policy.window as usize).min(self.arena.slots.len() / 4);
        window.tasks.len() >= most.max(1)
    }

    /// Says for each task that is held back where it belongs, and lets it go.
    pub(crate) fn close_window(
        &self,
        worker: &mut Worker,
        children: &mut Children,
        wake: &impl Wake,
    ) {
        let Some(window) = children.window.as_deref_mut().filter(|w| !w.tasks.is_empty()) else {
            return;
        };
        let cost =
            |a: usize, b: usize| self.topology.byte_cost(self.region_of[a], self.region_of[b]);
        let begin = wake.thread_ns();
        let parts = split(&window.graph, self.region_of.len(), &cost);
        self.partition_ns.fetch_add(wake.thread_ns() - begin, Ordering::Relaxed);
        for (task, part) in window.tasks.iter().zip(parts) {
            self.arena.slot(*task).hint.store(part + 1, Ordering::Relaxed);
            let region = self.region_of[part as usize];
            for access in self.arena.accesses(*task).filter(|access| access.mode.writes()) {
                self.arena.promise(access.range, region);
            }
        }
        // Homes are promised in the order of the program before any task runs.
        for task in core::mem::take(&mut window.tasks) {
            if self.arena.satisfy(task, 1) {
                self.make_ready(worker, task, false, wake);
            }
        }
        *window = Window::default();
    }
}
