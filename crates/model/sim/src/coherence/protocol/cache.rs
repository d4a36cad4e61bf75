//! The cache agent of a node: the last-level cache, which stands for all its cores because it is
//! inclusive.

use super::agents::{Pending, State};
use super::line::{Access, Line};
use super::message::{Agent, Found, Grant, Message, SnoopKind, Want, Word};
use crate::coherence::spec::CleanEvictions;

impl Line<'_> {
    /// A core of `node` uses the line. False where the node still waits for something.
    pub fn access(&mut self, node: u8, access: Access) -> bool {
        let cached = self.caches[usize::from(node)];
        if cached.pending != Pending::Nothing {
            return false;
        }
        let (pending, want) = match (access, cached.state) {
            (Access::Read, State::Invalid) => (Pending::Read, Want::Read { shared: false }),
            (Access::Read, _) => return true,
            (Access::Write, State::Modified | State::Exclusive) => {
                self.store(node);
                return true;
            }
            (Access::Write, State::Shared | State::Forward) => (Pending::Upgrade, Want::Upgrade),
            (Access::Write, State::Invalid) => (Pending::Own, Want::Own),
        };
        self.ask(node, pending, want);
        true
    }

    fn ask(&mut self, node: u8, pending: Pending, want: Want) {
        self.caches[usize::from(node)].pending = pending;
        self.reads_asked += 1;
        self.send(Agent::Cache(node), self.authority(node), Word::Request { node, want });
    }

    /// The line leaves the cache of `node` for want of room. False where it cannot now.
    pub fn evict(&mut self, node: u8) -> bool {
        let cached = &mut self.caches[usize::from(node)];
        if cached.pending != Pending::Nothing || cached.state == State::Invalid {
            return false;
        }
        let (state, fresh) = (cached.state, cached.fresh);
        (cached.state, cached.fresh) = (State::Invalid, false);
        let word = match state {
            State::Modified => {
                cached.pending = Pending::WriteBack;
                Word::WriteBack { node, fresh, shared: false }
            }
            state if self.tells(node, state) => Word::CleanEviction { node },
            _ => return true,
        };
        self.send(Agent::Cache(node), self.authority(node), word);
        true
    }

    /// Whether the node says that it drops a clean copy.
    fn tells(&self, node: u8, state: State) -> bool {
        match (self.choices.clean_evictions, state) {
            (CleanEvictions::Silent, _) => false,
            (_, State::Exclusive) => node != self.home_node,
            (CleanEvictions::All, _) => !self.is_inside(node),
            (CleanEvictions::Alone, _) => false,
        }
    }

    /// The node's copy becomes the only true one.
    fn store(&mut self, node: u8) {
        for cached in &mut self.caches {
            cached.fresh = false;
            cached.arrived = cached.arrived.map(|_| false);
        }
        self.home.fresh = false;
        for message in &mut self.net {
            match &mut message.word {
                Word::WriteBack { fresh, .. }
                | Word::Data { fresh, .. }
                | Word::Response { written: Some(fresh), .. } => *fresh = false,
                _ => {}
            }
        }
        self.switch.spoil();
        let cached = &mut self.caches[usize::from(node)];
        (cached.state, cached.fresh) = (State::Modified, true);
    }

    pub(super) fn cache_receives(&mut self, node: u8, message: Message) {
        match message.word {
            Word::Snoop { kind, to } => self.snooped(node, message.from, kind, to),
            Word::Data { fresh, grant } => {
                self.caches[usize::from(node)].arrived = Some(fresh);
                if let Some(grant) = grant {
                    self.caches[usize::from(node)].granted = Some(grant);
                }
                self.finish_if_complete(node);
            }
            Word::Complete { grant, data: true } => {
                self.caches[usize::from(node)].granted = Some(grant);
                self.finish_if_complete(node);
            }
            Word::Complete { grant, data: false } => self.upgraded(node, grant),
            Word::Acknowledge { .. } => self.caches[usize::from(node)].pending = Pending::Nothing,
            word => unreachable!("a cache never gets {word:?}"),
        }
    }

    fn finish_if_complete(&mut self, node: u8) {
        let cached = &mut self.caches[usize::from(node)];
        let (Some(fresh), Some(grant)) = (cached.arrived, cached.granted) else { return };
        (cached.arrived, cached.granted) = (None, None);
        cached.fresh = fresh;
        self.end(node, grant);
    }

    /// The right to write came without data.
    fn upgraded(&mut self, node: u8, grant: Grant) {
        let cached = &self.caches[usize::from(node)];
        if cached.state != State::Invalid {
            self.end(node, grant);
            return;
        }
        // Its copy was taken between request and answer, and a copy that its module got later hid that
        // from the switch. It asks again, for the data.
        self.reads_ended += 1;
        self.send(Agent::Cache(node), self.authority(node), Word::Done);
        self.ask(node, Pending::Own, Want::Own);
    }

    fn end(&mut self, node: u8, grant: Grant) {
        self.reads_ended += 1;
        let cached = &mut self.caches[usize::from(node)];
        cached.pending = Pending::Nothing;
        cached.state = match grant {
            Grant::Shared => State::Shared,
            Grant::Forward => State::Forward,
            Grant::Exclusive => State::Exclusive,
            Grant::Modified => State::Modified,
        };
        self.wrong_read |= !self.caches[usize::from(node)].fresh;
        if grant == Grant::Modified {
            self.store(node);
        }
        self.send(Agent::Cache(node), self.authority(node), Word::Done);
    }

    fn snooped(&mut self, node: u8, asker: Agent, kind: SnoopKind, to: Option<u8>) {
        let cached = &mut self.caches[usize::from(node)];
        let (state, fresh) = (cached.state, cached.fresh);
        let forwards = !matches!(state, State::Invalid | State::Shared) && to.is_some();
        let modified = state == State::Modified;
        let (found, written) = match (state, kind) {
            (State::Invalid, _) => (Found::Nothing, None),
            (_, SnoopKind::Data) if forwards => (Found::Sent, modified.then_some(fresh)),
            (_, SnoopKind::Data) => (Found::Shared, None),
            (_, SnoopKind::Invalidate) if forwards => (Found::Gave { modified }, None),
            (_, SnoopKind::Invalidate) => (Found::Nothing, modified.then_some(fresh)),
        };
        match kind {
            SnoopKind::Data if state != State::Invalid => cached.state = State::Shared,
            SnoopKind::Data => {}
            SnoopKind::Invalidate => (cached.state, cached.fresh) = (State::Invalid, false),
        }
        if let Some(to) = to.filter(|_| forwards) {
            self.send(Agent::Cache(node), Agent::Cache(to), Word::Data { fresh, grant: None });
        }
        self.send(Agent::Cache(node), asker, Word::Response { found, written });
    }
}
