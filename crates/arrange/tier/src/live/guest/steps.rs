//! A range of pages that the kernel treats by one call or several: how far they are, and how much the next one is to
//! do. It makes no call.

use isochrone_units::PAGE_BYTES;

use crate::names::{Group, Run};

/// So many bytes of a run, behind others.
pub(super) fn part_of(run: Run, done: usize, bytes: usize) -> Run {
    let pages = |bytes: usize| u32::try_from(bytes / PAGE_BYTES).unwrap_or(u32::MAX);
    Run { first: Group(run.first.0 + pages(done)), groups: pages(bytes) }
}

/// A range that is treated by as few calls as the kernel lets: each must lie in one mapping, and neighbours of the
/// program's may be several.
#[derive(Debug)]
pub(super) struct Steps {
    pub(super) done: usize,
    bytes: usize,
    most: usize,
    /// Calls since the last that did something.
    pub(super) tries: u32,
}

impl Steps {
    pub(super) const fn new(bytes: usize) -> Self {
        Self { done: 0, bytes, most: bytes, tries: 0 }
    }

    /// What is done, and what the next call is to do.
    pub(super) fn next(&self) -> Option<(usize, usize)> {
        let rest = self.bytes - self.done;
        (rest > 0).then_some((self.done, rest.min(self.most)))
    }

    pub(super) const fn pass(&mut self, bytes: usize) {
        self.done += bytes;
        self.tries = 0;
    }

    /// Notes what a call did. Its error counts where that was nothing: else the next call finds it again.
    pub(super) const fn noted(&mut self, bytes: usize, error: Option<i32>) -> Option<i32> {
        if bytes == 0 {
            return error;
        }
        self.pass(bytes);
        None
    }

    /// From here on page by page.
    pub(super) const fn singly(&mut self) {
        self.most = PAGE_BYTES;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_is_behind_and_an_error_counts_where_nothing_was() {
        let mut steps = Steps::new(3 * PAGE_BYTES);
        assert_eq!(steps.next(), Some((0, 3 * PAGE_BYTES)));
        assert_eq!(steps.noted(PAGE_BYTES, Some(11)), None, "the next call finds it again");
        assert_eq!(steps.noted(0, Some(22)), Some(22));
        steps.singly();
        assert_eq!(steps.next(), Some((PAGE_BYTES, PAGE_BYTES)));
        steps.tries = 3;
        steps.pass(PAGE_BYTES);
        assert_eq!((steps.next(), steps.tries), (Some((2 * PAGE_BYTES, PAGE_BYTES)), 0));
        steps.pass(PAGE_BYTES);
        assert_eq!(steps.next(), None);
        let run = Run { first: Group(7), groups: 9 };
        assert_eq!(part_of(run, 2 * PAGE_BYTES, PAGE_BYTES), Run { first: Group(9), groups: 1 });
    }
}
