//! The cores' side: the copies of one line, and what they do with a message.

use super::message::{Change, Core, Effect, Kind, Message, Outbox, State, Want};
use super::rules::Protocol;

/// What a core waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Pending {
    Nothing,
    Read,
    Own { change: Change, data: Option<u64>, grant: Option<Granted> },
    Put,
}

/// A grant that came before the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Granted {
    data: bool,
}

/// One core's copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Copy {
    core: Core,
    state: State,
    value: u64,
    pending: Pending,
}

/// All copies of one line, by core. A core that never touched it has no entry.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Copies(Vec<Copy>);

impl Clone for Copies {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }

    fn clone_from(&mut self, other: &Self) {
        self.0.clone_from(&other.0);
    }
}

/// What came of a core's wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// Done at once, in the core's own cache; the word after it.
    Hit(u64),
    /// This request goes to the home.
    Miss(Want),
    /// The core has a request for this line on its way.
    Busy,
}

impl Copies {
    /// A core wants to read.
    pub(super) fn read(&mut self, core: Core) -> Asked {
        let copy = self.entry(core);
        match (copy.pending, copy.state) {
            (Pending::Nothing, State::Invalid) => {
                copy.pending = Pending::Read;
                Asked::Miss(Want::Read)
            }
            (Pending::Nothing, _) => Asked::Hit(copy.value),
            _ => Asked::Busy,
        }
    }

    /// A core wants to write.
    pub(super) fn write(&mut self, core: Core, change: Change) -> Asked {
        let copy = self.entry(core);
        match (copy.pending, copy.state) {
            (Pending::Nothing, State::Exclusive | State::Modified) => {
                copy.state = State::Modified;
                copy.value = change.of(copy.value);
                Asked::Hit(copy.value)
            }
            (Pending::Nothing, state) => {
                copy.pending = Pending::Own { change, data: None, grant: None };
                Asked::Miss(Want::Own { has_copy: state != State::Invalid })
            }
            _ => Asked::Busy,
        }
    }

    /// A core needs the room: a clean copy goes without a word, a modified one is given back.
    pub(super) fn evict(&mut self, core: Core) -> Asked {
        let copy = self.entry(core);
        match (copy.pending, copy.state) {
            (Pending::Nothing, State::Modified) => {
                copy.pending = Pending::Put;
                Asked::Miss(Want::Put)
            }
            (Pending::Nothing, _) => {
                copy.state = State::Invalid;
                copy.value = 0;
                Asked::Hit(0)
            }
            _ => Asked::Busy,
        }
    }

    /// A message comes to a core.
    pub(super) fn deliver(
        &mut self,
        protocol: Protocol,
        message: Message,
        out: &mut impl Outbox,
    ) -> Option<Effect> {
        let Message { requester, peer, kind } = message;
        match kind {
            Kind::SnoopRead => {
                self.snoop_read(protocol, requester, peer, out);
                None
            }
            Kind::SnoopOwn { data } => self.snoop_own(requester, peer, data, out),
            Kind::Data { value, grade } => self.data(requester, value, grade, out),
            Kind::Grant { value, data } => {
                let copy = self.entry(requester);
                if let Pending::Own { data: arrived, grant, .. } = &mut copy.pending {
                    *arrived = value.or(*arrived);
                    *grant = Some(Granted { data });
                }
                copy.owned(out)
            }
            Kind::PutGo => {
                let copy = self.entry(requester);
                let value = (copy.state == State::Modified).then_some(copy.value);
                *copy = Copy::none(requester);
                out.send(Message::between(requester, Kind::PutData(value)));
                Some(Effect::Gave { core: requester })
            }
            _ => None,
        }
    }

    fn snoop_read(&mut self, protocol: Protocol, to: Core, peer: Core, out: &mut impl Outbox) {
        let copy = self.entry(peer);
        let supplied = matches!(copy.state, State::Modified | State::Exclusive | State::Forward);
        let dirty = (copy.state == State::Modified).then_some(copy.value);
        let held = copy.state != State::Invalid;
        if supplied {
            out.send(Message::with(
                to,
                peer,
                Kind::Data { value: copy.value, grade: State::Shared },
            ));
            copy.state = match protocol {
                Protocol::Mesi => State::Shared,
                Protocol::Mesif => State::Forward,
            };
        }
        out.send(Message::with(to, peer, Kind::Response { held, supplied, dirty }));
    }

