//! Predicted: what a recorded program costs on a machine, as a band from T_min to T_max.
//!
//! The operations of all ranks become a graph with the four kinds of edges of the paper (HPDC 2015,
//! section 3). Its longest path is priced twice for each end of the band: by the rules as printed, and by
//! ours, which follow where each line can be ([`Rules`]). Nothing here simulates: the simulator is other
//! code over the same cost table, and its times lie in the band of our rules.

mod cheapest;
mod dearest;
mod dot;
mod graph;
mod node;
mod order;
mod paper;
mod prices;
mod private;
mod replay;
mod svg;
#[cfg(test)]
pub(crate) mod tests;
mod timing;
mod uses;
mod words;

use isochrone_machine::LineCosts;

pub use dot::dot;
pub use graph::{Edge, EdgeKind, Graph, GraphError};
pub use node::Node;
pub use svg::svg;
#[cfg(test)]
pub(crate) use tests::sandy_bridge;
pub use timing::Timing;
pub use words::words;

use crate::program::{Operation, Recorded};
use prices::Prices;

/// How nodes are priced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rules {
    /// Rules 1 to 5 and equation (1), as printed.
    Paper,
    /// Where lines can be by then: a fetch that a poller made in advance is not made again, adds follow
    /// one another as they come, and the added terms of the cost table count.
    Timed,
}

/// In which state flags and data are when the call begins.
#[derive(Clone, Copy, Debug)]
pub enum Start<'a> {
    /// In memory, as rule 1 has it.
    Memory,
    /// As these earlier calls leave them: the hot state of a repeated call.
    After(&'a Recorded),
    /// As these calls leave them, each of which ended everywhere before the next began: calls in windows.
    AfterEach(&'a [Recorded]),
}

impl<'a> Start<'a> {
    /// The calls before, each of which ended everywhere before the next began.
    pub(crate) const fn calls(self) -> &'a [Recorded] {
        match self {
            Self::Memory => &[],
            Self::After(before) => std::slice::from_ref(before),
            Self::AfterEach(before) => before,
        }
    }
}

/// Why a program cannot be priced.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PredictError {
    /// The program has no graph.
    #[error(transparent)]
    Graph(#[from] GraphError),
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
}

/// A band of times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Band {
    /// T_min: every node at its cheapest, ns.
    pub min_ns: f64,
    /// T_max: every unordered use of a line in between, ns.
    pub max_ns: f64,
}

impl Band {
    /// What a sum of picoseconds may differ from one of nanoseconds, ns.
    const ROUNDING_NS: f64 = 0.01;

    /// Whether a time lies in the band.
    #[must_use]
    pub fn holds(&self, ns: f64) -> bool {
        self.min_ns - Self::ROUNDING_NS <= ns && ns <= self.max_ns + Self::ROUNDING_NS
    }
}

/// A program's graph with its times at both ends of the band.
#[derive(Clone, Debug)]
pub struct Prediction {
    /// The graph.
    pub graph: Graph,
    /// Times at T_min.
    pub min: Timing,
    /// Times at T_max.
    pub max: Timing,
}

impl Prediction {
    /// The band.
    #[must_use]
    pub fn band(&self) -> Band {
        Band { min_ns: self.min.total_ns, max_ns: self.max.total_ns }
    }

    /// The band where stores are posted: a rank is done when all but its last writes and claims have ended,
    /// since they leave by the store buffer. Who waits for them still waits. Without the cost of a call.
    #[must_use]
    pub fn posted_band(&self) -> Band {
        let posted = |node: usize| {
            let of = self.graph.nodes()[node].operation;
            matches!(of, Operation::Write { .. } | Operation::Claim { .. })
        };
        let mut last = vec![None; self.graph.ranks()];
        for node in self.graph.topological().filter(|&node| !posted(node)) {
            last[self.graph.nodes()[node].rank.index()] = Some(node);
        }
        let end = |timing: &Timing| {
            let ends = last.iter().flatten().map(|&node| timing.end_ns[node]);
            ends.fold(0.0, f64::max)
        };
        Band { min_ns: end(&self.min), max_ns: end(&self.max) }
    }
}

/// Predicts `program` with rank `r` on core `cores[r]` of the machine with `costs`.
///
/// # Errors
/// [`PredictError`] when the program cannot end, or cores and ranks do not fit.
pub fn predict(
    program: &Recorded,
    start: Start<'_>,
    costs: &LineCosts,
    cores: &[usize],
    rules: Rules,
) -> Result<Prediction, PredictError> {
    let graph = graph(program, start, costs, cores)?;
    let prices = Prices::new(&graph, costs, cores);
    let (min, max) = match rules {
        Rules::Paper => {
            (paper::printed(&prices, paper::End::Least), paper::printed(&prices, paper::End::Most))
        }
        Rules::Timed => (cheapest::cheapest(&prices), dearest::dearest(&prices)),
    };
    Ok(Prediction { graph, min, max })
}

/// The lower end of the band alone, which is what a search asks for again and again.
///
/// # Errors
/// As [`predict`].
pub fn predict_min(
    program: &Recorded,
    start: Start<'_>,
    costs: &LineCosts,
    cores: &[usize],
    rules: Rules,
) -> Result<(Graph, Timing), PredictError> {
    let graph = graph(program, start, costs, cores)?;
    let min = least(&Prices::new(&graph, costs, cores), rules);
    Ok((graph, min))
}

/// The lower end of the band of a graph whose rank `r` is on core `cores[r]`: one graph, many tables.
///
/// # Panics
/// If a rank has no core in the table.
#[must_use]
pub fn priced_min(graph: &Graph, costs: &LineCosts, cores: &[usize], rules: Rules) -> Timing {
    let known = cores.iter().all(|&core| core < costs.cores());
    assert!(known && cores.len() == graph.ranks(), "every rank has a core of the table");
    least(&Prices::new(graph, costs, cores), rules)
}

fn least(prices: &Prices<'_>, rules: Rules) -> Timing {
    match rules {
        Rules::Paper => paper::printed(prices, paper::End::Least),
        Rules::Timed => cheapest::cheapest(prices),
    }
}

fn graph(
    program: &Recorded,
    start: Start<'_>,
    costs: &LineCosts,
    cores: &[usize],
) -> Result<Graph, PredictError> {
    let ranks = program.ranks.len();
    let mut known: Vec<usize> = cores.iter().copied().filter(|&c| c < costs.cores()).collect();
    known.sort_unstable();
    known.dedup();
    if known.len() != ranks || cores.len() != ranks {
        return Err(PredictError::Cores { ranks, cores: known.len() });
    }
    Ok(Graph::after(program, start.calls())?)
}
