//! How much is measured of each pair where the time does not hold all that was asked for. Pure.
//!
//! What a play takes is tried first, at the least effort and at the whole one: the widest play, or some pairs where one
//! at a time is measured. That few rounds fit is not taken for granted: one play of round trips over many lines is a
//! tenth of a second, a fifth of what a quick map has for its kind. The rule: the most
//! effort with which [`SWEEPS`] sweeps fit into [`SHARE`] of the time that is left. Where not even the least effort
//! does, a parallel plan is measured as far as the time goes, and of a serial plan as many pairs are taken as fit, but
//! no fewer than join all cores.

use super::plan::{Kind, LINES_MIN, Options, TransferPlan, WARM_REPEATS};

/// Sweeps that have to fit: the fewest that have an interval.
pub const SWEEPS: f64 = 3.0;
/// Of the time that is left, what the sweeps are planned to take.
pub const SHARE: f64 = 0.9;
/// So few rounds are not tried first: a trial would take as long as a sweep.
pub const ROUNDS_FEW: usize = 1;
/// How often the reference is looked at in a sweep, at most.
const LOOKS: usize = 64;
/// Repeats at least, beside those that are not counted.
const REPEATS_MIN: u32 = 2;
/// Round trips of a sample at least: the first of them, which brings the line, counts for a hundredth.
const TRIPS_MIN: u32 = 50;

/// By what lines, repeats and round trips are divided, the most effort first.
struct Less {
    lines: u32,
    repeats: u32,
    trips: u32,
}

const STEPS: [Less; 4] = [
    Less { lines: 1, repeats: 1, trips: 1 },
    Less { lines: 1, repeats: 4, trips: 2 },
    Less { lines: 2, repeats: 4, trips: 4 },
    Less { lines: 2, repeats: 16, trips: 4 },
];

/// How much is measured of a pair in one sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Lines of a pair.
    pub lines: u32,
    /// Samples of each line that count.
    pub repeats: u32,
    /// Round trips of one sample; 1 where a sample is one operation.
    pub trips: u32,
}

impl Effort {
    /// The efforts that there are, from what was asked for down.
    #[must_use]
    pub fn all(options: &Options) -> [Self; 4] {
        STEPS.each_ref().map(|less| Self {
            lines: (options.lines / less.lines).max(LINES_MIN),
            repeats: (options.repeats / less.repeats).max(REPEATS_MIN.min(options.repeats)),
            trips: match options.kind {
                Kind::Timed(..) => 1,
                Kind::Cas { trips } => (trips / less.trips).max(TRIPS_MIN.min(trips)),
            },
        })
    }

    /// What a play takes beside what it takes always, in operations of one pair.
    fn work(self) -> f64 {
        f64::from(self.lines) * f64::from(self.repeats + WARM_REPEATS) * f64::from(self.trips)
    }
}

/// What plays take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Seconds of any play.
    fixed_s: f64,
    /// Seconds more for each operation of a pair.
    work_s: f64,
}

/// A play that was tried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tried {
    /// How much of each pair.
    pub effort: Effort,
    /// Seconds that it took.
    pub seconds: f64,
}

impl Pace {
    /// From plays of a little and of much.
    #[must_use]
    pub fn of(little: Tried, much: Tried) -> Self {
        let more = much.effort.work() - little.effort.work();
        let work_s = if more > 0.0 { (much.seconds - little.seconds) / more } else { 0.0 };
        let work_s = work_s.max(0.0);
        Self { fixed_s: (little.seconds - work_s * little.effort.work()).max(0.0), work_s }
    }

    /// From a play of a little alone: as if all of it were operations.
    #[must_use]
    pub fn at_most(little: Tried) -> Self {
        Self { fixed_s: 0.0, work_s: little.seconds / little.effort.work() }
    }

    /// Seconds of a play.
    #[must_use]
    pub fn seconds(&self, effort: Effort) -> f64 {
        self.fixed_s + self.work_s * effort.work()
    }
}

/// Rounds between two looks at the reference.
#[must_use]
pub fn rounds_a_look(rounds: usize) -> usize {
    (rounds / LOOKS).max(1)
}

/// The same plan with another effort.
#[must_use]
pub fn with_effort(plan: &TransferPlan, effort: Effort) -> TransferPlan {
    let mut plan = plan.clone();
    for lane in &mut plan.lanes {
        // Neighbours are alike: every second line is a better sample than the first half.
        let step = (lane.len() / effort.lines.max(1) as usize).max(1);
        *lane = lane.iter().copied().step_by(step).take(effort.lines as usize).collect();
    }
    if let Kind::Cas { trips } = &mut plan.options.kind {
        *trips = effort.trips;
    }
    (plan.options.lines, plan.options.repeats) = (effort.lines, effort.repeats);
    plan
}

/// The same plan with nothing to measure: what a trial needs of it, of which rounds are by far the most.
#[must_use]
pub fn without_rounds(plan: &TransferPlan) -> TransferPlan {
    TransferPlan {
        cores: plan.cores.clone(),
        options: plan.options.clone(),
        rounds: Vec::new(),
        seats: plan.seats.clone(),
        least: plan.least,
        lanes: plan.lanes.clone(),
        reference: plan.reference,
        missing: plan.missing.clone(),
    }
}

/// What sweeps over a plan take.
#[derive(Debug)]
pub struct Fit<'p> {
    plan: &'p TransferPlan,
    pace: Pace,
    /// Whether pairs are measured one at a time.
    serial: bool,
    plays_a_round: f64,
}

