//! Larger cases than loom can go through, in many random interleavings: random programs over overlapping ranges
//! on three workers, whose memory must be what the program's order leaves.

use core::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use isochrone_stats::{Rng, rng};

use super::super::{Children, Goal, How, Next, Scheduler, Submitted, Wake};
use super::{Asleep, Cores, Worker};
use crate::arena::NOTHING;
use crate::arena::slot::{CHILDREN, Stored};
use crate::arena::{Arena, Capacity, Heap, ROOT, seat};
use crate::footprint::Mode;
use crate::policy::Policy;
use crate::range::{DataId, Range};
use crate::sync::{AtomicU64, Ordering, give_way};
use crate::topology::Topology;

const WORKERS: usize = 3;
const CELLS: u64 = 6;
const TASKS: usize = 10;
/// Programs, and interleavings of each.
const PROGRAMS: u64 = 60;
const ORDERS: usize = 60;

/// What a task uses.
type Uses = Vec<(Range, Mode)>;

fn program(seed: u64) -> Vec<Uses> {
    let mut draw = rng(seed);
    let modes = [Mode::In, Mode::In, Mode::Out, Mode::InOut, Mode::Commutative];
    let mut one = || {
        let start = draw.next_u64() % CELLS;
        let bytes = 1 + draw.next_u64() % (CELLS - start).min(3);
        let mode = modes[(draw.next_u64() % 5) as usize];
        (Range { data: DataId(0), start, bytes }, mode)
    };
    (0..TASKS).map(|_| [one(), one()].into()).collect()
}

/// What a task does to the cells: a sum of what it reads goes to what it writes. What is commutative gets a
/// number added, so that the order does not show.
fn apply(number: u64, uses: &[(Range, Mode)], cells: &[AtomicU64]) {
    let range = |range: &Range| &cells[range.start as usize..range.end() as usize];
    let mut sum = number + 1;
    for (of, _) in uses.iter().filter(|(_, mode)| matches!(mode, Mode::In | Mode::InOut)) {
        for cell in range(of) {
            sum = sum.wrapping_mul(31).wrapping_add(cell.load(Ordering::Relaxed));
        }
    }
    let exact = uses.iter().all(|(_, mode)| *mode != Mode::Commutative);
    for (of, mode) in uses.iter().filter(|(_, mode)| mode.writes()) {
        for cell in range(of) {
            let old = cell.load(Ordering::Relaxed);
            give_way();
            match mode {
                Mode::Commutative => cell.store(old.wrapping_add(number + 1), Ordering::Relaxed),
                _ if exact => cell.store(sum, Ordering::Relaxed),
                // A task that has both must not let the order of the one reach the other.
                _ => cell.store(number, Ordering::Relaxed),
            }
        }
    }
}

struct Rig {
    scheduler: Scheduler,
    cells: Vec<AtomicU64>,
    /// The task in each slot.
    numbers: Mutex<BTreeMap<u32, u64>>,
    program: Vec<Uses>,
}

impl Wake for Rig {
    // Sleepers look at their seat's word themselves.
    fn wake(&self, _: u32, _: bool) {}
}

fn cells() -> Vec<AtomicU64> {
    (0..CELLS).map(|_| AtomicU64::new(0)).collect()
}

impl Rig {
    fn new(program: Vec<Uses>, outboxes: bool, cores: usize) -> Arc<Self> {
        let capacity = Capacity { tasks: 1, edges: 1, blocks: 1, data: 1, trace: 0 };
        let arena = Arena::new(&mut Heap, capacity, WORKERS, 1);
        assert!(arena.enter_object(DataId(0), 4096, CELLS, 0));
        let topology = Topology::flat(2);
        let policy = Policy { outboxes, ..Policy::OBLIVIOUS };
        let mut scheduler = Scheduler::new(arena, policy, topology, &[0; WORKERS]);
        scheduler.seat_on(Cores::Free(cores));
        Arc::new(Self { scheduler, cells: cells(), numbers: Mutex::default(), program })
    }

    fn submit(&self, worker: &mut Worker, children: &mut Children, number: usize) {
        let task = self.scheduler.slot_for(worker).expect("room");
        worker.footprint.clear();
        for (range, mode) in &self.program[number] {
            worker.footprint.access(*range, *mode);
        }
        self.numbers.lock().unwrap().insert(task, number as u64);
        let outcome = self.scheduler.submit(worker, children, task, &NOTHING, How::Queued, self);
        assert_eq!(outcome, Ok(Submitted::Done));
    }

