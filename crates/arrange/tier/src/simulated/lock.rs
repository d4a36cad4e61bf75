//! A lock that is taken in turn by those who ask, and on whose line they spin meanwhile.

use std::collections::VecDeque;

/// A lock.
#[derive(Clone, Debug, Default)]
pub(super) struct Lock {
    /// When it is free, if nobody else asks.
    free: f64,
    /// When the turns of those begin who spin, in order.
    turns: VecDeque<f64>,
}

impl Lock {
    /// Asks for a turn of so many cycles; when it begins. Who lets go writes a line that all who spin have, which
    /// takes a transfer of `line` for each of them (CLa, section 2.3: an RFO of a line that n cores share costs
    /// n R_R). They are counted when a turn is asked for.
    pub(super) fn turn(&mut self, now: f64, held: f64, line: f64) -> f64 {
        while self.turns.front().is_some_and(|begin| *begin <= now) {
            self.turns.pop_front();
        }
        let begin = if self.free > now {
            let spinning = u32::try_from(self.turns.len() + 1).unwrap_or(u32::MAX);
            self.free + line * f64::from(spinning)
        } else {
            now
        };
        if begin > now {
            self.turns.push_back(begin);
        }
        self.free = begin + held;
        begin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hand_off_takes_a_transfer_for_each_who_spins() {
        let mut lock = Lock::default();
        // Nobody spins for the first; one for the second, two for the third.
        let turns: Vec<f64> = (0..3).map(|_| lock.turn(0.0, 100.0, 10.0)).collect();
        assert_eq!(turns, [0.0, 110.0, 230.0]);
        // At 120 the second has its turn, so the third and this one spin.
        assert_eq!(lock.turn(120.0, 100.0, 10.0), 350.0);
        assert_eq!(lock.turn(1000.0, 100.0, 10.0), 1000.0, "free again");
    }

    #[test]
    fn without_a_cost_of_lines_turns_follow_each_other() {
        let mut lock = Lock::default();
        let turns: Vec<f64> = (0..3).map(|_| lock.turn(5.0, 100.0, 0.0)).collect();
        assert_eq!(turns, [5.0, 105.0, 205.0]);
    }
}
