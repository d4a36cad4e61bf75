//! Figure 3: the one-line broadcast over 2 to 16 threads, from memory.

use anyhow::Result;
use isochrone_cla::collectives::Tree;
use isochrone_cla::predicted::{Band, Rules, Start, predict, predict_min};
use isochrone_cla::program::Rank;
use isochrone_cla::search::{LevelError, Levels, Priced, Pricing, best};
use isochrone_cla::simulated::{Model, many};
use isochrone_machine::LineCosts;
use serde_json::{Value, json};

use super::figure1;
use crate::row::{Accepts, Cell};

/// One number of threads; the first eight are in the root's socket.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) threads: usize,
    /// The tree that is best by the printed rules.
    pub(crate) tree: Tree,
    /// Its band by the printed rules, and by ours.
    pub(crate) printed: Band,
    pub(crate) ours: Band,
    /// `T_min` of the flat tree, HMPI's, by the printed rules.
    pub(crate) flat_ns: f64,
    /// The median of the simulated runs.
    pub(crate) simulated_ns: f64,
    /// The same of the flat tree.
    pub(crate) flat_simulated_ns: f64,
}

impl Row {
    /// The simulated median, which has to lie in our band.
    pub(super) fn median(&self) -> Cell {
        let band = &self.ours;
        let accepts = Accepts::between(band.min_ns - ROUNDING_NS, band.max_ns + ROUNDING_NS);
        Cell::new(format!("{} threads", self.threads), None, Some(self.simulated_ns), accepts)
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "threads": self.threads,
            "tree": self.tree.to_string(),
            "printed_t_min_ns": self.printed.min_ns,
            "printed_t_max_ns": self.printed.max_ns,
            "t_min_ns": self.ours.min_ns,
            "t_max_ns": self.ours.max_ns,
            "flat_t_min_ns": self.flat_ns,
            "simulated_median_ns": self.simulated_ns,
            "flat_simulated_median_ns": self.flat_simulated_ns,
            "inside_band": self.ours.holds(self.simulated_ns),
        })
    }
}

/// What rounding may take a median out of its band, as [`Band::holds`] has it, ns.
const ROUNDING_NS: f64 = 0.01;
/// Cores of a socket of the paper's machine.
const SOCKET: usize = 8;
/// Simulated runs of a tree.
const SEEDS: u64 = 31;

/// The row of so many threads.
pub(super) fn row(costs: &LineCosts, threads: usize) -> Result<Row> {
    let cores: Vec<usize> = (0..threads).collect();
    let program = Program { costs };
    let ranks = u16::try_from(threads)?;
    let flat = Tree::flat(ranks, Rank(0));
    let mut found = vec![(flat.clone(), program.ns(&flat, &cores)?)];
    for tree in program.candidates(ranks) {
        let ns = program.ns(&tree, &cores)?;
        found.push((tree, ns));
    }
    let flat_ns = found[0].1;
    // The first of equally good ones: flat before others, shallow before deep.
    found.sort_by(|a, b| a.1.total_cmp(&b.1));
    let tree = found.swap_remove(0).0;
    let band = |rules| -> Result<Band> {
        Ok(predict(&figure1(&tree), Start::Memory, costs, &cores, rules)?.band())
    };
    let simulated = |tree: &Tree| -> Result<f64> {
        let model = Model::default();
        let runs = many(&figure1(tree), Start::Memory, costs, &cores, &model, 0..SEEDS)?;
        Ok(runs.quantile_ns(0.5).unwrap_or(f64::NAN))
    };
    Ok(Row {
        threads,
        printed: band(Rules::Paper)?,
        ours: band(Rules::Timed)?,
        flat_ns,
        simulated_ns: simulated(&tree)?,
        flat_simulated_ns: simulated(&flat)?,
        tree,
    })
}

/// Figure 1 on the paper's machine, priced by the printed rules.
struct Program<'a> {
    costs: &'a LineCosts,
}

impl Program<'_> {
    fn ns(&self, tree: &Tree, cores: &[usize]) -> Result<f64> {
        let program = figure1(tree);
        let priced = predict_min(&program, Start::Memory, self.costs, cores, Rules::Paper)?;
        Ok(priced.1.total_ns)
    }

    /// Equation (2) gives the best tree of one socket. For two, each socket has such a tree, or a regular
    /// one, and the second's root hangs below the first's.
    fn candidates(&self, ranks: u16) -> Vec<Tree> {
        let near = usize::from(ranks).min(SOCKET);
        let far = usize::from(ranks) - near;
        let own = self.within(near);
        if far == 0 {
            return own;
        }
        let others = self.within(far);
        let mut trees: Vec<Tree> =
            own.iter().flat_map(|a| others.iter().filter_map(|b| joined(a, b))).collect();
        trees.extend(
            (1..SOCKET).filter_map(|d| Some(Tree::regular(ranks, Rank(0), u16::try_from(d).ok()?))),
        );
        trees
    }

    /// Trees of `count` ranks in one socket: the best by levels, and regular ones.
    fn within(&self, count: usize) -> Vec<Tree> {
        let ranks = u16::try_from(count).unwrap_or(u16::MAX);
        let socket: Vec<usize> = (0..SOCKET).collect();
        let mut trees: Vec<Tree> = vec![Tree::flat(ranks, Rank(0))];
        if let Ok(levels) = Levels::of(self, [&socket, &[]])
            && let Some((first, second)) = best(&levels, 0, [count, 0], count)
        {
            let all: Vec<Rank> = (0..ranks).map(Rank).collect();
            let shapes = std::iter::once(first).chain(second);
            trees.extend(shapes.filter_map(|b| b.shape.tree([&all, &[]]).ok()));
        }
        let degrees = (1..ranks.max(2) - 1).map(|degree| Tree::regular(ranks, Rank(0), degree));
        trees.extend(degrees);
        trees
    }
}

/// The second tree below the root of the first.
fn joined(first: &Tree, second: &Tree) -> Option<Tree> {
    let shift = first.ranks();
    let mut parents: Vec<Option<Rank>> = (0..shift).map(|r| first.parent(Rank(r))).collect();
    let moved = |rank: Rank| Rank(rank.0 + shift);
    parents.extend(
        (0..second.ranks())
            .map(|r| Some(second.parent(Rank(r)).map_or_else(|| first.root(), moved))),
    );
    Tree::new(&parents).ok()
}

impl Pricing for Program<'_> {
    fn price(&self, tree: &Tree, cores: &[usize]) -> Result<Priced, LevelError> {
        let program = figure1(tree);
        let priced = predict_min(&program, Start::Memory, self.costs, cores, Rules::Paper);
        let (graph, timing) = priced.map_err(|error| LevelError::Price(error.to_string()))?;
        // A child has the data when its copy out of the parent's line is done: its second operation.
        let mut ready_ns = vec![0.0; graph.ranks()];
        for node in graph.topological() {
            let at = &graph.nodes()[node];
            if at.at == 1 && tree.parent(at.rank).is_some() {
                ready_ns[at.rank.index()] = timing.end_ns[node];
            }
        }
        Ok(Priced { ready_ns, total_ns: timing.total_ns })
    }

    fn is_round(&self) -> bool {
        true
    }
}
