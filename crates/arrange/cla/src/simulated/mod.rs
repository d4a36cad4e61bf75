//! Simulated: a recorded program replayed on a modelled machine, message by message, in virtual time.
//!
//! Every rank is a core of [`isochrone_sim::lines`], and every operation becomes accesses to lines; a wait
//! that does not hold is a program counter that stands still until its line is taken away. Costs come from
//! the same table as those of [`crate::predicted`], and nothing else is shared with it: where the two
//! disagree, one of them is wrong.

mod hot;
#[cfg(test)]
mod peers;
mod steps;
#[cfg(test)]
mod tests;

use isochrone_machine::LineCosts;
use isochrone_sim::lines::{Engine, Stuck};
pub use isochrone_sim::lines::{Jitter, Lookup, Protocol, Traffic};
use isochrone_stats as stats;

pub use hot::Hot;

use crate::predicted::Start;
use crate::program::{Operation, Rank, Recorded};

/// The protocol of a modelled machine, and what differs from seed to seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Model {
    /// States of shared lines.
    pub protocol: Protocol,
    /// How copies are found.
    pub lookup: Lookup,
    /// Ranks begin anywhere within so many ns.
    pub begin_ns: f64,
    /// A poll notices that its line is gone anywhere within so many ns, beside the pause of the cost table.
    pub poll_ns: f64,
    /// Readers of one line are served so many ns after one another; 0: at once, as in the paper.
    pub reader_ns: f64,
    /// What part of a transfer a request is on its way, for which its line stays where it is; 0: it comes at once, as
    /// the predictor has it.
    pub request: f64,
}

impl Model {
    /// Where many want a line: its home serves readers one after the other, and requests travel. Of a transfer half is
    /// the request, as `verify model` has it.
    #[must_use]
    pub fn contended(costs: &LineCosts) -> Self {
        Self { reader_ns: reader_ns(costs), request: REQUEST, ..Self::default() }
    }

    /// An engine of this model.
    fn engine(&self, costs: &LineCosts, cores: &[usize]) -> Engine {
        Engine::new(costs, cores, self.protocol, self.lookup)
            .with_readers_in_turn(self.reader_ns)
            .with_requests_on_their_way(self.request)
    }
}

/// [`Model::contended`]'s part of a transfer that a request takes.
pub(crate) const REQUEST: f64 = 0.5;

/// What a line's home takes for one more reader where that was not measured, ns: assumed. Public runs of XHC's
/// broadcast add up to 25 ns for a child, its acknowledgement among them.
const READER_NS: f64 = 5.0;

/// What a line's home takes for one more reader, ns.
pub(crate) fn reader_ns(costs: &LineCosts) -> f64 {
    costs.added.reader_ns.unwrap_or(READER_NS)
}

impl Default for Model {
    /// What the cost table means: one clean copy answers, the home asks whom it must, nobody is late.
    fn default() -> Self {
        Self {
            protocol: Protocol::Mesif,
            lookup: Lookup::Directory,
            begin_ns: 0.0,
            poll_ns: 0.0,
            reader_ns: 0.0,
            request: 0.0,
        }
    }
}

/// Why a program cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimulateError {
    /// A wait that nothing ends.
    #[error(
        "{rank} waits in its operation {at}, {operation:?}, for what no rank does; {waiting} of {ranks} \
         ranks wait for ever"
    )]
    Stuck {
        /// The first that waits.
        rank: Rank,
        /// The place of the wait in what it does, earlier calls not counted.
        at: usize,
        /// The wait.
        operation: Operation,
        /// How many ranks wait.
        waiting: usize,
        /// Of how many.
        ranks: usize,
    },
    /// Cores that do not fit the ranks.
    #[error(
        "{ranks} ranks on {cores} cores: name one core of the machine for each rank, each once"
    )]
    Cores {
        /// How many ranks.
        ranks: usize,
        /// How many usable cores were named.
        cores: usize,
    },
    /// An earlier call of other ranks.
    #[error("the program has {now} ranks and the one before it {before}; both need the same")]
    Ranks {
        /// Ranks of the program.
        now: usize,
        /// Ranks of the one before.
        before: usize,
    },
}

/// One simulated run.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulated {
    /// When each rank had done its last operation, ns after the common beginning.
    pub end_ns: Vec<f64>,
    /// When each rank had done each of its operations, ns.
    pub operations_ns: Vec<Vec<f64>>,
    /// Messages of the run.
    pub traffic: Traffic,
}

impl Simulated {
    /// When the last rank had done its last operation, ns.
    #[must_use]
    pub fn total_ns(&self) -> f64 {
        self.end_ns.iter().copied().fold(0.0, f64::max)
    }
}

/// Simulates `program` with rank `r` on core `cores[r]` of the machine with `costs`. One seed replays bit
/// for bit.
///
/// # Errors
/// [`SimulateError`] when the program cannot end, or cores and ranks do not fit.
pub fn simulate(
    program: &Recorded,
    start: Start<'_>,
    costs: &LineCosts,
    cores: &[usize],
    model: &Model,
    seed: u64,
) -> Result<Simulated, SimulateError> {
    Simulator::new(program, start, costs, cores, model)?.run(seed)
}

