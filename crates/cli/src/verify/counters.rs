//! How far the time-stamp counters of two cores are apart.
//!
//! A hypervisor may show each virtual CPU the counter of the core that it happens to run on, and counters of
//! one processor differ by some steps. Each rank stamps a line when it has the other's stamp: what one way takes
//! longer than the other, by their counters, is twice what the counters are apart. It is taken for granted that both
//! ways take as long, which many lines make likelier: lines have different homes.

use std::sync::atomic::{AtomicU64, Ordering};

use isochrone_os::clock;
use isochrone_stats as stats;

/// Lines that go to and fro.
const LINES: usize = 32;
/// How often each does.
const TRIPS: usize = 16;

/// A line pair of its own for each word.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Apart(pub(crate) AtomicU64);

/// Lines on which two ranks compare their counters.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    lines: [Apart; LINES],
    /// What came of it, and how often it was told.
    ahead: Apart,
    told: Apart,
}

impl Counters {
    /// Cycles that the counter of the second rank is ahead of that of the first. Both must call it as often.
    /// A counter advances in steps of `tick` cycles.
    pub(crate) fn ahead(&self, first: bool, tick: u32) -> i64 {
        if first {
            let trips: Vec<f64> = self
                .lines
                .iter()
                .cycle()
                .take(LINES * TRIPS)
                .map(|line| there_and_back(&line.0))
                .collect();
            #[allow(
                clippy::cast_possible_truncation,
                reason = "counters of two cores are some cycles apart"
            )]
            let cycles =
                stats::tick_mean(&trips, f64::from(tick)).map_or(0.0, |t| t.mean).round() as i64;
            self.ahead.0.store(cycles.cast_unsigned(), Ordering::Relaxed);
            self.told.0.store(self.told.0.load(Ordering::Relaxed) + 1, Ordering::Release);
            cycles
        } else {
            let before = self.told.0.load(Ordering::Relaxed);
            for line in self.lines.iter().cycle().take(LINES * TRIPS) {
                answer(&line.0);
            }
            while self.told.0.load(Ordering::Acquire) == before {
                std::hint::spin_loop();
            }
            self.ahead.0.load(Ordering::Relaxed).cast_signed()
        }
    }
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
    let sent = clock::start();
    line.store(sent << 1, Ordering::Release);
    let answered = seen(line, true) >> 1;
    let back = clock::start();
    let way = |from: u64, to: u64| to.wrapping_sub(from).cast_signed() as f64;
    (way(sent, answered) - way(answered, back)) / 2.0
}

fn answer(line: &AtomicU64) {
    seen(line, false);
    line.store(clock::start() << 1 | 1, Ordering::Release);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ranks_are_told_the_same() {
        let counters = Counters::default();
        let [first, second] = std::thread::scope(|scope| {
            let second = scope.spawn(|| [0; 2].map(|_| counters.ahead(false, 1)));
            let first = [0; 2].map(|_| counters.ahead(true, 1));
            [first, second.join().unwrap_or_else(|_| panic!("the second rank panicked"))]
        });
        assert_eq!(first, second);
    }
}
