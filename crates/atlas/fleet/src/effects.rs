//! How far a node, a core and a region lie from those of equal nodes: one step of Tukey's median polish.
//!
//! Every number is taken as its logarithm, less the median of the same number over the nodes; numbers of all parts of
//! an experiment go together, so that what strays in one part alone is no effect. What all numbers of a node have in
//! common is the node's; what remains of those of a core, or of a region, is its own. A median stands for each, so that
//! one slow core does not make its node slow. Where there are fewer than three of a sort, what they have in common
//! cannot be told from what one of them has: then each keeps the whole.

use std::collections::{BTreeMap, BTreeSet};

use isochrone_stats::median;

use crate::node::{Item, Kind, Node};

/// The parts whose numbers are told: what people know best of an experiment.
const TOLD: [&str; 2] = ["random", "cas"];
/// From so many of a sort on, what they have in common is the node's.
const COMMON: usize = 3;

/// One thing that is asked of every node: how far is this from what it is in the others?
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Effect {
    /// What it is of; `None` for all of the node.
    pub(crate) of: Option<Item>,
    /// Whether what all of the node has in common is taken off.
    pub(crate) is_own: bool,
    /// For each node the median of its numbers, less that of the nodes, as a logarithm; `None` where it has none.
    pub(crate) ln: Vec<Option<f64>>,
    /// The nodes' median of the median number of the part that is told, in the kind's unit.
    pub(crate) usual: f64,
}

/// The effects of one kind of numbers over nodes that are equal.
pub(crate) fn effects(kind: &Kind, nodes: &[&Node]) -> Vec<Effect> {
    let numbers = Numbers::of(kind, nodes);
    let all: BTreeSet<usize> = (0..numbers.of.len()).collect();
    let common = numbers.medians(&all, &vec![0.0; nodes.len()]);
    let mut found = vec![(None, all)];
    for sort in [Sort::Core, Sort::Region] {
        found.extend(numbers.items(sort).into_iter().map(|(item, which)| (Some(item), which)));
    }
    let count = |sort| numbers.items(sort).len();
    let is_many = |item: Option<Item>| item.is_some_and(|item| count(Sort::of(item)) >= COMMON);
    let mut asked: Vec<(bool, BTreeSet<usize>)> = Vec::new();
    let mut effects = Vec::new();
    for (of, which) in found {
        // The same numbers are asked once: of two cores each pair is both of them.
        let question = (is_many(of), which);
        if question.1.is_empty() || asked.contains(&question) {
            continue;
        }
        let less: Vec<f64> = match question.0 {
            true => common.iter().map(|ln| ln.unwrap_or(0.0)).collect(),
            false => vec![0.0; nodes.len()],
        };
        let ln = numbers.medians(&question.1, &less);
        effects.push(Effect { of, is_own: question.0, ln, usual: numbers.usual(&question.1) });
        asked.push(question);
    }
    effects
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    Core,
    Region,
}

impl Sort {
    const fn of(item: Item) -> Self {
        match item {
            Item::Core(_) => Self::Core,
            Item::Region(_) => Self::Region,
        }
    }
}

/// What a number is of, and its logarithm for each node.
type OfNodes<'n> = (&'n [Item], Vec<Option<f64>>);

/// The numbers of one kind by part and name, for each node.
#[derive(Default)]
struct Numbers<'n> {
    of: Vec<&'n [Item]>,
    /// Whether it is one of those that are told.
    is_told: Vec<bool>,
    /// `[name][node]`: logarithm, less the median of the name.
    ln: Vec<Vec<Option<f64>>>,
    /// The nodes' median of each.
    usual: Vec<f64>,
}

impl<'n> Numbers<'n> {
    fn of(kind: &Kind, nodes: &[&'n Node]) -> Self {
        let mut named: BTreeMap<(&str, &str), OfNodes<'_>> = BTreeMap::new();
        for (at, node) in nodes.iter().enumerate() {
            for quantity in node.quantities.get(kind).map_or(&[][..], Vec::as_slice) {
                let entry = named.entry((&quantity.part, &quantity.name));
                let (_, values) = entry.or_insert_with(|| (&quantity.of, vec![None; nodes.len()]));
                values[at] = Some(quantity.value.ln());
            }
        }
        let mut numbers = Self::default();
        for ((part, _), (of, mut values)) in named {
            let there: Vec<f64> = values.iter().copied().flatten().collect();
            let Some(centre) = median(&there) else { continue };
            values.iter_mut().flatten().for_each(|ln| *ln -= centre);
            numbers.of.push(of);
            numbers.is_told.push(TOLD.contains(&part));
            numbers.ln.push(values);
            numbers.usual.push(centre.exp());
        }
        numbers
    }

    /// Which numbers are of each item of a sort.
    fn items(&self, sort: Sort) -> BTreeMap<Item, BTreeSet<usize>> {
        let mut items: BTreeMap<Item, BTreeSet<usize>> = BTreeMap::new();
        for (at, of) in self.of.iter().enumerate() {
            for item in of.iter().filter(|item| Sort::of(**item) == sort) {
                items.entry(*item).or_default().insert(at);
            }
        }
        items
    }

    /// For each node the median of these numbers, less what is given for it.
    fn medians(&self, which: &BTreeSet<usize>, less: &[f64]) -> Vec<Option<f64>> {
        let of_node = |(at, less): (usize, &f64)| {
            let there = which.iter().filter_map(|name| self.ln[*name][at]).collect::<Vec<f64>>();
            median(&there).map(|ln| ln - less)
        };
        less.iter().enumerate().map(of_node).collect()
    }

    fn usual(&self, which: &BTreeSet<usize>) -> f64 {
        let is_any_told = which.iter().any(|name| self.is_told[*name]);
        let told = which.iter().filter(|name| self.is_told[**name] || !is_any_told);
        median(&told.map(|name| self.usual[*name]).collect::<Vec<f64>>()).unwrap_or(f64::NAN)
    }
}
