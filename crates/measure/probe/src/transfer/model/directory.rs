//! Who holds which line on a modelled stage.
//!
//! It knows no costs. What somebody else's work pushes out of a core's caches is gone from there; a line that all
//! cores have lost is in memory.

use std::collections::HashMap;

use isochrone_sim::synthetic::SyntheticMemory;
use isochrone_units::{CoreId, LineAddr};

/// The lines that cores have.
#[derive(Debug)]
pub(super) struct Directory {
    lines: HashMap<LineAddr, Copies>,
    /// How often each core had lost its lines when that was looked at last.
    evictions: Vec<u64>,
    /// A load that misses brings the other half of the pair along.
    pair_prefetch: bool,
}

/// Who holds a line.
#[derive(Clone, Debug, Default)]
pub(super) struct Copies {
    /// In the order in which they got it; the first is the owner.
    pub(super) holders: Vec<CoreId>,
    pub(super) dirty: bool,
    pub(super) value: u64,
    /// Somebody else's work has pushed it out of a cache since it was written.
    pub(super) lost: bool,
}

impl Directory {
    pub(super) fn new(memory: &SyntheticMemory) -> Self {
        Self {
            lines: HashMap::new(),
            evictions: vec![0; memory.cores()],
            pair_prefetch: memory.spec().transfers.terms.pair_prefetch,
        }
    }

    pub(super) fn get(&self, line: LineAddr) -> Option<&Copies> {
        self.lines.get(&line)
    }

    pub(super) fn value(&self, line: LineAddr) -> u64 {
        self.get(line).map_or(0, |copies| copies.value)
    }

    pub(super) fn holders(&self, line: LineAddr) -> &[CoreId] {
        self.get(line).map_or(&[], |copies| &copies.holders)
    }

    pub(super) fn holds(&self, core: CoreId, line: LineAddr) -> bool {
        self.holders(line).contains(&core)
    }

    /// Whether somebody else's work has pushed the line out of the last cache that had it.
    pub(super) fn is_in_memory(&self, line: LineAddr) -> bool {
        self.get(line).is_some_and(|copies| copies.lost && copies.holders.is_empty())
    }

    /// Whether only others have the other half of the line's pair.
    pub(super) fn neighbour_is_anothers(&self, core: CoreId, line: LineAddr) -> bool {
        let holders = self.holders(neighbour(line));
        !holders.is_empty() && !holders.contains(&core)
    }

    /// Takes lines from the cores that somebody else's work has pushed them out of.
    pub(super) fn forget_evicted(&mut self, memory: &mut SyntheticMemory) {
        if memory.spec().neighbours.is_empty() {
            return;
        }
        for (core, seen) in (0..).map(CoreId).zip(&mut self.evictions) {
            let evictions = memory.evictions(core);
            if evictions == *seen {
                continue;
            }
            *seen = evictions;
            for copies in self.lines.values_mut().filter(|c| c.holders.contains(&core)) {
                copies.holders.retain(|holder| *holder != core);
                copies.lost = true;
            }
        }
    }

    pub(super) fn write(&mut self, core: CoreId, line: LineAddr, value: u64) {
        self.lines.insert(line, Copies { holders: vec![core], dirty: true, value, lost: false });
    }

    pub(super) fn own(&mut self, core: CoreId, line: LineAddr) {
        let copies = self.lines.entry(line).or_default();
        (copies.holders, copies.dirty, copies.lost) = (vec![core], false, false);
    }

    pub(super) fn read(&mut self, core: CoreId, line: LineAddr) {
        let missed = !self.holds(core, line);
        self.share(core, line);
        let pair = neighbour(line);
        if self.pair_prefetch && missed && !self.holders(pair).is_empty() {
            self.share(core, pair);
        }
    }

    fn share(&mut self, core: CoreId, line: LineAddr) {
        let copies = self.lines.entry(line).or_default();
        if !copies.holders.contains(&core) {
            copies.holders.push(core);
            copies.dirty = false;
        }
    }
}

/// The other half of a line's 128-byte pair.
const fn neighbour(line: LineAddr) -> LineAddr {
    LineAddr(line.0 ^ 1)
}
