//! The next tasks of the program, held back until there are enough of them to see who shares bytes with
//! whom; then a partition says for each where it belongs.

use rustc_hash::FxHashMap;

use super::submit::Children;
use super::worker::Worker;
use super::{Scheduler, Wake};
use crate::arena::objects::Home;
use crate::arena::slot::TaskRef;
use crate::partition::{Graph, split};
use crate::policy::Rank;
use crate::range::Range;
use crate::sync::Ordering;

/// Work of a task beside its bytes, in bytes: so that tasks of few bytes count as well.
const TASK_BYTES: u64 = 4096;

/// Tasks that are held back.
#[derive(Debug, Default)]
pub(crate) struct Window {
    tasks: Vec<u32>,
    graph: Graph,
    numbers: FxHashMap<TaskRef, u32>,
    /// Bytes that the task at hand shares with earlier ones: up to which of those that it waits for, and
    /// how many.
    shared: Vec<(usize, u64)>,
}

impl Window {
    /// The task at hand waits for `before` of the tasks so far because of this range.
    #[inline]
    pub(super) fn share(&mut self, range: Range, before: usize) {
        self.shared.push((before, range.bytes));
    }

    /// Forgets the task that was added last.
    pub(super) fn drop_last(&mut self) {
        let Some(task) = self.tasks.pop() else { return };
        let number = u32::try_from(self.tasks.len()).unwrap_or(u32::MAX);
        self.graph.work.pop();
        self.graph.edges.retain(|(_, to, _)| *to != number);
        self.graph.anchors.retain(|(of, ..)| *of != number);
        self.numbers.retain(|of, _| of.slot != task);
    }
}

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
