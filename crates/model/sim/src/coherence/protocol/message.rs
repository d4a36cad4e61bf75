//! What agents say to each other about one line, which class each word belongs to, and at which switches
//! it is counted.

use crate::coherence::message::{Class, Direction};
use crate::coherence::topology::Topology;

/// Who takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Agent {
    /// The last-level cache of a node.
    Cache(u8),
    /// The home agent of the line.
    Home,
    /// The switch of the home's module.
    Switch,
}

/// What a cache wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Want {
    /// A copy to read; the switch adds whether other modules have copies, so that it must be shared.
    Read {
        /// No exclusive copy may be given.
        shared: bool,
    },
    /// The line to write, with its data.
    Own,
    /// The right to write a copy that it has.
    Upgrade,
}

/// What a snoop asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SnoopKind {
    /// A copy.
    Data,
    /// To give the line up.
    Invalidate,
}

/// What a snooped cache did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Found {
    /// It has no copy now, and sent none.
    Nothing,
    /// It keeps a shared copy, and sent none.
    Shared,
    /// It sent the line to the requester and keeps a shared copy.
    Sent,
    /// It sent the line to the requester and gave it up.
    Gave {
        /// The memory's copy is older.
        modified: bool,
    },
}

/// In which state a requester ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Grant {
    /// Shared, not to be written.
    Shared,
    /// Shared, and the one that forwards.
    Forward,
    /// Alone, clean.
    Exclusive,
    /// Alone, to be written.
    Modified,
}

/// What is said. `fresh` stands for the data: whether it is what the last store wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Word {
    /// HREQ: a line is wanted.
    Request {
        /// Who wants the line.
        node: u8,
        /// What for.
        want: Want,
    },
    /// HREQ with DWB: the only, modified copy goes home.
    WriteBack {
        /// Who had it.
        node: u8,
        /// The data.
        fresh: bool,
        /// Others outside the module got shared copies of it.
        shared: bool,
    },
    /// HREQ: the only copy was clean, and is gone.
    CleanEviction {
        /// Who had it.
        node: u8,
    },
    /// HREQ, made by the switch of the HRSP that said so: a modified line went from module to module.
    Forwarded {
        /// To whom.
        node: u8,
    },
    /// SNP: a holder is asked for its copy.
    Snoop {
        /// What is asked.
        kind: SnoopKind,
        /// Who gets the data.
        to: Option<u8>,
    },
    /// HRSP, with a DWB where data come along.
    Response {
        /// What was found.
        found: Found,
        /// The modified data, for the memory.
        written: Option<bool>,
    },
    /// DTC. From a processor the completion rides on it.
    Data {
        /// The data.
        fresh: bool,
        /// The completion, where it rides on the data.
        grant: Option<Grant>,
    },
    /// NDR: the requester may go on.
    Complete {
        /// The requester's state.
        grant: Grant,
        /// Whether data come, or came, in a message of their own.
        data: bool,
    },
    /// NDR: a write back has arrived, or a [`Self::Forwarded`] was noted.
    Acknowledge {
        /// The node that wrote back or forwarded.
        node: u8,
    },
    /// The requester has everything. A device of the model, in place of QPI's conflict phase: no class,
    /// no bytes.
    Done,
}

/// A message on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Message {
    /// Who sent it.
    pub from: Agent,
    /// Who gets it.
    pub to: Agent,
    /// What it says.
    pub word: Word,
}

impl Message {
    /// Whether it keeps its place behind earlier ones between the same two agents. Requests and responses
    /// of one address do (the home channel of QPI); nothing else has an order.
    #[must_use]
    pub const fn is_ordered(&self) -> bool {
        matches!(
            self.word,
            Word::Request { .. }
                | Word::WriteBack { .. }
                | Word::CleanEviction { .. }
                | Word::Forwarded { .. }
                | Word::Response { .. }
                | Word::Done
        )
    }

    /// Its classes: one, or two where data travel with a control message.
    pub fn classes(&self) -> impl Iterator<Item = Class> {
        let (first, second) = match self.word {
            Word::Request { .. } | Word::CleanEviction { .. } | Word::Forwarded { .. } => {
                (Some(Class::Hreq), None)
            }
            Word::WriteBack { .. } => (Some(Class::Hreq), Some(Class::Dwb)),
            Word::Snoop { .. } => (Some(Class::Snp), None),
            Word::Response { written, .. } => (Some(Class::Hrsp), written.map(|_| Class::Dwb)),
            Word::Data { .. } => (Some(Class::Dtc), None),
            Word::Complete { .. } | Word::Acknowledge { .. } => (Some(Class::Ndr), None),
            Word::Done => (None, None),
        };
        first.into_iter().chain(second)
    }

    /// The switches that it passes: which module's, which way. `home` is the home's module.
    pub fn passes(
        &self,
        topology: &Topology,
        home: u8,
    ) -> impl Iterator<Item = (u8, Direction)> + use<> {
        let (into, out) = match (self.from, self.to) {
            (Agent::Cache(a), Agent::Cache(b)) => {
                let (a, b) = (topology.module(a), topology.module(b));
                if a == b { (None, None) } else { (Some(a), Some(b)) }
            }
            (Agent::Cache(node), Agent::Switch) => (Some(topology.module(node)), None),
            (Agent::Home, Agent::Switch) => (Some(home), None),
            (Agent::Switch, Agent::Cache(node)) => (None, Some(topology.module(node))),
            (Agent::Switch, Agent::Home) => (None, Some(home)),
            _ => (None, None),
        };
        let into = into.map(|module| (module, Direction::In));
        into.into_iter().chain(out.map(|module| (module, Direction::Out)))
    }
}
