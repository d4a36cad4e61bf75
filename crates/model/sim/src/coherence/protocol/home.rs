//! The home agent: the memory's copy, the directory bits beside it, one transaction at a time.

use super::agents::{Exported, HomeWork};
use super::line::Line;
use super::message::{Agent, Found, Grant, Message, SnoopKind, Want, Word};
use crate::coherence::nodes::NodeSet;

impl Line<'_> {
    pub(super) fn home_receives(&mut self, message: Message) {
        let from = message.from;
        match message.word {
            Word::Request { node, want } => {
                self.home.waiting.push((from, node, want));
                self.home_next();
            }
            Word::WriteBack { node, fresh, shared } => self.written_back(from, node, fresh, shared),
            Word::CleanEviction { node } => self.home.near = self.home.near.without(node),
            Word::Forwarded { node } => self.send(Agent::Home, from, Word::Acknowledge { node }),
            Word::Response { found, written } => self.home_hears(from, found, written),
            Word::Done => {
                self.home.work = None;
                self.home_next();
            }
            word => unreachable!("a home never gets {word:?}"),
        }
    }

    /// The only copy comes home. It is always the one that the bits name: a cache that was snooped before
    /// had nothing to write back.
    fn written_back(&mut self, from: Agent, node: u8, fresh: bool, shared: bool) {
        self.home.fresh = fresh;
        match from {
            // What came back may be elsewhere again by now, as far as the bits say: only the switch knows.
            Agent::Switch if shared => self.home.exported = Exported::Shared,
            Agent::Switch => {}
            _ => self.home.near = self.home.near.without(node),
        }
        self.send(Agent::Home, from, Word::Acknowledge { node });
    }

    fn home_next(&mut self) {
        if self.home.work.is_some() || self.home.waiting.is_empty() {
            return;
        }
        let (asker, node, want) = self.home.waiting.remove(0);
        let want = match (want, asker) {
            (Want::Upgrade, Agent::Switch) if self.home.exported == Exported::No => Want::Own,
            (Want::Upgrade, Agent::Cache(n)) if n != self.home_node && !self.home.near.has(n) => {
                Want::Own
            }
            (want, _) => want,
        };
        let targets: Vec<Agent> = self.home_targets(asker, node, want).collect();
        self.home.work = Some(HomeWork {
            asker,
            node,
            want,
            missing: u8::try_from(targets.len()).unwrap_or(u8::MAX),
            sent: false,
            kept: false,
            answered: false,
        });
        let kind = match want {
            Want::Read { .. } => SnoopKind::Data,
            Want::Own | Want::Upgrade => SnoopKind::Invalidate,
        };
        // Who has a copy and only wants to write it needs no other.
        let to = (want != Want::Upgrade).then_some(node);
        for target in targets {
            self.send(Agent::Home, target, Word::Snoop { kind, to });
        }
        self.home_answers_if_all_came();
    }

    /// Whom the home must ask.
    fn home_targets(
        &self,
        asker: Agent,
        node: u8,
        want: Want,
    ) -> impl Iterator<Item = Agent> + use<> {
        let reads = matches!(want, Want::Read { .. });
        let blind = !self.choices.memory_directory;
        let own = (node != self.home_node).then_some(Agent::Cache(self.home_node));
        let near = match (blind, reads) {
            (true, _) => self.siblings(),
            (false, true) if !self.home.near_alone => NodeSet::EMPTY,
            (false, _) => self.home.near,
        };
        let outside = match (blind, reads) {
            (true, _) => true,
            // The bits of an exported line say that the switch knows more, and it is asked.
            (false, _) => self.home.exported != Exported::No,
        };
        let outside = outside && asker != Agent::Switch && self.topology.modules() > 1;
        let near: Vec<u8> = near.without(node).iter().collect();
        own.into_iter()
            .chain(near.into_iter().map(Agent::Cache))
            .chain(outside.then_some(Agent::Switch))
    }

    fn home_hears(&mut self, from: Agent, found: Found, written: Option<bool>) {
        let Some(work) = &mut self.home.work else { unreachable!("an answer that nobody awaits") };
        work.missing -= 1;
        work.sent |= matches!(found, Found::Sent | Found::Gave { .. });
        if let Some(fresh) = written {
            self.home.fresh = fresh;
        }
        let kept = matches!(found, Found::Shared | Found::Sent);
        match from {
            Agent::Cache(node) if node == self.home_node => work.kept |= kept,
            Agent::Cache(node) => {
                if kept {
                    self.home.near_alone = false;
                } else {
                    self.home.near = self.home.near.without(node);
                }
            }
            Agent::Switch => {
                self.home.exported = if kept { Exported::Shared } else { Exported::No };
            }
            Agent::Home => unreachable!("a home does not ask itself"),
        }
        self.home_answers_if_all_came();
    }

    fn home_answers_if_all_came(&mut self) {
        let Some(mut work) = self.home.work.filter(|work| work.missing == 0 && !work.answered)
        else {
            return;
        };
        work.answered = true;
        let grant = match work.want {
            Want::Read { shared } => self.home_grants_copy(&work, shared),
            Want::Own | Want::Upgrade => self.home_grants_all(&work),
        };
        self.home.work = Some(work);
        let word = match (work.sent, work.want) {
            (true, _) => Word::Complete { grant, data: true },
            (false, Want::Upgrade) => Word::Complete { grant, data: false },
            (false, _) => Word::Data { fresh: self.home.fresh, grant: Some(grant) },
        };
        self.send(Agent::Home, work.asker, word);
    }

    fn home_grants_copy(&mut self, work: &HomeWork, shared: bool) -> Grant {
        let near = self.home.near.without(work.node);
        let outside = work.asker != Agent::Switch && self.home.exported != Exported::No;
        let grant = match (work.sent, work.kept || !near.is_empty() || outside || shared) {
            (true, _) => Grant::Forward,
            (false, true) => Grant::Shared,
            (false, false) => Grant::Exclusive,
        };
        let alone = grant == Grant::Exclusive;
        match work.asker {
            Agent::Switch => {
                self.home.exported = if alone { Exported::Any } else { Exported::Shared };
            }
            _ if work.node == self.home_node => {}
            _ => {
                self.home.near = self.home.near.with(work.node);
                self.home.near_alone = alone;
            }
        }
        grant
    }

    fn home_grants_all(&mut self, work: &HomeWork) -> Grant {
        let switch = work.asker == Agent::Switch;
        self.home.exported = if switch { Exported::Any } else { Exported::No };
        let near = !switch && work.node != self.home_node;
        self.home.near = if near { NodeSet::one(work.node) } else { NodeSet::EMPTY };
        self.home.near_alone = near;
        Grant::Modified
    }
}
