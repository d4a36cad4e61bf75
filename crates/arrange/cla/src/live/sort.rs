//! Which lines flags lie on: those that the ranks hand over fastest, by measurement.
//!
//! A line has a home between the cores, near to both or far from both, so a hand-over on the best line
//! takes a third less than on the median one. Lines are taken in the order that somebody else knows, from an
//! atlas, or that is found here. Rank 0 hands every candidate to each other rank and back, some
//! times, and all ranks then take lines in the order that it found. Only words are touched, and they are 0
//! again afterwards.

use super::area::Area;
use super::error::TeamError;
use super::layout::CANDIDATES;
use super::settings::Crowd;
use super::supply::Supply;
use super::team::Team;
use super::waits::Waits;
use super::word::Word;
use crate::program::{Compare, Gone, Rank};
use isochrone_os::affinity::CoreSet;
use isochrone_os::clock;
use isochrone_os::shared::Shared;
use isochrone_units::LineAddr;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Which lines come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nearness {
    /// The fastest: what a program wants.
    Nearest,
    /// Those in the middle, to compare with.
    Middle,
    /// The slowest, to compare with.
    Farthest,
}

/// Sweeps over all candidates; the shortest counts, since nothing makes a hand-over too short.
const SWEEPS: u64 = 3;
/// Candidates that are measured before the next ones are: where time is short, some are known well rather than
/// all a little.
const BLOCK: usize = 64;
/// Round trips on a line in one sweep, the first of which brings it and is not timed.
const TRIPS: u64 = 4;
/// Ranks up to which lines are chosen: it takes some milliseconds for each.
const RANKS_MOST: u16 = 16;
/// How long ranks may take to come.
const ALL_HERE: Duration = Duration::from_secs(30);
/// Said instead of an order: lines are taken as they lie.
const AS_THEY_LIE: u32 = u32::MAX;

impl Team {
    /// Chooses the lines that collectives will use. All ranks call it with the same arguments, before their
    /// first collective. Returns at rank 0 the mean round trip of each candidate, in cycles, infinite for those
    /// that were not measured; nothing at the others, and nowhere where ranks have no cores of their own.
    ///
    /// It takes some milliseconds, or `limit` at most from when rank 0 begins: then lines that nobody has
    /// measured come last, as they lie. `limit` bounds the waiting of all ranks: it does not matter whether
    /// they come.
    ///
    /// # Errors
    /// [`TeamError::Begun`] after the first collective, and as any collective.
    pub fn choose_lines(
        &mut self,
        nearness: Nearness,
        limit: Option<Duration>,
    ) -> Result<Vec<f64>, TeamError> {
        if self.has_begun() {
            return Err(TeamError::Begun);
        }
        self.await_all(ALL_HERE)?;
        let (me, ranks) = (self.rank(), self.ranks());
        let step = self.steps;
        self.steps += 2;
        let crowd = self.settings().crowd;
        let (area, waits) = self.parts();
        let (header, pairs) = (area.header(), Supply::pairs(area.lines().len()));
        let said = &header.turns[0].0;
        if me == Rank(0) {
            let fits = (2..=RANKS_MOST).contains(&ranks)
                && have_cores(ranks.into(), header.cores(), crowd);
            area.order()[0].store(if fits { 0 } else { AS_THEY_LIE }, Ordering::Relaxed);
            waits.publish(said, |word| word.store(step + 1));
        } else {
            waits.wait(said, Compare::AtLeast, step + 1)?;
        }
        // Rank 0 may have said the order by now, which never begins with this.
        if area.order()[0].load(Ordering::Relaxed) == AS_THEY_LIE {
            return Ok(Vec::new());
        }
        let mut trips = Vec::new();
        if me == Rank(0) {
            let end = limit.and_then(|limit| Instant::now().checked_add(limit));
            trips = asked(area, waits, pairs, ranks, end)?;
        } else {
            answered(area, waits, pairs, me, step + 2)?;
        }
        let order = told(area, waits, me, step + 2, || sorted(&trips, nearness))?;
        self.take_lines_by(&order);
        Ok(trips)
    }

    /// The lines that flags may lie on: the memory of all ranks, and each candidate's number in it, counted
    /// from its first line. Who has an atlas can say how far each of them is.
    #[must_use]
    pub fn candidates(&self) -> (&Shared, Vec<LineAddr>) {
        let (area, _) = self.parts();
        let lines = area.lines();
        let number = |pair| Area::number_of(Supply::flag(&lines, pair));
        (area.shared(), (0..Supply::pairs(lines.len())).map(number).collect())
    }

