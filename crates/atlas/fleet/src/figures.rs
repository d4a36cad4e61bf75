//! What is found of a fleet, as values. It finds nothing and prints nothing.

use isochrone_units::{Grade, Reading};
use serde::Serialize;

/// What `fleet show --json` and `fleet outliers --json` write. Fields are added, never renamed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report {
    /// Measured or simulated; nothing where there is no node, or some are the one and some the other.
    pub reading: Option<Reading>,
    /// Every node whose atlas could be read.
    pub nodes: Vec<NodeFigure>,
    /// Nodes that are equal by their fingerprints, the largest group first.
    pub groups: Vec<Group>,
    /// Which node deviates in what, node by node.
    pub findings: Vec<Finding>,
    /// From which deviation on one is found.
    pub limits: Vec<Limit>,
    /// What was not compared, and why.
    pub not_judged: Vec<NotJudged>,
    /// What could not be read, and maps that did not end.
    pub skipped: Vec<Skipped>,
    /// Comparisons for which p-values are corrected.
    pub comparisons: usize,
    /// The chance of any false finding in a whole fleet, if scatter is normal.
    pub level: f64,
    /// Smaller deviations are no findings, percent.
    pub least_percent: f64,
    /// The only node that was judged, where one was named.
    pub only: Option<String>,
}

/// One node.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodeFigure {
    /// Its name.
    pub name: String,
    /// The number of its group, from 1 on.
    pub group: usize,
    /// Cores that were measured.
    pub cores: usize,
    /// Regions of memory.
    pub regions: usize,
    /// False if its map was interrupted.
    pub complete: bool,
    /// The worst grade of its experiments; nothing where none was graded.
    pub grade: Option<Grade>,
    /// When its map began, seconds since the epoch.
    pub started_unix_s: u64,
}

/// Nodes with one fingerprint.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Group {
    /// From 1 on, the largest first.
    pub number: usize,
    /// Names of its nodes.
    pub nodes: Vec<String>,
    /// The processor's name.
    pub cpu: String,
    /// Cores of a node.
    pub cores: usize,
    /// Regions of a node.
    pub regions: usize,
    /// Memory of a node, in words.
    pub memory: String,
    /// What tells it from the largest group of the same processor.
    pub differs: Vec<String>,
}

/// A node that deviates.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// The node.
    pub node: String,
    /// The number of its group.
    pub group: usize,
    /// In what: `settings`, or what was measured.
    pub kind: String,
    /// The core or region that it is of; nothing where it is of all of the node.
    pub of: Option<String>,
    /// All of it in a sentence.
    pub what: String,
    /// The node's number.
    pub value: Option<f64>,
    /// That of its equals, their median.
    pub usual: Option<f64>,
    /// The unit of both.
    pub unit: Option<&'static str>,
    /// How far the one is from the other, percent.
    pub percent: Option<f64>,
    /// Whether it is worse than usual; nothing of settings.
    pub is_worse: Option<bool>,
    /// How surprising it is, corrected for the number of comparisons.
    pub p: Option<f64>,
    /// How far the node's numbers of this kind may be believed; nothing where they were not graded, and of settings.
    pub grade: Option<Grade>,
    /// What else than a fault may be why, and what to do; nothing where nothing of that kind is known.
    pub caveat: Option<String>,
}

/// What is large enough to be found.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Limit {
    /// The number of the group.
    pub group: usize,
    /// What was measured.
    pub kind: String,
    /// Nodes that were compared.
    pub nodes: usize,
    /// Standard deviation between equal nodes, percent, at most over what was asked.
    pub scatter_percent: f64,
    /// A deviation of so many percent is found in one of two cases, at most over what was asked.
    pub found_from_percent: f64,
    /// Whether recorded maps of one machine stand in, since the nodes are few.
    pub is_recorded: bool,
}

/// What was left out of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotJudged {
    /// The nodes.
    pub nodes: Vec<String>,
    /// What of them; nothing of all.
    pub kind: Option<String>,
    /// Why it was not compared.
    pub why: String,
}

/// A node, or a map of it, that is left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Skipped {
    /// The node.
    pub node: String,
    /// Why, in a line.
    pub why: String,
}
