//! Writes of a line that the node does not own.

use super::Engine;
use super::reads::Source;
use super::units::{Exported, NO_NODE};
use crate::coherence::message::{Class, Direction};
use crate::coherence::nodes::NodeSet;

impl Engine {
    pub(super) fn own_inside(&mut self, node: u8, unit: u32, held: bool) {
        let home = self.units[unit as usize].home;
        let inside = self.snoop_inside(node, unit, true, !held);
        let blind = !self.choices.memory_directory && self.topology.modules() > 1;
        let mut sender = inside.sender;
        if blind || self.units[unit as usize].exported != Exported::No {
            sender = self.snoop_outside(unit, true, !held).sender.or(sender);
        }
        let known = &mut self.units[unit as usize];
        known.exported = Exported::No;
        known.near = if node == home { NodeSet::EMPTY } else { NodeSet::one(node) };
        known.near_alone = node != home;
        self.got_all(node, unit, held, sender);
    }

    /// A writer is alone.
    fn got_all(&mut self, node: u8, unit: u32, held: bool, sender: Option<u8>) {
        let source = match (held, sender) {
            (true, _) => Source::Own,
            (false, Some(sender)) => Source::Cache(sender),
            (false, None) => Source::Memory,
        };
        self.arrived(node, unit, source);
        self.hold(node, unit);
        let known = &mut self.units[unit as usize];
        (known.owner, known.forward, known.dirty) = (node, NO_NODE, true);
    }

    pub(super) fn own_outside(&mut self, node: u8, unit: u32, held: bool) {
        let known = self.units[unit as usize];
        let (hm, nm, lines) = (self.module(known.home), self.module(node), u64::from(known.lines));
        let asked = self.request_to_home(node, unit);
        if !asked.is_empty() {
            let found = self.ask_modules(node, unit, asked, true);
            if let Some(sender) = found.sender {
                if found.modified {
                    self.told_home(unit, self.module(sender), false);
                }
                self.list(unit, 1 << nm);
                self.units[unit as usize].alone = true;
                self.tally.leave(Class::Ndr, hm, nm, lines);
                self.got_all(node, unit, held, Some(sender));
                return;
            }
            let own = if held { known.modules & 1 << nm } else { 0 };
            self.list(unit, own);
            self.units[unit as usize].alone = false;
        }
        self.own_at_home(node, unit, held);
    }

    /// A write of another module that the home answers.
    fn own_at_home(&mut self, node: u8, unit: u32, held: bool) {
        let known = self.units[unit as usize];
        let (hm, nm, lines) = (self.module(known.home), self.module(node), u64::from(known.lines));
        self.tally.local(Class::Hreq, hm, Direction::Out, lines);
        let inside = self.snoop_inside(node, unit, true, !held);
        let state = &mut self.units[unit as usize];
        (state.exported, state.near, state.near_alone) = (Exported::Any, NodeSet::EMPTY, false);
        if held {
            self.tally.local(Class::Ndr, hm, Direction::In, lines);
            self.tally.leave(Class::Ndr, hm, nm, lines);
        } else {
            self.answered_by_home(hm, nm, lines, inside.sender.is_some());
        }
        if self.choices.filter {
            for other in self.topology.nodes_in(known.modules).without(node).iter() {
                self.snoop_from_switch(hm, other, lines);
                self.snoop_cache(other, unit, true, false);
            }
        }
        self.list(unit, 1 << nm);
        self.units[unit as usize].alone = true;
        self.got_all(node, unit, held, inside.sender);
        self.keep_directory(hm);
    }
}
