//! What caches and the home of a line say to one another.

/// A core, or its private caches folded into one.
pub(super) type Core = u16;

/// What a core's copy of a line may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum State {
    /// No copy.
    Invalid,
    /// A clean copy beside others.
    Shared,
    /// The one clean copy that answers readers (MESIF).
    Forward,
    /// The only copy, clean.
    Exclusive,
    /// The only copy; memory is behind.
    Modified,
}

/// What becomes of the word when a core owns the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Change {
    /// It stays: other bytes of the line are written, or none.
    Keep,
    /// It is set.
    Set(u64),
    /// It grows, and wraps.
    Add(u64),
}

impl Change {
    pub(super) const fn of(self, word: u64) -> u64 {
        match self {
            Self::Keep => word,
            Self::Set(value) => value,
            Self::Add(value) => word.wrapping_add(value),
        }
    }
}

/// What a core asks of a line's home.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Want {
    /// A copy to read (`HREQ`, a read).
    Read,
    /// The only copy, to write (a read for ownership).
    Own {
        /// The core had a copy when it asked.
        has_copy: bool,
    },
    /// To give back a modified line.
    Put,
}

/// What a message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    /// Requester to home.
    Request(Want),
    /// Home to peer: give the requester a copy if you are the one who answers.
    SnoopRead,
    /// Home to peer: give up your copy.
    SnoopOwn {
        /// And send what is in it to the requester.
        data: bool,
    },
    /// Peer or home to requester: the line.
    Data {
        /// Its word.
        value: u64,
        /// What the copy may be used for.
        grade: State,
    },
    /// Peer to home: what the snoop found.
    Response {
        /// The peer had a copy.
        held: bool,
        /// The peer sends the line to the requester.
        supplied: bool,
        /// The word, where memory was behind and the line is now shared.
        dirty: Option<u64>,
    },
    /// Home to requester: all others have given up their copies.
    Grant {
        /// The word, where memory supplies it.
        value: Option<u64>,
        /// A peer supplies it.
        data: bool,
    },
    /// Home to requester: give back now.
    PutGo,
    /// Requester to home: the word, unless the line was taken away or cleaned meanwhile.
    PutData(Option<u64>),
    /// Requester to home: it has arrived.
    Done,
    /// Home to itself: memory has answered.
    Memory {
        /// Other sockets were asked first; memory was read meanwhile.
        probed: bool,
    },
}

/// One message about one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Message {
    /// Whose request this is about.
    pub(super) requester: Core,
    /// The core that is snooped or answers; the requester itself where only the home is.
    pub(super) peer: Core,
    /// What it says.
    pub(super) kind: Kind,
}

impl Message {
    pub(super) const fn between(requester: Core, kind: Kind) -> Self {
        Self { requester, peer: requester, kind }
    }

    pub(super) const fn with(requester: Core, peer: Core, kind: Kind) -> Self {
        Self { requester, peer, kind }
    }
}

/// Where messages go that something causes.
pub(super) trait Outbox {
    /// Sends one.
    fn send(&mut self, message: Message);
}

impl Outbox for Vec<Message> {
    fn send(&mut self, message: Message) {
        self.push(message);
    }
}

/// What a message did to a core's own copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// A read is done.
    Read {
        /// By whom.
        core: Core,
        /// What it read.
        value: u64,
    },
    /// A write or an addition is done.
    Wrote {
        /// By whom.
        core: Core,
    },
    /// A modified line was given back.
    Gave {
        /// By whom.
        core: Core,
    },
    /// A copy was taken away.
    Lost {
        /// From whom.
        core: Core,
    },
}
