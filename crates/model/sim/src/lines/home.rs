//! The home's side: one line's memory, what is known of its copies, and requests in their order.
//!
//! Requests wait in one queue. Reads that come one after the other are served together; a request to own
//! or to give back is served alone. The home goes on when the requester has what it wanted and everybody
//! that was asked has answered, so no message about an earlier request can meet a later one.

use std::collections::VecDeque;

use super::message::{Core, Kind, Message, Outbox, State, Want};
use super::rules::{Lookup, Protocol, Rules};

/// A request in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Request {
    core: Core,
    want: Want,
}

/// A read that is being served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Reader {
    core: Core,
    /// The owner at that time.
    owner: Option<Core>,
    /// Snoops without an answer.
    asked: u16,
    /// Some other core has a copy.
    held: bool,
    /// A core sends the line.
    supplied: bool,
    memory: Memory,
    /// What the copy from memory may be used for.
    grade: State,
    done: bool,
}

/// How far memory is with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Memory {
    NotAsked,
    Asked,
    Ready,
    Sent,
}

/// A request to own that is being served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Owning {
    core: Core,
    asked: u16,
    /// The requester's own copy serves.
    has_copy: bool,
    supplied: bool,
    memory: Memory,
    granted: bool,
}

/// What is being served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Active {
    #[default]
    Nothing,
    /// The readers are in [`Home::readers`].
    Reads {
        /// Nobody may join: one of them will answer for the line, or takes it from its owner.
        closed: bool,
        /// One of them will answer for the line.
        forwarded: bool,
    },
    Own(Owning),
    Put,
}

/// The home of one line. Its lists keep their memory: a simulation is mostly of lines that are used again.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Home {
    /// The word in memory.
    memory: u64,
    /// Who answers for the line.
    owner: Option<Core>,
    /// The owner was alone with it.
    exclusive: bool,
    /// Everybody who has a copy, and perhaps some who dropped theirs; ascending.
    sharers: Vec<Core>,
    active: Active,
    /// By core; nobody unless reads are being served.
    readers: Vec<Reader>,
    queue: VecDeque<Request>,
}

impl Clone for Home {
    fn clone(&self) -> Self {
        let Self { memory, owner, exclusive, sharers, active, readers, queue } = self;
        Self {
            memory: *memory,
            owner: *owner,
            exclusive: *exclusive,
            sharers: sharers.clone(),
            active: *active,
            readers: readers.clone(),
            queue: queue.clone(),
        }
    }

    fn clone_from(&mut self, other: &Self) {
        let Self { memory, owner, exclusive, sharers, active, readers, queue } = other;
        (self.memory, self.owner, self.exclusive) = (*memory, *owner, *exclusive);
        self.active = *active;
        self.sharers.clone_from(sharers);
        self.readers.clone_from(readers);
        self.queue.clone_from(queue);
    }
}

impl Home {
    /// A message comes to the home.
    pub(super) fn deliver(&mut self, rules: &Rules, message: Message, out: &mut impl Outbox) {
        let Message { requester, peer, kind } = message;
        match kind {
            Kind::Request(want) => self.queue.push_back(Request { core: requester, want }),
            Kind::Response { held, supplied, dirty } => {
                self.memory = dirty.unwrap_or(self.memory);
                let asked = self.answered(rules.protocol, requester, held, supplied);
                if asked == Some(peer) && self.owner == asked && !held {
                    // It dropped its clean copy without a word.
                    (self.owner, self.exclusive) = (None, false);
                }
                self.proceed(rules, requester, out);
            }
            Kind::Memory { .. } => {
                if let Some(memory) = self.memory_of(requester) {
                    *memory = Memory::Ready;
                }
                self.proceed(rules, requester, out);
            }
            Kind::PutData(value) => {
                self.memory = value.unwrap_or(self.memory);
                self.forget(requester);
                self.active = Active::Nothing;
            }
            Kind::Done => self.done(requester),
            _ => {}
        }
        self.serve(rules, out);
    }

