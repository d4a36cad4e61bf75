//! Isolated calls: each begins on all ranks at one moment of the time-stamp counter, in a window of its own.
//!
//! One rank names a moment a little ahead, and all begin then. A call is from when the last rank began to when the
//! last one was done. The counters of two cores need not agree, so each rank finds out how far its own is ahead of
//! rank 0's, begins at the moment by its own counter, and tells its times by that of rank 0.

use super::error::TeamError;
use super::team::Team;
use crate::program::Rank;
use isochrone_os::clock;
use isochrone_os::line_transfer::time_stamp;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Empty calls by which it is found how late an undisturbed rank begins.
const LOOKS: u64 = 501;
/// How far ahead of them their moments are, cycles: some looks at the clock.
const LOOK_AHEAD_CYCLES: u64 = 1000;
/// How far ahead a window begins, cycles: time for the moment to reach the other rank, some ten transfers.
const LEAD_CYCLES: u64 = 4000;
/// The same for each rank beyond the second.
const LEAD_EACH_CYCLES: u64 = 500;
/// Polls between calls before a rank gives its core away.
const POLLS: u32 = 10_000;

/// When a rank should have begun a call, began it and was done, cycles of one counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// When it should have begun.
    pub moment: u64,
    /// When it began.
    pub begin: u64,
    /// When it was done.
    pub end: u64,
}

impl Times {
    /// Does `call` at a moment of this core's counter.
    #[inline]
    pub fn of<R>(moment: u64, call: impl FnOnce() -> R) -> (Self, R) {
        // A look in order takes twice as long, and ranks would begin that much apart.
        while time_stamp() < moment {}
        let begin = clock::start();
        let result = call();
        let end = clock::stop();
        (Self { moment, begin, end }, result)
    }

    /// The same by a counter that is so many cycles behind the one they were read from.
    #[must_use]
    pub fn by_one_behind(self, cycles: i64) -> Self {
        let by = |time: u64| time.wrapping_add_signed(-cycles);
        Self { moment: by(self.moment), begin: by(self.begin), end: by(self.end) }
    }

    /// How long after the moment it began, cycles.
    #[must_use]
    pub const fn late(self) -> u64 {
        self.begin.saturating_sub(self.moment)
    }
}

/// How long after its moment a rank of this machine begins at most that nothing interrupts, ns: measured when it is
/// first asked for, by calls of nothing. Where a rank begins later the window has no sample: models are of calls that all
/// begin at once.
#[must_use]
#[allow(clippy::cast_precision_loss, reason = "some hundred cycles")]
pub fn late_ns(clock: &clock::Clock) -> f64 {
    static CYCLES: OnceLock<u64> = OnceLock::new();
    clock.ns(*CYCLES.get_or_init(|| late_cycles(clock.tick)) as f64)
}

/// The same in cycles of a counter that advances in steps of `tick` cycles, measured now.
///
/// Between the moment and the beginning lie what is left of one look at the counter and one look in order, which differ
/// by several times from one machine to the next. Twice the median is more than both, and interruptions do not move
/// it.
fn late_cycles(tick: u32) -> u64 {
    let late = |number: u64| {
        // Moments go round all places between two looks.
        Times::of(clock::start() + LOOK_AHEAD_CYCLES + number % 97, || ()).0.late()
    };
    let mut late: Vec<u64> = (0..LOOKS).map(late).collect();
    late.sort_unstable();
    2 * late[late.len() / 2] + u64::from(tick)
}

/// One call of all ranks, cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isolated {
    /// From when the last rank began to when the last one was done. What reading the clock takes is part of it.
    pub cycles: u64,
    /// How far apart the first and the last rank began.
    pub apart: u64,
    /// How long after the moment the last rank began.
    pub late: u64,
}

impl Isolated {
    /// From the times of all ranks by one counter; `None` without ranks.
    #[must_use]
    pub fn of(ranks: impl Iterator<Item = Times> + Clone) -> Option<Self> {
        let begin = ranks.clone().map(|times| times.begin).max()?;
        let first = ranks.clone().map(|times| times.begin).min()?;
        let end = ranks.clone().map(|times| times.end).max()?;
        let late = ranks.map(Times::late).max()?;
        Some(Self { cycles: end.saturating_sub(begin), apart: begin - first, late })
    }
}

impl Team {
    /// Cycles that the counter of this rank's core is ahead of that of rank 0's; 0 at rank 0. A counter advances
    /// in steps of `tick` cycles. All ranks must call it; it takes some milliseconds for each.
    ///
    /// # Errors
    /// [`TeamError`] when a rank has ended.
    pub fn ahead_of_first(&mut self, tick: u32) -> Result<i64, TeamError> {
        let mut mine = 0;
        for other in (1..self.ranks()).map(Rank) {
            let ahead = self.counter_ahead([Rank(0), other], tick)?;
            if self.rank() == other {
                mine = ahead;
            }
        }
        Ok(mine)
    }
}

/// A line pair of its own for each word.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Apart(AtomicU64);

