//! The choice: which tree or exchange a collective uses on given cores, and what comes second.
//!
//! Candidates are the exact trees of the levels where costs have few classes, and families (flat, regular,
//! binomial, each also by clusters). What decides is each candidate's own graph; equal ones are told
//! apart by T_max. Small programs are then improved step by step.

use isochrone_machine::LineCosts;

use super::classes::{best, best_entering_once, lower_bound_ns};
use super::clusters::{clusters, transfer_costs};
use super::level::{LevelError, Levels, Priced, Pricing};
use super::local::improved;
use crate::collectives::{Collective, Options, Plan, PlanError, Shape, Tree};
use crate::predicted::{Band, PredictError, Prediction, Rules, Start, predict, predict_min};
use crate::program::{Buffer, Operation, Place, Rank};

/// What a good choice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Objective {
    /// One call, begun by all at once: when the last rank is done.
    Isolated,
    /// Call after call without a pause, through rings of cells: the time of one more call.
    Steady,
}

/// In which state lines are when an isolated call begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// In memory (rule 1 of the paper).
    Memory,
    /// As calls before leave them.
    Hot,
}

/// What is to be chosen.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// What is done.
    pub collective: Collective,
    /// The root; ranks are as many as cores.
    pub root: Rank,
    /// Bytes from or to each rank.
    pub bytes: u32,
    /// What lines cost.
    pub costs: &'a LineCosts,
    /// The core of each rank.
    pub cores: &'a [usize],
    /// What is good.
    pub objective: Objective,
    /// Where lines are.
    pub state: State,
    /// Everything but the shape.
    pub options: Options,
}

/// One way to do it.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// How it is run.
    pub options: Options,
    /// Where it comes from: `"levels"`, `"flat"`, `"binomial"`, ...
    pub name: String,
    /// The objective's time at its cheapest, ns.
    pub ns: f64,
}

/// What was chosen.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The best.
    pub chosen: Candidate,
    /// The best of another shape.
    pub runner_up: Option<Candidate>,
    /// Everybody below the root.
    pub flat: Candidate,
    /// How it was searched, in one sentence.
    pub how: String,
    /// No tree takes less by the levels, ns; where there are levels, and one call is what is priced.
    pub bound_ns: Option<f64>,
}

/// Why nothing can be chosen.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ChooseError {
    /// There is no such collective.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// It cannot be priced.
    #[error(transparent)]
    Predict(#[from] PredictError),
    /// More ranks than a program can have.
    #[error("{0} ranks are more than a program can have (65535)")]
    Ranks(usize),
}

/// Calls that leave lines as a repeated call finds them: each slot of a ring used twice.
fn warm_calls(options: &Options) -> u64 {
    2 * u64::from(options.ring) + 1
}

/// Programs up to so many nodes squared are improved step by step, as long as this lasts.
const STEPS_BY_NODES: usize = 4_000_000;
/// Most trees that are tried step by step.
const STEPS_MAX: usize = 400;
/// Seed of the order in which they are tried.
const SEED: u64 = 15;

