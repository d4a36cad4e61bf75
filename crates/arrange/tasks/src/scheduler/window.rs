//! The next tasks of the program while they are held back, and the bytes that they share.

use rustc_hash::FxHashMap;

use crate::arena::slot::TaskRef;
use crate::partition::Graph;
use crate::range::Range;

/// Tasks that are held back.
#[derive(Debug, Default)]
pub(crate) struct Window {
    pub(super) tasks: Vec<u32>,
    pub(super) graph: Graph,
    pub(super) numbers: FxHashMap<TaskRef, u32>,
    /// Bytes that the task at hand shares with earlier ones: up to which of those that it waits for, and
    /// how many.
    pub(super) shared: Vec<(usize, u64)>,
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
