//! Who is woken where workers share cores.

use core::cell::RefCell;

use isochrone_units::CoreId;

use super::super::{Goal, Next, Scheduler, Wake};
use super::{Asleep, Cores, Worker};
use crate::arena::{Arena, Capacity, Heap, ROOT};
use crate::policy::Policy;
use crate::sync::Ordering;
use crate::topology::Topology;

/// Seats that were woken.
#[derive(Default)]
struct Woken(RefCell<Vec<u32>>);

impl Wake for Woken {
    fn wake(&self, seat: u32, _: bool) {
        self.0.borrow_mut().push(seat);
    }
}

impl Woken {
    fn so_far(&self) -> Vec<u32> {
        self.0.borrow().clone()
    }
}

/// A scheduler for workers on these cores, and the workers.
fn on(cores: &[u16]) -> (Scheduler, Vec<Worker>) {
    let workers = cores.len();
    let capacity = Capacity { tasks: 20, edges: 4, blocks: 1, data: 1, trace: 0 };
    let arena = Arena::new(&mut Heap, capacity, workers, 1);
    let (policy, topology) = (Policy::OBLIVIOUS.without_outboxes(), Topology::flat(8));
    let mut scheduler = Scheduler::new(arena, policy, topology, &vec![0; workers]);
    let cores: Vec<CoreId> = cores.iter().copied().map(CoreId).collect();
    scheduler.seat_on(Cores::Pinned(&cores));
    let workers = (0..).take(workers).map(|seat| scheduler.worker(seat, 1)).collect();
    (scheduler, workers)
}

/// The worker takes all that is there, and sleeps.
fn sleep(scheduler: &Scheduler, worker: &mut Worker, wake: &Woken) {
    while matches!(scheduler.next(worker, Goal::Stop, || 0, wake), Next::Run(_)) {}
    assert!(worker.resting);
    assert_eq!(scheduler.fall_asleep(worker, wake), Asleep::Yes);
}

#[test]
fn one_is_woken_on_each_core_where_nobody_is_awake() {
    let (scheduler, mut workers) = on(&[5, 5, 7, 7]);
    let woken = Woken::default();
    for seat in [1, 3, 2] {
        sleep(&scheduler, &mut workers[seat], &woken);
    }
    let append = || scheduler.enqueue(0, ROOT + 1, &woken);
    append();
    assert_eq!(woken.so_far(), [2], "the last one to lie down on the other core");
    append();
    assert_eq!(woken.so_far(), [2], "somebody is awake on both cores");
    sleep(&scheduler, &mut workers[2], &woken);
    sleep(&scheduler, &mut workers[0], &woken);
    append();
    append();
    assert_eq!(woken.so_far(), [2, 0, 2]);
    append();
    assert_eq!(woken.so_far(), [2, 0, 2], "somebody is awake on both cores again");
}

#[test]
fn who_shares_no_core_is_woken_for_every_task() {
    let (scheduler, mut workers) = on(&[5, 6, 7]);
    let woken = Woken::default();
    for seat in [2, 1] {
        sleep(&scheduler, &mut workers[seat], &woken);
    }
    (0..3).for_each(|_| scheduler.enqueue(0, ROOT + 1, &woken));
    assert_eq!(woken.so_far(), [1, 2]);
}

#[test]
fn who_may_not_take_what_is_there_wakes_another() {
    let (scheduler, mut workers) = on(&[5, 5]);
    let woken = Woken::default();
    sleep(&scheduler, &mut workers[1], &woken);
    let task = ROOT + 1;
    scheduler.arena.slot(task).parent.store(ROOT, Ordering::Relaxed);
    scheduler.enqueue(0, task, &woken);
    assert!(woken.so_far().is_empty(), "somebody is awake on the core");
    workers[0].only = Some(task + 1);
    let next = scheduler.next(&mut workers[0], Goal::Stop, || 0, &woken);
    assert_eq!((next, woken.so_far()), (Next::RetryAt(0), vec![1]));
    // It is up, and takes it.
    assert_eq!(scheduler.next(&mut workers[1], Goal::Stop, || 0, &woken), Next::Run(task));
}

#[test]
fn who_sleeps_sees_what_is_left_and_may_watch_where_nobody_is_awake() {
    let (scheduler, mut workers) = on(&[5, 5]);
    let woken = Woken::default();
    sleep(&scheduler, &mut workers[1], &woken);
    assert!(!scheduler.may_watch(1) && !scheduler.sees_left(&workers[1]));
    scheduler.enqueue(0, ROOT + 1, &woken);
    assert!(scheduler.sees_left(&workers[1]));
    sleep(&scheduler, &mut workers[0], &woken);
    assert!(scheduler.may_watch(0) && scheduler.may_watch(1));
    assert!(!scheduler.sees_left(&workers[1]));
}
