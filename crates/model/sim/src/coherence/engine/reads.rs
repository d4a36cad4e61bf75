//! Reads of a line that the node does not have.

use super::Engine;
use super::units::Exported;
use crate::coherence::message::{Class, Direction};
use crate::coherence::nodes::NodeSet;

/// Where the data of a transaction come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Memory,
    Cache(u8),
    /// The requester has them.
    Own,
}

impl Engine {
    pub(super) fn read_inside(&mut self, node: u8, unit: u32) {
        let home = self.units[unit as usize].home;
        let inside = self.snoop_inside(node, unit, false, true);
        let blind = !self.choices.memory_directory && self.topology.modules() > 1;
        let mut sender = inside.sender;
        if blind || self.units[unit as usize].exported != Exported::No {
            sender = self.snoop_outside(unit, false, true).sender.or(sender);
        }
        let known = &mut self.units[unit as usize];
        let shared =
            inside.kept || !known.near.without(node).is_empty() || known.exported != Exported::No;
        let alone = sender.is_none() && !shared;
        if node != home {
            known.near = known.near.with(node);
            known.near_alone = alone;
        }
        self.got_copy(node, unit, sender, alone);
    }

    /// A reader has its copy.
    fn got_copy(&mut self, node: u8, unit: u32, sender: Option<u8>, alone: bool) {
        let known = &mut self.units[unit as usize];
        if sender.is_some() {
            known.forward = node;
        }
        if alone {
            (known.owner, known.dirty) = (node, false);
        }
        self.arrived(node, unit, sender.map_or(Source::Memory, Source::Cache));
        self.hold(node, unit);
    }

    /// Data arrive at a requester.
    pub(super) fn arrived(&mut self, node: u8, unit: u32, source: Source) {
        let known = &self.units[unit as usize];
        let (home, lines) = (known.home, u64::from(known.lines));
        let from = match source {
            Source::Own => return,
            Source::Memory => {
                self.tally.memory_reads[usize::from(home)] += lines;
                home
            }
            Source::Cache(sender) => {
                self.tally.from_caches += lines;
                sender
            }
        };
        self.tally.waited[usize::from(from)] += lines;
        if self.module(from) == self.module(node) {
            self.move_near(from, node, lines);
        }
    }

    /// A request enters the home's module; the modules that the home's switch asks before it answers itself.
    pub(super) fn request_to_home(&mut self, node: u8, unit: u32) -> NodeSet {
        let known = self.units[unit as usize];
        let (hm, nm) = (self.module(known.home), self.module(node));
        self.tally.enter(Class::Hreq, nm, hm, u64::from(known.lines));
        let asks = known.alone || !self.choices.filter;
        let asked = if asks { self.listed(hm, known.modules) } else { NodeSet::EMPTY };
        asked.without(node)
    }

    pub(super) fn read_outside(&mut self, node: u8, unit: u32) {
        let known = self.units[unit as usize];
        let (hm, nm, lines) = (self.module(known.home), self.module(node), u64::from(known.lines));
        let asked = self.request_to_home(node, unit);
        if !asked.is_empty() {
            let found = self.ask_modules(node, unit, asked, false);
            if let Some(sender) = found.sender {
                if found.modified {
                    self.told_home(unit, self.module(sender), true);
                    self.units[unit as usize].exported = Exported::Shared;
                }
                let modules = self.units[unit as usize].modules | 1 << nm;
                self.list(unit, modules);
                self.units[unit as usize].alone = false;
                self.tally.leave(Class::Ndr, hm, nm, lines);
                self.got_copy(node, unit, Some(sender), false);
                return;
            }
            if !found.kept {
                self.list(unit, 0);
            }
            self.units[unit as usize].alone = false;
        }
        self.read_at_home(node, unit);
    }

    /// A read of another module that the home answers.
    fn read_at_home(&mut self, node: u8, unit: u32) {
        let known = self.units[unit as usize];
        let (hm, nm, lines) = (self.module(known.home), self.module(node), u64::from(known.lines));
        self.tally.local(Class::Hreq, hm, Direction::Out, lines);
        let inside = self.snoop_inside(node, unit, false, true);
        let known = &mut self.units[unit as usize];
        let several = inside.kept || !known.near.is_empty() || known.modules != 0;
        let alone = inside.sender.is_none() && !several && self.choices.exclusive_readers;
        known.exported = if alone { Exported::Any } else { Exported::Shared };
        let modules = known.modules | 1 << nm;
        known.alone = alone;
        self.list(unit, modules);
        self.answered_by_home(hm, nm, lines, inside.sender.is_some());
        self.got_copy(node, unit, inside.sender, alone);
        self.keep_directory(hm);
    }

    /// Data go from the home's module to the requester's, and both switches say that it is done. A
    /// completion rides on data of the memory, not on those of a cache.
    pub(super) fn answered_by_home(&mut self, hm: u8, nm: u8, lines: u64, from_cache: bool) {
        self.tally.cross(Class::Dtc, hm, nm, lines);
        self.tally.leave(Class::Ndr, hm, nm, lines);
        if from_cache {
            self.tally.local(Class::Ndr, hm, Direction::In, lines);
        }
    }
}
