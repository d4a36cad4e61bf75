//! How far the time-stamp counters of two ranks' cores are apart.
//!
//! A hypervisor may show each virtual CPU the counter of the core that it happens to run on, and counters of one
//! processor differ by some steps. Each rank stamps a line when it has the other's stamp: what one way takes longer
//! than the other, by their counters, is twice what the counters are apart. That holds where both ways do the same: a
//! stamp comes to a rank that has looked at the line for long ([`REST_CYCLES`]), so its writer has to take the line
//! back, whichever way it goes; and each rank begins half of the trips, so what beginning or answering takes falls
//! out.

use super::error::TeamError;
use super::layout::{AloneWord, STAMPS};
use super::team::Team;
use super::waits::Waits;
use crate::program::{Compare, Gone, Rank};
use isochrone_os::clock;
use isochrone_os::line_transfer::time_stamp;
use isochrone_stats::tick_mean;

/// How often each does in a turn.
const TRIPS: u64 = 16;
/// A stamp is sent so long after what came before it: some transfers between the farthest cores, cycles.
const REST_CYCLES: u64 = 2000;
/// Low bits of a word that are a stamp; those above count, so that a wait sees whose stamp it is.
const STAMP_BITS: u32 = 48;

/// What both ranks use for it.
struct Both<'a> {
    lines: &'a [AloneWord; STAMPS],
    /// How far the turns are.
    said: &'a AloneWord,
    waits: &'a Waits,
    /// The step of the counter, cycles.
    tick: f64,
}

impl Team {
    /// Cycles that the counter of the second of two ranks is ahead of that of the first, at both; 0 at all others,
    /// which must call it as well. A counter advances in steps of `tick` cycles. It takes some milliseconds.
    ///
    /// # Errors
    /// [`TeamError`] for ranks that the team does not have, and when a rank has ended.
    pub fn counter_ahead(
        &mut self,
        [first, second]: [Rank; 2],
        tick: u32,
    ) -> Result<i64, TeamError> {
        self.two_ranks(first, second)?;
        let (me, steps) = (self.rank(), self.steps);
        self.steps = steps + 4;
        if me != first && me != second {
            return Ok(0);
        }
        let (area, waits) = self.parts();
        let header = area.header();
        let both =
            Both { lines: &header.stamps, said: &header.turns[0], waits, tick: f64::from(tick) };
        // A word for each: when one is written again, both ranks have been in a turn since.
        let [of_first, of_second] = &header.found;
        let by_first = both.turn(me == first, steps, of_first)?;
        let by_second = both.turn(me == second, steps + 2, of_second)?;
        #[allow(clippy::cast_possible_truncation, reason = "counters are some cycles apart")]
        let cycles = ((by_first - by_second) / 2.0).round() as i64;
        Ok(cycles)
    }
}

impl Both<'_> {
    /// Trips that one rank begins, the one with `begins`; to both ranks, the mean over trips of half of what the way
    /// there takes longer than the way back, cycles.
    fn turn(&self, begins: bool, steps: u64, found: &AloneWord) -> Result<f64, Gone> {
        let trips = (0..TRIPS).flat_map(|trip| self.lines.iter().map(move |line| (line, trip)));
        if begins {
            // Nobody looks at the lines now: the other rank waits for the turn.
            self.lines.iter().for_each(|line| line.0.store(0));
            self.say(steps + 1);
            let ways = trips.map(|(line, trip)| self.there_and_back(line, trip));
            let ways = ways.collect::<Result<Vec<f64>, Gone>>()?;
            let longer = tick_mean(&ways, self.tick).map_or(0.0, |found| found.mean);
            found.0.store(longer.to_bits());
            self.say(steps + 2);
            return Ok(longer);
        }
        self.waits.wait(&self.said.0, Compare::AtLeast, steps + 1)?;
        for (line, trip) in trips {
            self.waits.wait(&line.0, Compare::AtLeast, (2 * trip + 1) << STAMP_BITS)?;
            self.send(line, 2 * trip + 2);
        }
        self.waits.wait(&self.said.0, Compare::AtLeast, steps + 2)?;
        Ok(f64::from_bits(found.0.load()))
    }

    /// Half of what the way there takes longer than the way back.
    fn there_and_back(&self, line: &AloneWord, trip: u64) -> Result<f64, Gone> {
        let sent = self.send(line, 2 * trip + 1);
        self.waits.wait(&line.0, Compare::AtLeast, (2 * trip + 2) << STAMP_BITS)?;
        let back = clock::start();
        let answered = line.0.load();
        Ok((cycles(sent, answered) - cycles(answered, back)) / 2.0)
    }

    /// Writes a stamp after a rest; returns it.
    fn send(&self, line: &AloneWord, count: u64) -> u64 {
        let end = time_stamp() + REST_CYCLES;
        while time_stamp() < end {}
        let stamp = clock::start();
        let word = count << STAMP_BITS | stamp & ((1 << STAMP_BITS) - 1);
        self.waits.publish(&line.0, |line| line.store(word));
        word
    }

    fn say(&self, step: u64) {
        self.waits.publish(&self.said.0, |word| word.store(step));
    }
}

/// From one stamp to another of the same hours, whatever stands above them.
#[allow(
    clippy::cast_precision_loss,
    reason = "stamps of one trip are far less than 2^52 cycles apart"
)]
fn cycles(from: u64, to: u64) -> f64 {
    let above = u64::BITS - STAMP_BITS;
    ((to.wrapping_sub(from) << above).cast_signed() >> above) as f64
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::live::Settings;

    #[test]
    fn both_ranks_are_told_the_same_and_the_third_nothing() {
        let team = Team::threads(3, &Settings::default()).expect("memory");
        let told: Vec<[i64; 2]> = std::thread::scope(|scope| {
            let ask = |mut me: Team| {
                let mut ask = |ranks| me.counter_ahead(ranks, 1).expect("nobody ends");
                [ask([Rank(0), Rank(2)]), ask([Rank(2), Rank(0)])]
            };
            let ranks: Vec<_> = team.into_iter().map(|me| scope.spawn(move || ask(me))).collect();
            ranks.into_iter().map(|rank| rank.join().expect("no panic")).collect()
        });
        assert_eq!(told[0], told[2]);
        assert_eq!(told[1], [0, 0]);
    }

    #[test]
    fn ranks_that_there_are_not_are_refused() {
        let mut team = Team::threads(2, &Settings::default()).expect("memory");
        for ranks in [[Rank(0), Rank(2)], [Rank(1), Rank(1)]] {
            assert!(matches!(team[0].counter_ahead(ranks, 1), Err(TeamError::Rank { .. })));
        }
    }

    #[test]
    fn stamps_are_subtracted_whatever_stands_above_them_and_over_a_wrap() {
        let last = (1_u64 << STAMP_BITS) - 1;
        assert!((cycles(3 << STAMP_BITS | 100, 4 << STAMP_BITS | 90) + 10.0).abs() < 1e-9);
        assert!((cycles(1 << STAMP_BITS | last, 5) - 6.0).abs() < 1e-9);
    }
}
