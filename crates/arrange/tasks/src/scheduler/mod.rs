//! Decides which worker runs which task and when. A passive object: it never blocks, reads no clock and
//! knows no thread. A driver registers tasks with [`Scheduler::submit`], asks [`Scheduler::next`] what a
//! worker shall do, and says with [`Scheduler::finish`] that it is done; live and simulated drivers call
//! the same object.

pub(crate) mod counts;
pub(crate) mod crowd;
pub(crate) mod fate;
mod finish;
pub(crate) mod followed;
mod nest;
mod outbox;
mod rank;
pub(crate) mod rest;
mod submit;
mod tokens;
mod window;
pub(crate) mod worker;

use crate::arena::slot::flag;
use crate::arena::{Arena, ROOT};
use crate::policy::{Policy, Rank, Steal};
use crate::schedule::Schedule;
use crate::sync::{AtomicU64, Ordering};
use crate::topology::Topology;
use counts::Count;
use followed::Followed;
pub(crate) use submit::{Children, How, Submitted, refused};
use worker::Worker;

/// Tasks that a worker takes at once, at most.
const BATCH_MAX: usize = 32;
/// How long the tasks that a worker takes at once should last: what is in its hand nobody else can take.
const BATCH_NS: u64 = 2_000;

/// How a driver wakes a seat's worker.
pub(crate) trait Wake {
    /// Worker `seat` was resting and shall look again; `asleep` if the system must be told.
    fn wake(&self, seat: u32, asleep: bool);

    /// Which of several seats that rest is woken for a task that any of them may take.
    fn choose(&self, resting: &mut dyn Iterator<Item = u32>) -> Option<u32> {
        resting.next()
    }

    /// A task was appended to a queue.
    fn pushed(&self, queue: usize) {
        let _ = queue;
    }

    /// Time that this thread has run, ns: to tell what a partition costs. The scheduler itself reads no clock.
    fn thread_ns(&self) -> u64 {
        0
    }
}

/// What a worker shall do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Run the task in this slot.
    Run(u32),
    /// Rest until woken or until this time, then ask again.
    RetryAt(u64),
    /// Rest until woken.
    Sleep,
    /// What the worker was to work for is reached.
    Reached,
}

/// What a worker works for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    /// The end of the run.
    Stop,
    /// All children of the task in this slot, so many, have finished.
    Children(u32, u32),
    /// The sentinel in this slot waits for nothing.
    Ready(u32),
    /// The worker ran something, or there was nothing to run: one more turn than so many.
    Turn(u64),
    /// The worker's own queue has no more than so many tasks.
    Backlog(usize),
}

/// The scheduler: the arena, and what never changes during a run.
#[derive(Debug)]
pub(crate) struct Scheduler {
    pub(crate) arena: Arena,
    pub(crate) policy: Policy,
    pub(crate) topology: Topology,
    /// Queue and region of each seat.
    pub(crate) seats: Vec<(usize, usize)>,
    /// Seats of each queue.
    members: Vec<Vec<u32>>,
    /// How many of them may be awake without sharing a core, at least one.
    takers: Vec<usize>,
    /// Which share cores, if workers are more than cores.
    crowd: Option<crowd::Crowd>,
    /// Queues to take from, for each queue.
    victims: Vec<Vec<usize>>,
    /// The queue for tasks whose data live in a region, for each region.
    queue_of: Vec<usize>,
    /// The region of each queue.
    region_of: Vec<usize>,
    /// Which ring a region is in, seen from another: 0 the region itself, 1 the nearest ones.
    ring: Vec<u8>,
    /// Whether ready tasks go through outboxes.
    keeps_outboxes: bool,
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
            keeps_outboxes: policy.outboxes && one_queue && outbox::may_have(places.len()),
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

    /// The next task that needs no look at the clock, if there is one.
    #[inline]
    pub(crate) fn at_hand(&self, worker: &mut Worker) -> Option<u32> {
        while let Some(task) = worker.at_hand() {
            if self.admit(task) {
                return Some(task);
            }
        }
        None
    }

    /// What the worker shall do. The clock `now` is read where it looks beyond what it has itself.
    pub(crate) fn next(
        &self,
        worker: &mut Worker,
        goal: Goal,
        now: impl Fn() -> u64,
        wake: &impl Wake,
    ) -> Next {
        self.rise(worker);
        let now = loop {
            if let Some(task) = self.at_hand(worker) {
                worker.idle_since = None;
                return Next::Run(task);
            }
            self.tell_parent(worker, wake);
            if worker.holds_some() {
                // A parent ended by this, and what waited for it is ready.
                continue;
            }
            if self.reached(goal, worker) {
                // Inside of a task, what ran is counted with what the task runs on top of.
                if worker.depth == 0 {
                    self.settle(worker, now());
                }
                return Next::Reached;
            }
            if let Some(task) = self.nested(worker) {
                worker.idle_since = None;
                return Next::Run(task);
            }
            let now = now();
            if !self.take(worker, now, wake) {
                break now;
            }
        };
        self.idle(worker, goal, now, wake)
    }

