//! Who is in which module, as sets; what every table of the simulator is indexed by.

use super::nodes::NodeSet;
use super::spec::NumaSpec;

/// Nodes and modules of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    module_of: Vec<u8>,
    nodes_of: Vec<NodeSet>,
}

impl Topology {
    /// That of a machine.
    #[must_use]
    pub fn of(spec: &NumaSpec) -> Self {
        Self::new(spec.nodes.iter().map(|node| node.module).collect())
    }

    /// From the module of each node.
    #[must_use]
    pub fn new(module_of: Vec<u8>) -> Self {
        let modules = module_of.iter().map(|m| usize::from(*m) + 1).max().unwrap_or(0);
        let mut nodes_of = vec![NodeSet::EMPTY; modules];
        for (node, module) in (0_u8..).zip(&module_of) {
            let set = &mut nodes_of[usize::from(*module)];
            *set = set.with(node);
        }
        Self { module_of, nodes_of }
    }

    /// How many nodes.
    #[must_use]
    pub fn nodes(&self) -> u8 {
        u8::try_from(self.module_of.len()).unwrap_or(u8::MAX)
    }

    /// How many modules.
    #[must_use]
    pub const fn modules(&self) -> usize {
        self.nodes_of.len()
    }

    /// The module of a node.
    #[must_use]
    pub fn module(&self, node: u8) -> u8 {
        self.module_of[usize::from(node)]
    }

    /// The nodes of a module.
    #[must_use]
    pub fn nodes_of(&self, module: u8) -> NodeSet {
        self.nodes_of[usize::from(module)]
    }

    /// Every node.
    #[must_use]
    pub fn all(&self) -> NodeSet {
        (0..self.nodes()).collect()
    }

    /// All nodes of the modules that any of `nodes` is in.
    #[must_use]
    pub fn beside(&self, nodes: NodeSet) -> NodeSet {
        nodes.iter().fold(NodeSet::EMPTY, |all, node| all.or(self.nodes_of(self.module(node))))
    }

    /// The nodes of all modules in a mask.
    #[must_use]
    pub fn nodes_in(&self, modules: u64) -> NodeSet {
        let mut rest = modules;
        let mut set = NodeSet::EMPTY;
        while rest != 0 {
            let module = rest.trailing_zeros();
            set = set.or(self.nodes_of.get(module as usize).copied().unwrap_or_default());
            rest &= rest - 1;
        }
        set
    }
}