/// Simulates a program under many seeds: runs that differ in who comes first where nothing says so.
///
/// # Errors
/// As [`simulate`].
pub fn many(
    program: &Recorded,
    start: Start<'_>,
    costs: &LineCosts,
    cores: &[usize],
    model: &Model,
    seeds: std::ops::Range<u64>,
) -> Result<Distribution, SimulateError> {
    let mut simulator = Simulator::new(program, start, costs, cores, model)?;
    let runs: Result<Vec<_>, _> = seeds.map(|seed| simulator.run(seed)).collect();
    Ok(Distribution::of(runs?))
}

/// What many runs took.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// Total of each run, ns, ascending.
    pub total_ns: Vec<f64>,
    /// The median end of each rank, ns.
    pub end_ns: Vec<f64>,
}

impl Distribution {
    fn of(runs: Vec<Simulated>) -> Self {
        let ranks = runs.first().map_or(0, |run| run.end_ns.len());
        let ends = |rank: usize| {
            let ends: Vec<f64> = runs.iter().map(|run| run.end_ns[rank]).collect();
            stats::median(&ends).unwrap_or(f64::NAN)
        };
        let end_ns = (0..ranks).map(ends).collect();
        let mut total_ns: Vec<f64> = runs.iter().map(Simulated::total_ns).collect();
        total_ns.sort_by(f64::total_cmp);
        Self { total_ns, end_ns }
    }

    /// A quantile of the totals, ns; `None` without a run.
    #[must_use]
    pub fn quantile_ns(&self, q: f64) -> Option<f64> {
        stats::quantile(&self.total_ns, q)
    }
}

/// A program and the machine that it is simulated on.
#[derive(Debug)]
struct Simulator<'a> {
    program: &'a Recorded,
    before: Vec<isochrone_sim::lines::Program>,
    now: isochrone_sim::lines::Program,
    engine: Engine,
    model: &'a Model,
    /// A poll notices that its line is gone anywhere within so many ns: the model's and the table's.
    poll_ns: f64,
    call_ns: f64,
}

impl<'a> Simulator<'a> {
    fn new(
        program: &'a Recorded,
        start: Start<'a>,
        costs: &LineCosts,
        cores: &[usize],
        model: &'a Model,
    ) -> Result<Self, SimulateError> {
        let ranks = program.ranks.len();
        usable(ranks, costs, cores)?;
        let before = start.calls();
        same_ranks(ranks, before)?;
        let before = before.iter().map(steps::of).collect();
        Ok(Self {
            program,
            before,
            now: steps::of(program),
            engine: model.engine(costs, cores),
            model,
            poll_ns: model.poll_ns + costs.added.poll_ns,
            call_ns: costs.added.call_ns,
        })
    }

    fn run(&mut self, seed: u64) -> Result<Simulated, SimulateError> {
        self.before(seed)?;
        self.now(seed)
    }

    /// The calls before, on lines that are in memory at first.
    fn before(&mut self, seed: u64) -> Result<(), SimulateError> {
        self.engine.reset();
        for before in &self.before {
            self.engine
                .run(before, &Jitter::seed(seed))
                .map_err(|what| stuck(self.program, &what))?;
        }
        Ok(())
    }

    fn now(&mut self, seed: u64) -> Result<Simulated, SimulateError> {
        let jitter = Jitter { seed, begin_ns: self.model.begin_ns, poll_ns: self.poll_ns };
        let run = self.engine.run(&self.now, &jitter);
        let run = run.map_err(|what| stuck(self.program, &what))?;
        let end_ns = run.end_ns.iter().map(|end| end + self.call_ns).collect();
        Ok(Simulated { end_ns, operations_ns: run.steps_ns, traffic: run.traffic })
    }
}

/// Whether `cores` names a core of the machine with `costs` for each rank, each once.
fn usable(ranks: usize, costs: &LineCosts, cores: &[usize]) -> Result<(), SimulateError> {
    let mut usable: Vec<usize> =
        cores.iter().copied().filter(|&core| core < costs.cores()).collect();
    usable.sort_unstable();
    usable.dedup();
    if usable.len() != ranks || cores.len() != ranks {
        return Err(SimulateError::Cores { ranks, cores: usable.len() });
    }
    Ok(())
}

/// Whether all calls are of as many ranks.
fn same_ranks(ranks: usize, calls: &[Recorded]) -> Result<(), SimulateError> {
    match calls.iter().find(|call| call.ranks.len() != ranks) {
        Some(other) => Err(SimulateError::Ranks { now: ranks, before: other.ranks.len() }),
        None => Ok(()),
    }
}

/// Who waits for ever in a program.
fn stuck(program: &Recorded, stuck: &Stuck) -> SimulateError {
    let rank = Rank(u16::try_from(stuck.core).unwrap_or(u16::MAX));
    let operations = &program.ranks[stuck.core].operations;
    SimulateError::Stuck {
        rank,
        at: stuck.step,
        operation: operations[stuck.step.min(operations.len() - 1)],
        waiting: stuck.waiting,
        ranks: stuck.cores,
    }
}
