//! Which groups will be touched next, from the faults that a worker has. Pure decisions: what to fetch is
//! returned as runs, nearest first.
//!
//! Three ways: the next groups, as the paper's synchronous faults start them (section III-D); a stride by
//! majority over the last faults (Maruf and Chowdhury, "Leap", ATC 2020); a tree over blocks, which takes
//! a subtree of which more than half is there (NVIDIA's `uvm_perf_prefetch.c`).

use crate::names::{Group, Run};
use crate::pages::Wish;

/// The choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prefetch {
    /// Nothing is fetched ahead.
    None,
    /// The next groups in ascending order: the paper's.
    #[default]
    Next,
    /// Along the stride of most of the last faults.
    Stride,
    /// Subtrees of a block that are more than half there.
    Tree,
}

impl Prefetch {
    /// The name in figures.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Next => "next",
            Self::Stride => "stride",
            Self::Tree => "tree",
        }
    }
}

/// Faults of a worker that a majority is taken of.
const HISTORY: usize = 8;
/// Streams of a worker that are followed at once.
const STREAMS: usize = 4;
/// Groups of a tree's block: 2 MiB of 4 KiB pages, as in CUDA's driver.
const BLOCK: u32 = 512;
/// A subtree is taken if more than this share of it is there, in percent (`uvm_perf_prefetch_threshold`).
const THRESHOLD: u64 = 51;

/// A direction that predictions follow, and where the next fault is if they were right.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    expected: i64,
    stride: i64,
}

/// What is known of one worker.
#[derive(Clone, Debug, Default)]
struct Worker {
    faults: Vec<i64>,
    streams: Vec<Stream>,
}

/// The state of predictions, one for each mover.
#[derive(Clone, Debug)]
pub struct Predictor {
    kind: Prefetch,
    window: u32,
    groups: u32,
    workers: Vec<Worker>,
}

impl Predictor {
    /// Predictions of `window` groups for each fault, in an area of `groups`.
    #[must_use]
    pub fn new(kind: Prefetch, window: u32, groups: u32, workers: u32) -> Self {
        let workers = (0..workers).map(|_| Worker::default()).collect();
        Self { kind, window, groups, workers }
    }

    /// What a worker will touch that had this fault. `present` says what is in fast memory.
    pub fn predict(&mut self, wish: Wish, present: impl Fn(Group) -> bool, runs: &mut Vec<Run>) {
        runs.clear();
        match self.kind {
            Prefetch::None => {}
            Prefetch::Next => self.along(wish.group, 1, runs),
            Prefetch::Stride => {
                let stride = self.stride(wish);
                if stride != 0 {
                    self.along(wish.group, stride, runs);
                }
            }
            Prefetch::Tree => runs.extend(self.subtree(wish.group, present)),
        }
    }

    /// The groups at multiples of a stride from a fault, as runs.
    fn along(&self, from: Group, stride: i64, runs: &mut Vec<Run>) {
        let from = i64::from(from.0);
        for step in 1..=i64::from(self.window) {
            let at = u32::try_from(from + step * stride).ok().filter(|at| *at < self.groups);
            let Some(at) = at else { return };
            match runs.last_mut() {
                Some(run) if run.first.0 + run.groups == at => run.groups += 1,
                Some(run) if at + 1 == run.first.0 && run.groups < BACKWARD_RUN => {
                    (run.first, run.groups) = (Group(at), run.groups + 1);
                }
                _ => runs.push(Run::of(Group(at))),
            }
        }
    }

    /// The stride that a fault continues or that most of the last faults had; 0 for none.
    fn stride(&mut self, wish: Wish) -> i64 {
        let window = i64::from(self.window);
        let Some(worker) = self.workers.get_mut(wish.worker as usize) else { return 0 };
        let at = i64::from(wish.group.0);
        let known = worker.streams.iter().position(|stream| stream.expected == at);
        let stride = match known {
            Some(place) => worker.streams.remove(place).stride,
            None => worker.majority(at),
        };
        worker.faults.push(at);
        if worker.faults.len() > HISTORY {
            worker.faults.remove(0);
        }
        if stride != 0 {
            if worker.streams.len() == STREAMS {
                worker.streams.remove(0);
            }
            worker.streams.push(Stream { expected: at + (window + 1) * stride, stride });
        }
        stride
    }

