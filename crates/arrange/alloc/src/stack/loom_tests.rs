//! The stacks, on every interleaving of a few threads.

use super::*;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use std::vec::Vec;

/// A stack with memory behind its entries: loom fails if two threads hold one at once, or if one
/// does not see what its last holder wrote.
struct Held {
    head: AtomicU64,
    next: Vec<AtomicU32>,
    memory: Vec<UnsafeCell<u32>>,
}

impl Held {
    fn new(count: u32) -> Arc<Self> {
        let held = Self {
            head: AtomicU64::new(0),
            next: (0..count).map(|_| AtomicU32::new(0)).collect(),
            memory: (0..count).map(|_| UnsafeCell::new(0)).collect(),
        };
        held.stack().push_all(&(0..count).collect::<Vec<_>>());
        Arc::new(held)
    }

    fn stack(&self) -> Stack<'_> {
        Stack::new(&self.head, &self.next)
    }

    fn touch(&self, entries: &[u32]) {
        for &index in entries {
            self.memory[index as usize].with_mut(|_| ());
        }
    }

    /// Pops up to `most`, uses them, and pushes them again.
    fn cycle(&self, most: usize) {
        let mut mine = [0; 4];
        let count = self.stack().pop_many(&mut mine[..most]);
        self.touch(&mine[..count]);
        self.stack().push_all(&mine[..count]);
    }

    fn all(&self) -> Vec<u32> {
        let mut all = [0; 9];
        let count = self.stack().pop_many(&mut all);
        self.touch(&all[..count]);
        let mut all = all[..count].to_vec();
        all.sort_unstable();
        all
    }
}

fn check(preemptions: usize, run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(run);
}

#[test]
fn one_pops_several_while_another_pops_and_pushes_the_same() {
    check(4, || {
        let held = Held::new(3);
        let other = held.clone();
        let thread = loom::thread::spawn(move || {
            other.cycle(1);
            other.cycle(1);
        });
        held.cycle(2);
        thread.join().unwrap();
        assert_eq!(held.all(), [0, 1, 2]);
    });
}

#[test]
fn an_entry_that_left_and_came_back_deceives_nobody() {
    check(4, || {
        let held = Held::new(3);
        let other = held.clone();
        let thread = loom::thread::spawn(move || {
            let (mut first, mut second) = ([0], [0]);
            let taken = other.stack().pop_many(&mut first);
            let more = other.stack().pop_many(&mut second);
            other.touch(&first[..taken]);
            other.touch(&second[..more]);
            // The first comes back on top of what was below both.
            other.stack().push_all(&first[..taken]);
            (second, more)
        });
        let mut mine = [0; 2];
        let count = held.stack().pop_many(&mut mine);
        held.touch(&mine[..count]);
        let (second, more) = thread.join().unwrap();
        let mut all = held.all();
        all.extend(&mine[..count]);
        all.extend(&second[..more]);
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2]);
    });
}

#[test]
fn three_threads_push_chains_and_lose_nothing() {
    check(2, || {
        let held = Held::new(4);
        let threads: Vec<_> = [1, 2]
            .into_iter()
            .map(|most| {
                let other = held.clone();
                loom::thread::spawn(move || other.cycle(most))
            })
            .collect();
        held.cycle(2);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(held.all(), [0, 1, 2, 3]);
    });
}
