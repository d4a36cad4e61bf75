//! Entries that leave a switch's directory for want of room.

use super::Engine;
use crate::coherence::message::{Class, Direction};

impl Engine {
    /// Entries leave while a directory lists too many lines.
    pub(super) fn keep_directory(&mut self, module: u8) {
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
        }
        self.list(unit, 0);
        self.units[unit as usize].alone = false;
    }

    /// The switch of `hm` asks a cache elsewhere, and is answered.
    pub(super) fn snoop_from_switch(&mut self, hm: u8, node: u8, lines: u64) {
        let at = self.module(node);
        self.tally.leave(Class::Snp, hm, at, lines);
        self.tally.enter(Class::Hrsp, at, hm, lines);
    }
}