    /// The largest subtree round a fault that is more than half there, counting the fault.
    fn subtree(&self, fault: Group, present: impl Fn(Group) -> bool) -> Option<Run> {
        let mut best = None;
        let mut size = 2;
        while size <= BLOCK.min(self.window.next_power_of_two()) {
            let first = fault.0 / size * size;
            let last = (first + size).min(self.groups);
            let there =
                (first..last).filter(|group| *group == fault.0 || present(Group(*group))).count();
            if there as u64 * 100 > u64::from(last - first) * THRESHOLD {
                best = Some(Run { first: Group(first), groups: last - first });
            }
            size *= 2;
        }
        // The smallest subtree is the neighbour alone: half there is the best that a first fault can be.
        let pair =
            Run { first: Group(fault.0 / 2 * 2), groups: 2.min(self.groups - fault.0 / 2 * 2) };
        best.or(Some(pair))
    }
}

/// A run that is walked downwards is cut into pieces, so that the nearest come first.
const BACKWARD_RUN: u32 = 16;

impl Worker {
    /// The difference that more than half of the last faults had (Boyer and Moore's vote, then a count).
    fn majority(&self, at: i64) -> i64 {
        let all: Vec<i64> = self.faults.iter().copied().chain([at]).collect();
        let steps: Vec<i64> = all.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let (mut candidate, mut votes) = (0, 0_usize);
        for step in &steps {
            match (votes, *step == candidate) {
                (0, _) => (candidate, votes) = (*step, 1),
                (_, true) => votes += 1,
                (_, false) => votes -= 1,
            }
        }
        let count = steps.iter().filter(|step| **step == candidate).count();
        if count >= 2 && 2 * count > steps.len() { candidate } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Access;

    fn predicted(predictor: &mut Predictor, group: u32, present: &[u32]) -> Vec<u32> {
        let mut runs = Vec::new();
        let wish = Wish { worker: 0, group: Group(group), access: Access::Read };
        predictor.predict(wish, |group| present.contains(&group.0), &mut runs);
        runs.iter().flat_map(|run| run.iter()).map(|group| group.0).collect()
    }

    #[test]
    fn the_next_groups_end_with_the_area() {
        let mut next = Predictor::new(Prefetch::Next, 4, 10, 1);
        assert_eq!(predicted(&mut next, 2, &[]), [3, 4, 5, 6]);
        assert_eq!(predicted(&mut next, 8, &[]), [9]);
        assert_eq!(predicted(&mut next, 9, &[]), [0; 0]);
    }

    #[test]
    fn a_stride_is_found_followed_and_given_up() {
        let mut stride = Predictor::new(Prefetch::Stride, 3, 1000, 1);
        assert_eq!(predicted(&mut stride, 100, &[]), [0; 0]);
        assert_eq!(predicted(&mut stride, 107, &[]), [0; 0], "one step is no majority");
        assert_eq!(predicted(&mut stride, 114, &[]), [121, 128, 135]);
        assert_eq!(predicted(&mut stride, 142, &[]), [149, 156, 163], "the first not fetched");
        assert_eq!(predicted(&mut stride, 600, &[]), [0; 0]);
    }

    #[test]
    fn a_walk_downwards_comes_nearest_first() {
        let mut stride = Predictor::new(Prefetch::Stride, 20, 1000, 1);
        predicted(&mut stride, 502, &[]);
        predicted(&mut stride, 501, &[]);
        let all = predicted(&mut stride, 500, &[]);
        assert_eq!(all.len(), 20);
        assert!(all[..16].iter().all(|group| (484..500).contains(group)), "{all:?}");
    }

    #[test]
    fn streams_side_by_side_do_not_disturb_each_other() {
        let mut stride = Predictor::new(Prefetch::Stride, 2, 10_000, 1);
        for group in [10, 11, 12] {
            predicted(&mut stride, group, &[]);
        }
        for group in [5000, 5001, 5002, 5003, 5004, 5005] {
            predicted(&mut stride, group, &[]);
        }
        assert_eq!(predicted(&mut stride, 15, &[]), [16, 17], "12 was to be followed by 15");
    }

    #[test]
    fn a_tree_grows_with_what_is_there() {
        let mut tree = Predictor::new(Prefetch::Tree, 512, 64, 1);
        assert_eq!(predicted(&mut tree, 5, &[]), [4, 5]);
        assert_eq!(predicted(&mut tree, 6, &[4, 5]), [4, 5, 6, 7]);
        let half: Vec<u32> = (0..20).collect();
        assert_eq!(predicted(&mut tree, 20, &half).len(), 32);
    }
}
