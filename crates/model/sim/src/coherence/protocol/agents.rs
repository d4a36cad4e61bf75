//! What the agents know of the line: a cache its copy, the home and the switch who may have others.

use super::message::{Agent, Found, Grant, SnoopKind, Want};
use crate::coherence::nodes::NodeSet;

/// State of a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// No copy.
    #[default]
    Invalid,
    /// One of several.
    Shared,
    /// One of several, and the one that forwards.
    Forward,
    /// The only one, clean.
    Exclusive,
    /// The only one, newer than memory.
    Modified,
}

/// What a cache waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Pending {
    #[default]
    Nothing,
    Read,
    Own,
    Upgrade,
    /// Its write back to be acknowledged.
    WriteBack,
}

/// A cache's view of the line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Cached {
    pub(super) state: State,
    pub(super) fresh: bool,
    pub(super) pending: Pending,
    /// Data that came before the completion.
    pub(super) arrived: Option<bool>,
    /// A completion that came before its data.
    pub(super) granted: Option<Grant>,
}

/// What the bits in memory say about other modules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Exported {
    /// None has a copy.
    #[default]
    No,
    /// Some may have shared copies.
    Shared,
    /// One may have the only copy, modified perhaps.
    Any,
}

/// A request in work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct HomeWork {
    pub(super) asker: Agent,
    pub(super) node: u8,
    pub(super) want: Want,
    /// Answers still to come.
    pub(super) missing: u8,
    /// A snooped cache sent the data.
    pub(super) sent: bool,
    /// The home's own cache keeps a copy.
    pub(super) kept: bool,
    /// The answer was given; the requester's word is awaited.
    pub(super) answered: bool,
}

/// The home's view of the line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Home {
    /// Whether memory has what was written last.
    pub(super) fresh: bool,
    /// Sockets of the module that may have copies; the home's own cache is always asked.
    pub(super) near: NodeSet,
    /// The one in `near` may be alone.
    pub(super) near_alone: bool,
    /// What is outside.
    pub(super) exported: Exported,
    pub(super) work: Option<HomeWork>,
    pub(super) waiting: Vec<(Agent, u8, Want)>,
}

impl Default for Home {
    fn default() -> Self {
        Self {
            fresh: true,
            near: NodeSet::EMPTY,
            near_alone: false,
            exported: Exported::No,
            work: None,
            waiting: Vec::new(),
        }
    }
}

/// How far a request of another module has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Phase {
    /// The module that may be alone with the line is asked.
    Asking,
    /// Modified data, or the note that they moved, go to the home.
    Telling {
        /// What the requester gets when the home has it.
        grant: Grant,
    },
    /// The home decides.
    AtHome,
    /// Shared copies of other modules are taken back.
    Taking {
        /// Whether the requester gets data.
        data: bool,
    },
    /// The requester's word is awaited.
    Answered,
}

/// A request in work, or the entry's own eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SwitchWork {
    /// Who asks; `None` for an eviction.
    pub(super) node: Option<u8>,
    pub(super) want: Want,
    pub(super) phase: Phase,
    pub(super) missing: u8,
    pub(super) found: Option<Found>,
    pub(super) written: Option<bool>,
    /// The home took part, and waits for the end.
    pub(super) at_home: bool,
}

/// A snoop of the home in work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Served {
    pub(super) kind: SnoopKind,
    pub(super) missing: u8,
    pub(super) found: Option<Found>,
    pub(super) written: Option<bool>,
}

/// The switch's view of the line.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Switch {
    /// Sockets outside that may have copies. All that a switch keeps of them is how many there are in each
    /// module: it asks all sockets of a module, and every note of a clean eviction takes one away.
    pub(super) holders: NodeSet,
    /// The one in `holders` may be alone with it.
    pub(super) alone: bool,
    pub(super) work: Option<SwitchWork>,
    pub(super) served: Option<Served>,
    /// A snoop of the home that must wait until `work` is done.
    pub(super) deferred: Option<(SnoopKind, Option<u8>)>,
    pub(super) waiting: Vec<(u8, Want)>,
}

impl Switch {
    /// A store elsewhere makes what is held here old.
    pub(super) fn spoil(&mut self) {
        let work = self.work.as_mut().and_then(|work| work.written.as_mut());
        let served = self.served.as_mut().and_then(|served| served.written.as_mut());
        for fresh in work.into_iter().chain(served) {
            *fresh = false;
        }
    }
}
