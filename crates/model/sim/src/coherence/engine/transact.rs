//! What one touch of a unit does: the same transactions as in `protocol`, one at a time, with the messages of
//! all lines of the unit counted at once. A test drives both with the same random accesses and compares.

use super::Engine;
use super::cache::NO_SLOT;
use super::regions::Touch;
use super::units::{Exported, NO_NODE};
use crate::coherence::message::Class;
use crate::coherence::nodes::NodeSet;
use crate::coherence::spec::CleanEvictions;

impl Engine {
    /// A core of `node` reads or writes a unit.
    #[inline]
    pub(super) fn touch_unit(&mut self, node: u8, unit: u32, touch: Touch, passes: f32) {
        self.tally.touches += 1;
        let at = unit as usize;
        if self.units[at].home == NO_NODE {
            self.units[at].home = node;
            self.tally.first_touched += u64::from(self.units[at].lines);
        }
        let held = self.units[at].holders.has(node);
        if held {
            let nodes = self.caches.len();
            let slot = self.places[at * nodes + usize::from(node)];
            self.caches[usize::from(node)].used(slot);
        } else {
            self.make_room(node, self.units[at].lines);
            if passes > 1.0 {
                self.go_through(node, unit, touch, passes - 1.0);
            }
        }
        self.transact(node, unit, touch);
    }

    /// A core of `node` goes through a unit so often and keeps nothing of it.
    pub(super) fn stream_unit(&mut self, node: u8, unit: u32, touch: Touch, passes: f32) {
        self.tally.touches += 1;
        let at = unit as usize;
        if self.units[at].home == NO_NODE {
            self.units[at].home = node;
            self.tally.first_touched += u64::from(self.units[at].lines);
        }
        if !self.units[at].holders.has(node) {
            self.make_room(node, self.units[at].lines);
            self.go_through(node, unit, touch, passes);
        }
    }

    /// Brings a unit into the state that a touch needs. There is room.
    fn transact(&mut self, node: u8, unit: u32, touch: Touch) {
        let known = &self.units[unit as usize];
        let held = known.holders.has(node);
        let inside = self.module(node) == self.module(known.home);
        match (touch, held) {
            (Touch::Read, true) => {}
            (Touch::Write, true) if known.owner == node => self.units[unit as usize].dirty = true,
            (Touch::Read, false) if inside => self.read_inside(node, unit),
            (Touch::Read, false) => self.read_outside(node, unit),
            (Touch::Write, _) if inside => self.own_inside(node, unit, held),
            (Touch::Write, _) => self.own_outside(node, unit, held),
        }
    }

    /// Further passes over a unit that does not stay in the cache between them: fetched and evicted again,
    /// for so many of its lines as the passes make.
    fn go_through(&mut self, node: u8, unit: u32, touch: Touch, more: f32) {
        let lines = self.units[unit as usize].lines;
        let mut rest = crate::number::rounded(f64::from(lines) * f64::from(more));
        while rest > 0 {
            let now = u32::try_from(rest).unwrap_or(u32::MAX).min(lines);
            // The lines of this pass only, so that a part of a pass counts as a part.
            self.units[unit as usize].lines = now;
            let listed = self.units[unit as usize].modules != 0;
            self.transact(node, unit, touch);
            self.drop_copy(node, unit);
            self.units[unit as usize].lines = lines;
            self.relist(unit, listed, now);
            rest -= u64::from(now);
        }
    }

    /// Lets the unit that was used first leave, until `lines` fit.
    fn make_room(&mut self, node: u8, lines: u32) {
        while let Some(victim) = self.caches[usize::from(node)].victim_for(lines) {
            self.drop_copy(node, victim);
        }
    }

    pub(super) fn hold(&mut self, node: u8, unit: u32) {
        let at = unit as usize;
        if self.units[at].holders.has(node) {
            return;
        }
        let slot = self.caches[usize::from(node)].insert(unit, self.units[at].lines);
        let nodes = self.caches.len();
        self.places[at * nodes + usize::from(node)] = slot;
        self.units[at].holders = self.units[at].holders.with(node);
    }

