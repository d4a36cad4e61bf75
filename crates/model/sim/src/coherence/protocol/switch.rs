//! The switch of the home's module: which modules have copies, one transaction at a time, and answers in
//! place of caches that have none.
//!
//! The switches of other modules pass messages on without a state of their own for this line.

use super::agents::{Phase, Served, SwitchWork};
use super::line::Line;
use super::message::{Agent, Found, Grant, Message, SnoopKind, Want, Word};
use crate::coherence::nodes::NodeSet;

impl Line<'_> {
    /// The directory entry leaves for want of room: every copy outside is called in. False where there is
    /// none, or it is in use.
    pub fn evict_entry(&mut self) -> bool {
        if self.switch.holders.is_empty()
            || self.switch.work.is_some()
            || self.switch.served.is_some()
        {
            return false;
        }
        let nodes = self.listed();
        self.switch_asks(None, Want::Own, Phase::Asking, nodes, SnoopKind::Invalidate);
        true
    }

    pub(super) fn switch_receives(&mut self, message: Message) {
        match (message.word, message.from) {
            (Word::Request { node, want }, _) => {
                self.switch.waiting.push((node, want));
                self.switch_next();
            }
            (Word::WriteBack { node, fresh, shared }, _) => {
                (self.switch.holders, self.switch.alone) = (NodeSet::EMPTY, false);
                self.send(Agent::Switch, Agent::Home, Word::WriteBack { node, fresh, shared });
            }
            (Word::CleanEviction { node }, _) => {
                self.switch.holders = self.switch.holders.without(node);
                self.switch.alone = false;
            }
            (Word::Snoop { kind, to }, _) => self.home_asks(kind, to),
            (Word::Response { found, written }, _) => self.switch_hears(found, written),
            (Word::Acknowledge { node }, _) => self.home_acknowledges(node),
            (Word::Data { fresh, grant }, _) => self.home_answers(grant, Some(fresh), true),
            (Word::Complete { grant, data }, _) => self.home_answers(Some(grant), None, data),
            (Word::Done, _) => self.requester_is_done(),
            (word, from) => unreachable!("a switch never gets {word:?} from {from:?}"),
        }
    }

    /// All sockets of the modules that may have copies.
    fn listed(&self) -> NodeSet {
        self.topology.beside(self.switch.holders)
    }

    /// Every node outside the home's module that may have a copy, as far as the switch knows.
    fn holders(&self) -> NodeSet {
        match self.choices.filter {
            true => self.listed(),
            false => self.topology.all().minus(self.topology.nodes_of(self.home_module())),
        }
    }

    fn switch_next(&mut self) {
        if self.switch.work.is_some() || self.switch.served.is_some() {
            return;
        }
        if let Some((kind, to)) = self.switch.deferred.take() {
            // Its answer comes back here.
            return self.serve(kind, to);
        }
        if self.switch.waiting.is_empty() {
            return;
        }
        let (node, want) = self.switch.waiting.remove(0);
        let lost = self.switch.alone || !self.listed().has(node);
        let want = if want == Want::Upgrade && lost { Want::Own } else { want };
        let kind = match want {
            Want::Read { .. } => SnoopKind::Data,
            Want::Own | Want::Upgrade => SnoopKind::Invalidate,
        };
        let asked = self.holders().without(node);
        // Without a filter nobody knows that one is alone, so everybody is asked first.
        let ask = (self.switch.alone || !self.choices.filter) && !asked.is_empty();
        match ask {
            true => self.switch_asks(Some(node), want, Phase::Asking, asked, kind),
            false => self.request_goes_home(node, want),
        }
    }

    fn switch_asks(
        &mut self,
        node: Option<u8>,
        want: Want,
        phase: Phase,
        nodes: NodeSet,
        kind: SnoopKind,
    ) {
        let missing = u8::try_from(nodes.len()).unwrap_or(u8::MAX);
        let at_home = matches!(phase, Phase::Taking { .. });
        self.switch.work =
            Some(SwitchWork { node, want, phase, missing, found: None, written: None, at_home });
        // Copies that are only taken back are not sent anywhere, and one of several never is: the home
        // has the data, and must take back what its own module shares.
        let to = node.filter(|_| phase == Phase::Asking && self.switch.alone);
        for asked in nodes.iter() {
            self.send(Agent::Switch, Agent::Cache(asked), Word::Snoop { kind, to });
        }
    }

    fn request_goes_home(&mut self, node: u8, want: Want) {
        let want = match want {
            Want::Read { .. } => {
                let several = !self.switch.holders.is_empty();
                Want::Read { shared: several || !self.choices.exclusive_readers }
            }
            other => other,
        };
        self.switch.work = Some(SwitchWork {
            node: Some(node),
            want,
            phase: Phase::AtHome,
            missing: 0,
            found: None,
            written: None,
            at_home: true,
        });
        self.send(Agent::Switch, Agent::Home, Word::Request { node, want });
        // From here on the request waits for the home, so the home must not wait for it.
        if let Some((kind, to)) = self.switch.deferred.take() {
            self.serve(kind, to);
        }
    }

    fn switch_hears(&mut self, found: Found, written: Option<bool>) {
        if let Some(served) = &mut self.switch.served {
            served.missing -= 1;
            served.found = stronger(served.found, found);
            served.written = served.written.or(written);
            if served.missing == 0 {
                self.answer_home();
            }
            return;
        }
        let Some(work) = &mut self.switch.work else { unreachable!("an answer nobody awaits") };
        work.missing -= 1;
        work.found = stronger(work.found, found);
        work.written = work.written.or(written);
        if work.missing == 0 {
            let work = *work;
            self.all_answered(work);
        }
    }

    fn all_answered(&mut self, work: SwitchWork) {
        let Some(node) = work.node else { return self.entry_is_empty(work.written) };
        if let Phase::Taking { data } = work.phase {
            (self.switch.holders, self.switch.alone) = (NodeSet::one(node), true);
            return self.grant(node, Grant::Modified, data);
        }
        let reads = matches!(work.want, Want::Read { .. });
        match work.found.unwrap_or(Found::Nothing) {
            Found::Nothing => {
                // Its own copy, which it wants to write, was not asked for.
                let upgrades = work.want == Want::Upgrade && self.listed().has(node);
                self.switch.holders = if upgrades { NodeSet::one(node) } else { NodeSet::EMPTY };
                self.switch.alone = false;
                self.request_goes_home(node, work.want);
            }
            // Only without a filter: several share it, and none of them forwards.
            Found::Shared => {
                self.switch.alone = false;
                self.request_goes_home(node, work.want);
            }
            Found::Sent => {
                self.switch.holders = self.switch.holders.with(node);
                self.switch.alone = false;
                let told = work.written.map(|fresh| Word::WriteBack { node, fresh, shared: true });
                self.tell_home_or_grant(node, Grant::Forward, told);
            }
            Found::Gave { modified } => {
                debug_assert!(!reads, "a read takes no copy away");
                (self.switch.holders, self.switch.alone) = (NodeSet::one(node), true);
                let told = modified.then_some(Word::Forwarded { node });
                self.tell_home_or_grant(node, Grant::Modified, told);
            }
        }
    }

    /// The home hears of modified data before the requester is told that it may go on.
    fn tell_home_or_grant(&mut self, node: u8, grant: Grant, told: Option<Word>) {
        let Some(word) = told else { return self.grant(node, grant, true) };
        if let Some(work) = &mut self.switch.work {
            work.phase = Phase::Telling { grant };
        }
        self.send(Agent::Switch, Agent::Home, word);
    }

    fn grant(&mut self, node: u8, grant: Grant, data: bool) {
        if let Some(work) = &mut self.switch.work {
            work.phase = Phase::Answered;
        }
        self.send(Agent::Switch, Agent::Cache(node), Word::Complete { grant, data });
    }

    fn entry_is_empty(&mut self, written: Option<bool>) {
        (self.switch.holders, self.switch.alone) = (NodeSet::EMPTY, false);
        match (written, &mut self.switch.work) {
            (Some(fresh), Some(work)) => {
                work.phase = Phase::Telling { grant: Grant::Shared };
                let node = self.home_node;
                let word = Word::WriteBack { node, fresh, shared: false };
                self.send(Agent::Switch, Agent::Home, word);
            }
            _ => {
                self.switch.work = None;
                self.switch_next();
            }
        }
    }

    /// Of what the switch told the home, or of a cache's own write back, which it passes on.
    fn home_acknowledges(&mut self, node: u8) {
        let work = self.switch.work;
        match work {
            Some(SwitchWork { phase: Phase::Telling { .. }, node: None, .. })
                if node == self.home_node =>
            {
                self.switch.work = None;
                self.switch_next();
            }
            Some(SwitchWork { phase: Phase::Telling { grant }, node: Some(asker), .. })
                if asker == node =>
            {
                self.grant(node, grant, true);
            }
            _ => self.send(Agent::Switch, Agent::Cache(node), Word::Acknowledge { node }),
        }
    }

    fn home_answers(&mut self, grant: Option<Grant>, fresh: Option<bool>, data: bool) {
        let Some(SwitchWork { node: Some(node), .. }) = self.switch.work else {
            unreachable!("the home answers a request")
        };
        let grant = grant.unwrap_or(Grant::Shared);
        if let Some(fresh) = fresh {
            let word = Word::Data { fresh, grant: None };
            self.send(Agent::Switch, Agent::Cache(node), word);
        }
        if grant != Grant::Modified {
            self.switch.holders = self.switch.holders.with(node);
            self.switch.alone = grant == Grant::Exclusive;
            return self.grant(node, grant, data);
        }
        let others = self.listed().without(node);
        let others = if self.choices.filter { others } else { NodeSet::EMPTY };
        if others.is_empty() {
            (self.switch.holders, self.switch.alone) = (NodeSet::one(node), true);
            return self.grant(node, grant, data);
        }
        let phase = Phase::Taking { data };
        self.switch_asks(Some(node), Want::Own, phase, others, SnoopKind::Invalidate);
    }

    fn requester_is_done(&mut self) {
        if self.switch.work.is_some_and(|work| work.at_home) {
            self.send(Agent::Switch, Agent::Home, Word::Done);
        }
        self.switch.work = None;
        self.switch_next();
    }

    /// The home snoops. While a request waits for the home this cannot wait; while one goes on without the
    /// home it must.
    fn home_asks(&mut self, kind: SnoopKind, to: Option<u8>) {
        match &self.switch.work {
            Some(work) if work.phase != Phase::AtHome => self.switch.deferred = Some((kind, to)),
            _ => self.serve(kind, to),
        }
    }

    fn serve(&mut self, kind: SnoopKind, to: Option<u8>) {
        let alone = self.switch.alone;
        let asked = match kind {
            SnoopKind::Data if !alone && self.choices.filter => NodeSet::EMPTY,
            _ => self.holders(),
        };
        let missing = u8::try_from(asked.len()).unwrap_or(u8::MAX);
        self.switch.served = Some(Served { kind, missing, found: None, written: None });
        if asked.is_empty() {
            return self.answer_home();
        }
        let to = to.filter(|_| alone);
        for node in asked.iter() {
            self.send(Agent::Switch, Agent::Cache(node), Word::Snoop { kind, to });
        }
    }

    fn answer_home(&mut self) {
        let Some(served) = self.switch.served.take() else { return };
        let found = match (served.kind, served.found) {
            (_, Some(found)) => found,
            (SnoopKind::Data, None) if !self.switch.holders.is_empty() => Found::Shared,
            (_, None) => Found::Nothing,
        };
        match found {
            Found::Nothing | Found::Gave { .. } => self.switch.holders = NodeSet::EMPTY,
            Found::Shared | Found::Sent => {}
        }
        self.switch.alone = false;
        let word = Word::Response { found, written: served.written };
        self.send(Agent::Switch, Agent::Home, word);
        self.switch_next();
    }
}

/// Of two answers the one that says more.
fn stronger(one: Option<Found>, other: Found) -> Option<Found> {
    Some(one.map_or(other, |one| one.max(other)))
}
