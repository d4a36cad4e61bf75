//! Recurrence and dynamic programme against the enumeration of all trees; levels against whole graphs.

use isochrone_machine::LineCosts;
use proptest::prelude::*;

use super::*;
use crate::collectives::{Collective, Figure1, Options, Plan, PlanError, Tree};
use crate::predicted::{Rules, Start, predict, sandy_bridge};
use crate::program::{Rank, record};

/// The paper's broadcast by the printed rules.
struct Printed<'a>(&'a LineCosts);

impl Pricing for Printed<'_> {
    fn price(&self, tree: &Tree, cores: &[usize]) -> Result<Priced, LevelError> {
        let recorded = record(tree.ranks(), |lines, me| Figure1 { tree, bytes: 64 }.run(lines, me));
        let priced = predict(&recorded, Start::Memory, self.0, cores, Rules::Paper);
        let priced = priced.map_err(|e| LevelError::Price(e.to_string()))?;
        let last = |rank: usize| {
            (0..priced.graph.nodes().len()).rfind(|&n| priced.graph.nodes()[n].rank.index() == rank)
        };
        let ready = |rank| last(rank).map_or(0.0, |n| priced.min.begin_ns[n]);
        Ok(Priced {
            ready_ns: (0..cores.len()).map(ready).collect(),
            total_ns: priced.min.total_ns,
        })
    }

    fn is_round(&self) -> bool {
        true
    }
}

/// The broadcast that is run, warm, without claims.
struct Warm<'a>(&'a LineCosts);

impl Pricing for Warm<'_> {
    fn price(&self, tree: &Tree, cores: &[usize]) -> Result<Priced, LevelError> {
        let options = Options { claims: false, ..Options::tree(tree.clone(), 8) };
        let plan = Plan::new(Collective::Broadcast, tree.ranks(), Rank(0), 8, options);
        let plan = plan.map_err(|e| LevelError::Price(e.to_string()))?;
        let (warm, now) = (plan.record(0, 33), plan.record(33, 34));
        let priced = predict(&now, Start::After(&warm), self.0, cores, Rules::Timed);
        let priced = priced.map_err(|e| LevelError::Price(e.to_string()))?;
        Ok(Priced { ready_ns: priced.min.rank_ends(&priced.graph), total_ns: priced.min.total_ns })
    }

    fn is_round(&self) -> bool {
        false
    }
}

/// Every labelling of every tree with these numbers of nodes by class.
fn enumerated(levels: &Levels, root: usize, all: Counts, most: usize) -> f64 {
    let nodes = all[0] + all[1];
    let mut best = f64::INFINITY;
    for depths in RootedTrees::new(nodes) {
        let parents = parents(&depths);
        for far in 0..1_u32 << nodes {
            let class = |n: usize| (far >> n & 1) as usize;
            if class(0) != root || far.count_ones() as usize != all[1] {
                continue;
            }
            let shape = shape_of(&parents, 0, &class);
            if widest(&shape) <= most {
                best = best.min(shape.time_ns(levels));
            }
        }
    }
    best
}

fn shape_of(parents: &[Option<usize>], node: usize, class: &impl Fn(usize) -> usize) -> Shape {
    let children = (0..parents.len()).filter(|&n| parents[n] == Some(node));
    let children = children.map(|n| shape_of(parents, n, class)).collect();
    Shape { class: class(node), children }
}

fn widest(shape: &Shape) -> usize {
    shape.children.iter().map(widest).max().unwrap_or(0).max(shape.children.len())
}

