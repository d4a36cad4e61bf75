//! The scheduler's state: the arena, and what is worked out of topology and policy once.

use super::crowd::Crowd;
use super::followed::Followed;
use super::worker::Worker;
use crate::arena::Arena;
use crate::arena::outbox::may_have;
use crate::policy::{Policy, Rank, Steal};
use crate::schedule::Schedule;
use crate::sync::AtomicU64;
use crate::topology::Topology;

/// The scheduler: the arena, and what never changes during a run.
#[derive(Debug)]
pub(crate) struct Scheduler {
    pub(crate) arena: Arena,
    pub(crate) policy: Policy,
    pub(crate) topology: Topology,
    /// Queue and region of each seat.
    pub(crate) seats: Vec<(usize, usize)>,
    /// Seats of each queue.
    pub(super) members: Vec<Vec<u32>>,
    /// How many of them may be awake without sharing a core, at least one.
    pub(super) takers: Vec<usize>,
    /// Which share cores, if workers are more than cores.
    pub(super) crowd: Option<Crowd>,
    /// Queues to take from, for each queue.
    pub(super) victims: Vec<Vec<usize>>,
    /// The queue for tasks whose data live in a region, for each region.
    pub(super) queue_of: Vec<usize>,
    /// The region of each queue.
    pub(super) region_of: Vec<usize>,
    /// Which ring a region is in, seen from another: 0 the region itself, 1 the nearest ones.
    pub(super) ring: Vec<u8>,
    /// Whether ready tasks go through outboxes.
    pub(super) keeps_outboxes: bool,
    /// What partitions took so far, ns of the program's thread.
    pub(crate) partition_ns: AtomicU64,
    /// The schedule to be followed, if one is.
    pub(crate) followed: Option<Followed>,
}

impl Scheduler {
    /// A scheduler for workers whose regions are `places`.
    pub(crate) fn new(arena: Arena, policy: Policy, topology: Topology, places: &[usize]) -> Self {
        let regions = topology.regions();
        let with_workers = || (0..regions).filter(|r| places.contains(r)).collect();
        let region_of: Vec<usize> = match policy.rank {
            Rank::Oblivious => vec![0],
            Rank::Recorded => places.to_vec(),
            _ => with_workers(),
        };
        let nearest_queue = |region: usize| {
            let cost = |queue: &usize| topology.cost(region_of[*queue], region);
            let queues = 0..region_of.len();
            queues.min_by(|a, b| cost(a).total_cmp(&cost(b))).unwrap_or(0)
        };
        let queue_of: Vec<usize> = (0..regions).map(nearest_queue).collect();
        let queue = |(seat, region): (usize, &usize)| match policy.rank {
            Rank::Recorded => (seat, *region),
            _ => (queue_of[*region], *region),
        };
        let seats: Vec<(usize, usize)> = places.iter().enumerate().map(queue).collect();
        let numbered = || (0_u32..).zip(&seats);
        let members: Vec<Vec<u32>> = (0..region_of.len())
            .map(|queue| numbered().filter(|(_, s)| s.0 == queue).map(|(n, _)| n).collect())
            .collect();
        let queue_with_workers = |r: &usize| region_of.iter().position(|region| region == r);
        let victims = region_of
            .iter()
            .map(|&region| {
                let rings = topology.rings(region);
                let mut queues =
                    rings.iter().map(|ring| ring.iter().filter_map(queue_with_workers).collect());
                let first = |mut rings: Vec<Vec<usize>>| {
                    let nearest = rings.iter().position(|ring: &Vec<usize>| !ring.is_empty());
                    nearest.map(|at| rings.swap_remove(at)).unwrap_or_default()
                };
                match policy.steal {
                    Steal::Never => Vec::new(),
                    Steal::Nearest => first(queues.collect()),
                    Steal::Score | Steal::Any => queues.by_ref().flatten_all(),
                }
            })
            .collect();
        let ring = rings_of(&topology);
        let one_queue = region_of.len() == 1;
        Self {
            keeps_outboxes: policy.outboxes && one_queue && may_have(places.len()),
            arena,
            policy,
            topology,
            seats,
            takers: members.iter().map(|seats| seats.len().max(1)).collect(),
            crowd: None,
            members,
            victims,
            queue_of,
            region_of,
            ring,
            partition_ns: AtomicU64::new(0),
            followed: None,
        }
    }

    /// One that follows a schedule, which keeps its times where `timed`. The policy must be
    /// [`Policy::RECORDED`].
    pub(crate) fn following(self, schedule: Option<&Schedule>, timed: bool) -> Self {
        Self { followed: schedule.map(|schedule| Followed::new(schedule, timed)), ..self }
    }

    /// How many queues a policy needs on a topology with workers in these regions.
    pub(crate) fn queues(policy: &Policy, topology: &Topology, places: &[usize]) -> usize {
        match policy.rank {
            Rank::Oblivious => return 1,
            Rank::Recorded => return places.len(),
            _ => {}
        }
        (0..topology.regions()).filter(|region| places.contains(region)).count().max(1)
    }

    /// A worker for a seat.
    pub(crate) fn worker(&self, seat: u32, seed: u64) -> Worker {
        let (queue, region) = self.seats[seat as usize];
        Worker::new(&self.arena, seat, queue, region, self.topology.regions(), seed)
    }

    /// Ready tasks beyond which a worker that registers more runs some first.
    #[inline]
    pub(crate) fn backlog(&self, worker: &Worker) -> usize {
        self.policy.backlog as usize * self.takers[worker.queue]
    }

    /// The ring of region `to` seen from region `from`.
    pub(crate) fn ring(&self, from: usize, to: usize) -> usize {
        usize::from(self.ring[from * self.topology.regions() + to])
    }
}

fn rings_of(topology: &Topology) -> Vec<u8> {
    let regions = topology.regions();
    let mut ring = vec![0; regions * regions];
    for from in 0..regions {
        for (distance, members) in (1_u8..).zip(topology.rings(from)) {
            for to in members {
                ring[from * regions + to] = distance;
            }
        }
    }
    ring
}

/// All of several lists in one.
trait FlattenAll {
    fn flatten_all(self) -> Vec<usize>;
}

impl<I: Iterator<Item = Vec<usize>>> FlattenAll for &mut I {
    fn flatten_all(self) -> Vec<usize> {
        self.flatten().collect()
    }
}