    /// Takes tasks from the worker's queue; false if there are none.
    fn take(&self, worker: &mut Worker, now: u64, wake: &impl Wake) -> bool {
        self.settle(worker, now);
        worker.taken_at = now;
        if let Some(ancestor) = worker.only {
            if self.keeps_outboxes {
                self.send_all(wake);
            }
            return self.take_below(worker, ancestor);
        }
        let ready = self.arena.ready(worker.queue);
        let fair = ready.len() / (2 * self.takers[worker.queue]);
        let quick = usize::try_from(BATCH_NS / worker.task_ns.max(1)).unwrap_or(BATCH_MAX);
        let batch = if self.followed.is_some() { 1 } else { BATCH_MAX };
        let most = fair.min(quick).clamp(1, batch);
        let mut taken = ready.pop(most, &mut worker.stash);
        if taken == 0 && self.keeps_outboxes {
            taken = self.take_posted(worker, quick.clamp(1, BATCH_MAX));
        }
        if taken == 0 && self.keeps_outboxes {
            taken = self.take_nested(worker);
        }
        // All at once, while the first is begun.
        let lines = worker.lines.runs;
        worker.stash.iter().for_each(|task| self.arena.slot(*task).claim(lines));
        worker.stash.reverse();
        taken > 0
    }

    /// Counts the time since tasks were taken, if some ran.
    fn settle(&self, worker: &mut Worker, now: u64) {
        if worker.ran > 0 {
            let busy = now.saturating_sub(worker.taken_at);
            self.count(worker, Count::BusyNs, busy);
            worker.task_ns = busy / u64::from(worker.ran);
            worker.ran = 0;
        }
    }

    /// Takes a task that descends from `ancestor`, from whichever queue has one.
    #[cold]
    fn take_below(&self, worker: &mut Worker, ancestor: u32) -> bool {
        let descends = |task: u32| self.descends(task, ancestor);
        let queues = 0..self.members.len();
        let found = queues.into_iter().find_map(|queue| self.arena.ready(queue).pop_if(descends));
        worker.stash.extend(found);
        found.is_some()
    }

    /// Whether a task is `ancestor`, or was registered by a task that descends from it.
    fn descends(&self, task: u32, ancestor: u32) -> bool {
        let mut above = task;
        while above != ROOT && above != ancestor {
            above = self.arena.slot(above).parent.load(Ordering::Relaxed);
        }
        above == ancestor
    }

    /// From here on the worker runs descendants of `ancestor` only; what it has at hand goes back.
    pub(crate) fn restrict(&self, worker: &mut Worker, ancestor: u32, wake: &impl Wake) {
        while let Some(task) = worker.at_hand() {
            self.enqueue(worker.queue, task, wake);
        }
        worker.only = Some(ancestor);
    }

    /// Whether what a worker works for is reached.
    #[inline]
    pub(crate) fn reached(&self, goal: Goal, worker: &Worker) -> bool {
        match goal {
            Goal::Stop => self.arena.run().stop.load(Ordering::Acquire) != 0,
            Goal::Children(slot, spawned) => {
                let left = crate::arena::slot::CHILDREN - spawned;
                self.arena.slot(slot).children.load(Ordering::SeqCst) == left
            }
            Goal::Ready(slot) => self.arena.slot(slot).pending.load(Ordering::SeqCst) == 0,
            Goal::Backlog(most) => self.arena.ready(worker.queue).len() <= most,
            Goal::Turn(turns) => worker.turns > turns,
        }
    }

    /// Whether a task may begin: it has the tokens it needs.
    #[inline]
    fn admit(&self, task: u32) -> bool {
        let flags = self.arena.slot(task).flags.load(Ordering::Relaxed);
        flags & flag::TOKENS == 0 || self.take_tokens(task)
    }

    /// Whether a task is not worth running: another child of its parent failed, or it would look at what a task that
    /// failed left undone, which then fails it as well. What it writes without a look is no longer undone.
    #[inline]
    pub(crate) fn is_void(&self, task: u32) -> bool {
        self.arena.run().failures.load(Ordering::Relaxed) > 0 && self.is_void_after_failures(task)
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
