//! Costs from some of the figures, and what follows for the others.
//!
//! Every time is that of the rank in the graph of the recorded program, each node at its cheapest. Fitted are
//! the transfers within and between sockets, the added terms that are switched on, and how much later than
//! the root the other ranks leave the barrier. A constant of each call cannot be told from transfers here, so
//! there is none.

use isochrone_machine::{AddedTerms, ClassCost, LineCosts, PairClass};

use super::{Figures, Flat, Row};
use crate::predicted::{Graph, PredictError, Rules, priced_min};

/// Which terms beside the paper's are in the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// What local readers pay more as soon as somebody in another socket reads too.
    pub first_remote_reader: bool,
    /// Acknowledgements on lines of their own overlap; without the term each costs a transfer.
    pub overlapped_acks: bool,
    /// An RFO of a line with many sharers costs one transfer; without the term one for each, as the paper
    /// has it.
    pub one_invalidation: bool,
}

impl Terms {
    /// All of them.
    pub const ALL: Self =
        Self { first_remote_reader: true, overlapped_acks: true, one_invalidation: true };
    /// None: the paper's model.
    pub const NONE: Self =
        Self { first_remote_reader: false, overlapped_acks: false, one_invalidation: false };

    /// All terms, all but one of each, and none; each with its name.
    #[must_use]
    pub const fn ablation() -> [(&'static str, Self); 5] {
        [
            ("all terms", Self::ALL),
            ("without the first remote reader", Self { first_remote_reader: false, ..Self::ALL }),
            ("without overlapped acknowledgements", Self { overlapped_acks: false, ..Self::ALL }),
            ("without invalidation all at once", Self { one_invalidation: false, ..Self::ALL }),
            ("none: the paper's model", Self::NONE),
        ]
    }
}

/// A published figure and what the model says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// How many ranks.
    pub ranks: u16,
    /// `"root"`, `"same socket"` or `"other socket"`.
    pub who: &'static str,
    /// What was published, ns.
    pub published_ns: f64,
    /// What the model says, ns.
    pub model_ns: f64,
    /// Whether the costs were fitted on it.
    pub fitted: bool,
}

impl Point {
    /// How far the model is off, as a share of the published figure.
    #[must_use]
    pub fn error(&self) -> f64 {
        (self.model_ns / self.published_ns - 1.0).abs()
    }
}

/// Fitted costs and what they say of every figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// A transfer within a socket, ns.
    pub near_ns: f64,
    /// A transfer between sockets, ns.
    pub far_ns: f64,
    /// The first remote reader's price for local ones, ns.
    pub first_remote_reader_ns: f64,
    /// One more acknowledgement, ns.
    pub ack_ns: f64,
    /// How much later than the root others leave the barrier, ns.
    pub later_ns: f64,
    /// All figures.
    pub points: Vec<Point>,
}

impl Fitted {
    /// The errors of the figures that were not fitted, ascending.
    #[must_use]
    pub fn errors(&self) -> Vec<f64> {
        let mut errors: Vec<f64> =
            self.points.iter().filter(|p| !p.fitted).map(Point::error).collect();
        errors.sort_by(f64::total_cmp);
        errors
    }
}

/// What is fitted: near, far, first remote reader, acknowledgement, later.
type Parameters = [f64; 5];
/// Where the search begins, ns: a guess for machines of this kind.
const BEGIN: Parameters = [60.0, 150.0, 100.0, 25.0, 60.0];
/// Rounds of the search; each halves the step of a parameter that no step makes better.
const ROUNDS: usize = 60;

/// Graphs of the program for some rows.
struct Prepared<'a> {
    figures: &'a Figures,
    rows: Vec<(Row, Graph)>,
    terms: Terms,
}

/// Fits costs on some rows and predicts all.
///
/// # Errors
/// [`PredictError`] when the program has no graph, which would be a mistake in it.
pub fn fit(figures: &Figures, terms: Terms) -> Result<Fitted, PredictError> {
    let graph = |row: &Row| -> Result<(Row, Graph), PredictError> {
        let flat = Flat { ranks: row.ranks };
        Ok((*row, Graph::of(&flat.record(2, 3), Some(&flat.record(0, 2)))?))
    };
    let rows = figures.rows.iter().map(graph).collect::<Result<Vec<_>, _>>()?;
    let prepared = Prepared { figures, rows, terms };
    let parameters = prepared.searched();
    let [near_ns, far_ns, first_remote_reader_ns, ack_ns, later_ns] = parameters;
    let points = prepared.points(&parameters, |_| true);
    Ok(Fitted { near_ns, far_ns, first_remote_reader_ns, ack_ns, later_ns, points })
}

