//! How long each message takes: the cost table, taken apart.
//!
//! A table says what a whole transfer costs. The engine needs the legs of which it is made. They are cut so
//! that an access without rivals takes what the table says, to the picosecond:
//!
//! * a request reaches the home at once, and waits there while an earlier one is being served; a snoop
//!   reaches its core at once too, and the transfer is counted from then: whoever polls a line pays a whole
//!   transfer after the write that it waits for, however early it asked;
//! * data, and the answer that goes with them, take the transfer;
//! * where requests are said to be on their way, they take a part of the transfer from who has the line, and the data
//!   or the answer the rest;
//! * an answer without data takes as long, but not longer than memory;
//! * memory takes its cost, in which the answers of other sockets are contained (it is read meanwhile);
//! * when a line is taken from several, each answer after the first is dealt with for as long as the table
//!   says that one more sharer costs.

use isochrone_machine::{ClassCost, LineCosts};

use super::message::{Core, Kind, Message};
use super::program::Program;
use super::rules::Rules;
use crate::number::picoseconds;

/// Cores of a machine, and what lines cost between them, in picoseconds.
#[derive(Clone, Debug)]
pub(super) struct Legs {
    /// How many cores.
    cores: usize,
    classes: Vec<Class>,
    /// The class of each pair of these cores.
    pairs: Vec<u8>,
    pub(super) local_ps: u64,
    rfo_sharer_ps: Option<u64>,
    pub(super) overlapped_ps: Option<u64>,
    first_remote_reader_ps: u64,
    adjacent_ps: u64,
    /// The answer to a core that has a copy itself and only has to own the line, where that is told.
    pub(super) left_shared_ps: Option<u64>,
    /// How much of that the request takes.
    request_left_ps: u64,
    /// The longest way to another socket and back that each core's home must await.
    probe_ps: Vec<u64>,
    users: Users,
}

/// One class of pairs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Class {
    pub(super) transfer_ps: u64,
    pub(super) memory_ps: u64,
    pub(super) start_ps: u64,
    pub(super) line_ps: u64,
    pub(super) congestion_ps: u64,
    /// How much of the transfer the request takes.
    request_ps: u64,
}

impl Class {
    fn of(cost: &ClassCost) -> Self {
        Self {
            transfer_ps: picoseconds(cost.transfer_ns),
            request_ps: 0,
            memory_ps: picoseconds(cost.memory_ns),
            start_ps: picoseconds(cost.start_ns),
            line_ps: picoseconds(cost.line_ns),
            congestion_ps: picoseconds(cost.congestion_ns),
        }
    }
}

/// Who uses which line, for the terms that depend on it.
#[derive(Clone, Debug, Default)]
struct Users {
    /// For each line the cores that read it without writing.
    readers: Vec<Vec<Core>>,
    /// For each line all cores that use it.
    all: Vec<Vec<Core>>,
}

impl Users {
    fn of(program: &Program) -> Self {
        let lines = program.lines() as usize;
        let mut users = Self { readers: vec![Vec::new(); lines], all: vec![Vec::new(); lines] };
        for (core, steps) in (0..).zip(&program.cores) {
            for (line, writes) in steps.iter().flat_map(super::program::Step::lines) {
                let line = line as usize;
                if !writes && users.readers[line].last() != Some(&core) {
                    users.readers[line].push(core);
                }
                if users.all[line].last() != Some(&core) {
                    users.all[line].push(core);
                }
            }
        }
        users
    }
}

/// A part of a time, at most all of it.
#[allow(clippy::cast_precision_loss, reason = "a transfer takes far less than 2^52 ps")]
fn part_of(ps: u64, part: f64) -> u64 {
    picoseconds(crate::number::nanoseconds(ps) * part.clamp(0.0, 1.0)).min(ps)
}

impl Legs {
    pub(super) fn new(costs: &LineCosts, cores: &[usize], rules: &Rules) -> Self {
        let mut legs = Self {
            cores: cores.len(),
            pairs: cores
                .iter()
                .flat_map(|&a| cores.iter().map(move |&b| costs.class(a, b).0))
                .collect(),
            classes: costs.classes.iter().map(Class::of).collect(),
            local_ps: picoseconds(costs.local_ns),
            rfo_sharer_ps: costs.added.rfo_sharer_ns.map(picoseconds),
            overlapped_ps: costs.added.overlapped_ack_ns.map(picoseconds),
            first_remote_reader_ps: picoseconds(costs.added.first_remote_reader_ns),
            adjacent_ps: picoseconds(costs.added.adjacent_line_ns),
            left_shared_ps: costs.added.left_shared_ns.map(picoseconds),
            request_left_ps: 0,
            probe_ps: Vec::new(),
            users: Users::default(),
        };
        let probe = |core: Core| {
            let strangers = rules.strangers(core, &[]).into_iter();
            strangers.map(|peer| legs.empty_ps(core, peer)).max().unwrap_or(0)
        };
        legs.probe_ps = (0..).zip(cores).map(|(core, _)| probe(core)).collect();
        legs
    }

