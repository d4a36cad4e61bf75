//! Figure 3: the one-line broadcast over 2 to 16 threads, from memory.

use anyhow::Result;
use isochrone_cla::collectives::Tree;
use isochrone_cla::predicted::{Band, Rules, Start, predict, predict_min};
use isochrone_cla::program::{Rank, Recorded};
use isochrone_cla::search::{LevelError, Levels, Priced, Pricing, best};
use isochrone_cla::simulated::{Model, many};
use isochrone_machine::LineCosts;
use serde_json::{Value, json};

use super::programs::{Flags, SOCKET, broadcast, hmpi};
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
    /// The chosen tree with one synchronisation line, as Figure 1 is printed: its band by our rules, and the median.
    pub(crate) one_line: Band,
    pub(crate) one_line_simulated_ns: f64,
    /// HMPI with a barrier before, and with one after as well.
    pub(crate) hmpi: [Hmpi; 2],
    /// The tree that is best by our rules, and the median of its simulated runs.
    pub(crate) our_tree: Tree,
    pub(crate) our_min_ns: f64,
    pub(crate) our_simulated_ns: f64,
    /// Where a line's readers are served one after the other.
    pub(crate) in_turn: [InTurn; 2],
}

/// Medians where a line's readers are served so many ns after one another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InTurn {
    pub(crate) reader_ns: f64,
    /// Of the chosen tree.
    pub(crate) simulated_ns: f64,
    /// Of HMPI between two barriers.
    pub(crate) hmpi_simulated_ns: f64,
}

/// What a reader may cost its line's home: assumed, and what public runs of XHC's broadcast add for each child.
const READER_NS: [f64; 2] = [5.0, 25.0];

/// HMPI's broadcast.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hmpi {
    /// `T_min` by the printed rules.
    pub(crate) min_ns: f64,
    /// The median of the simulated runs.
    pub(crate) simulated_ns: f64,
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
            "one_line_t_min_ns": self.one_line.min_ns,
            "one_line_t_max_ns": self.one_line.max_ns,
            "one_line_simulated_median_ns": self.one_line_simulated_ns,
            "hmpi_t_min_ns": self.hmpi.map(|one| one.min_ns),
            "hmpi_simulated_median_ns": self.hmpi.map(|one| one.simulated_ns),
            "readers_in_turn": self.in_turn.map(|one| json!({
                "reader_ns": one.reader_ns,
                "simulated_median_ns": one.simulated_ns,
                "hmpi_simulated_median_ns": one.hmpi_simulated_ns,
            })),
            "our_tree": self.our_tree.to_string(),
            "our_tree_t_min_ns": self.our_min_ns,
            "our_tree_simulated_median_ns": self.our_simulated_ns,
        })
    }
}

/// What rounding may take a median out of its band, as [`Band::holds`] has it, ns.
const ROUNDING_NS: f64 = 0.01;
/// Simulated runs of a tree.
const SEEDS: u64 = 31;

/// The row of so many threads.
pub(super) fn row(costs: &LineCosts, threads: usize) -> Result<Row> {
    let cores: Vec<usize> = (0..threads).collect();
    let ranks = u16::try_from(threads)?;
    let flat = Tree::flat(ranks, Rank(0));
    let by = |rules| Program { costs, rules };
    let tree = by(Rules::Paper).best(ranks, &cores)?;
    let our_tree = by(Rules::Timed).best(ranks, &cores)?;
    let band = |program: &Recorded, rules| -> Result<Band> {
        Ok(predict(program, Start::Memory, costs, &cores, rules)?.band())
    };
    let served = |program: &Recorded, reader_ns| -> Result<f64> {
        let model = Model { reader_ns, ..Model::default() };
        let runs = many(program, Start::Memory, costs, &cores, &model, 0..SEEDS)?;
        Ok(runs.quantile_ns(0.5).unwrap_or(f64::NAN))
    };
    let simulated = |program: &Recorded| served(program, 0.0);
    let hmpi = |barriers| -> Result<Hmpi> {
        let program = hmpi(ranks, barriers);
        let min = predict_min(&program, Start::Memory, costs, &cores, Rules::Paper)?;
        Ok(Hmpi { min_ns: min.1.total_ns, simulated_ns: simulated(&program)? })
    };
    let between = super::programs::hmpi(ranks, 2);
    let chosen = broadcast(&tree, Flags::EachSocket);
    let one_line = broadcast(&tree, Flags::One);
    let in_turn = |reader_ns| -> Result<InTurn> {
        Ok(InTurn {
            reader_ns,
            simulated_ns: served(&chosen, reader_ns)?,
            hmpi_simulated_ns: served(&between, reader_ns)?,
        })
    };
    Ok(Row {
        threads,
        printed: band(&chosen, Rules::Paper)?,
        ours: band(&chosen, Rules::Timed)?,
        flat_ns: by(Rules::Paper).ns(&flat, &cores)?,
        simulated_ns: simulated(&chosen)?,
        flat_simulated_ns: simulated(&broadcast(&flat, Flags::EachSocket))?,
        one_line: band(&one_line, Rules::Timed)?,
        one_line_simulated_ns: simulated(&one_line)?,
        hmpi: [hmpi(1)?, hmpi(2)?],
        our_min_ns: by(Rules::Timed).ns(&our_tree, &cores)?,
        our_simulated_ns: simulated(&broadcast(&our_tree, Flags::EachSocket))?,
        in_turn: [in_turn(READER_NS[0])?, in_turn(READER_NS[1])?],
        our_tree,
        tree,
    })
}

/// Figure 1 on the paper's machine, priced by the printed rules or by ours.
struct Program<'a> {
    costs: &'a LineCosts,
    rules: Rules,
}

impl Program<'_> {
    fn ns(&self, tree: &Tree, cores: &[usize]) -> Result<f64> {
        let program = broadcast(tree, Flags::EachSocket);
        let priced = predict_min(&program, Start::Memory, self.costs, cores, self.rules)?;
        Ok(priced.1.total_ns)
    }

    /// The best tree: the first of equally good ones, flat before others, shallow before deep.
    fn best(&self, ranks: u16, cores: &[usize]) -> Result<Tree> {
        let mut best = Tree::flat(ranks, Rank(0));
        let mut least = self.ns(&best, cores)?;
        for tree in self.candidates(ranks) {
            let ns = self.ns(&tree, cores)?;
            if ns < least {
                (best, least) = (tree, ns);
            }
        }
        Ok(best)
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
        let program = broadcast(tree, Flags::EachSocket);
        let priced = predict_min(&program, Start::Memory, self.costs, cores, self.rules);
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