    fn run(&self, task: u32) {
        let number = self.numbers.lock().unwrap()[&task];
        let stored = |access: Stored| (access.range, access.mode);
        let uses: Uses = self.scheduler.arena.accesses(task).map(stored).collect();
        apply(number, &uses, &self.cells);
    }

    /// Whether a worker that sleeps gets up by itself: where it shares its core, when there is work.
    fn looks(&self, worker: &Worker) -> bool {
        self.scheduler.sharers(worker.seat).is_some() && self.scheduler.sees_left(worker)
    }

    fn work(&self, worker: &RefCell<Worker>, goal: Goal) {
        for now in (0..).step_by(1000) {
            let at_hand = self.scheduler.at_hand(&mut worker.borrow_mut());
            let next = match at_hand {
                Some(task) => Next::Run(task),
                None => self.scheduler.next(&mut worker.borrow_mut(), goal, || now, self),
            };
            match next {
                Next::Run(task) => {
                    self.run(task);
                    self.scheduler.finish(&mut worker.borrow_mut(), task, 0, self);
                }
                Next::Reached => return,
                Next::RetryAt(_) => give_way(),
                Next::Sleep => {
                    let asleep = self.scheduler.fall_asleep(&worker.borrow(), self);
                    let state = &self.scheduler.arena.seats[worker.borrow().seat as usize].state;
                    while asleep == Asleep::Yes && state.load(Ordering::Acquire) == seat::ASLEEP {
                        if self.looks(&worker.borrow()) {
                            break;
                        }
                        give_way();
                    }
                }
            }
        }
    }
}

/// Runs a program on all workers, which have so many cores; what the cells hold.
fn run(program: Vec<Uses>, outboxes: bool, cores: usize) -> Vec<u64> {
    let rig = Rig::new(program, outboxes, cores);
    let others: Vec<_> = (1..WORKERS as u32)
        .map(|seat| {
            let rig = Arc::clone(&rig);
            shuttle::thread::spawn(move || {
                rig.work(&RefCell::new(rig.scheduler.worker(seat, 1)), Goal::Stop);
            })
        })
        .collect();
    let worker = RefCell::new(rig.scheduler.worker(0, 1));
    let mut children = Children::of(ROOT);
    for number in 0..TASKS {
        rig.submit(&mut worker.borrow_mut(), &mut children, number);
    }
    let slot = rig.scheduler.arena.slot(ROOT);
    slot.waiter.store(1, Ordering::SeqCst);
    slot.target.store(CHILDREN - children.spawned, Ordering::SeqCst);
    rig.work(&worker, Goal::Children(ROOT, children.spawned));
    rig.scheduler.arena.run().stop.store(1, Ordering::SeqCst);
    for seat in 1..WORKERS as u32 {
        rig.scheduler.wake_seat(seat, &*rig);
    }
    others.into_iter().for_each(|other| other.join().unwrap());
    rig.cells.iter().map(|cell| cell.load(Ordering::Relaxed)).collect()
}

fn every_program_leaves_what_its_order_leaves(outboxes: bool, cores: usize) {
    for seed in 0..PROGRAMS {
        shuttle::check_random(
            move || {
                let program = program(seed);
                let serial = cells();
                for (number, uses) in (0..).zip(&program) {
                    apply(number, uses, &serial);
                }
                let wanted: Vec<u64> = serial.iter().map(|c| c.load(Ordering::Relaxed)).collect();
                assert_eq!(run(program, outboxes, cores), wanted, "program {seed}");
            },
            ORDERS,
        );
    }
}

#[test]
fn random_programs_on_three_workers_and_one_queue() {
    every_program_leaves_what_its_order_leaves(false, WORKERS);
}

#[test]
fn random_programs_whose_ready_tasks_go_through_outboxes() {
    every_program_leaves_what_its_order_leaves(true, WORKERS);
}

#[test]
fn random_programs_on_fewer_cores_than_workers() {
    for (outboxes, cores) in [(false, 1), (true, 1), (true, 2)] {
        every_program_leaves_what_its_order_leaves(outboxes, cores);
    }
}
