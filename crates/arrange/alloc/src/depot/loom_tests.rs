//! A depot, on every interleaving of two threads.

use super::*;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use std::vec::Vec;

/// A depot with memory behind its slots: loom fails if two threads hold one at once, or if one does
/// not see what its last holder wrote.
struct Held {
    depot: Depot,
    memory: Vec<UnsafeCell<u32>>,
}

impl Held {
    fn touch(&self, slots: &[u32]) {
        for &slot in slots {
            self.memory[slot as usize].with_mut(|_| ());
        }
    }

    /// Takes up to `most`, uses them, and puts them back; those for which there was no room.
    fn cycle(&self, most: usize) -> Vec<u32> {
        let mut mine = [0; 2];
        let count = self.depot.take(SizeClass::B64, &mut mine[..most]);
        self.touch(&mine[..count]);
        let kept = count == 0 || self.depot.put(SizeClass::B64, &mine[..count]);
        if kept { Vec::new() } else { mine[..count].to_vec() }
    }
}

fn check(slots: u32, theirs: usize, mine: usize) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let memory = (0..slots).map(|_| UnsafeCell::new(0)).collect();
        let held = Arc::new(Held { depot: Depot::default(), memory });
        let all: Vec<u32> = (0..slots).collect();
        all.chunks(2).for_each(|batch| assert!(held.depot.put(SizeClass::B64, batch)));
        let other = held.clone();
        let thread = loom::thread::spawn(move || other.cycle(theirs));
        let mut seen = held.cycle(mine);
        seen.extend(thread.join().unwrap());
        let mut out = [0; 2];
        while let taken @ 1.. = held.depot.take(SizeClass::B64, &mut out) {
            held.touch(&out[..taken]);
            seen.extend(&out[..taken]);
        }
        seen.sort_unstable();
        assert_eq!(seen, all);
    });
}

#[test]
fn two_threads_take_whole_batches_and_put_them_back() {
    check(3, 2, 2);
}

#[test]
fn one_takes_a_part_while_the_other_takes_the_same_batch() {
    check(2, 1, 2);
    check(3, 1, 1);
}