    /// Serves what may be served now.
    fn serve(&mut self, rules: &Rules, out: &mut impl Outbox) {
        while let Some(&request) = self.queue.front() {
            let free = match (&self.active, request.want) {
                (Active::Nothing, _) => true,
                (Active::Reads { closed, .. }, Want::Read) => {
                    // A core that dropped its copy without a word waits until all that was asked of
                    // its old copy has been answered.
                    let again = self.owner == Some(request.core)
                        || self.readers.binary_search_by_key(&request.core, |r| r.core).is_ok();
                    !closed && !again
                }
                _ => false,
            };
            if !free {
                return;
            }
            self.queue.pop_front();
            match request.want {
                Want::Read => self.serve_read(rules, request.core, out),
                Want::Own { has_copy } => self.serve_own(rules, request.core, has_copy, out),
                Want::Put => {
                    self.active = Active::Put;
                    out.send(Message::between(request.core, Kind::PutGo));
                }
            }
        }
    }

    fn serve_read(&mut self, rules: &Rules, core: Core, out: &mut impl Outbox) {
        // Who asks to read has nothing: it dropped what it had without a word.
        self.forget(core);
        let owner = self.owner;
        let strangers = self.strangers(rules, core, owner.as_slice());
        let asked = owner.iter().chain(&strangers);
        asked.clone().for_each(|&peer| out.send(Message::with(core, peer, Kind::SnoopRead)));
        let reader = Reader {
            core,
            owner,
            asked: count(asked),
            held: !self.sharers.is_empty(),
            supplied: false,
            memory: Memory::NotAsked,
            grade: State::Shared,
            done: false,
        };
        // Who reads from memory may come to answer for the line: the next one waits and asks it.
        let alone = match (rules.protocol, owner) {
            (Protocol::Mesi, None) => self.sharers.is_empty(),
            (Protocol::Mesif, Some(_)) => false,
            (Protocol::Mesi, Some(_)) | (Protocol::Mesif, None) => true,
        };
        let at = self.readers.partition_point(|other| other.core < core);
        self.readers.insert(at, reader);
        match &mut self.active {
            Active::Reads { closed, .. } => *closed |= alone,
            active => *active = Active::Reads { closed: alone, forwarded: false },
        }
        self.proceed(rules, core, out);
    }

    fn serve_own(&mut self, rules: &Rules, core: Core, has_copy: bool, out: &mut impl Outbox) {
        // Whoever lost its copy since it asked is no sharer any more.
        let has_copy = has_copy && self.sharers.binary_search(&core).is_ok();
        if !has_copy {
            self.forget(core);
        }
        let strangers = self.strangers(rules, core, &self.sharers);
        let asked = self.sharers.iter().filter(|&&sharer| sharer != core).chain(&strangers);
        for &peer in asked.clone() {
            let data = !has_copy && self.owner == Some(peer);
            out.send(Message::with(core, peer, Kind::SnoopOwn { data }));
        }
        let supplier = self.owner.is_some_and(|owner| owner != core);
        let memory = if has_copy || supplier { Memory::NotAsked } else { Memory::Asked };
        if memory == Memory::Asked {
            out.send(Message::between(core, Kind::Memory { probed: false }));
        }
        self.active = Active::Own(Owning {
            core,
            asked: count(asked),
            has_copy,
            supplied: false,
            memory,
            granted: false,
        });
        self.proceed(rules, core, out);
    }

    /// Whom a home must ask that has no directory of all sockets: one core of each socket of which it
    /// does not know, unless the requester's own socket owns the line.
    fn strangers(&self, rules: &Rules, core: Core, asked: &[Core]) -> Vec<Core> {
        let own = rules.socket(core);
        let owned_here =
            self.exclusive && self.owner.is_some_and(|owner| rules.socket(owner) == own);
        match rules.lookup {
            Lookup::HomeSnoop if !owned_here => rules.strangers(core, asked),
            _ => Vec::new(),
        }
    }

