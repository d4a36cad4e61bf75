//! Workers that are more than the cores they have. One that wakes there takes the core from one that works, so as many
//! are kept awake as there are cores: a task is worth waking somebody for while a core has nobody awake. Who is awake
//! looks for work before it rests.
//!
//! It may not come to that: its task blocks, or it is the program, which comes back when it likes. So those that sleep
//! look by themselves from time to time; the driver, which knows the time, has them do so.

use std::collections::BTreeMap;

use isochrone_units::CoreId;

/// On what the workers of a run are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cores<'a> {
    /// The core of each seat.
    Pinned(&'a [CoreId]),
    /// All of them on any of so many.
    Free(usize),
}

/// Seats of one queue that share cores.
#[derive(Debug)]
struct Sharers {
    seats: Vec<u32>,
    cores: u32,
}

/// Which seats share cores.
#[derive(Debug)]
pub(super) struct Crowd {
    groups: Vec<Sharers>,
    /// The group of each seat.
    group_of: Vec<usize>,
    /// The groups of each queue.
    of_queue: Vec<Vec<usize>>,
}

impl Crowd {
    /// Of seats that take from these queues; `None` where each may have a core for itself.
    pub(super) fn new(queues: &[usize], cores: Cores<'_>) -> Option<Self> {
        let core = |seat: usize| match cores {
            Cores::Pinned(cores) => cores.get(seat).copied(),
            Cores::Free(_) => None,
        };
        let mut by_place: BTreeMap<(usize, Option<CoreId>), Vec<u32>> = BTreeMap::new();
        for (number, (seat, queue)) in (0_u32..).zip(queues.iter().enumerate()) {
            by_place.entry((*queue, core(seat))).or_default().push(number);
        }
        let count = queues.iter().max().map_or(0, |most| most + 1);
        let mut crowd = Self {
            groups: Vec::new(),
            group_of: vec![0; queues.len()],
            of_queue: vec![Vec::new(); count],
        };
        for ((queue, _), seats) in by_place {
            let cores = match cores {
                Cores::Pinned(_) => 1,
                // Each queue has its part of them.
                Cores::Free(cores) => (cores * seats.len()).div_ceil(queues.len()),
            };
            let cores = u32::try_from(cores.clamp(1, seats.len())).unwrap_or(1);
            let group = crowd.groups.len();
            seats.iter().for_each(|seat| crowd.group_of[*seat as usize] = group);
            crowd.of_queue[queue].push(group);
            crowd.groups.push(Sharers { seats, cores });
        }
        let shared = crowd.groups.iter().any(|group| group.seats.len() > group.cores as usize);
        shared.then_some(crowd)
    }

    /// How many seats of a queue may be awake without sharing a core.
    pub(super) fn takers(&self, queue: usize) -> usize {
        self.of_queue[queue].iter().map(|group| self.groups[*group].cores as usize).sum()
    }

    /// Those that a seat shares cores with, itself among them, and how many cores.
    #[inline]
    pub(super) fn group(&self, seat: u32) -> (&[u32], u32) {
        let Sharers { seats, cores } = &self.groups[self.group_of[seat as usize]];
        (seats, *cores)
    }

    /// The groups of a queue, each by its seats.
    pub(super) fn groups_of(&self, queue: usize) -> impl Iterator<Item = &[u32]> {
        self.of_queue[queue].iter().map(|group| &*self.groups[*group].seats)
    }
}

#[cfg(not(any(loom, shuttle)))]
#[cfg(test)]
mod tests {
    use super::*;

    fn pinned(queues: &[usize], cores: &[u16]) -> Option<Crowd> {
        let cores: Vec<CoreId> = cores.iter().copied().map(CoreId).collect();
        Crowd::new(queues, Cores::Pinned(&cores))
    }

    #[test]
    fn seats_of_one_core_are_a_group() {
        assert!(pinned(&[0; 3], &[5, 7, 9]).is_none(), "each has its own");
        let crowd = pinned(&[0, 0, 0, 1, 1], &[5, 5, 7, 8, 8]).expect("two share");
        let groups: Vec<(&[u32], u32)> =
            crowd.groups.iter().map(|g| (&*g.seats, g.cores)).collect();
        assert_eq!(groups, [(&[0, 1][..], 1), (&[2][..], 1), (&[3, 4][..], 1)]);
        assert_eq!(crowd.group_of, [0, 0, 1, 2, 2]);
        assert_eq!((crowd.takers(0), crowd.takers(1)), (2, 1));
        // A schedule that is followed has a queue for each.
        assert!(pinned(&[0, 1], &[5, 5]).is_none());
    }

    #[test]
    fn seats_that_are_pinned_nowhere_share_all_cores() {
        assert!(Crowd::new(&[0; 4], Cores::Free(4)).is_none());
        let crowd = Crowd::new(&[0; 8], Cores::Free(3)).expect("they share");
        assert_eq!((crowd.groups.len(), crowd.takers(0)), (1, 3));
        let crowd = Crowd::new(&[0, 0, 0, 1], Cores::Free(2)).expect("they share");
        assert_eq!((crowd.takers(0), crowd.takers(1)), (2, 1));
    }
}