    /// Has requests take this part of a transfer.
    pub(super) fn set_requests(&mut self, part: f64) {
        for class in &mut self.classes {
            class.request_ps = part_of(class.transfer_ps, part);
        }
        self.request_left_ps = self.left_shared_ps.map_or(0, |left| part_of(left, part));
    }

    /// How long a request is on its way to a line's home that takes the line from a core, or where the requester has a
    /// copy and owning it has a price of its own (`kept`), to be the only one.
    pub(super) fn request_ps(&self, requester: Core, from: Option<Core>, kept: bool) -> u64 {
        match from {
            None => 0,
            Some(_) if kept && self.left_shared_ps.is_some() => self.request_left_ps,
            Some(from) => self.class(requester, from).request_ps,
        }
    }

    /// Takes note of who uses which line, where a term of the table depends on it.
    pub(super) fn note(&mut self, program: &Program) {
        if self.first_remote_reader_ps > 0 || self.adjacent_ps > 0 {
            self.users = Users::of(program);
        }
    }

    /// The class of two cores.
    pub(super) fn class(&self, a: Core, b: Core) -> Class {
        self.classes[self.index(a, b)]
    }

    fn index(&self, a: Core, b: Core) -> usize {
        usize::from(self.pairs[usize::from(a) * self.cores + usize::from(b)])
    }

    /// A line from memory of the core's own region.
    pub(super) fn memory_ps(&self, core: Core) -> u64 {
        self.class(core, core).memory_ps
    }

    /// An answer with data, or from who had them: what the request has left of the transfer.
    fn answer_ps(&self, requester: Core, peer: Core) -> u64 {
        let class = self.class(requester, peer);
        class.transfer_ps - class.request_ps
    }

    /// The answer to a core that has a copy itself, where that has a price of its own.
    pub(super) fn left_answer_ps(&self) -> Option<u64> {
        self.left_shared_ps.map(|left| left - self.request_left_ps)
    }

    /// An answer without data.
    fn empty_ps(&self, requester: Core, peer: Core) -> u64 {
        self.class(requester, peer).transfer_ps.min(self.memory_ps(requester))
    }

    /// How long a message is on its way where nothing else is.
    pub(super) fn of(&self, line: u32, message: Message) -> u64 {
        let Message { requester, peer, kind } = message;
        match kind {
            Kind::Request(_) => self.neighbour_ps(line, requester),
            Kind::Data { .. } if peer != requester => {
                self.answer_ps(requester, peer) + self.remote_reader_ps(line, requester, peer, kind)
            }
            Kind::Response { held: true, .. } => self.answer_ps(requester, peer),
            Kind::Response { held: false, .. } => self.empty_ps(requester, peer),
            Kind::Memory { probed } => {
                let asked = if probed { self.probe_ps[usize::from(requester)] } else { 0 };
                self.memory_ps(requester).saturating_sub(asked)
            }
            Kind::PutData(_) => self.memory_ps(requester),
            Kind::SnoopRead
            | Kind::SnoopOwn { .. }
            | Kind::Data { .. }
            | Kind::Grant { .. }
            | Kind::PutGo
            | Kind::Done => 0,
        }
    }

    /// What one more sharer adds when a line is taken from several.
    pub(super) fn sharer_ps(&self, requester: Core, peer: Core) -> u64 {
        self.rfo_sharer_ps.unwrap_or_else(|| self.class(requester, peer).transfer_ps)
    }

    /// What a fetch costs more because others use the other half of the 128-byte pair.
    fn neighbour_ps(&self, line: u32, requester: Core) -> u64 {
        if self.adjacent_ps == 0 {
            return 0;
        }
        let others = self.users.all.get((line ^ 1) as usize);
        let used = others.is_some_and(|users| users.iter().any(|&user| user != requester));
        if used { self.adjacent_ps } else { 0 }
    }

    /// What a reader near the owner pays more because somebody farther away reads the line too.
    fn remote_reader_ps(&self, line: u32, requester: Core, owner: Core, kind: Kind) -> u64 {
        let written = matches!(kind, Kind::Data { grade: super::message::State::Modified, .. });
        if self.first_remote_reader_ps == 0 || written {
            return 0;
        }
        let near = self.index(owner, requester);
        let farther = |&reader: &Core| reader != owner && self.index(owner, reader) > near;
        let readers = self.users.readers.get(line as usize);
        let far = readers.is_some_and(|readers| readers.iter().any(farther));
        if far { self.first_remote_reader_ps } else { 0 }
    }
}