/// Levels of two classes; `alike`: what is near to one is as near to the other, as on two sockets.
fn levels(alike: bool) -> impl Strategy<Value = Levels> {
    let level = (10.0..80.0_f64, 80.0..200.0_f64, 1.0..60.0_f64, 0.0..60.0_f64).prop_map(
        |(near, far, each_near, more)| Level {
            constant_ns: [
                [f64::INFINITY; 2],
                [near, f64::INFINITY],
                [f64::INFINITY, far],
                [near, far],
            ],
            each_ns: [each_near, each_near + more],
        },
    );
    // A node of class 1 has class 1 near and class 0 far.
    let turned = |l: Level| Level {
        constant_ns: l.constant_ns.map(|[a, b]| [b, a]),
        each_ns: [l.each_ns[1], l.each_ns[0]],
    };
    let mend = |mut l: Level| {
        l.constant_ns.swap(1, 2);
        l
    };
    (level.clone(), level.clone(), level.clone(), level).prop_map(move |(a, b, c, d)| Levels {
        root: [a, mend(turned(if alike { a } else { b }))],
        inner: [c, mend(turned(if alike { c } else { d }))],
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_recurrence_finds_what_enumeration_finds(levels in levels(true), most in 1..6_usize) {
        let recurrence = Recurrence::new(&levels.root[0], &levels.inner[0], 9, most);
        for nodes in 1..=9 {
            let oracle = enumerated(&levels, 0, [nodes, 0], most);
            prop_assert!((recurrence.time_ns(nodes) - oracle).abs() < 1e-6);
            prop_assert!((recurrence.shape(nodes).time_ns(&levels) - oracle).abs() < 1e-6);
        }
    }

    #[test]
    fn two_classes_find_what_enumeration_finds(
        levels in levels(true), near in 1..5_usize, far in 0..4_usize,
    ) {
        let oracle = enumerated(&levels, 0, [near, far], 9);
        let (best, second) = super::best(&levels, 0, [near, far], 9).expect("there is a tree");
        prop_assert!((best.time_ns - oracle).abs() < 1e-6, "{} {oracle}", best.time_ns);
        prop_assert_eq!(best.shape.total(), [near, far]);
        prop_assert!((best.bound_ns - oracle).abs() < 1e-6, "{}", best.shape.words());
        if let Some(second) = second {
            prop_assert!(second.time_ns >= best.time_ns);
            prop_assert_eq!(second.shape.total(), [near, far]);
        }
    }

    #[test]
    fn with_few_children_a_node_the_bound_still_is_one(
        levels in levels(false), near in 1..5_usize, far in 0..4_usize, most in 1..4_usize,
    ) {
        let oracle = enumerated(&levels, 0, [near, far], most);
        if let Some((best, _)) = super::best(&levels, 0, [near, far], most) {
            prop_assert!(best.bound_ns <= oracle + 1e-6);
            prop_assert!(best.time_ns >= oracle - 1e-6);
            prop_assert!(widest(&best.shape) <= most);
        }
    }

    #[test]
    fn one_class_is_a_case_of_two(levels in levels(true), nodes in 2..40_usize) {
        let recurrence = Recurrence::new(&levels.root[0], &levels.inner[0], nodes, nodes);
        let (best, _) = super::best(&levels, 0, [nodes, 0], nodes).expect("there is a tree");
        prop_assert!((best.time_ns - recurrence.time_ns(nodes)).abs() < 1e-6);
        prop_assert!((best.shape.time_ns(&levels) - best.time_ns).abs() < 1e-6);
    }
}

/// The levels of a program add up to the whole graph's time, for every tree of up to 6 ranks on two
/// sockets, and the best of them by its own graph is what the search finds.
fn levels_add_up(pricing: &impl Pricing, costs: &LineCosts) {
    let classes: [Vec<usize>; 2] = [(0..8).collect(), (8..16).collect()];
    assert_eq!(costs.cores(), 16);
    let levels = Levels::of(pricing, [&classes[0], &classes[1]]).unwrap();
    for (near, far) in [(2, 0), (4, 0), (6, 0), (3, 2), (2, 3)] {
        let nodes = near + far;
        let mut least = f64::INFINITY;
        for depths in RootedTrees::new(nodes) {
            let parents = parents(&depths);
            for marks in 0..1_u32 << nodes {
                if marks & 1 == 1 || marks.count_ones() as usize != far {
                    continue;
                }
                let class = |n: usize| (marks >> n & 1) as usize;
                let shape = shape_of(&parents, 0, &class);
                let (whole, by_levels) =
                    (graph_ns(pricing, &shape, &classes), shape.time_ns(&levels));
                assert!((whole - by_levels).abs() < 1e-6, "{}: {whole} {by_levels}", shape.words());
                least = least.min(whole);
            }
        }
        let (best, _) = best(&levels, 0, [near, far], nodes).unwrap();
        assert!((best.time_ns - least).abs() < 1e-6, "{near} + {far}");
    }
}

fn graph_ns(pricing: &impl Pricing, shape: &Shape, classes: &[Vec<usize>; 2]) -> f64 {
    let [near, far] = shape.total();
    let ranks: Vec<Rank> = (0..u16::MAX).map(Rank).take(near + far).collect();
    let tree = shape.tree([&ranks[..near], &ranks[near..]]).unwrap();
    let cores: Vec<usize> =
        classes[0].iter().take(near).chain(classes[1].iter().take(far)).copied().collect();
    pricing.price(&tree, &cores).unwrap().total_ns
}

#[test]
fn levels_of_the_paper_add_up_to_its_graph() {
    let costs = sandy_bridge(2, 8);
    levels_add_up(&Printed(&costs), &costs);
}

#[test]
fn levels_of_what_is_run_add_up_to_its_graph() {
    let costs = sandy_bridge(2, 8);
    levels_add_up(&Warm(&costs), &costs);
}

#[test]
fn many_threads_are_searched_exactly() {
    let costs = sandy_bridge(2, 128);
    let classes: [Vec<usize>; 2] = [(0..128).collect(), (128..256).collect()];
    let levels = Levels::of(&Warm(&costs), [&classes[0], &classes[1]]).unwrap();
    let (one, second) = best(&levels, 0, [256, 0], 256).unwrap();
    let (two, _) = best(&levels, 0, [128, 128], 256).unwrap();
    assert_eq!(one.shape.total(), [256, 0]);
    assert_eq!(two.shape.total(), [128, 128]);
    assert!(two.time_ns > one.time_ns, "crossing costs");
    assert!(second.unwrap().time_ns >= one.time_ns);
    assert!((two.bound_ns - two.time_ns).abs() < 1e-6);
}

/// Every tree over clusters of these sizes that enters each once: by the enumeration of all trees over all
/// nodes with every labelling by clusters.
fn entering_once(levels: &Levels, sizes: &[usize]) -> f64 {
    let nodes: usize = sizes.iter().sum();
    let mut best = f64::INFINITY;
    for depths in RootedTrees::new(nodes) {
        let parents = parents(&depths);
        let mut label = vec![0; nodes];
        loop {
            let counts = |c: usize| label.iter().filter(|l| **l == c).count();
            let entries = |c: usize| {
                let enters =
                    |n: &usize| label[*n] == c && parents[*n].is_none_or(|p| label[p] != c);
                (0..nodes).filter(enters).count()
            };
            let fits = (0..sizes.len()).all(|c| counts(c) == sizes[c] && entries(c) == 1);
            if fits && label[0] == 0 {
                let class =
                    |n: usize| usize::from(parents[n].is_some_and(|p| label[p] != label[n]));
                best = best.min(shape_of(&parents, 0, &class).time_ns(levels));
            }
            let Some(at) = label.iter().position(|l| l + 1 < sizes.len()) else { break };
            label[at] += 1;
            label[..at].fill(0);
        }
    }
    best
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn clusters_entered_once_find_what_enumeration_finds(levels in levels(true), which in 0..4_usize) {
        let sizes = [&[3, 2, 2][..], &[2, 2, 2], &[1, 2, 2], &[2, 3]][which];
        // Nodes of all clusters are alike: near in their own, far in all others.
        let levels = Levels { root: [levels.inner[0]; 2], inner: [levels.inner[0]; 2] };
        let oracle = entering_once(&levels, sizes);
        let (best, _) = best_entering_once(&levels, sizes[0], sizes.len() - 1, sizes[1], 9).expect("a tree");
        prop_assert!((best.time_ns - oracle).abs() < 1e-6, "{} {oracle}", best.shape.words());
        prop_assert!((best.bound_ns - oracle).abs() < 1e-6);
        let nodes = sizes.iter().sum();
        prop_assert!(lower_bound_ns(&levels, nodes, true) <= oracle + 1e-6);
        let mut names = (0..u16::MAX).map(Rank);
        let ranks: Vec<Vec<Rank>> =
            sizes.iter().map(|&size| names.by_ref().take(size).collect()).collect();
        let tree = best.shape.clustered_tree(&ranks).expect("as many places as ranks");
        prop_assert_eq!(usize::from(tree.ranks()), nodes);
    }
}

/// Flat trees are made for the root before a plan is: a root that is no rank must not get as far.
#[test]
fn a_root_that_is_no_rank_is_refused() {
    let costs = sandy_bridge(2, 2);
    let options = Options::tree(Tree::flat(4, Rank(0)), 8);
    let question = |root| Question {
        collective: Collective::Broadcast,
        root: Rank(root),
        bytes: 8,
        costs: &costs,
        cores: &[0, 1, 2, 3],
        objective: Objective::Isolated,
        state: State::Hot,
        options: options.clone(),
    };
    assert!(question(3).choose().is_ok());
    for root in [4, 99, u16::MAX] {
        let refused = question(root).choose().unwrap_err();
        assert_eq!(refused, ChooseError::Plan(PlanError::Root { root, ranks: 4 }));
    }
}