    fn snoop_own(
        &mut self,
        to: Core,
        peer: Core,
        data: bool,
        out: &mut impl Outbox,
    ) -> Option<Effect> {
        let copy = self.entry(peer);
        let held = copy.state != State::Invalid;
        let supplied = data && held;
        if supplied {
            out.send(Message::with(
                to,
                peer,
                Kind::Data { value: copy.value, grade: State::Modified },
            ));
        }
        (copy.state, copy.value) = (State::Invalid, 0);
        out.send(Message::with(to, peer, Kind::Response { held, supplied, dirty: None }));
        held.then_some(Effect::Lost { core: peer })
    }

    fn data(
        &mut self,
        core: Core,
        value: u64,
        grade: State,
        out: &mut impl Outbox,
    ) -> Option<Effect> {
        let copy = self.entry(core);
        match &mut copy.pending {
            Pending::Own { data, .. } => {
                *data = Some(value);
                copy.owned(out)
            }
            _ => {
                *copy = Copy { core, state: grade, value, pending: Pending::Nothing };
                out.send(Message::between(core, Kind::Done));
                Some(Effect::Read { core, value })
            }
        }
    }

    fn entry(&mut self, core: Core) -> &mut Copy {
        let at = match self.0.binary_search_by_key(&core, |copy| copy.core) {
            Ok(at) => at,
            Err(at) => {
                self.0.insert(at, Copy::none(core));
                at
            }
        };
        &mut self.0[at]
    }

    /// What a core's copy may be used for now; nothing while something about it is on its way.
    pub(super) fn state(&self, core: Core) -> State {
        match self.0.binary_search_by_key(&core, |copy| copy.core) {
            Ok(at) if self.0[at].pending == Pending::Nothing => self.0[at].state,
            _ => State::Invalid,
        }
    }

    /// The word of a core's copy.
    pub(super) fn word(&self, core: Core) -> u64 {
        let at = self.0.binary_search_by_key(&core, |copy| copy.core);
        at.map_or(0, |at| self.0[at].value)
    }

    /// Core, state and word of each copy that there is.
    pub(super) fn valid(&self) -> impl Iterator<Item = (Core, State, u64)> {
        self.0.iter().filter(|c| c.state != State::Invalid).map(|c| (c.core, c.state, c.value))
    }

    /// Whether a core waits for something.
    #[cfg(test)]
    pub(super) fn is_pending(&self, core: Core) -> bool {
        self.0.iter().any(|copy| copy.core == core && copy.pending != Pending::Nothing)
    }

    /// Sets a core's copy.
    #[cfg(test)]
    pub(super) fn place(&mut self, core: Core, state: State, value: u64) {
        let copy = self.entry(core);
        (copy.state, copy.value) = (state, value);
    }

    /// Forgets entries without a copy, so that equal states are equal.
    #[cfg(test)]
    pub(super) fn tidy(&mut self) {
        self.0.retain(|copy| copy.state != State::Invalid || copy.pending != Pending::Nothing);
    }

    /// Gives every core another number.
    #[cfg(test)]
    pub(super) fn rename(&mut self, name: impl Fn(Core) -> Core) {
        for copy in &mut self.0 {
            copy.core = name(copy.core);
        }
        self.0.sort_unstable_by_key(|copy| copy.core);
    }

    /// Maps every word that is stored or on its way.
    #[cfg(test)]
    pub(super) fn map_values(&mut self, map: impl Fn(u64) -> u64) {
        for copy in &mut self.0 {
            copy.value = map(copy.value);
            if let Pending::Own { data: Some(value), .. } = &mut copy.pending {
                *value = map(*value);
            }
        }
    }
}

impl Copy {
    const fn none(core: Core) -> Self {
        Self { core, state: State::Invalid, value: 0, pending: Pending::Nothing }
    }

    /// Writes, if all that it takes has come; the write is done before the line can be taken away.
    fn owned(&mut self, out: &mut impl Outbox) -> Option<Effect> {
        let Pending::Own { change, data, grant: Some(granted) } = self.pending else {
            return None;
        };
        let word = match data {
            Some(word) => word,
            None if granted.data => return None,
            None => self.value,
        };
        *self = Self {
            core: self.core,
            state: State::Modified,
            value: change.of(word),
            pending: Pending::Nothing,
        };
        out.send(Message::between(self.core, Kind::Done));
        Some(Effect::Wrote { core: self.core })
    }
}
