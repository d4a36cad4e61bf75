//! What a team's work was: how each worker ended, and what was counted.

use std::time::Duration;

use super::check::Mode;
use super::common::Counters;

/// How a worker ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With a value.
    Value(u64),
    /// With a message.
    Failed(String),
    /// By a signal.
    Killed(i32),
    /// Without a word, with an exit code.
    Silent(i32),
}

/// What a team's work was.
#[derive(Clone, Debug)]
pub struct Report {
    /// How each worker ended.
    pub workers: Vec<Ended>,
    /// What was counted of each worker, then of each mover.
    pub counters: Vec<Counters>,
    /// What each worker left by `Worker::note`.
    pub notes: Vec<Vec<u64>>,
    /// From when all were ready to when the last worker ended.
    pub wall: Duration,
    /// How faults were resolved.
    pub mode: Mode,
    /// Bytes of the area in memory at the end.
    pub resident_bytes: u64,
}

impl Report {
    /// The values of all workers, or what the first that has none said.
    ///
    /// # Errors
    /// The words of the first worker that did not end with a value.
    pub fn values(&self) -> Result<Vec<u64>, String> {
        let value = |(number, ended): (usize, &Ended)| match ended {
            Ended::Value(value) => Ok(*value),
            Ended::Failed(words) => Err(format!("worker {number}: {words}")),
            Ended::Killed(signal) => Err(format!("worker {number} was killed by signal {signal}")),
            Ended::Silent(code) => Err(format!("worker {number} ended with code {code}")),
        };
        self.workers.iter().enumerate().map(value).collect()
    }

    /// All counters of workers together.
    #[must_use]
    pub fn of_workers(&self) -> Counters {
        let workers = self.counters.iter().take(self.workers.len());
        workers.fold(Counters::none(), Counters::and)
    }

    /// All counters of movers together.
    #[must_use]
    pub fn of_movers(&self) -> Counters {
        let movers = self.counters.iter().skip(self.workers.len());
        movers.fold(Counters::none(), Counters::and)
    }
}