impl Question<'_> {
    /// How many ranks.
    ///
    /// # Errors
    /// [`ChooseError::Ranks`] when there are too many.
    pub fn ranks(&self) -> Result<u16, ChooseError> {
        u16::try_from(self.cores.len()).map_err(|_| ChooseError::Ranks(self.cores.len()))
    }

    /// The plan with one way to do it.
    ///
    /// # Errors
    /// [`ChooseError`] when there is no such plan.
    pub fn plan(&self, options: Options) -> Result<Plan, ChooseError> {
        Ok(Plan::new(self.collective, self.ranks()?, self.root, self.bytes, options)?)
    }

    fn with(&self, shape: Shape) -> Options {
        Options { shape, ..self.options.clone() }
    }

    /// The isolated call's band.
    ///
    /// # Errors
    /// [`ChooseError`] when it cannot be priced.
    pub fn predict(&self, options: Options, rules: Rules) -> Result<Prediction, ChooseError> {
        let before = warm_calls(&options);
        let plan = self.plan(options)?;
        match self.state {
            State::Memory => {
                let now = plan.record(0, 1);
                Ok(predict(&now, Start::Memory, self.costs, self.cores, rules)?)
            }
            State::Hot => {
                let (warm, now) = (plan.record(0, before), plan.record(before, before + 1));
                Ok(predict(&now, Start::After(&warm), self.costs, self.cores, rules)?)
            }
        }
    }

    /// The objective's time of one way to do it, ns.
    ///
    /// # Errors
    /// [`ChooseError`] when it cannot be priced.
    pub fn ns(&self, options: Options) -> Result<f64, ChooseError> {
        self.priced(options).map(|(_, ns)| ns)
    }

    fn priced(&self, options: Options) -> Result<(Priced, f64), ChooseError> {
        let before = warm_calls(&options);
        let ring = u64::from(options.ring);
        let plan = self.plan(options)?;
        let (costs, cores) = (self.costs, self.cores);
        if self.objective == Objective::Steady {
            let warm = plan.record(0, before);
            let after = |calls: u64| {
                let now = plan.record(before, before + calls);
                predict_min(&now, Start::After(&warm), costs, cores, Rules::Timed)
            };
            let (one, two) = (after(ring)?.1, after(2 * ring)?.1);
            #[allow(clippy::cast_precision_loss, reason = "a ring has at most 2^20 slots")]
            let ns = (two.total_ns - one.total_ns) / ring as f64;
            return Ok((Priced { ready_ns: Vec::new(), total_ns: ns }, ns));
        }
        let (graph, timing) = match self.state {
            State::Memory => {
                predict_min(&plan.record(0, 1), Start::Memory, costs, cores, Rules::Timed)?
            }
            State::Hot => {
                let (warm, now) = (plan.record(0, before), plan.record(before, before + 1));
                predict_min(&now, Start::After(&warm), costs, cores, Rules::Timed)?
            }
        };
        let mut ready_ns = vec![0.0_f64; graph.ranks()];
        for node in graph.topological() {
            let n = &graph.nodes()[node];
            if let Operation::Copy { dst, .. } = n.operation
                && dst.place == Place::Private(Buffer::Receive)
            {
                ready_ns[n.rank.index()] = timing.end_ns[node];
            }
        }
        let total_ns = timing.total_ns;
        Ok((Priced { ready_ns, total_ns }, total_ns))
    }

    /// Chooses.
    ///
    /// # Errors
    /// [`ChooseError`] when the root is no rank, or not even a flat tree can be priced.
    pub fn choose(&self) -> Result<Choice, ChooseError> {
        let ranks = self.ranks()?;
        if self.root.0 >= ranks {
            return Err(PlanError::Root { root: self.root.0, ranks }.into());
        }
        let flat = self.candidate("flat", self.with(Shape::Tree(Tree::flat(ranks, self.root))))?;
        let mut found = vec![flat.clone()];
        let (how, bound_ns) = self.by_levels(&mut found);
        self.families(ranks, &mut found);
        found.sort_by(|a, b| a.ns.total_cmp(&b.ns));
        found.dedup_by(|a, b| a.options == b.options);
        self.step_by_step(&mut found);
        self.break_ties(&mut found);
        let chosen = found[0].clone();
        let runner_up = found.into_iter().find(|c| c.options != chosen.options);
        Ok(Choice { chosen, runner_up, flat, how, bound_ns })
    }

    /// The same choice with this tree in place of the best one, which comes second.
    ///
    /// # Errors
    /// [`ChooseError`] when the tree cannot be priced.
    pub fn instead(&self, choice: Choice, name: &str, tree: Tree) -> Result<Choice, ChooseError> {
        let options = self.with(Shape::Tree(tree));
        let asked = self.candidate(name, options)?;
        let how = format!("{}; the tree that was asked for is in its place", choice.how);
        Ok(Choice { runner_up: Some(choice.chosen), chosen: asked, how, ..choice })
    }

    fn candidate(&self, name: &str, options: Options) -> Result<Candidate, ChooseError> {
        let ns = self.ns(options.clone())?;
        Ok(Candidate { options, name: name.to_owned(), ns })
    }

    fn try_tree(&self, name: &str, tree: Tree, found: &mut Vec<Candidate>) {
        let options = self.with(Shape::Tree(tree));
        if found.iter().all(|c| c.options != options) {
            found.extend(self.candidate(name, options));
        }
    }

    /// Flat, regular and binomial trees, the same by clusters with a line for each, and the exchange.
    fn families(&self, ranks: u16, found: &mut Vec<Candidate>) {
        for (name, tree) in families(ranks, self.root) {
            self.try_tree(&name, tree, found);
        }
        found.extend(self.candidate("exchange", self.with(Shape::Exchange)));
        for limit in transfer_costs(self.costs, self.cores) {
            let groups = clusters(self.costs, self.cores, limit);
            if groups.len() < 2 || groups.len() == usize::from(ranks) {
                continue;
            }
            for (name, tree) in by_clusters(&groups, self.root) {
                self.try_tree(&name, tree.clone(), found);
                let of = |rank: usize| groups.iter().position(|g| g.contains(&rank)).unwrap_or(0);
                let lines = (0..usize::from(ranks)).map(|r| u16::try_from(of(r)).unwrap_or(0));
                let shape = Shape::Tree(tree);
                let options = Options { groups: lines.collect(), ..self.with(shape) };
                found.extend(self.candidate(&format!("{name}, a line for each cluster"), options));
            }
        }
    }

    /// The exact trees, where the program has levels: broadcasts on few classes of cores.
    fn by_levels(&self, found: &mut Vec<Candidate>) -> (String, Option<f64>) {
        if self.collective != Collective::Broadcast || self.cores.len() < 2 {
            return ("families of trees, each by its own graph, then step by step".into(), None);
        }
        let isolated = Question { objective: Objective::Isolated, ..self.clone() };
        let by_cost = transfer_costs(self.costs, self.cores);
        let groups = clusters(self.costs, self.cores, by_cost[0]);
        let alike = groups.iter().all(|g| {
            g.iter().all(|&a| g.iter().all(|&b| a == b || self.between(a, b) <= by_cost[0]))
        });
        if by_cost.len() > 2 || !alike {
            let how = format!(
                "{} different costs of a transfer: families of trees, each by its own graph, then step by step",
                by_cost.len()
            );
            return (how, None);
        }
        match isolated.exact(groups, found) {
            Ok((how, bound_ns)) if self.objective == Objective::Isolated => (how, bound_ns),
            // Levels price one call: what they bound is not the time of one more.
            Ok((how, _)) => {
                (format!("{how} for one call; calls in a row by each tree's own graph"), None)
            }
            Err(error) => (format!("families of trees, each by its own graph ({error})"), None),
        }
    }

    fn between(&self, a: usize, b: usize) -> f64 {
        self.costs.pair(self.cores[a], self.cores[b]).transfer_ns
    }

    fn exact(
        &self,
        mut groups: Vec<Vec<usize>>,
        found: &mut Vec<Candidate>,
    ) -> Result<(String, Option<f64>), LevelError> {
        let at = groups.iter().position(|g| g.contains(&self.root.index())).unwrap_or(0);
        let mut own = groups.remove(at);
        own.sort_by_key(|&r| (r != self.root.index(), r));
        groups.sort_by_key(|g| std::cmp::Reverse(g.len()));
        let core = |ranks: &Vec<usize>| ranks.iter().map(|&r| self.cores[r]).collect::<Vec<_>>();
        let far = groups.first().map(core).unwrap_or_default();
        let levels = Levels::of(self, [&core(&own), &far])?;
        let name = |ranks: &Vec<usize>| -> Vec<Rank> {
            ranks.iter().filter_map(|&r| u16::try_from(r).ok()).map(Rank).collect()
        };
        let named: Vec<Vec<Rank>> = std::iter::once(&own).chain(&groups).map(name).collect();
        let nodes = self.cores.len();
        let mut bound = None;
        for most in [nodes, 1, 2, 3, 4, 6, 8, 12].into_iter().filter(|&m| m <= nodes) {
            let trees = if groups.len() < 2 {
                best(&levels, 0, [own.len(), far.len()], most)
            } else {
                best_entering_once(&levels, own.len(), groups.len(), groups[0].len(), most)
            };
            let Some((first, second)) = trees else { continue };
            bound = bound.or(Some(first.bound_ns));
            for tree in std::iter::once(first).chain(second) {
                let tree = tree.shape.clustered_or_classed(&named);
                if let Ok(tree) = tree {
                    self.try_tree("levels", tree, found);
                }
            }
        }
        let (what, bound) = match groups.len() {
            0 => ("one class of cores: exact by levels", bound),
            1 => ("two classes of cores: exact by levels", bound),
            _ => (
                "clusters: exact by levels among trees that enter each once",
                Some(lower_bound_ns(&levels, nodes, true)),
            ),
        };
        Ok((what.into(), bound))
    }

    /// Improves the best tree, if its program is small.
    fn step_by_step(&self, found: &mut Vec<Candidate>) {
        let Shape::Tree(tree) = &found[0].options.shape else { return };
        let operations = |options: &Options| {
            let plan = self.plan(options.clone()).ok()?;
            Some(plan.record(0, 1).ranks.iter().map(|r| r.operations.len()).sum::<usize>())
        };
        let Some(nodes) = operations(&found[0].options) else { return };
        let most = STEPS_MAX.min(STEPS_BY_NODES / (nodes * nodes).max(1));
        let options = found[0].options.clone();
        let with = |tree: &Tree| Options { shape: Shape::Tree(tree.clone()), ..options.clone() };
        let (tree, ns) =
            improved((tree.clone(), found[0].ns), most, SEED, |t| self.ns(with(t)).ok());
        if ns < found[0].ns {
            let name = format!("{}, step by step", found[0].name);
            found.insert(0, Candidate { options: with(&tree), name, ns });
        }
    }

    /// Of equally good ones at the top, the one with the lowest T_max comes first.
    fn break_ties(&self, found: &mut [Candidate]) {
        let best = found[0].ns;
        let ties = found.iter().take_while(|c| c.ns <= best + 1e-6).count();
        let max = |c: &Candidate| {
            let band = self.predict(c.options.clone(), Rules::Timed).map(|p| p.band());
            band.map_or(f64::INFINITY, |Band { max_ns, .. }| max_ns)
        };
        if ties > 1 {
            let mut keyed: Vec<(f64, Candidate)> =
                found[..ties].iter().map(|c| (max(c), c.clone())).collect();
            keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
            for (place, (_, candidate)) in found.iter_mut().zip(keyed) {
                *place = candidate;
            }
        }
    }
}

