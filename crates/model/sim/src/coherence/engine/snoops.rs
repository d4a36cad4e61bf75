//! Who is asked for a copy or to give one up, and what comes of it.

use super::Engine;
use super::units::{Exported, NO_NODE};
use crate::coherence::message::{Class, Direction};
use crate::coherence::nodes::NodeSet;

/// What a snooped set of caches did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Snooped {
    pub(super) sender: Option<u8>,
    pub(super) modified: bool,
    pub(super) kept: bool,
}

impl Engine {
    /// One cache is asked for a copy (`take` false) or to give its copy up. It sends the data if it may and
    /// is the one that forwards.
    pub(super) fn snoop_cache(&mut self, node: u8, unit: u32, take: bool, sends: bool) -> Snooped {
        let known = &mut self.units[unit as usize];
        if !known.holders.has(node) {
            return Snooped::default();
        }
        let owns = known.owner == node;
        let forwards = sends && (owns || known.forward == node);
        let modified = owns && known.dirty;
        if take {
            self.lose(node, unit);
        } else {
            if known.forward == node {
                known.forward = NO_NODE;
            }
            if owns {
                (known.owner, known.dirty) = (NO_NODE, false);
            }
        }
        Snooped { sender: forwards.then_some(node), modified, kept: !take }
    }

    /// The home's own module is asked: the home's cache always, sockets beside it as the bits say.
    pub(super) fn snoop_inside(&mut self, node: u8, unit: u32, take: bool, sends: bool) -> Snooped {
        let known = &self.units[unit as usize];
        let (home, lines) = (known.home, u64::from(known.lines));
        let blind = !self.choices.memory_directory;
        let near = match (blind, take) {
            (true, _) => {
                let module = self.module(home);
                self.topology.nodes_of(module).without(home)
            }
            (false, false) if !known.near_alone => NodeSet::EMPTY,
            (false, _) => known.near,
        };
        let mut all = Snooped::default();
        if home != node {
            all = self.snoop_cache(home, unit, take, sends);
            self.written_home(&all, unit, home, lines, take);
        }
        for asked in near.without(node).iter() {
            let one = self.snoop_cache(asked, unit, take, sends);
            self.written_home(&one, unit, asked, lines, take);
            if one.kept {
                self.units[unit as usize].near_alone = false;
            } else {
                self.strike_near(unit, asked);
            }
            all.sender = all.sender.or(one.sender);
        }
        all
    }

    /// Modified data that a snoop of the home's module brought to memory: a copy was asked for, or the
    /// data could not be sent to the requester.
    fn written_home(&mut self, found: &Snooped, unit: u32, from: u8, lines: u64, take: bool) {
        if found.modified && (!take || found.sender.is_none()) {
            let home = self.units[unit as usize].home;
            self.tally.memory_writes[usize::from(home)] += lines;
            self.move_near(from, home, lines);
        }
    }

    /// The home asks its switch, for a requester of its own module.
    pub(super) fn snoop_outside(&mut self, unit: u32, take: bool, sends: bool) -> Snooped {
        let known = self.units[unit as usize];
        let (hm, lines) = (self.module(known.home), u64::from(known.lines));
        self.tally.local(Class::Snp, hm, Direction::In, lines);
        self.tally.local(Class::Hrsp, hm, Direction::Out, lines);
        let asked = match take || known.alone || !self.choices.filter {
            true => self.listed(hm, known.modules),
            false => NodeSet::EMPTY,
        };
        let mut all = Snooped::default();
        let mut found = asked.is_empty() && known.modules != 0;
        for node in asked.iter() {
            self.snoop_from_switch(hm, node, lines);
            let one = self.snoop_cache(node, unit, take, sends && known.alone);
            found |= one.kept;
            if let Some(sender) = one.sender {
                all.sender = Some(sender);
                self.tally.cross(Class::Dtc, self.module(sender), hm, lines);
            }
            if one.modified && (!take || one.sender.is_none()) {
                self.tally.cross(Class::Dwb, self.module(node), hm, lines);
                self.tally.memory_writes[usize::from(known.home)] += lines;
            }
        }
        let kept = found && !take;
        if !kept {
            self.list(unit, 0);
        }
        let state = &mut self.units[unit as usize];
        state.alone = false;
        state.exported = if kept { Exported::Shared } else { Exported::No };
        all
    }

    /// The switch asks caches of the modules that it lists, for a requester of another module.
    pub(super) fn ask_modules(
        &mut self,
        node: u8,
        unit: u32,
        asked: NodeSet,
        take: bool,
    ) -> Snooped {
        let known = self.units[unit as usize];
        let (hm, nm, lines) = (self.module(known.home), self.module(node), u64::from(known.lines));
        let mut all = Snooped::default();
        for one in asked.iter() {
            self.snoop_from_switch(hm, one, lines);
            let found = self.snoop_cache(one, unit, take, known.alone);
            all.kept |= found.kept;
            if found.sender.is_some() {
                (all.sender, all.modified) = (found.sender, found.modified);
                if self.module(one) != nm {
                    self.tally.cross(Class::Dtc, self.module(one), nm, lines);
                }
            }
        }
        all
    }

    /// Modified data went from module to module: the home is told, with the data if they become shared.
    pub(super) fn told_home(&mut self, unit: u32, from: u8, data: bool) {
        let known = &self.units[unit as usize];
        let (home, lines) = (known.home, u64::from(known.lines));
        let hm = self.module(home);
        self.tally.local(Class::Hreq, hm, Direction::Out, lines);
        self.tally.local(Class::Ndr, hm, Direction::In, lines);
        if data {
            self.tally.cross(Class::Dwb, from, hm, lines);
            self.tally.memory_writes[usize::from(home)] += lines;
        }
    }
}
