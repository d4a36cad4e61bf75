//! Each policy against what it promises, and all of them against losing or inventing a group.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

struct Rig {
    words: Vec<AtomicU32>,
    kind: PolicyKind,
    groups: u32,
    workers: u32,
}

impl Rig {
    fn new(kind: PolicyKind, groups: u32, workers: u32) -> Self {
        let count = Policy::words(kind, groups, workers);
        let rig =
            Self { words: (0..count).map(|_| AtomicU32::new(0)).collect(), kind, groups, workers };
        rig.policy().format();
        rig
    }

    fn policy(&self) -> Policy<'_> {
        Policy::new(self.kind, &self.words, self.groups, self.workers)
    }
}

/// Map counts, and who may not be taken.
#[derive(Default)]
struct Seen {
    counts: BTreeMap<u32, u32>,
    refused: Vec<u32>,
    taken: Vec<u32>,
}

impl View for Seen {
    fn count(&self, group: Group) -> u32 {
        self.counts.get(&group.0).copied().unwrap_or(1)
    }

    fn take(&mut self, group: Group) -> bool {
        let ok = !self.refused.contains(&group.0);
        if ok {
            self.taken.push(group.0);
        }
        ok
    }
}

fn evict(policy: &Policy<'_>, shard: u32, want: u32, mut seen: Seen) -> Vec<u32> {
    let taken = policy.evict(Shard(shard), want, &mut seen);
    assert_eq!(taken as usize, seen.taken.len());
    seen.taken
}

#[test]
fn fifo_evicts_in_the_order_of_arrival() {
    let rig = Rig::new(PolicyKind::Fifo, 8, 2);
    let policy = rig.policy();
    for group in [3, 1, 4, 5] {
        policy.insert(policy.home(group), Group(group), 1);
    }
    policy.mapped(Shard(0), Group(3), 2);
    assert_eq!(evict(&policy, 0, 3, Seen::default()), [3, 1, 4]);
    assert_eq!(evict(&policy, 0, 3, Seen::default()), [5]);
    assert_eq!(evict(&policy, 0, 3, Seen::default()), [0; 0]);
}

#[test]
fn a_worker_evicts_its_own_unshared_groups_first() {
    let rig = Rig::new(PolicyKind::CoreFifo, 16, 2);
    let policy = rig.policy();
    (0..8).for_each(|group| policy.insert(policy.home(0), Group(group), 1));
    (8..12).for_each(|group| policy.insert(policy.home(1), Group(group), 1));
    let shared = || Seen { counts: [(0, 2), (2, 2)].into(), ..Seen::default() };
    assert_eq!(policy.order(1).collect::<Vec<_>>(), [Shard(1), Shard(0)]);
    assert_eq!(evict(&policy, 0, 3, shared()), [1, 3, 4], "0 and 2 are shared");
    assert_eq!(evict(&policy, 1, 9, shared()), [8, 9, 10, 11], "the other has its own");
    assert_eq!(evict(&policy, 0, 9, shared()), [0, 2, 5, 6, 7], "a quarter of them, then the rest");
}

#[test]
fn cmcp_keeps_what_many_tables_map() {
    let rig = Rig::new(PolicyKind::Cmcp, 16, 4);
    let policy = rig.policy();
    (0..6).for_each(|group| policy.insert(Shard(0), Group(group), 1));
    policy.mapped(Shard(0), Group(0), 2);
    policy.mapped(Shard(0), Group(2), 3);
    assert_eq!(evict(&policy, 0, 4, Seen::default()), [1, 3, 4, 5]);
    assert_eq!(evict(&policy, 0, 4, Seen::default()), [0, 2], "then by count");
}

#[test]
fn cmcp_prioritises_a_part_only_and_lets_it_age() {
    let rig = Rig::new(PolicyKind::Cmcp, 64, 4);
    let policy = rig.policy();
    (0..8).for_each(|group| policy.insert(Shard(0), Group(group), 1));
    (0..8).for_each(|group| policy.mapped(Shard(0), Group(group), 2));
    assert_eq!(evict(&policy, 0, 4, Seen::default()), [4, 5, 6, 7], "half of them had no room");
    policy.mapped(Shard(0), Group(3), 4);
    // One falls back for every eight that come.
    (8..40).for_each(|group| policy.insert(Shard(0), Group(group), 1));
    let all = evict(&policy, 0, 36, Seen::default());
    assert_eq!(all.len(), 36);
    assert!(all.iter().position(|group| *group == 0) < Some(16), "{all:?}");
}

#[test]
fn sieve_evicts_the_oldest_that_nobody_visited() {
    let rig = Rig::new(PolicyKind::Sieve, 40, 2);
    let policy = rig.policy();
    (30..36).for_each(|group| policy.insert(Shard(0), Group(group), 1));
    policy.mapped(Shard(0), Group(30), 2);
    policy.mapped(Shard(0), Group(32), 2);
    assert_eq!(evict(&policy, 0, 2, Seen::default()), [31, 33]);
    policy.insert(Shard(0), Group(36), 1);
    // The hand is at 34 and does not go back for 30.
    assert_eq!(evict(&policy, 0, 4, Seen::default()), [34, 35, 36, 30]);
    assert_eq!(evict(&policy, 0, 4, Seen::default()), [32]);
}

proptest! {
    /// Every group that came is there until it was taken, and is taken once.
    #[test]
    fn no_group_is_lost_or_taken_twice(
        kind in prop::sample::select(PolicyKind::ALL.to_vec()),
        steps in prop::collection::vec((0..4_u8, 0..24_u32, 1..6_u32), 0..150),
        refused in prop::collection::vec(0..24_u32, 0..4),
    ) {
        let rig = Rig::new(kind, 24, 3);
        let policy = rig.policy();
        let mut homes: BTreeMap<u32, Shard> = BTreeMap::new();
        let mut counts = BTreeMap::new();
        for (step, group, number) in steps {
            match step {
                0 | 1 => {
                    let home = *homes.entry(group).or_insert(policy.home(number));
                    counts.entry(group).or_insert(1);
                    policy.insert(home, Group(group), 1);
                }
                2 => if let Some(home) = homes.get(&group) {
                    counts.insert(group, number);
                    policy.mapped(*home, Group(group), number);
                },
                _ => {
                    let shard = policy.home(group);
                    let seen = Seen { counts: counts.clone(), refused: refused.clone(), taken: vec![] };
                    for taken in evict(&policy, shard.0, number, seen) {
                        prop_assert_eq!(homes.remove(&taken), Some(shard));
                        counts.remove(&taken);
                    }
                }
            }
        }
        let mut left = Vec::new();
        for shard in (0..policy.shards()).map(Shard) {
            left.extend(evict(&policy, shard.0, 100, Seen { counts: counts.clone(), ..Seen::default() }));
        }
        left.sort_unstable();
        prop_assert_eq!(left, homes.keys().copied().collect::<Vec<_>>());
    }
}
