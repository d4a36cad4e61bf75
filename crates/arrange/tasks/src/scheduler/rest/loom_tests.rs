//! Coming to rest on every interleaving: nobody sleeps while there is work, or after what he waits for
//! has come.

use core::cell::RefCell;

use loom::sync::Arc;
use loom::sync::atomic::AtomicU32;

use super::super::{Children, Goal, How, Next, Scheduler, Submitted, Wake};
use super::{Asleep, Cores, Group, Worker};
use crate::arena::NOTHING;
use crate::arena::slot::CHILDREN;
use crate::arena::{Arena, Capacity, Heap, ROOT, seat};
use crate::policy::Policy;
use crate::sync::Ordering;
use crate::topology::Topology;

/// One queue without outboxes.
const PLAIN: Policy = Policy::OBLIVIOUS.without_outboxes();

struct Rig {
    scheduler: Scheduler,
    ran: AtomicU32,
}

impl Wake for Rig {
    // Sleepers look at their seat's word themselves.
    fn wake(&self, _: u32, _: bool) {}
}

impl Rig {
    fn new(workers: usize) -> Arc<Self> {
        Arc::new(Self::with(workers, PLAIN))
    }

    /// Ready tasks go through outboxes.
    fn with_outboxes(workers: usize) -> Arc<Self> {
        Arc::new(Self::with(workers, Policy::OBLIVIOUS))
    }

    /// All workers share one core, and look while they sleep.
    fn on_one_core(workers: usize, policy: Policy) -> Arc<Self> {
        let mut rig = Self::with(workers, policy);
        rig.scheduler.seat_on(Cores::Free(1));
        Arc::new(rig)
    }

    fn with(workers: usize, policy: Policy) -> Self {
        let capacity = Capacity { tasks: 6, edges: 4, blocks: 1, data: 1, trace: 0 };
        let arena = Arena::new(&mut Heap, capacity, workers, 1);
        let topology = Topology::flat(2);
        let scheduler = Scheduler::new(arena, policy, topology, &vec![0; workers]);
        Self { scheduler, ran: AtomicU32::new(0) }
    }

    fn submit(&self, worker: &mut Worker, children: &mut Children) {
        let task = self.scheduler.slot_for(worker).expect("room");
        let outcome = self.scheduler.submit(worker, children, task, &NOTHING, How::Queued, self);
        assert_eq!(outcome, Ok(Submitted::Done));
    }

    /// What the live driver does, with tasks that only count.
    fn work(&self, worker: &RefCell<Worker>, goal: Goal) {
        loop {
            let next = self.scheduler.next(&mut worker.borrow_mut(), goal, || 0, self);
            match next {
                Next::Run(task) => {
                    self.ran.fetch_add(1, Ordering::Relaxed);
                    self.scheduler.finish(&mut worker.borrow_mut(), task, 0, self);
                }
                Next::Reached => return,
                Next::RetryAt(_) => loom::thread::yield_now(),
                Next::Sleep => {
                    let asleep = self.scheduler.fall_asleep(&worker.borrow(), self);
                    let state = &self.scheduler.arena.seats[worker.borrow().seat as usize].state;
                    while asleep == Asleep::Yes && state.load(Ordering::Acquire) == seat::ASLEEP {
                        if self.looks(&worker.borrow()) {
                            break;
                        }
                        loom::thread::yield_now();
                    }
                }
            }
        }
    }

    /// Whether a worker that sleeps gets up by itself: where it shares its core, when there is work.
    fn looks(&self, worker: &Worker) -> bool {
        self.scheduler.sharers(worker.seat).is_some() && self.scheduler.sees_left(worker)
    }

    fn wait(&self, worker: &RefCell<Worker>, children: &Children) {
        let slot = self.scheduler.arena.slot(children.parent);
        slot.waiter.store(1, Ordering::SeqCst);
        slot.target.store(CHILDREN - children.spawned, Ordering::SeqCst);
        self.work(worker, Goal::Children(children.parent, children.spawned));
    }

    fn stop(&self) {
        self.scheduler.arena.run().stop.store(1, Ordering::SeqCst);
        self.scheduler.wake_seat(1, self);
    }
}

#[test]
fn whoever_waits_is_woken_and_every_task_runs_once() {
    one_task_and_two_workers(Rig::new, |_, _| ROOT);
}

#[test]
fn whoever_waits_is_woken_where_tasks_go_through_outboxes() {
    one_task_and_two_workers(Rig::with_outboxes, |_, _| ROOT);
}