    /// Takes the lines for flags in the order of distances that are known from elsewhere: one for each of
    /// [`Team::candidates`], as rank 0 is given them; what the others are given does not matter. All ranks
    /// call it, before their first collective.
    ///
    /// # Errors
    /// [`TeamError::Begun`] after the first collective, [`TeamError::Length`] at rank 0 for another number of
    /// distances, and as any collective.
    pub fn choose_lines_by(&mut self, distances: &[f64]) -> Result<(), TeamError> {
        if self.has_begun() {
            return Err(TeamError::Begun);
        }
        let me = self.rank();
        let pairs = Supply::pairs(self.parts().0.lines().len());
        if me == Rank(0) && distances.len() != pairs {
            let (what, have) = ("a list of distances", distances.len());
            return Err(TeamError::Length { what, need: pairs, have });
        }
        self.await_all(ALL_HERE)?;
        self.steps += 1;
        let (step, (area, waits)) = (self.steps, self.parts());
        let order = told(area, waits, me, step, || sorted(distances, Nearness::Nearest))?;
        self.take_lines_by(&order);
        Ok(())
    }
}

impl Team {
    /// Whether the ranks that have come, and whoever else is there by the settings, have a core each, as this one sees
    /// it.
    #[must_use]
    pub fn has_cores(&self) -> bool {
        let cores = self.area().header().cores();
        have_cores(self.ranks().into(), cores, self.settings().crowd)
    }
}

/// What a cycle of the counter takes, ns, found while `work` goes on for as long as some hundred microseconds.
pub fn cycle_ns<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let (begin, first) = (Instant::now(), clock::start());
    let done = work();
    let cycles = clock::stop().saturating_sub(first);
    (done, begin.elapsed().as_nanos() as f64 / cycles.max(1) as f64)
}

/// Whether `ranks` ranks have cores of their own: `cores` together, some of them this rank's.
fn have_cores(ranks: usize, cores: usize, crowd: Option<Crowd>) -> bool {
    let mine = CoreSet::of_this_thread().map_or(0, |cores| cores.len());
    have_cores_beside(ranks, cores, mine, crowd)
}

/// The same, with `mine` cores of this rank.
fn have_cores_beside(ranks: usize, cores: usize, mine: usize, crowd: Option<Crowd>) -> bool {
    // Ranks that are bound, each to cores of its own, leave the other cores to the others.
    let shared = |crowd: Crowd| if mine * ranks == cores { crowd.cores } else { cores };
    ranks <= cores && crowd.is_none_or(|crowd| crowd.ranks <= shared(crowd))
}

/// The order of lines that rank 0 says, by the time its turn is at `step`.
fn told(
    area: &Area,
    waits: &Waits,
    me: Rank,
    step: u64,
    order: impl FnOnce() -> Vec<u32>,
) -> Result<Vec<u32>, Gone> {
    let header = area.header();
    let pairs = Supply::pairs(area.lines().len());
    let said = &header.turns[0].0;
    if me == Rank(0) {
        for (place, pair) in area.order().iter().zip(order()) {
            place.store(pair + 1, Ordering::Relaxed);
        }
        waits.publish(said, |word| word.store(step));
    } else {
        waits.wait(said, Compare::AtLeast, step)?;
    }
    let number = |place: &AtomicU32| place.load(Ordering::Relaxed).saturating_sub(1);
    Ok(area.order()[..pairs].iter().map(number).collect())
}

/// The word of a candidate: the first line of a pair, since neighbours disturb each other.
fn candidate(area: &Area, pair: usize) -> &Word {
    // SAFETY: a line of the area, aligned to 64 bytes, which lives as long as the borrow; its first eight
    // bytes are accessed as a word only.
    unsafe { area.line(Supply::flag(&area.lines(), pair)).cast::<Word>().as_ref() }
}

/// Where the values of a sweep between rank 0 and another begin: they only grow, and no flag gets so far. So a
/// rank that answers too late finds another value, and changes nothing.
fn base(other: u16, sweep: u64) -> u64 {
    (1 << 62) + (u64::from(other - 1) * SWEEPS + sweep) * 2 * TRIPS
}

