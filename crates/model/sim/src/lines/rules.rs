//! Which protocol a machine has.

use super::message::Core;

/// The states of a clean line that several caches have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// None of its holders answers: memory does.
    Mesi,
    /// One of its holders answers. Here it is the one that had the line first, as long as it keeps it,
    /// so that a reader pays for its way to the last writer, as the cost table has it.
    Mesif,
}

/// How the home of a line finds copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lookup {
    /// It knows who may have one, and asks only those.
    Directory,
    /// Each socket's last-level cache knows its own cores; between sockets the home asks them all.
    HomeSnoop,
}

/// A protocol for a number of cores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rules {
    pub(super) protocol: Protocol,
    pub(super) lookup: Lookup,
    /// The socket of each core.
    pub(super) sockets: Vec<u16>,
}

impl Rules {
    /// Rules for cores that each are in the socket named.
    ///
    /// # Panics
    /// With more cores than 65535.
    pub(super) fn new(protocol: Protocol, lookup: Lookup, sockets: Vec<u16>) -> Self {
        assert!(Core::try_from(sockets.len()).is_ok(), "too many cores: {}", sockets.len());
        Self { protocol, lookup, sockets }
    }

    /// How many cores.
    pub(super) const fn cores(&self) -> usize {
        self.sockets.len()
    }

    pub(super) fn socket(&self, core: Core) -> u16 {
        self.sockets[usize::from(core)]
    }

    /// A core of each socket that has none of `holders` and is not the requester's: whom a home must
    /// ask that does not know.
    pub(super) fn strangers(&self, requester: Core, holders: &[Core]) -> Vec<Core> {
        let mut asked = vec![self.socket(requester)];
        asked.extend(holders.iter().map(|&core| self.socket(core)));
        let mut strangers = Vec::new();
        for (core, socket) in (0..).zip(&self.sockets) {
            if !asked.contains(socket) {
                asked.push(*socket);
                strangers.push(core);
            }
        }
        strangers
    }
}
