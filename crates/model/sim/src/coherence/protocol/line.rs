//! One line with all its agents and every message under way.

use super::agents::{Cached, Home, Pending, State, Switch};
use super::message::{Agent, Message, Word};
use crate::coherence::message::Traffic;
use crate::coherence::nodes::NodeSet;
use crate::coherence::spec::{CleanEvictions, MemoryDirectory, Protocol};
use crate::coherence::topology::Topology;

/// What a core does to the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// Reads it.
    Read,
    /// Writes it.
    Write,
}

/// The choices of the protocol that a line's agents need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::coherence) struct Choices {
    pub(in crate::coherence) memory_directory: bool,
    pub(in crate::coherence) filter: bool,
    pub(in crate::coherence) clean_evictions: CleanEvictions,
    pub(in crate::coherence) exclusive_readers: bool,
}

impl From<&Protocol> for Choices {
    fn from(protocol: &Protocol) -> Self {
        Self {
            memory_directory: protocol.memory_directory == MemoryDirectory::PerSocket,
            filter: protocol.filter,
            clean_evictions: protocol.clean_evictions,
            exclusive_readers: protocol.exclusive_readers,
        }
    }
}

/// One line: its copies, its directories, and the messages under way.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    pub(super) topology: &'a Topology,
    pub(super) choices: Choices,
    pub(super) home_node: u8,
    pub(super) caches: Vec<Cached>,
    pub(super) home: Home,
    pub(super) switch: Switch,
    pub(super) net: Vec<Message>,
    pub(super) traffic: Vec<Traffic>,
    pub(super) reads_asked: u64,
    pub(super) reads_ended: u64,
    pub(super) wrong_read: bool,
}

impl<'a> Line<'a> {
    /// A line that only its memory has.
    #[must_use]
    pub fn new(topology: &'a Topology, protocol: &Protocol, home_node: u8) -> Self {
        Self {
            topology,
            choices: protocol.into(),
            home_node,
            caches: vec![Cached::default(); usize::from(topology.nodes())],
            home: Home::default(),
            switch: Switch::default(),
            net: Vec::new(),
            traffic: vec![Traffic::default(); topology.modules()],
            reads_asked: 0,
            reads_ended: 0,
            wrong_read: false,
        }
    }

    /// The state of a node's copy.
    #[must_use]
    pub fn state(&self, node: u8) -> State {
        self.caches[usize::from(node)].state
    }

    /// Whether a node waits for an answer.
    #[must_use]
    pub fn is_waiting(&self, node: u8) -> bool {
        self.caches[usize::from(node)].pending != Pending::Nothing
    }

    /// Whether nothing is under way.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.net.is_empty()
    }

    /// What passed each module's switch so far.
    #[must_use]
    pub fn traffic(&self) -> &[Traffic] {
        &self.traffic
    }

    /// The messages under way.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.net
    }

    /// Which of [`Self::messages`] may arrive next.
    pub fn deliverable(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.net.len()).filter(|index| {
            let this = &self.net[*index];
            let same = |other: &Message| other.from == this.from && other.to == this.to;
            !this.is_ordered()
                || !self.net[..*index].iter().any(|other| other.is_ordered() && same(other))
        })
    }

    /// Lets one message arrive.
    ///
    /// # Panics
    /// If there is no such message.
    pub fn deliver(&mut self, index: usize) {
        let message = self.net.remove(index);
        match message.to {
            Agent::Cache(node) => self.cache_receives(node, message),
            Agent::Home => self.home_receives(message),
            Agent::Switch => self.switch_receives(message),
        }
    }

    /// Lets everything arrive, oldest first.
    pub fn settle(&mut self) {
        loop {
            let Some(next) = self.deliverable().next() else { break };
            self.deliver(next);
        }
    }

    pub(super) fn send(&mut self, from: Agent, to: Agent, word: Word) {
        let message = Message { from, to, word };
        let home = self.home_module();
        for (module, way) in message.passes(self.topology, home) {
            for class in message.classes() {
                self.traffic[usize::from(module)][(class, way)] += 1;
            }
        }
        self.net.push(message);
    }

    pub(super) fn home_module(&self) -> u8 {
        self.topology.module(self.home_node)
    }

    /// The nodes of the home's module but the home itself.
    pub(super) fn siblings(&self) -> NodeSet {
        self.topology.nodes_of(self.home_module()).without(self.home_node)
    }

    /// Whether a node asks the home directly and not through the switches.
    pub(super) fn is_inside(&self, node: u8) -> bool {
        self.topology.module(node) == self.home_module()
    }

    /// To whom a node speaks about this line.
    pub(super) fn authority(&self, node: u8) -> Agent {
        if self.is_inside(node) { Agent::Home } else { Agent::Switch }
    }
}
