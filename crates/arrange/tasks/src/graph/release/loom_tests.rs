//! Dependence release on every interleaving: a task that waits for others is made ready once, by
//! whoever ends the last of them, and sees what they wrote.

use loom::sync::Arc;
use loom::sync::atomic::AtomicU32;

use crate::arena::slot::TaskRef;
use crate::arena::{Arena, Capacity, Heap};
use crate::sync::Ordering;

/// Two tasks and one that may wait for them, each with a word that it writes without any order: the model
/// lets whoever is not told that a task is over read what was there before.
struct Rig {
    arena: Arena,
    words: [AtomicU32; 2],
    runs: AtomicU32,
}

const FIRST: u32 = 2;
const SECOND: u32 = 3;
const AFTER: u32 = 4;

impl Rig {
    fn new() -> Arc<Self> {
        let capacity = Capacity { tasks: 4, edges: 4, blocks: 1, data: 1, trace: 0 };
        Arc::new(Self {
            arena: Arena::new(&mut Heap, capacity, 1, 1),
            words: [AtomicU32::new(0), AtomicU32::new(0)],
            runs: AtomicU32::new(0),
        })
    }

    /// Runs one of the two and ends it; runs the third if that made it ready.
    fn run(&self, task: u32) {
        self.words[(task - FIRST) as usize].store(task, Ordering::Relaxed);
        self.arena.end(task, |after, _| self.run_after(after), |_| ());
    }

    fn run_after(&self, after: u32) {
        assert_eq!(after, AFTER);
        for (task, word) in (FIRST..).zip(&self.words) {
            assert_eq!(word.load(Ordering::Relaxed), task);
        }
        self.runs.fetch_add(1, Ordering::Relaxed);
    }

    /// Registers the third behind the other two, as `Scheduler::link` does.
    fn register(&self) {
        self.arena.slot(AFTER).pending.store(3, Ordering::Relaxed);
        let mut over = 1;
        for (task, edge) in [(FIRST, 1), (SECOND, 2)] {
            if !self.arena.follow(TaskRef { slot: task, age: 0 }, AFTER, edge) {
                over += 1;
            }
        }
        if self.arena.satisfy(AFTER, over) {
            self.run_after(AFTER);
        }
    }
}

fn check(preemptions: usize, run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(run);
}

#[test]
fn a_task_is_ready_once_and_sees_what_those_before_it_wrote() {
    check(3, || {
        let rig = Rig::new();
        let threads = [FIRST, SECOND].map(|task| {
            let rig = rig.clone();
            loom::thread::spawn(move || rig.run(task))
        });
        rig.register();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(rig.runs.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn a_task_that_is_over_is_waited_for_by_nobody_even_when_its_slot_is_taken_again() {
    check(3, || {
        let rig = Rig::new();
        let other = rig.clone();
        let thread = loom::thread::spawn(move || {
            other.arena.end(FIRST, |_, _| panic!("nobody waits for the first"), |_| ());
            // The slot's next task, for which somebody else waits.
            other.arena.slot(AFTER).pending.store(1, Ordering::Relaxed);
            assert!(other.arena.follow(TaskRef { slot: FIRST, age: 1 }, AFTER, 2));
            let mut ready = 0;
            other.arena.end(FIRST, |_, _| ready += 1, |_| ());
            assert_eq!(ready, 1);
        });
        let stale = TaskRef { slot: FIRST, age: 7 };
        assert!(!rig.arena.follow(stale, SECOND, 3), "of another age");
        thread.join().unwrap();
        assert!(!rig.arena.is_live(TaskRef { slot: FIRST, age: 0 }));
    });
}
