//! Requests that are compared, by turns, and all that they answered.

use anyhow::Result;
use isochrone_console::turns::Series;
use isochrone_stats::Spread;

use super::arm::Runner;
use crate::bench::setting::Setting;
use crate::tier::request::{Answer, Request};

/// What is compared, and what came of it.
pub(super) struct Arms {
    pub(super) requests: Vec<Request>,
    /// Of each arm, in the order of time.
    pub(super) answers: Vec<Vec<Answer>>,
    seed: u64,
    pub(super) series: Series,
}

impl Arms {
    /// Arms by name.
    pub(super) fn new(named: Vec<(String, Request)>, setting: &mut Setting<'_>) -> Self {
        let (names, requests): (Vec<_>, Vec<_>) = named.into_iter().unzip();
        let answers = vec![Vec::new(); requests.len()];
        Self { requests, answers, seed: setting.seed(), series: Series::new(&names, "s") }
    }

    /// Runs all of them once.
    pub(super) fn block(
        &mut self,
        what: &str,
        runner: &mut Runner,
        setting: &mut Setting<'_>,
    ) -> Result<()> {
        let (requests, answers) = (&self.requests, &mut self.answers);
        setting.block(&mut self.series, self.seed, what, &mut |arm| {
            let answer = runner.run(&requests[arm])?;
            let seconds = answer.ns as f64 / 1e9;
            answers[arm].push(answer);
            Ok(seconds)
        })?;
        Ok(())
    }

    /// Of the runs of an arm.
    pub(super) fn spread(&self, arm: usize, of: impl Fn(&Answer) -> f64) -> Option<Spread> {
        Spread::of(self.answers[arm].iter().map(of))
    }

    /// Faults that fetched something, of an arm.
    pub(super) fn faults(&self, arm: usize) -> f64 {
        self.spread(arm, |answer| answer.missing as f64).map_or(f64::NAN, |faults| faults.median)
    }
}