/// Rank 0: the mean round trip on each candidate over all other ranks, infinite for those that were not
/// measured with all of them by `end`.
fn asked(
    area: &Area,
    waits: &Waits,
    pairs: usize,
    ranks: u16,
    end: Option<Instant>,
) -> Result<Vec<f64>, Gone> {
    let mut means = vec![f64::INFINITY; pairs];
    let mut touched = 0;
    for block in means.chunks_mut(BLOCK) {
        let first = touched;
        touched += block.len();
        let mut sums = vec![0.0; block.len()];
        let mut in_time = true;
        for other in 1..ranks {
            let Some(shortest) = sweeps(area, waits, first..touched, other, end)? else {
                in_time = false;
                break;
            };
            for (sum, shortest) in sums.iter_mut().zip(shortest) {
                *sum += cycles(shortest) / cycles(TRIPS - 1) / f64::from(ranks - 1);
            }
        }
        if !in_time {
            break;
        }
        block.copy_from_slice(&sums);
    }
    // As if nothing had been: nobody looks at them any more once all are told that this is over.
    (0..touched).for_each(|pair| candidate(area, pair).store(0));
    Ok(means)
}

/// Rank 0: the shortest time of each candidate with another rank; none where `end` came.
fn sweeps(
    area: &Area,
    waits: &Waits,
    candidates: Range<usize>,
    other: u16,
    end: Option<Instant>,
) -> Result<Option<Vec<u64>>, Gone> {
    let late = || end.is_some_and(|end| Instant::now() >= end);
    let mut shortest = vec![u64::MAX; candidates.len()];
    for sweep in 0..SWEEPS {
        for (pair, shortest) in candidates.clone().zip(&mut shortest) {
            let word = candidate(area, pair);
            let mut value = base(other, sweep);
            let mut begin = 0;
            for trip in 0..TRIPS {
                if trip == 1 {
                    begin = clock::start();
                }
                word.store(value + 1);
                value += 2;
                if !waits.wait_unless(word, value, late)? {
                    return Ok(None);
                }
            }
            *shortest = (*shortest).min(clock::stop().saturating_sub(begin));
            if late() {
                return Ok(None);
            }
        }
    }
    Ok(Some(shortest))
}

/// Any other rank: answers when its turn comes, until rank 0's turn is at `over`.
fn answered(area: &Area, waits: &Waits, pairs: usize, me: Rank, over: u64) -> Result<(), Gone> {
    let said = &area.header().turns[0].0;
    for first in (0..pairs).step_by(BLOCK) {
        for sweep in 0..SWEEPS {
            for pair in first..pairs.min(first + BLOCK) {
                let word = candidate(area, pair);
                let mut value = base(me.0, sweep);
                for _ in 0..TRIPS {
                    if !waits.wait_unless(word, value + 1, || said.load() >= over)? {
                        return Ok(());
                    }
                    word.answer(value + 1, value + 2);
                    value += 2;
                }
            }
        }
    }
    Ok(())
}

/// The numbers of pairs in the order in which they are to be taken.
fn sorted(trips: &[f64], nearness: Nearness) -> Vec<u32> {
    let middle = isochrone_stats::median(trips).unwrap_or(0.0);
    let key = |pair: &u32| {
        let trip = trips[*pair as usize];
        match nearness {
            Nearness::Nearest => trip,
            Nearness::Middle => (trip - middle).abs(),
            Nearness::Farthest => -trip,
        }
    };
    let mut order: Vec<u32> = (0..).take(trips.len().min(CANDIDATES)).collect();
    order.sort_by(|a, b| key(a).total_cmp(&key(b)));
    order
}

