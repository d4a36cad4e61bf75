//! How far the time-stamp counters of two cores are apart.
//!
//! A hypervisor may show each virtual CPU the counter of the core that it happens to run on, and counters of one
//! processor differ by some steps. Each rank stamps a line when it has the other's stamp: what one way takes longer
//! than the other, by their counters, is twice what the counters are apart. That holds where both ways do the same: a
//! stamp comes to a rank that has looked at the line for long ([`REST_CYCLES`]), so its writer has to take the line
//! back, whichever way it goes; and each rank begins half of the trips, so what beginning or answering takes falls
//! out.

use std::sync::atomic::{AtomicU64, Ordering};

use isochrone_os::clock;
use isochrone_os::line_transfer::time_stamp;
use isochrone_stats as stats;

/// Lines that go to and fro.
const LINES: usize = 32;
/// How often each does.
const TRIPS: usize = 16;
/// A stamp is sent so long after what came before it: some transfers between the farthest cores, cycles.
const REST_CYCLES: u64 = 2000;

/// A line pair of its own for each word.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Apart(pub(crate) AtomicU64);

/// Lines on which two ranks compare their counters.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    lines: [Apart; LINES],
    /// What a turn has found, the bits of a number of cycles.
    longer: Apart,
    /// Turns begun and ended.
    steps: Apart,
}

impl Counters {
    /// Cycles that the counter of the second rank is ahead of that of the first. Both must call it as often, and have
    /// done so `before` times. A counter advances in steps of `tick` cycles.
    pub(crate) fn ahead(&self, first: bool, before: u64, tick: u32) -> i64 {
        let by_first = self.turn(first, 4 * before, tick);
        let by_second = self.turn(!first, 4 * before + 2, tick);
        #[allow(clippy::cast_possible_truncation, reason = "counters are some cycles apart")]
        let cycles = ((by_first - by_second) / 2.0).round() as i64;
        cycles
    }

    /// Trips that one rank begins, the one with `begins`; to both ranks, the mean over trips of half of what the way
    /// there takes longer than the way back, cycles.
    fn turn(&self, begins: bool, steps: u64, tick: u32) -> f64 {
        let lines = || self.lines.iter().cycle().take(LINES * TRIPS);
        if begins {
            // Nobody looks at the lines now: the other rank waits for the turn.
            self.lines.iter().for_each(|line| line.0.store(0, Ordering::Relaxed));
            self.steps.0.store(steps + 1, Ordering::Release);
            let trips: Vec<f64> = lines().map(|line| there_and_back(&line.0)).collect();
            let longer = stats::tick_mean(&trips, f64::from(tick)).map_or(0.0, |t| t.mean);
            self.longer.0.store(longer.to_bits(), Ordering::Relaxed);
            self.steps.0.store(steps + 2, Ordering::Release);
            longer
        } else {
            self.after(steps + 1);
            lines().for_each(|line| answer(&line.0));
            self.after(steps + 2);
            f64::from_bits(self.longer.0.load(Ordering::Relaxed))
        }
    }

    fn after(&self, step: u64) {
        while self.steps.0.load(Ordering::Acquire) < step {
            std::hint::spin_loop();
        }
    }
}

/// Lets time pass until the other rank has looked at its line for long.
fn rest() {
    let end = time_stamp() + REST_CYCLES;
    while time_stamp() < end {}
}

/// A stamp of the first rank is even and one of the second odd, so that each sees whose it is.
fn seen(line: &AtomicU64, odd: bool) -> u64 {
    loop {
        let stamp = line.load(Ordering::Acquire);
        if stamp != 0 && (stamp & 1 == 1) == odd {
            return stamp;
        }
        std::hint::spin_loop();
    }
}

/// Half of what the way there takes longer than the way back.
#[allow(
    clippy::cast_precision_loss,
    reason = "stamps of one trip differ by far less than 2^52 cycles"
)]
fn there_and_back(line: &AtomicU64) -> f64 {
    rest();
    let sent = clock::start();
    line.store(sent << 1, Ordering::Release);
    let answered = seen(line, true) >> 1;
    let back = clock::start();
    let way = |from: u64, to: u64| to.wrapping_sub(from).cast_signed() as f64;
    (way(sent, answered) - way(answered, back)) / 2.0
}

fn answer(line: &AtomicU64) {
    seen(line, false);
    rest();
    line.store(clock::start() << 1 | 1, Ordering::Release);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ranks_are_told_the_same() {
        let counters = Counters::default();
        let [first, second] = std::thread::scope(|scope| {
            let second = scope.spawn(|| [0, 1].map(|before| counters.ahead(false, before, 1)));
            let first = [0, 1].map(|before| counters.ahead(true, before, 1));
            [first, second.join().unwrap_or_else(|_| panic!("the second rank panicked"))]
        });
        assert_eq!(first, second);
    }
}
