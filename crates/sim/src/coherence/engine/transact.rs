//! What one touch of a unit does: the same transactions as in `protocol`, one at a time, with the messages of
//! all lines of the unit counted at once. A test drives both with the same random accesses and compares.

use super::Engine;
use super::cache::NO_SLOT;
use super::lines::Touch;
use super::units::{Exported, NO_NODE};
use crate::coherence::message::{Class, Direction};
use crate::coherence::nodes::NodeSet;

/// Where the data of a transaction come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Memory,
    Cache(u8),
    /// The requester has them.
    Own,
}

/// What a snooped set of caches did.
#[derive(Clone, Copy, Debug, Default)]
struct Snooped {
    sender: Option<u8>,
    modified: bool,
    kept: bool,
}

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

    fn hold(&mut self, node: u8, unit: u32) {
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
    fn lose(&mut self, node: u8, unit: u32) {
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
        if !alone {
            return;
        }
        let told = self.choices.clean_evictions_told;
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
                self.units[unit as usize].exported = Exported::No;
            }
            (false, false) if told => {
                self.tally.enter(Class::Hreq, nm, hm, lines);
                self.list(unit, 0);
                self.units[unit as usize].alone = false;
            }
            (false, _) => {}
        }
    }

    fn strike_near(&mut self, unit: u32, node: u8) {
        let known = &mut self.units[unit as usize];
        known.near = known.near.without(node);
    }

    /// Lines pass from node to node of one module.
    fn move_near(&mut self, from: u8, to: u8, lines: u64) {
        if from != to {
            let nodes = self.caches.len();
            self.tally.near[usize::from(from) * nodes + usize::from(to)] += lines;
        }
    }

    /// The switch of the home's module lists these modules.
    fn list(&mut self, unit: u32, modules: u64) {
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

    /// Entries leave while a directory lists too many lines.
    fn keep_directory(&mut self, module: u8) {
        loop {
            let units = &self.units;
            let is_entry = |unit: u32, entry: u32| units[unit as usize].entry == entry;
            let Some(unit) = self.directories[usize::from(module)].victim(is_entry) else { break };
            self.directories[usize::from(module)].count_eviction(self.units[unit as usize].lines);
            self.evict_entry(unit);
        }
    }

    /// The switch drops an entry: every copy outside is called in.
    pub(super) fn evict_entry(&mut self, unit: u32) {
        let known = self.units[unit as usize];
        let (hm, lines) = (self.module(known.home), u64::from(known.lines));
        let asked = self.topology.nodes_in(known.modules);
        let dirty = known.dirty && asked.has(known.owner);
        for node in asked.iter() {
            self.snoop_from_switch(hm, node, lines);
            self.lose(node, unit);
        }
        if dirty {
            self.tally.cross(Class::Dwb, self.module(known.owner), hm, lines);
            self.tally.local(Class::Hreq, hm, Direction::Out, lines);
            self.tally.local(Class::Ndr, hm, Direction::In, lines);
            self.tally.memory_writes[usize::from(known.home)] += lines;
            self.units[unit as usize].exported = Exported::No;
        }
        self.list(unit, 0);
        self.units[unit as usize].alone = false;
    }

    /// The switch of `hm` asks a cache elsewhere, and is answered.
    fn snoop_from_switch(&mut self, hm: u8, node: u8, lines: u64) {
        let at = self.module(node);
        self.tally.leave(Class::Snp, hm, at, lines);
        self.tally.enter(Class::Hrsp, at, hm, lines);
    }

    /// One cache is asked for a copy (`take` false) or to give its copy up. It sends the data if it may and
    /// is the one that forwards.
    fn snoop_cache(&mut self, node: u8, unit: u32, take: bool, sends: bool) -> Snooped {
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
    fn snoop_inside(&mut self, node: u8, unit: u32, take: bool, sends: bool) -> Snooped {
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
    fn snoop_outside(&mut self, unit: u32, take: bool, sends: bool) -> Snooped {
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

    fn read_inside(&mut self, node: u8, unit: u32) {
        let home = self.units[unit as usize].home;
        let inside = self.snoop_inside(node, unit, false, true);
        let blind = !self.choices.memory_directory && self.topology.modules() > 1;
        let mut sender = inside.sender;
        if blind || self.units[unit as usize].exported == Exported::Any {
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
    fn arrived(&mut self, node: u8, unit: u32, source: Source) {
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

    fn read_outside(&mut self, node: u8, unit: u32) {
        let known = self.units[unit as usize];
        let (hm, nm, lines) = (self.module(known.home), self.module(node), u64::from(known.lines));
        self.tally.enter(Class::Hreq, nm, hm, lines);
        let asks = known.alone || !self.choices.filter;
        let asked = if asks { self.listed(hm, known.modules) } else { NodeSet::EMPTY };
        let asked = asked.without(node);
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
        let shared = inside.kept || !known.near.is_empty() || known.modules != 0;
        let alone = inside.sender.is_none() && !shared;
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
    fn answered_by_home(&mut self, hm: u8, nm: u8, lines: u64, from_cache: bool) {
        self.tally.cross(Class::Dtc, hm, nm, lines);
        self.tally.leave(Class::Ndr, hm, nm, lines);
        if from_cache {
            self.tally.local(Class::Ndr, hm, Direction::In, lines);
        }
    }

    /// The switch asks caches of the modules that it lists, for a requester of another module.
    fn ask_modules(&mut self, node: u8, unit: u32, asked: NodeSet, take: bool) -> Snooped {
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
    fn told_home(&mut self, unit: u32, from: u8, data: bool) {
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

    fn own_inside(&mut self, node: u8, unit: u32, held: bool) {
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

    fn own_outside(&mut self, node: u8, unit: u32, held: bool) {
        let known = self.units[unit as usize];
        let (hm, nm, lines) = (self.module(known.home), self.module(node), u64::from(known.lines));
        self.tally.enter(Class::Hreq, nm, hm, lines);
        let asks = known.alone || !self.choices.filter;
        let asked = if asks { self.listed(hm, known.modules) } else { NodeSet::EMPTY };
        let asked = asked.without(node);
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
