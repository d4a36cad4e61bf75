//! The time of a map: which experiments are made, in which order, and when each has to end. It reads no clock.

use std::time::Duration;

use isochrone_atlas_store::Experiment;

/// The order in which experiments are made: each after those whose numbers it uses.
const TURNS: [Experiment; Experiment::COUNT] = [
    Experiment::Block,
    Experiment::Transfer,
    Experiment::Multiline,
    Experiment::Terms,
    Experiment::Region,
    Experiment::Bandwidth,
    Experiment::Placement,
];
const _: () = assert!(Experiment::each_once(&TURNS));

/// Time of a quick map where none was asked for.
const QUICK: Duration = Duration::from_secs(10);
/// Of the time, what is left to the end: a floor plan, the report, files that are flushed to the disk...
const END: u32 = 10;
/// ...at most.
const END_MOST: Duration = Duration::from_secs(5);
/// Of the time of the experiments, what mapping memory may take before them.
const MEMORY: u32 = 10;

/// The part of the time that an experiment has beside the others: as a quick map takes it on a quiet machine of two
/// cores, where block latency takes 6 s of 8, with room for others on a busy one.
const fn weight(experiment: Experiment) -> u32 {
    match experiment {
        Experiment::Block => 30,
        Experiment::Transfer => 6,
        Experiment::Region => 4,
        Experiment::Multiline => 3,
        Experiment::Terms | Experiment::Bandwidth => 2,
        Experiment::Placement => 0,
    }
}

/// Experiments and their time.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// What was asked for, in order. What takes no measuring always is.
    pub experiments: Vec<Experiment>,
    /// The time of all, where there is a limit.
    pub budget: Option<Duration>,
    /// Of which each has a part by this.
    weights: Vec<u32>,
}

impl Schedule {
    /// Of what is asked for: these experiments, or all where none is named, in so much time.
    #[must_use]
    pub fn of(only: &[Experiment], budget: Option<Duration>, quick: bool) -> Self {
        let wants = |experiment: &Experiment| {
            only.is_empty() || only.contains(experiment) || experiment.is_inferred()
        };
        let experiments: Vec<Experiment> = TURNS.into_iter().filter(wants).collect();
        let weights = experiments.iter().copied().map(weight).collect();
        Self { experiments, budget: budget.or(quick.then_some(QUICK)), weights }
    }

    /// The same with so much time where there is no limit, of which each experiment has a part as long as it is
    /// estimated to take, seconds.
    #[must_use]
    pub(crate) fn bounded(self, most: Duration, estimates_s: &[f64]) -> Self {
        if self.budget.is_some() {
            return self;
        }
        let ms = |s: &f64| Duration::from_secs_f64(s.clamp(0.0, 1e5)).as_millis();
        let weight = |s: &f64| u32::try_from(ms(s)).unwrap_or(u32::MAX);
        Self { budget: Some(most), weights: estimates_s.iter().map(weight).collect(), ..self }
    }

    /// What all experiments have together.
    fn measuring(&self) -> Option<Duration> {
        self.budget.map(|budget| budget - self.end(budget))
    }

    fn end(&self, budget: Duration) -> Duration {
        (budget / END).min(END_MOST)
    }

    /// When memory has to be mapped, from the beginning of the run on.
    #[must_use]
    pub fn memory_ends(&self) -> Option<Duration> {
        self.measuring().map(|time| time / MEMORY)
    }

    /// When an experiment has to end, from the beginning of the run on: it has its share of the time, and what those
    /// before it left. What is inferred at last may take half of what is left to the end.
    #[must_use]
    pub fn ends(&self, experiment: Experiment) -> Option<Duration> {
        let (budget, measuring) = (self.budget?, self.measuring()?);
        if experiment.is_inferred() {
            return Some(budget - self.end(budget) / 2);
        }
        let at = self.experiments.iter().position(|other| *other == experiment)?;
        let until: u32 = self.weights.iter().take(at + 1).sum();
        Some(measuring * until / self.all())
    }

    /// The share that an experiment has, where there is a limit.
    #[must_use]
    pub fn share(&self, experiment: Experiment) -> Option<Duration> {
        let at = self.experiments.iter().position(|other| *other == experiment);
        let weight = at.and_then(|at| self.weights.get(at)).copied().unwrap_or(0);
        self.measuring().map(|time| time * weight / self.all())
    }

    fn all(&self) -> u32 {
        self.weights.iter().sum::<u32>().max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(experiments: &[Experiment], seconds: Option<u64>) -> Schedule {
        Schedule::of(experiments, seconds.map(Duration::from_secs), false)
    }

    #[test]
    fn shares_follow_one_another_and_the_end_has_time_too() {
        for seconds in [1, 10, 60, 3600] {
            let all = schedule(&TURNS, Some(seconds));
            let ends: Vec<Duration> =
                TURNS.iter().map(|experiment| all.ends(*experiment).unwrap()).collect();
            assert!(ends.is_sorted() && all.memory_ends().unwrap() < ends[0], "{ends:?}");
            let budget = Duration::from_secs(seconds);
            assert!(ends[TURNS.len() - 1] < budget && ends[TURNS.len() - 2] > budget * 8 / 10);
            let shares: Duration = TURNS.iter().filter_map(|one| all.share(*one)).sum();
            assert!(shares <= budget);
        }
    }

    #[test]
    fn one_experiment_has_all_and_without_a_limit_none_ends() {
        let one = schedule(&[Experiment::Region, Experiment::Placement], Some(10));
        assert_eq!(one.ends(Experiment::Region), Some(Duration::from_secs(9)));
        assert_eq!(one.ends(Experiment::Block), None, "it is not made");
        let endless = schedule(&TURNS, None);
        assert!(TURNS.iter().all(|experiment| endless.ends(*experiment).is_none()));
    }
}