    /// Counts an answer; the owner that the request was sent to.
    fn answered(
        &mut self,
        protocol: Protocol,
        requester: Core,
        held: bool,
        supplied: bool,
    ) -> Option<Core> {
        match &mut self.active {
            Active::Reads { .. } => {
                if supplied {
                    self.exclusive = false;
                    self.owner = self.owner.filter(|_| protocol == Protocol::Mesif);
                }
                let reader = find(&mut self.readers, requester)?;
                reader.asked -= 1;
                reader.held |= held;
                reader.supplied |= supplied;
                reader.owner
            }
            Active::Own(owning) => {
                owning.asked -= 1;
                owning.supplied |= supplied;
                None
            }
            _ => None,
        }
    }

    fn memory_of(&mut self, requester: Core) -> Option<&mut Memory> {
        match &mut self.active {
            Active::Reads { .. } => find(&mut self.readers, requester).map(|r| &mut r.memory),
            Active::Own(owning) => Some(&mut owning.memory),
            _ => None,
        }
    }

    /// Does what the last answer made possible.
    fn proceed(&mut self, rules: &Rules, requester: Core, out: &mut impl Outbox) {
        match self.active {
            Active::Reads { .. } => {
                // What an owner returns to memory may still be on its way for another reader.
                if self.readers.iter().all(|reader| reader.asked == 0) {
                    for at in 0..self.readers.len() {
                        let Reader { core, supplied, .. } = self.readers[at];
                        if !supplied {
                            self.proceed_read(rules, core, out);
                        }
                    }
                } else {
                    self.proceed_read(rules, requester, out);
                }
                self.close_reads();
            }
            Active::Own(_) => self.proceed_own(requester, out),
            _ => {}
        }
    }

    fn proceed_read(&mut self, rules: &Rules, requester: Core, out: &mut impl Outbox) {
        let Active::Reads { closed, forwarded } = &mut self.active else { return };
        let readers = &mut self.readers;
        let all_answered = readers.iter().all(|reader| reader.asked == 0);
        let alone = readers.len() == 1 && !self.sharers.iter().any(|&sharer| sharer != requester);
        let Some(reader) = find(readers, requester) else { return };
        if reader.asked > 0 || reader.supplied {
            return;
        }
        match reader.memory {
            Memory::NotAsked if all_answered => {
                reader.memory = Memory::Asked;
                let probed = rules.lookup == Lookup::HomeSnoop;
                out.send(Message::between(requester, Kind::Memory { probed }));
            }
            Memory::Ready => {
                reader.memory = Memory::Sent;
                let grade = match rules.protocol {
                    _ if alone && !reader.held => State::Exclusive,
                    Protocol::Mesif if !*forwarded => State::Forward,
                    _ => State::Shared,
                };
                *closed |= grade == State::Exclusive;
                *forwarded |= grade != State::Shared;
                reader.grade = grade;
                let value = self.memory;
                out.send(Message::between(requester, Kind::Data { value, grade }));
            }
            Memory::NotAsked | Memory::Asked | Memory::Sent => {}
        }
    }

    fn proceed_own(&mut self, requester: Core, out: &mut impl Outbox) {
        let Active::Own(owning) = &mut self.active else { return };
        if owning.asked > 0 || owning.granted {
            return;
        }
        let fed = owning.has_copy || owning.supplied;
        match owning.memory {
            Memory::NotAsked if !fed => {
                owning.memory = Memory::Asked;
                out.send(Message::between(requester, Kind::Memory { probed: false }));
            }
            Memory::Asked => {}
            ready => {
                owning.granted = true;
                let value = (ready == Memory::Ready).then_some(self.memory);
                let data = owning.supplied;
                out.send(Message::between(requester, Kind::Grant { value, data }));
            }
        }
    }