#[allow(clippy::cast_precision_loss, reason = "cycles of a few hand-overs are far below 2^52")]
const fn cycles(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::live::{Reduction, Settings};

    #[test]
    fn the_order_is_by_distance() {
        let trips = [30.0, 10.0, 20.0, 50.0, 40.0];
        assert_eq!(sorted(&trips, Nearness::Nearest), [1, 2, 0, 4, 3]);
        assert_eq!(sorted(&trips, Nearness::Farthest), [3, 4, 0, 2, 1]);
        assert_eq!(sorted(&trips, Nearness::Middle)[0], 0);
    }

    #[test]
    fn cores_serve_the_ranks_beside_a_team_too() {
        let crowd = |ranks| Some(Crowd { ranks, cores: 4 });
        // Two that may run on the same two cores, alone and beside two others.
        assert!(have_cores_beside(2, 2, 2, None));
        assert!(have_cores_beside(2, 2, 2, crowd(2)));
        assert!(!have_cores_beside(2, 2, 2, crowd(4)));
        // Two that are bound to a core each, beside two and three others on four cores.
        assert!(have_cores_beside(2, 2, 1, crowd(4)));
        assert!(!have_cores_beside(2, 2, 1, crowd(5)));
        assert!(!have_cores_beside(3, 2, 2, None));
    }

    /// Chooses lines in a team of two threads, of which the second comes when `comes` says so; what rank 0 found.
    fn chosen(limit: Duration, comes: impl Fn() + Sync) -> Vec<f64> {
        // Whatever this machine has: each thread is free to run on all its cores.
        let crowd = None;
        let team = Team::threads(2, &Settings { crowd, ..Settings::default() });
        let comes = &comes;
        let one = move |mut me: Team| {
            let mine = i64::from(me.rank().0);
            if mine == 1 {
                comes();
            }
            let trips = me.choose_lines(Nearness::Nearest, Some(limit)).expect("nobody ends");
            for round in 0..100 {
                let mut sum = [0];
                me.allreduce(Reduction::Sum, &[mine + round], &mut sum).expect("here");
                assert_eq!(sum, [1 + 2 * round]);
            }
            trips
        };
        std::thread::scope(|scope| {
            let ranks: Vec<_> = team.expect("shared memory").into_iter().collect();
            let threads: Vec<_> = ranks.into_iter().map(|me| scope.spawn(|| one(me))).collect();
            threads.into_iter().map(|t| t.join().expect("no panic")).next().unwrap_or_default()
        })
    }

    #[test]
    fn time_that_is_up_leaves_lines_as_they_lie() {
        let measured = |trips: &[f64]| trips.iter().filter(|trip| trip.is_finite()).count();
        // Nothing is measured in no time, and whoever is not there is not waited for.
        for late in [Duration::ZERO, Duration::from_millis(300)] {
            let limit = late / 100;
            let trips = chosen(limit, || std::thread::sleep(late));
            assert_eq!(measured(&trips), 0, "{late:?}");
        }
        // With time enough for all candidates there are cores for both, or nothing was measured.
        let trips = chosen(Duration::from_secs(100), || ());
        assert_eq!(measured(&trips), trips.len());
        assert_eq!(
            sorted(&[f64::INFINITY, 2.0, f64::INFINITY, 1.0], Nearness::Nearest),
            [3, 1, 0, 2]
        );
    }

    #[test]
    fn lines_are_taken_by_distances_from_elsewhere() {
        let team = Team::threads(2, &Settings::default()).expect("shared memory");
        let (memory, lines) = team[0].candidates();
        let first = memory.as_ptr().addr();
        // The last candidate is the nearest.
        let distances: Vec<f64> =
            (0..lines.len()).map(|n| -f64::from(u32::try_from(n).unwrap_or(0))).collect();
        let nearest = lines.last().map(|line| first + 64 * usize::try_from(line.0).unwrap_or(0));
        let distances = &distances;
        std::thread::scope(|scope| {
            for mut me in team {
                scope.spawn(move || {
                    let root = me.rank() == Rank(0);
                    if root {
                        let short = me.choose_lines_by(&distances[1..]);
                        assert!(matches!(short, Err(TeamError::Length { .. })), "{short:?}");
                    }
                    me.choose_lines_by(if root { distances } else { &[] }).expect("all are here");
                    let (_, _, channel) =
                        me.channel_of(crate::live::Kind::Broadcast, Rank(0), 8).expect("room");
                    assert_eq!(Some(channel.lines()[0].addr().get()), nearest);
                    let mut word = [if root { 7 } else { 0 }];
                    me.broadcast(&mut word, Rank(0)).expect("here");
                    assert_eq!(word, [7]);
                    assert_eq!(me.choose_lines_by(distances), Err(TeamError::Begun));
                });
            }
        });
    }

    #[test]
    fn collectives_are_right_on_chosen_lines_and_it_is_too_late_after_the_first() {
        for nearness in [Nearness::Nearest, Nearness::Farthest] {
            let team = Team::threads(2, &Settings::default()).expect("shared memory");
            std::thread::scope(|scope| {
                for mut me in team {
                    scope.spawn(move || {
                        let trips = me.choose_lines(nearness, None).expect("nobody ends");
                        let mine = i64::from(me.rank().0);
                        // With one core nothing is measured; with two, rank 0 knows all candidates.
                        assert!(trips.is_empty() || mine == 0 && trips.iter().all(|t| *t > 0.0));
                        for round in 0..100 {
                            let mut sum = [0];
                            me.allreduce(Reduction::Sum, &[mine + round], &mut sum).expect("here");
                            assert_eq!(sum, [1 + 2 * round]);
                            let mut word = [if mine == 1 { round } else { -1 }];
                            me.broadcast(&mut word, Rank(1)).expect("here");
                            assert_eq!(word, [round]);
                        }
                        assert_eq!(me.choose_lines(nearness, None), Err(TeamError::Begun));
                    });
                }
            });
        }
    }
}
