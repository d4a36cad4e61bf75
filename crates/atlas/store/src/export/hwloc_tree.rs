//! The tree that hwloc wants: machine, packages, caches, cores and processing units, each within
//! the smallest part that contains it, with memory attached where its cores are.
//!
//! It only nests sets of processors; writing them as XML is the next file's work.

use isochrone_machine::{Cache, CacheKind, Core, Machine};
use std::collections::BTreeSet;

pub(super) type Set = BTreeSet<u16>;

/// What an object is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Machine,
    Package(u16),
    Group,
    Cache(Cache),
    Core,
    Unit(u16),
}

/// An object of the tree.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) cores: Set,
    pub(super) children: Vec<Node>,
    /// Places of the regions of the machine that are attached here.
    pub(super) regions: Vec<usize>,
}

impl Node {
    fn new(kind: Kind, cores: Set) -> Self {
        Self { kind, cores, children: Vec::new(), regions: Vec::new() }
    }
}

/// Order from the outside in, among objects with the same processors.
fn rank(kind: &Kind) -> u8 {
    match kind {
        Kind::Machine => 0,
        Kind::Package(_) => 1,
        Kind::Group => 2,
        // Level 4 before 1; of one level, data before instructions, as hwloc nests them.
        Kind::Cache(cache) => {
            20_u8.saturating_sub(cache.level.saturating_mul(2))
                + u8::from(cache.kind == CacheKind::Instruction)
        }
        Kind::Core => 100,
        Kind::Unit(_) => 101,
    }
}

/// The processors that a region belongs to; all of them for memory without cores.
pub(super) fn region_cores(machine: &Machine, place: usize) -> Set {
    let all = || machine.cores.iter().map(|core| core.id).collect::<Set>();
    let Some(region) = machine.regions.get(place) else { return all() };
    let listed: Set = region.cores.iter().copied().collect();
    let named: Set = machine.cores.iter().filter(|c| c.region == region.id).map(|c| c.id).collect();
    match (listed.is_empty(), named.is_empty() || machine.regions.len() == 1) {
        (false, _) => listed,
        (true, false) => named,
        (true, true) => all(),
    }
}

/// Builds the tree of a machine.
pub(super) fn tree(machine: &Machine) -> Node {
    let all: Set = machine.cores.iter().map(|core| core.id).collect();
    let mut root = Node::new(Kind::Machine, all.clone());
    let mut parts = Vec::new();
    let packages: BTreeSet<u16> = machine.cores.iter().filter_map(|core| core.package).collect();
    for package in packages {
        let of = |core: &&Core| core.package == Some(package);
        let cores = machine.cores.iter().filter(of).map(|core| core.id).collect();
        parts.push(Node::new(Kind::Package(package), cores));
    }
    for cache in machine.caches.iter().filter(|cache| (1..=5).contains(&cache.level)) {
        let cores: Set = cache.shared_by.iter().copied().filter(|id| all.contains(id)).collect();
        parts.push(Node::new(Kind::Cache(cache.clone()), cores));
    }
    for core in &machine.cores {
        let siblings = core.smt_siblings.iter().copied().filter(|id| all.contains(id));
        let cores: Set = siblings.chain([core.id]).collect();
        if cores.first() == Some(&core.id) {
            parts.push(Node::new(Kind::Core, cores));
        }
        parts.push(Node::new(Kind::Unit(core.id), Set::from([core.id])));
    }
    let local: Vec<Set> =
        (0..machine.regions.len().max(1)).map(|place| region_cores(machine, place)).collect();
    for cores in local.iter().collect::<BTreeSet<_>>() {
        // Memory must hang below an object with exactly its processors.
        let exists = *cores == all || parts.iter().any(|p| is_outer(p) && p.cores == *cores);
        if !exists {
            parts.push(Node::new(Kind::Group, cores.clone()));
        }
    }
    parts.retain(|part| !part.cores.is_empty());
    parts.sort_by_key(|part| (usize::MAX - part.cores.len(), rank(&part.kind)));
    for part in parts {
        insert(&mut root, part);
    }
    for (place, cores) in local.iter().enumerate() {
        attach(&mut root, cores, place);
    }
    root
}

/// True for objects that memory can hang below without another one around it.
fn is_outer(node: &Node) -> bool {
    matches!(node.kind, Kind::Package(_) | Kind::Group)
}

/// Puts a part below the smallest object that contains it. A part that overlaps another one
/// without containing it does not fit any tree and is left out.
fn insert(node: &mut Node, part: Node) {
    if let Some(child) = node.children.iter_mut().find(|c| c.cores.is_superset(&part.cores)) {
        insert(child, part);
    } else if node.children.iter().all(|child| child.cores.is_disjoint(&part.cores)) {
        node.children.push(part);
        node.children.sort_by(|a, b| a.cores.first().cmp(&b.cores.first()));
    }
}

/// Attaches a region to the outermost object with exactly its processors, or to the machine.
fn attach(root: &mut Node, cores: &Set, place: usize) {
    if !attached(root, cores, place) {
        root.regions.push(place);
    }
}

fn attached(node: &mut Node, cores: &Set, place: usize) -> bool {
    let exact = matches!(node.kind, Kind::Machine | Kind::Package(_) | Kind::Group);
    if exact && node.cores == *cores {
        node.regions.push(place);
        return true;
    }
    node.children.iter_mut().any(|child| attached(child, cores, place))
}
