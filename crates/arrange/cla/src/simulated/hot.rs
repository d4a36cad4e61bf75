//! Calls by themselves on lines that earlier calls have left, for one program after another: what a choice between
//! shapes asks, in as little time as it is to be had.

use isochrone_machine::LineCosts;
use isochrone_sim::lines::{Engine, Jitter, Program};
use isochrone_stats as stats;
use std::ops::Range;

use super::{Model, SimulateError, same_ranks, steps, stuck, usable};
use crate::program::Recorded;

/// Calls that after one run are by such a part beyond what they may take are given up, after two by half of it, and so
/// on.
const GIVEN_UP: f64 = 0.3;

/// Simulates calls on the cores of one machine.
#[derive(Debug)]
pub struct Hot {
    engine: Engine,
    cores: usize,
    jitter: Jitter,
    call_ns: f64,
}

impl Hot {
    /// For as many ranks as there are `cores` named, rank `r` on core `cores[r]` of the machine with `costs`.
    ///
    /// # Errors
    /// [`SimulateError::Cores`] for cores that the machine does not have, and one that is there twice.
    pub fn new(costs: &LineCosts, cores: &[usize], model: &Model) -> Result<Self, SimulateError> {
        usable(cores.len(), costs, cores)?;
        let poll_ns = model.poll_ns + costs.added.poll_ns;
        Ok(Self {
            engine: model.engine(costs, cores),
            cores: cores.len(),
            jitter: Jitter { seed: 0, begin_ns: model.begin_ns, poll_ns },
            call_ns: costs.added.call_ns,
        })
    }

    /// Events that were simulated so far.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.engine.events()
    }

    /// Simulates no further after so many events, those of earlier calls among them: a call that is not over then
    /// counts as one that takes too long.
    pub const fn ends_after(&mut self, events: u64) {
        self.engine.ends_after(events);
    }

    /// The mean time under these seeds of the last of `calls` on the lines as the others leave them, each begun when
    /// all ranks have ended the one before, on lines that are in memory at first; ns. `None` where it is more than
    /// `most_ns`, or so much more after the first runs that it is given up, and without a call or a seed. Of the calls
    /// before counts what they do with lines of the last one, without times.
    ///
    /// # Errors
    /// As [`simulate`](super::simulate).
    pub fn mean_ns(
        &mut self,
        calls: &[Recorded],
        seeds: Range<u64>,
        most_ns: f64,
    ) -> Result<Option<f64>, SimulateError> {
        let Some(last) = calls.last() else { return Ok(None) };
        same_ranks(self.cores, calls)?;
        let mut programs: Vec<Program> = calls.iter().map(steps::of).collect();
        Program::bearing(&mut programs);
        Program::condense(&mut programs);
        let Some((now, before)) = programs.split_last() else { return Ok(None) };
        self.engine.reset();
        for (call, recorded) in before.iter().zip(calls) {
            self.engine.settle(call).map_err(|what| stuck(recorded, &what))?;
        }
        let runs = usize::try_from(seeds.end.saturating_sub(seeds.start)).unwrap_or(usize::MAX);
        #[allow(clippy::cast_precision_loss, reason = "some seeds")]
        let budget_ns = |run: usize| {
            let given_up = if run < runs { 1.0 + GIVEN_UP / run as f64 } else { 1.0 };
            (most_ns - self.call_ns) * run as f64 * given_up
        };
        let found = self.engine.makespans_ns(now, &self.jitter, seeds, budget_ns);
        let found = found.map_err(|what| stuck(last, &what))?;
        let mean_ns = stats::mean(&found).filter(|_| found.len() == runs);
        Ok(mean_ns.map(|ns| ns + self.call_ns))
    }
}