/// What threads tell each other between calls.
#[derive(Debug)]
pub struct Meeting {
    moment: Apart,
    named: Apart,
    /// The call for which each rank is ready.
    ready: Vec<Apart>,
    given_up: AtomicBool,
    /// The step of the counter, cycles.
    tick: u32,
}

impl Meeting {
    /// Of so many ranks, whose counters advance in steps of `tick` cycles.
    #[must_use]
    pub fn new(ranks: u16, tick: u32) -> Self {
        Self {
            moment: Apart::default(),
            named: Apart::default(),
            ready: (0..ranks).map(|_| Apart::default()).collect(),
            given_up: AtomicBool::new(false),
            tick,
        }
    }

    /// The moment of the call of this number, from 1, by the counter of a rank that is `ahead` of rank 0's. Rank 0
    /// does `prepare` when all the others are there, and names it. `None` where a rank gave up.
    pub fn moment(&self, me: Rank, call: u64, ahead: i64, prepare: impl FnOnce()) -> Option<u64> {
        if me != Rank(0) {
            self.ready.get(me.index())?.0.store(call, Ordering::Release);
            self.until(&self.named.0, call)?;
            return Some(self.moment.0.load(Ordering::Relaxed).wrapping_add_signed(ahead));
        }
        for ready in self.ready.iter().skip(1) {
            self.until(&ready.0, call)?;
        }
        prepare();
        let beyond = self.ready.len().saturating_sub(2) as u64;
        let lead = LEAD_CYCLES + LEAD_EACH_CYCLES * beyond + self.between_steps(call);
        let moment = clock::start() + lead;
        self.moment.0.store(moment, Ordering::Relaxed);
        self.named.0.store(call, Ordering::Release);
        Some(moment)
    }

    /// Nobody is to wait for this rank any more.
    pub fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
    }

    /// Some cycles less than a step of the counter, others for each call. A moment that is a step of one rank's
    /// counter lies between two steps of the other's, which then began later in all windows: who comes first to a
    /// line would be the same in all.
    fn between_steps(&self, call: u64) -> u64 {
        // Fibonacci hashing: the high half of a multiple of the golden ratio goes round evenly.
        (call.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % u64::from(self.tick.max(1))
    }

    /// Waits until a word is at least `value`; nothing where a rank gave up meanwhile.
    fn until(&self, word: &AtomicU64, value: u64) -> Option<()> {
        let mut polls = 0;
        while word.load(Ordering::Acquire) < value {
            polls += 1;
            if polls > POLLS {
                if self.given_up.load(Ordering::Relaxed) {
                    return None;
                }
                std::thread::yield_now();
            } else {
                isochrone_os::pause::pause();
            }
        }
        Some(())
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_the_same_however_far_the_counters_are_apart() {
        let first = Times { moment: 1000, begin: 1010, end: 1200 };
        let second = Times { moment: 1000, begin: 1030, end: 1150 };
        let truth = Isolated { cycles: 170, apart: 20, late: 30 };
        for ahead in [0, 5_000_000, -700] {
            let by = |time: u64| time.wrapping_add_signed(ahead);
            let own =
                Times { moment: by(second.moment), begin: by(second.begin), end: by(second.end) };
            let seen = [first, own.by_one_behind(ahead)];
            assert_eq!(Isolated::of(seen.into_iter()), Some(truth), "{ahead}");
        }
        assert_eq!(Isolated::of(std::iter::empty()), None);
    }

    #[test]
    fn ranks_begin_at_one_moment_each_by_its_own_counter() {
        let meeting = Meeting::new(2, 7);
        let own = |me: Rank, ahead: i64| {
            (1..=3_u64).map(|call| meeting.moment(me, call, ahead, || {})).collect::<Vec<_>>()
        };
        let [first, second] = std::thread::scope(|scope| {
            let second = scope.spawn(|| own(Rank(1), -100));
            [own(Rank(0), 0), second.join().expect("no panic")]
        });
        for (first, second) in first.into_iter().zip(second) {
            assert_eq!(first.expect("nobody gave up") - 100, second.expect("nobody gave up"));
        }
        meeting.give_up();
        assert_eq!(meeting.moment(Rank(1), 4, 0, || {}), None);
        let (times, result) = Times::of(clock::start() + 1000, || 5);
        assert!(times.moment <= times.begin && times.begin <= times.end);
        assert_eq!(result, 5);
    }

    #[test]
    fn most_undisturbed_calls_are_not_late() {
        let limit = late_cycles(1);
        let late = || Times::of(clock::start() + 1000, || ()).0.late();
        let in_time = (0..1000).filter(|_| late() <= limit).count();
        // Beside other work some are interrupted; half of them never are.
        assert!(in_time > 500, "{in_time} of 1000 within {limit} cycles");
        assert!(late_cycles(5000) >= 5000, "a counter of large steps is not known better");
    }

    #[test]
    fn moments_go_round_the_steps_of_a_counter() {
        let meeting = Meeting::new(1, 20);
        let mut seen: Vec<u64> = (1..=200).map(|call| meeting.between_steps(call)).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, (0..20).collect::<Vec<_>>());
    }
}