impl<'p> Fit<'p> {
    /// Of a plan whose plays take so long.
    #[must_use]
    pub fn new(plan: &'p TransferPlan, pace: Pace, serial: bool) -> Self {
        let all = plan.rounds.len();
        let looks = all.div_ceil(rounds_a_look(all)) as f64;
        let legs: usize = plan.rounds.iter().map(Vec::len).sum();
        Self { plan, pace, serial, plays_a_round: (legs as f64 + looks) / all.max(1) as f64 }
    }

    /// Rounds of so much effort of which enough sweeps fit.
    fn rounds(&self, effort: Effort, left_s: f64) -> usize {
        let sweeps_s = SWEEPS * self.plays_a_round * self.pace.seconds(effort);
        whole(SHARE * left_s / sweeps_s.max(1e-12))
    }

    /// Rounds without which it is not worth it.
    fn needed(&self) -> usize {
        let all = self.plan.rounds.len();
        if self.serial { self.plan.least.min(all) } else { all }
    }

    /// Whether so many seconds hold what is needed, with the least effort.
    #[must_use]
    pub fn holds(&self, left_s: f64) -> bool {
        let [.., least] = Effort::all(&self.plan.options);
        self.rounds(least, left_s) >= self.needed()
    }

    /// The plan as far as it fits into so many seconds. A serial plan may have fewer pairs then.
    #[must_use]
    pub fn fitted(&self, left_s: f64) -> TransferPlan {
        let efforts = Effort::all(&self.plan.options);
        let chosen = efforts.iter().find(|effort| self.rounds(**effort, left_s) >= self.needed());
        let effort = *chosen.unwrap_or(&efforts[efforts.len() - 1]);
        let mut fitted = with_effort(self.plan, effort);
        if self.serial {
            fitted.rounds.truncate(self.rounds(effort, left_s).max(self.needed()));
        }
        fitted
    }
}

/// How many whole ones a number has.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float becomes the nearest number that there is"
)]
fn whole(number: f64) -> usize {
    number as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::plan::Schedule;
    use crate::transfer::scene::Operation;
    use isochrone_units::{CoreId, LineState};

    const LOAD: Kind = Kind::Timed(LineState::Modified, Operation::Load);

    fn plan(cores: u16, kind: Kind, schedule: Schedule) -> TransferPlan {
        let cores: Vec<CoreId> = (0..cores).map(CoreId).collect();
        let options = Options { schedule, ..Options::new(kind, 1) };
        TransferPlan::new(&cores, 1 << 17, options).unwrap()
    }

    /// A play takes a millisecond and half a microsecond an operation.
    const PACE: Pace = Pace { fixed_s: 1e-3, work_s: 0.5e-6 };

    fn sweep_s(plan: &TransferPlan) -> f64 {
        let [effort, ..] = Effort::all(&plan.options);
        let legs: usize = plan.rounds.iter().map(Vec::len).sum();
        let looks = plan.rounds.len() / rounds_a_look(plan.rounds.len());
        (legs + looks) as f64 * PACE.seconds(effort)
    }

    #[test]
    fn efforts_fall_and_none_is_below_what_shows_a_spread() {
        for kind in [LOAD, Kind::Cas { trips: 200 }] {
            let efforts = Effort::all(&Options::new(kind, 1));
            assert!(efforts.windows(2).all(|two| two[1].work() <= two[0].work()), "{efforts:?}");
            assert!(efforts[3].work() < efforts[0].work() / 10.0, "{efforts:?}");
            let least = efforts[3];
            assert!(least.lines >= LINES_MIN && least.repeats >= 2 && least.trips != 0);
        }
    }

    #[test]
    fn a_pace_is_read_off_two_plays() {
        let [much, .., little] = Effort::all(&Options::new(LOAD, 1));
        let tried = |effort| Tried { effort, seconds: PACE.seconds(effort) };
        let found = Pace::of(tried(little), tried(much));
        assert!((found.fixed_s - 1e-3).abs() < 1e-12 && (found.work_s - 0.5e-6).abs() < 1e-15);
        // The longer one was quicker, by chance: then the play itself takes all.
        let odd =
            Pace::of(Tried { effort: little, seconds: 2.0 }, Tried { effort: much, seconds: 1.0 });
        assert_eq!((odd.fixed_s, odd.work_s), (2.0, 0.0));
    }

    #[test]
    fn with_more_cores_a_pair_gets_less_until_three_sweeps_fit() {
        for (cores, lines, repeats) in [(16, 64, 64), (192, 64, 16), (384, 32, 16)] {
            let parallel = plan(cores, LOAD, Schedule::Parallel);
            let fitted = Fit::new(&parallel, PACE, false).fitted(4.0);
            assert_eq!(fitted.rounds.len(), parallel.rounds.len());
            let found = (fitted.options.lines, fitted.options.repeats);
            assert_eq!(found, (lines, repeats), "{cores} cores");
            assert!(SWEEPS * sweep_s(&fitted) < 4.0, "{} s", sweep_s(&fitted));
            assert!(fitted.lanes.iter().all(|lane| lane.len() == lines as usize));
        }
    }

    #[test]
    fn a_serial_plan_takes_as_many_pairs_as_fit_and_no_fewer_than_join_all() {
        let serial = plan(192, LOAD, Schedule::Serial);
        let all = serial.rounds.len();
        let fit = Fit::new(&serial, PACE, true);
        let some = fit.fitted(20.0);
        assert!((serial.least..all).contains(&some.rounds.len()), "{}", some.rounds.len());
        assert!(SWEEPS * sweep_s(&some) < 20.0);
        assert_eq!(some.rounds[..], serial.rounds[..some.rounds.len()], "those worth most");
        assert_eq!(fit.fitted(0.0).rounds.len(), serial.least);
        assert!(fit.holds(20.0) && !fit.holds(0.0));
        assert_eq!(fit.fitted(1e9), serial);
    }
}
