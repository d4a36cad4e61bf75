//! Which nodes are equal by what their systems say of them, and which are set otherwise than most of one processor.

use std::collections::BTreeMap;

use isochrone_units::Reading;

use crate::node::Node;

/// Words of a fingerprint that say which processor it is; the others can be set or mended.
const PROCESSOR: [&str; 5] = ["vendor", "cpu", "family", "model", "stepping"];

/// Nodes with one fingerprint.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Equals {
    /// Where its nodes are in the folder.
    pub(crate) nodes: Vec<usize>,
    /// The largest group of the same processor, by its place in the list.
    pub(crate) usual: usize,
    /// What tells it from that group, in words.
    pub(crate) differs: Vec<String>,
}

impl Equals {
    /// Whether so few of a processor are set like this that they are the ones who deviate.
    pub(crate) fn deviates(&self, all: &[Self]) -> bool {
        2 * self.nodes.len() < all[self.usual].nodes.len()
    }
}

/// All groups, the largest first.
pub(crate) fn groups(nodes: &[Node]) -> Vec<Equals> {
    let mut by_words: BTreeMap<(&str, &[String]), Vec<usize>> = BTreeMap::new();
    for (at, node) in nodes.iter().enumerate() {
        by_words.entry((node.reading.as_str(), &node.words)).or_default().push(at);
    }
    let mut sets: Vec<Vec<usize>> = by_words.into_values().collect();
    sets.sort_by_key(|set| (std::cmp::Reverse(set.len()), set[0]));
    let first = |set: &Vec<usize>| &nodes[set[0]];
    let usual = |node: &Node| {
        sets.iter().position(|set| processor(first(set)) == processor(node)).unwrap_or(0)
    };
    let equals = |set: &Vec<usize>| {
        let usual = usual(first(set));
        let differs = differences(first(set), first(&sets[usual]));
        Equals { nodes: set.clone(), usual, differs }
    };
    sets.iter().map(equals).collect()
}

fn processor(node: &Node) -> (Reading, [&str; 5]) {
    (node.reading, PROCESSOR.map(|key| node.word(key)))
}

/// What two nodes of one processor differ in.
fn differences(node: &Node, usual: &Node) -> Vec<String> {
    let mut said = Vec::new();
    if node.regions != usual.regions {
        said.push(format!(
            "{} where the others have {}: NPS or sub-NUMA clustering is set otherwise",
            counted(node.regions, "region"),
            usual.regions
        ));
    }
    for key in node.words.iter().filter_map(|word| word.split_once(": ")).map(|(key, _)| key) {
        let (own, others) = (node.word(key), usual.word(key));
        if own != others && !(key == "regions" && node.regions != usual.regions) {
            said.push(format!("{key}: {own}, the others have {others}"));
        }
    }
    said
}

/// `1 region`, `4 regions`
pub(crate) fn counted(count: usize, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}
