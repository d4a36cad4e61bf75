//! The smallest task that pays: METG(50 %), the mean time of a task, on all cores, at which half of the
//! cores' time goes into the tasks' own work (Slaughter et al., *Task Bench*, SC 2020).

use anyhow::Result;

/// Half of the time.
const EFFICIENCY: f64 = 0.5;
/// Turns of a task that are tried, least and most.
const TURNS: (u64, u64) = (1, 1 << 20);

/// One size of task, measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    /// Seconds of all workers together, a task.
    pub(super) granularity: f64,
    /// Share of it that was work.
    pub(super) efficiency: f64,
}

/// A graph's sizes, and how one is measured.
pub(super) struct Search<'a> {
    /// Turns to begin with; where the last search ended is a good place.
    pub(super) start: u64,
    /// Measures tasks of so many turns.
    pub(super) measure: &'a mut dyn FnMut(u64) -> Result<Point>,
}

/// What a search found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Metg {
    pub(super) seconds: f64,
    /// Turns near it.
    pub(super) turns: u64,
}

impl Search<'_> {
    /// Doubles or halves until the efficiency crosses one half, and takes the size where it does by a
    /// straight line between logarithms. `None` where no size gets there.
    pub(super) fn run(self) -> Result<Option<Metg>> {
        let mut turns = self.start.clamp(TURNS.0, TURNS.1);
        let mut here = (self.measure)(turns)?;
        let good = here.efficiency >= EFFICIENCY;
        loop {
            let next = if good { turns / 2 } else { turns * 2 };
            if next < TURNS.0 {
                // Even the smallest task pays: it is an upper bound.
                return Ok(Some(Metg { seconds: here.granularity, turns }));
            }
            if next > TURNS.1 {
                return Ok(None);
            }
            let there = (self.measure)(next)?;
            if (there.efficiency >= EFFICIENCY) != good {
                let (low, high) = if good { (there, here) } else { (here, there) };
                return Ok(Some(Metg { seconds: crossing(low, high), turns: turns.min(next) }));
            }
            (turns, here) = (next, there);
        }
    }
}

/// The granularity at which the efficiency between two points is one half.
fn crossing(low: Point, high: Point) -> f64 {
    let along = (EFFICIENCY - low.efficiency) / (high.efficiency - low.efficiency);
    let (a, b) = (low.granularity.ln(), high.granularity.ln());
    (a + along.clamp(0.0, 1.0) * (b - a)).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN: f64 = 2e-9;

    /// A system that costs so much a task.
    fn search(overhead: f64, start: u64) -> Option<Metg> {
        let mut measure = |turns: u64| {
            let work = TURN * turns as f64;
            let granularity = work + overhead;
            Ok(Point { granularity, efficiency: work / granularity })
        };
        Search { start, measure: &mut measure }.run().unwrap()
    }

    #[test]
    fn a_task_that_costs_as_much_as_it_works_is_found_from_either_side() {
        for start in [1, 40, 1000, 100_000] {
            for overhead in [50e-9, 1e-6, 30e-6] {
                let found = search(overhead, start).unwrap();
                let ratio = found.seconds / (2.0 * overhead);
                assert!((0.95..1.05).contains(&ratio), "{start} {overhead} {ratio}");
            }
        }
    }

    #[test]
    fn what_always_pays_is_an_upper_bound_and_what_never_does_is_nothing() {
        let found = search(1e-12, 8).unwrap();
        assert_eq!(found.turns, 1);
        assert_eq!(search(1.0, 8), None);
    }
}