impl Pricing for Question<'_> {
    fn price(&self, tree: &Tree, cores: &[usize]) -> Result<Priced, LevelError> {
        let few = Question { cores, root: tree.root(), ..self.clone() };
        let options = Options { groups: Vec::new(), ..few.with(Shape::Tree(tree.clone())) };
        few.priced(options).map(|(priced, _)| priced).map_err(|e| LevelError::Price(e.to_string()))
    }

    fn is_round(&self) -> bool {
        self.options.acks_in_call
    }
}

fn families(ranks: u16, root: Rank) -> Vec<(String, Tree)> {
    let mut trees: Vec<(String, Tree)> = (1..=8)
        .filter(|&degree| degree < ranks)
        .map(|degree| (format!("degree {degree}"), Tree::regular(ranks, root, degree)))
        .collect();
    trees.push(("binomial".into(), Tree::binomial(ranks, root)));
    trees
}

/// Trees in which each cluster has a leader: leaders flat or binomial below the root, others below their
/// leader flat, regular or binomial.
fn by_clusters(groups: &[Vec<usize>], root: Rank) -> Vec<(String, Tree)> {
    let mut groups: Vec<Vec<usize>> = groups.to_vec();
    for group in &mut groups {
        group.sort_by_key(|&r| (r != root.index(), r));
    }
    groups.sort_by_key(|g| !g.contains(&root.index()));
    let count = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
    let mut trees = Vec::new();
    let tops = [
        ("flat", Tree::flat(count(groups.len()), Rank(0))),
        ("binomial", Tree::binomial(count(groups.len()), Rank(0))),
    ];
    for (top_name, top) in tops {
        for inside in 0..5_u16 {
            let name = match inside {
                0 => "flat".to_owned(),
                1 => "binomial".to_owned(),
                degree => format!("degree {degree}"),
            };
            let below = |size: usize| match inside {
                0 => Tree::flat(count(size), Rank(0)),
                1 => Tree::binomial(count(size), Rank(0)),
                degree => Tree::regular(count(size), Rank(0), degree),
            };
            let mut parents = vec![None; groups.iter().map(Vec::len).sum()];
            for (n, group) in groups.iter().enumerate() {
                let tree = below(group.len());
                for (place, &rank) in group.iter().enumerate() {
                    parents[rank] = match tree.parent(Rank(count(place))) {
                        Some(p) => Some(Rank(count(group[p.index()]))),
                        None => {
                            top.parent(Rank(count(n))).map(|p| Rank(count(groups[p.index()][0])))
                        }
                    };
                }
            }
            let name = format!("clusters {top_name}, in each {name}");
            trees.extend(Tree::new(&parents).ok().map(|tree| (name, tree)));
        }
    }
    trees
}
