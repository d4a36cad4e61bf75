//! One line: its home and its copies, joined by messages that anything may carry.
//!
//! Nothing here knows of time. The engine carries messages in virtual time; the tests carry them in
//! every order that there is.

use super::copies::{Asked, Copies};
use super::home::Home;
use super::message::{Change, Core, Effect, Kind, Message, Outbox};
use super::rules::Rules;

/// The state of one line everywhere.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct LineState {
    pub(super) home: Home,
    pub(super) copies: Copies,
}

impl Clone for LineState {
    fn clone(&self) -> Self {
        Self { home: self.home.clone(), copies: self.copies.clone() }
    }

    fn clone_from(&mut self, other: &Self) {
        self.home.clone_from(&other.home);
        self.copies.clone_from(&other.copies);
    }
}

impl LineState {
    /// A core reads: the word if it has a copy, or a request that must be carried.
    pub(super) fn read(&mut self, core: Core, out: &mut impl Outbox) -> Asked {
        Self::asked(self.copies.read(core), core, out)
    }

    /// A core writes.
    pub(super) fn write(&mut self, core: Core, change: Change, out: &mut impl Outbox) -> Asked {
        Self::asked(self.copies.write(core, change), core, out)
    }

    /// A core drops its copy.
    pub(super) fn evict(&mut self, core: Core, out: &mut impl Outbox) -> Asked {
        Self::asked(self.copies.evict(core), core, out)
    }

    fn asked(asked: Asked, core: Core, out: &mut impl Outbox) -> Asked {
        if let Asked::Miss(want) = asked {
            out.send(Message::between(core, Kind::Request(want)));
        }
        asked
    }

    /// Whom the home would take the line from for a core; memory if nobody.
    pub(super) fn supplier(&self, core: Core) -> Option<Core> {
        self.home.supplier(core)
    }

    /// The word, wherever the newest is.
    pub(super) fn word(&self) -> u64 {
        self.copies.valid().next().map_or(self.home.memory(), |(_, _, word)| word)
    }

    /// A message arrives; what it causes is sent.
    pub(super) fn deliver(
        &mut self,
        rules: &Rules,
        message: Message,
        out: &mut impl Outbox,
    ) -> Option<Effect> {
        match message.kind {
            Kind::Request(_)
            | Kind::Response { .. }
            | Kind::Memory { .. }
            | Kind::PutData(_)
            | Kind::Done => {
                self.home.deliver(rules, message, out);
                None
            }
            _ => self.copies.deliver(rules.protocol, message, out),
        }
    }

    /// Maps every word that is stored.
    #[cfg(test)]
    pub(super) fn map_values(&mut self, map: impl Fn(u64) -> u64) {
        self.home.map_values(&map);
        self.copies.map_values(map);
    }
}
