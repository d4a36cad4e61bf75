//! What the steps of a run took.

use std::time::{Duration, Instant};

use anyhow::Result;

/// What each step took. Some ran beside others, so all took less than their sum.
#[derive(Debug)]
pub(super) struct Times {
    begin: Instant,
    steps: Vec<(&'static str, Duration)>,
}

impl Default for Times {
    fn default() -> Self {
        Self { begin: Instant::now(), steps: Vec::new() }
    }
}

impl Times {
    /// Calls a step and adds its time.
    pub(super) fn of<T>(
        &mut self,
        name: &'static str,
        step: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let begin = Instant::now();
        let outcome = step();
        self.add(name, begin.elapsed());
        outcome
    }

    /// Adds the time of a step.
    pub(super) fn add(&mut self, name: &'static str, took: Duration) {
        self.steps.push((name, took));
    }

    /// A line for each step, and one for all.
    pub(super) fn table(&self) -> String {
        self.table_of(self.begin.elapsed())
    }

    fn table_of(&self, all: Duration) -> String {
        let widths = self.steps.iter().map(|(name, _)| name.len());
        let width = widths.max().unwrap_or(0).max("all".len());
        let last = ("all", all);
        let rows = self.steps.iter().chain([&last]).map(|(name, time)| {
            let seconds = time.as_secs();
            format!("{name:<width$}  {:>3} min {:>2} s", seconds / 60, seconds % 60)
        });
        rows.collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_stand_below_one_another_with_that_of_all() {
        let seconds = Duration::from_secs;
        let steps = vec![("a step", seconds(61)), ("b", seconds(600))];
        assert_eq!(
            Times { begin: Instant::now(), steps }.table_of(seconds(610)),
            "a step    1 min  1 s\nb        10 min  0 s\nall      10 min 10 s"
        );
    }
}