    fn done(&mut self, core: Core) {
        match &mut self.active {
            Active::Reads { .. } => {
                let grade = find(&mut self.readers, core).map(|reader| {
                    reader.done = true;
                    reader.grade
                });
                if let Some(State::Exclusive | State::Forward) = grade {
                    (self.owner, self.exclusive) = (Some(core), grade == Some(State::Exclusive));
                }
                self.insert(core);
                self.close_reads();
            }
            Active::Own(_) => {
                self.sharers.clear();
                self.sharers.push(core);
                (self.owner, self.exclusive) = (Some(core), true);
                self.active = Active::Nothing;
            }
            _ => {}
        }
    }

    /// Ends reads of which everything has come, and the batch with the last of them.
    fn close_reads(&mut self) {
        let Active::Reads { .. } = self.active else { return };
        self.readers.retain(|reader| !(reader.done && reader.asked == 0));
        if self.readers.is_empty() {
            self.active = Active::Nothing;
        }
    }

    fn insert(&mut self, core: Core) {
        if let Err(at) = self.sharers.binary_search(&core) {
            self.sharers.insert(at, core);
        }
    }

    fn forget(&mut self, core: Core) {
        if let Ok(at) = self.sharers.binary_search(&core) {
            self.sharers.remove(at);
        }
        if self.owner == Some(core) {
            (self.owner, self.exclusive) = (None, false);
        }
    }

    /// Whether nothing is being served and nobody waits.
    #[cfg(test)]
    pub(super) fn is_at_rest(&self) -> bool {
        self.active == Active::Nothing && self.queue.is_empty()
    }

    /// Whether a core is among those that may have a copy.
    #[cfg(test)]
    pub(super) fn knows(&self, core: Core) -> bool {
        self.sharers.binary_search(&core).is_ok()
    }

    /// Maps the word in memory.
    #[cfg(test)]
    pub(super) fn map_values(&mut self, map: impl Fn(u64) -> u64) {
        self.memory = map(self.memory);
    }

    /// Gives every core another number.
    #[cfg(test)]
    pub(super) fn rename(&mut self, name: impl Fn(Core) -> Core) {
        self.owner = self.owner.map(&name);
        self.sharers.iter_mut().for_each(|core| *core = name(*core));
        self.sharers.sort_unstable();
        self.queue.iter_mut().for_each(|request| request.core = name(request.core));
        match &mut self.active {
            Active::Reads { .. } => {
                for reader in &mut self.readers {
                    reader.core = name(reader.core);
                    reader.owner = reader.owner.map(&name);
                }
                self.readers.sort_unstable_by_key(|reader| reader.core);
            }
            Active::Own(owning) => owning.core = name(owning.core),
            Active::Nothing | Active::Put => {}
        }
    }

    /// Whether a request to own is being served.
    pub(super) const fn is_owning(&self) -> bool {
        matches!(self.active, Active::Own(_))
    }

    /// Whether a core that has a copy is about to own the line.
    pub(super) const fn is_owned_by_a_sharer(&self) -> bool {
        matches!(self.active, Active::Own(Owning { has_copy: true, .. }))
    }

    /// The word in memory.
    pub(super) const fn memory(&self) -> u64 {
        self.memory
    }

    /// Whom the home would ask to give up a line for `core`.
    pub(super) fn others(&self, core: Core) -> impl Iterator<Item = Core> + '_ {
        self.sharers.iter().copied().filter(move |&sharer| sharer != core)
    }

    /// Whom the home would read a line from for `core`: a core, or memory.
    pub(super) fn supplier(&self, core: Core) -> Option<Core> {
        self.owner.filter(|&owner| owner != core)
    }
}

fn find(readers: &mut [Reader], core: Core) -> Option<&mut Reader> {
    let at = readers.binary_search_by_key(&core, |reader| reader.core).ok()?;
    Some(&mut readers[at])
}

fn count<'a>(cores: impl Iterator<Item = &'a Core>) -> u16 {
    u16::try_from(cores.count()).unwrap_or(u16::MAX)
}