#[test]
fn whoever_waits_is_woken_where_workers_share_a_core() {
    one_task_and_two_workers(|workers| Rig::on_one_core(workers, PLAIN), |_, _| ROOT);
}

#[test]
fn whoever_waits_is_woken_where_workers_share_a_core_and_tasks_go_through_outboxes() {
    one_task_and_two_workers(|workers| Rig::on_one_core(workers, Policy::OBLIVIOUS), |_, _| ROOT);
}

#[test]
fn whoever_waits_inside_of_a_task_is_woken_and_nests_lose_nothing() {
    one_task_and_two_workers(Rig::with_outboxes, |rig, worker| {
        let task = rig.scheduler.slot_for(worker).expect("room");
        rig.scheduler.arena.slot(task).children.store(CHILDREN, Ordering::Relaxed);
        task
    });
}

/// One registers a task and waits for it, another looks for work: all end, and the task ran once.
fn one_task_and_two_workers(rig: fn(usize) -> Arc<Rig>, parent: fn(&Rig, &mut Worker) -> u32) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.max_branches = 10_000;
    builder.check(move || {
        let rig = rig(2);
        let other = rig.clone();
        let thread = loom::thread::spawn(move || {
            let worker = RefCell::new(other.scheduler.worker(1, 1));
            other.work(&worker, Goal::Stop);
        });
        let worker = RefCell::new(rig.scheduler.worker(0, 1));
        let mut children = Children::of(parent(&rig, &mut worker.borrow_mut()));
        rig.submit(&mut worker.borrow_mut(), &mut children);
        rig.wait(&worker, &children);
        assert_eq!(rig.ran.load(Ordering::Relaxed), 1);
        rig.stop();
        thread.join().unwrap();
    });
}

/// The one who is awake on the core is the program, which comes back only when its task has run.
#[test]
fn a_task_is_run_by_one_who_sleeps_where_who_is_awake_does_not_look() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.max_branches = 10_000;
    builder.check(|| {
        let rig = Rig::on_one_core(2, PLAIN);
        let other = rig.clone();
        let thread = loom::thread::spawn(move || {
            let worker = RefCell::new(other.scheduler.worker(1, 1));
            other.work(&worker, Goal::Stop);
        });
        let mut worker = rig.scheduler.worker(0, 1);
        let mut children = Children::of(ROOT);
        rig.submit(&mut worker, &mut children);
        while rig.ran.load(Ordering::Relaxed) == 0 {
            loom::thread::yield_now();
        }
        rig.stop();
        thread.join().unwrap();
    });
}

/// Two lie down and rise on one core: the words of their group agree with who is awake.
#[test]
fn those_who_share_a_core_are_counted_once() {
    loom::model(|| {
        let rig = Rig::on_one_core(2, PLAIN);
        let other = rig.clone();
        let lie_down_and_rise = |rig: &Rig, seat: u32| {
            let group = rig.scheduler.group(seat);
            let ready = rig.scheduler.arena.ready(0);
            if ready.rest(group, || ()) {
                ready.rise(group);
            }
        };
        let thread = loom::thread::spawn(move || lie_down_and_rise(&other, 1));
        lie_down_and_rise(&rig, 0);
        thread.join().unwrap();
        assert_eq!(rig.scheduler.group(0).map(Group::awake), Some(2));
        assert!(!rig.scheduler.arena.ready(0).rests());
    });
}

#[test]
fn a_queue_loses_no_task_between_one_who_lies_down_and_one_who_appends() {
    loom::model(|| {
        let rig = Rig::new(2);
        let other = rig.clone();
        let thread = loom::thread::spawn(move || other.scheduler.arena.ready(0).push(5, 0));
        let ready = rig.scheduler.arena.ready(0);
        let lay = ready.rest(None, || ());
        let seen = thread.join().unwrap();
        assert!(lay == seen, "either it is seen resting, or it sees the task");
        let mut out = Vec::new();
        assert_eq!(ready.pop(4, &mut out), 1);
        assert_eq!(out, [5]);
    });
}

#[test]
fn two_take_from_a_queue_and_none_twice() {
    loom::model(|| {
        let rig = Rig::new(2);
        for task in 1..=3 {
            rig.scheduler.arena.ready(0).push(task, 0);
        }
        let other = rig.clone();
        let thread = loom::thread::spawn(move || {
            let mut out = Vec::new();
            other.scheduler.arena.ready(0).pop(2, &mut out);
            out
        });
        let mut out = Vec::new();
        rig.scheduler.arena.ready(0).pop(2, &mut out);
        out.extend(thread.join().unwrap());
        out.sort_unstable();
        assert_eq!(out, [1, 2, 3]);
    });
}
