//! The directory of a switch: how many lines it lists, and which entry leaves when it is full.
//!
//! Which modules an entry lists stands in the unit itself. Here is only the order in which entries were
//! made: the oldest leaves first (how a real one chooses is not published). A directory that can never be
//! full keeps no order.

use std::collections::VecDeque;

/// One module's directory.
#[derive(Clone, Debug)]
pub(super) struct Directory {
    limit: u64,
    bounded: bool,
    listed: u64,
    most: u64,
    evicted: u64,
    /// Unit and number of the entry, oldest first; entries that are gone stay until they reach the front.
    order: VecDeque<(u32, u32)>,
    made: u32,
}

impl Directory {
    pub(super) const fn new(limit: u64, bounded: bool) -> Self {
        Self { limit, bounded, listed: 0, most: 0, evicted: 0, order: VecDeque::new(), made: 0 }
    }

    /// A unit is listed from now on; the number of its entry.
    pub(super) fn list(&mut self, unit: u32, lines: u32) -> u32 {
        self.listed += u64::from(lines);
        self.most = self.most.max(self.listed);
        self.made = self.made.wrapping_add(1);
        if self.bounded {
            self.order.push_back((unit, self.made));
        }
        self.made
    }

    /// A part of a unit that is listed becomes a unit of its own; the number of its entry.
    pub(super) fn split(&mut self, unit: u32, lines: u32) -> u32 {
        self.listed -= u64::from(lines);
        self.list(unit, lines)
    }

    /// A unit's entry stands for so many lines more, or so many fewer.
    pub(super) fn adjust(&mut self, listed: bool, lines: u32) {
        match listed {
            true => self.listed += u64::from(lines),
            false => self.listed -= u64::from(lines),
        }
        self.most = self.most.max(self.listed);
    }

    /// A unit is listed no more.
    pub(super) const fn strike(&mut self, lines: u32) {
        self.listed -= lines as u64;
    }

    /// The oldest entry, if there are too many. The caller says of each whether it still is one.
    pub(super) fn victim(&mut self, is_entry: impl Fn(u32, u32) -> bool) -> Option<u32> {
        if self.listed <= self.limit {
            if self.bounded && self.order.len() > 64 && self.order.len() as u64 > 4 * self.listed {
                self.order.retain(|(unit, entry)| is_entry(*unit, *entry));
            }
            return None;
        }
        while let Some((unit, entry)) = self.order.pop_front() {
            if is_entry(unit, entry) {
                return Some(unit);
            }
        }
        None
    }

    /// An entry was evicted.
    pub(super) const fn count_eviction(&mut self, lines: u32) {
        self.evicted += lines as u64;
    }

    /// Lines listed now, most lines listed, lines evicted.
    pub(super) const fn figures(&self) -> (u64, u64, u64) {
        (self.listed, self.most, self.evicted)
    }
}