impl Prepared<'_> {
    /// One parameter after the other, up and down, as long as that helps.
    fn searched(&self) -> Parameters {
        let used = [true, true, self.terms.first_remote_reader, self.terms.overlapped_acks, true];
        let mut best = BEGIN;
        for (parameter, used) in best.iter_mut().zip(used) {
            *parameter *= f64::from(u8::from(used));
        }
        let mut off = self.off(&best);
        let mut steps = [0.5; 5];
        for _ in 0..ROUNDS {
            for (n, step) in steps.iter_mut().enumerate().filter(|&(n, _)| used[n]) {
                let tried = [1.0 + *step, 1.0 / (1.0 + *step)].map(|factor| {
                    let mut other = best;
                    other[n] *= factor;
                    (self.off(&other), other)
                });
                let [up, down] = tried;
                let better = if up.0 < down.0 { up } else { down };
                if better.0 < off {
                    (off, best) = better;
                } else {
                    *step /= 2.0;
                }
            }
        }
        best
    }

    /// The sum of squared logarithms of model over published, over the fitted rows: an error of a factor
    /// counts alike up and down.
    fn off(&self, parameters: &Parameters) -> f64 {
        let fitted = self.points(parameters, |row| self.figures.fitted_on(row.ranks));
        fitted.iter().map(|p| (p.model_ns.max(1.0) / p.published_ns).ln().powi(2)).sum()
    }

    fn points(&self, parameters: &Parameters, of: impl Fn(&Row) -> bool) -> Vec<Point> {
        let rows = self.rows.iter().filter(|(row, _)| of(row));
        rows.flat_map(|(row, graph)| self.row(row, graph, parameters)).collect()
    }

    fn row(&self, row: &Row, graph: &Graph, parameters: &Parameters) -> Vec<Point> {
        let ends = self.ends(row.ranks, graph, parameters);
        let later_ns = parameters[4];
        let socket = usize::from(self.figures.socket.min(row.ranks));
        let mean = |ends: &[f64]| isochrone_stats::mean(ends).unwrap_or(f64::NAN) - later_ns;
        let all = [
            ("root", Some(row.root_ns), ends[0]),
            ("same socket", Some(row.same_ns), mean(&ends[1..socket])),
            ("other socket", row.other_ns, mean(&ends[socket..])),
        ];
        let fitted = self.figures.fitted_on(row.ranks);
        let point = |(who, published, model_ns): (&'static str, Option<f64>, f64)| {
            published.map(|published_ns| Point {
                ranks: row.ranks,
                who,
                published_ns,
                model_ns,
                fitted,
            })
        };
        all.into_iter().filter_map(point).collect()
    }

    /// When each rank is done.
    fn ends(&self, ranks: u16, graph: &Graph, parameters: &Parameters) -> Vec<f64> {
        let [near, far, remote, ack, _] = *parameters;
        let class = |transfer_ns: f64| ClassCost {
            transfer_ns,
            // Everything is hot, and every message one line: neither is used.
            memory_ns: transfer_ns,
            start_ns: 0.0,
            line_ns: transfer_ns,
            congestion_ns: 0.0,
        };
        let socket = usize::from(self.figures.socket);
        let cores: Vec<usize> = (0..usize::from(ranks)).collect();
        let of = |a: usize, b: usize| PairClass(u8::from(a / socket != b / socket));
        let mut costs = LineCosts::new(cores.len(), vec![class(near), class(far)], 0.0, of);
        costs.added = AddedTerms {
            first_remote_reader_ns: remote,
            overlapped_ack_ns: self.terms.overlapped_acks.then_some(ack),
            rfo_sharer_ns: self.terms.one_invalidation.then_some(0.0),
            ..AddedTerms::default()
        };
        priced_min(graph, &costs, &cores, Rules::Timed).rank_ends(graph)
    }
}