    /// A copy is gone, without a word.
    pub(super) fn lose(&mut self, node: u8, unit: u32) {
        let at = unit as usize;
        let place = at * self.caches.len() + usize::from(node);
        let slot = std::mem::replace(&mut self.places[place], NO_SLOT);
        if slot != NO_SLOT {
            self.caches[usize::from(node)].remove(slot);
        }
        let known = &mut self.units[at];
        known.holders = known.holders.without(node);
        if known.forward == node {
            known.forward = NO_NODE;
        }
        if known.owner == node {
            (known.owner, known.dirty) = (NO_NODE, false);
        }
    }

    /// Every copy is gone, without a word.
    pub(super) fn forget(&mut self, unit: u32) {
        let holders = self.units[unit as usize].holders;
        holders.iter().for_each(|node| self.lose(node, unit));
        let known = self.units[unit as usize];
        if known.home != NO_NODE {
            self.list(unit, 0);
        }
        let known = &mut self.units[unit as usize];
        (known.near, known.near_alone, known.alone) = (NodeSet::EMPTY, false, false);
        (known.exported, known.home) = (Exported::No, NO_NODE);
    }

    /// A cache drops its copy for want of room.
    pub(super) fn drop_copy(&mut self, node: u8, unit: u32) {
        let known = self.units[unit as usize];
        let (home, lines) = (known.home, u64::from(known.lines));
        let (hm, nm) = (self.module(home), self.module(node));
        let alone = known.owner == node;
        self.lose(node, unit);
        let told = self.choices.clean_evictions;
        if !alone {
            if told == CleanEvictions::All && hm != nm {
                self.tell_shared(node, unit);
            }
            return;
        }
        let told = told != CleanEvictions::Silent;
        if known.dirty {
            self.tally.memory_writes[usize::from(home)] += lines;
        }
        let near = hm == nm;
        match (known.dirty, near) {
            (true, true) => {
                self.move_near(node, home, lines);
                self.strike_near(unit, node);
            }
            (false, true) if told && node != home => self.strike_near(unit, node),
            (true, false) => {
                self.tally.cross(Class::Hreq, nm, hm, lines);
                self.tally.cross(Class::Dwb, nm, hm, lines);
                self.tally.cross(Class::Ndr, hm, nm, lines);
                self.list(unit, 0);
                self.units[unit as usize].alone = false;
            }
            (false, false) if told => {
                self.tally.enter(Class::Hreq, nm, hm, lines);
                self.list(unit, 0);
                self.units[unit as usize].alone = false;
            }
            (false, _) => {}
        }
    }

    /// A cache of another module says that it has dropped one of several copies.
    fn tell_shared(&mut self, node: u8, unit: u32) {
        let known = &self.units[unit as usize];
        let (hm, nm) = (self.module(known.home), self.module(node));
        let others = known.holders.and(self.topology.nodes_of(nm));
        let modules = if others.is_empty() { known.modules & !(1 << nm) } else { known.modules };
        self.tally.enter(Class::Hreq, nm, hm, u64::from(known.lines));
        self.list(unit, modules);
    }

    pub(super) fn strike_near(&mut self, unit: u32, node: u8) {
        let known = &mut self.units[unit as usize];
        known.near = known.near.without(node);
    }

    /// Lines pass from node to node of one module.
    pub(super) fn move_near(&mut self, from: u8, to: u8, lines: u64) {
        if from != to {
            let nodes = self.caches.len();
            self.tally.near[usize::from(from) * nodes + usize::from(to)] += lines;
        }
    }

    /// The switch of the home's module lists these modules.
    pub(super) fn list(&mut self, unit: u32, modules: u64) {
        let known = &mut self.units[unit as usize];
        let before = std::mem::replace(&mut known.modules, modules);
        let (home, lines) = (known.home, known.lines);
        if (before == 0) == (modules == 0) {
            return;
        }
        let directory = &mut self.directories[usize::from(self.module_of[usize::from(home)])];
        match modules {
            0 => {
                directory.strike(lines);
                self.units[unit as usize].entry = 0;
            }
            _ => {
                let entry = directory.list(unit, lines);
                self.units[unit as usize].entry = entry;
            }
        }
    }

    /// After a pass over part of a unit: the directory counts whole units.
    fn relist(&mut self, unit: u32, listed: bool, counted: u32) {
        let known = self.units[unit as usize];
        let module = usize::from(self.module(known.home));
        let more = known.lines - counted;
        if more == 0 || listed == (known.modules != 0) {
            return;
        }
        self.directories[module].adjust(known.modules != 0, more);
    }
}
