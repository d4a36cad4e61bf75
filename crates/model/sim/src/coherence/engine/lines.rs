//! Registered data as units: where they lie, and which units a range of bytes touches.

use super::cache::NO_SLOT;
use super::regions::{Placed, Region, RegionId, Touch};
use super::units::{NO_NODE, NO_UNIT, Unit};
use super::{Engine, LINE};

impl Engine {
    /// Registers `bytes` bytes.
    pub fn register(&mut self, bytes: u64, placed: Placed) -> RegionId {
        let first = u32::try_from(self.units.len()).unwrap_or(NO_UNIT);
        let nodes = self.caches.len();
        let mut rest = bytes.div_ceil(LINE);
        let per_chunk = self.chunk / LINE;
        while rest > 0 {
            let lines = rest.min(per_chunk);
            rest -= lines;
            let home = match placed {
                Placed::FirstTouch => NO_NODE,
                Placed::At(node) => node,
                Placed::Interleaved => {
                    self.next_spread = (self.next_spread + 1) % nodes;
                    u8::try_from(self.next_spread).unwrap_or(0)
                }
            };
            self.units.push(Unit::new(u32::try_from(lines).unwrap_or(u32::MAX), home));
        }
        self.places.resize(self.units.len() * nodes, NO_SLOT);
        let id = RegionId(u32::try_from(self.regions.len()).unwrap_or(u32::MAX));
        self.regions.push(Region { first, bytes, gone: false });
        id
    }

    /// Data were freed: their lines leave all caches without a word.
    pub fn free(&mut self, region: RegionId) {
        let Some(known) = self.regions.get_mut(region.0 as usize) else { return };
        if std::mem::replace(&mut known.gone, true) {
            return;
        }
        let (first, bytes) = (known.first, known.bytes);
        for chunk in 0..bytes.div_ceil(self.chunk) {
            let mut unit = first + u32::try_from(chunk).unwrap_or(0);
            while unit != NO_UNIT {
                self.forget(unit);
                unit = self.units[unit as usize].next;
            }
        }
    }

    /// A task on a core of `node` goes through `bytes` bytes from `from` on, `passes` times as the
    /// last-level cache sees it.
    ///
    /// # Panics
    /// If there is no such region; what lies beyond its end is left out.
    pub fn touch(
        &mut self,
        node: u8,
        region: RegionId,
        from: u64,
        bytes: u64,
        touch: Touch,
        passes: f32,
    ) {
        let Region { first, bytes: whole, .. } = self.regions[region.0 as usize];
        let end = (from.saturating_add(bytes)).min(whole).div_ceil(LINE);
        let mut line = from / LINE;
        let per_chunk = self.chunk / LINE;
        while line < end {
            let chunk = line / per_chunk;
            let unit = first + u32::try_from(chunk).unwrap_or(0);
            let until = ((chunk + 1) * per_chunk).min(end);
            let whole_chunk = line == chunk * per_chunk
                && u64::from(self.units[unit as usize].lines) == until - line
                && self.units[unit as usize].next == NO_UNIT;
            match whole_chunk {
                true => self.touch_unit(node, unit, touch, passes),
                false => {
                    let skip = line - chunk * per_chunk;
                    self.touch_parts(node, unit, [skip, skip + until - line], touch, passes);
                }
            }
            line = until;
        }
    }

    /// A task on a core of `node` goes through the first `bytes` bytes of a region, `passes` times as the
    /// last-level cache sees it, and nothing of them stays there.
    ///
    /// # Panics
    /// If there is no such region.
    pub fn stream(&mut self, node: u8, region: RegionId, bytes: u64, touch: Touch, passes: f32) {
        if passes <= 0.0 {
            return;
        }
        let Region { first, bytes: whole, .. } = self.regions[region.0 as usize];
        let chunks = u32::try_from(bytes.min(whole).div_ceil(self.chunk)).unwrap_or(u32::MAX);
        for chunk in 0..chunks {
            let mut unit = first + chunk;
            while unit != NO_UNIT {
                self.stream_unit(node, unit, touch, passes);
                unit = self.units[unit as usize].next;
            }
        }
    }

    /// Touches lines `from..to` of a chunk, which is cut there if it is not yet.
    fn touch_parts(
        &mut self,
        node: u8,
        first: u32,
        [from, to]: [u64; 2],
        touch: Touch,
        passes: f32,
    ) {
        let (mut unit, mut at) = (first, 0);
        while unit != NO_UNIT && at < to {
            let lines = u64::from(self.units[unit as usize].lines);
            if at < from && from < at + lines {
                self.split(unit, from - at);
            } else if at >= from && to < at + lines {
                self.split(unit, to - at);
            }
            let lines = u64::from(self.units[unit as usize].lines);
            if at >= from && at + lines <= to {
                self.touch_unit(node, unit, touch, passes);
            }
            at += lines;
            unit = self.units[unit as usize].next;
        }
    }

    /// Cuts a unit after `keep` lines.
    fn split(&mut self, unit: u32, keep: u64) {
        let keep = u32::try_from(keep).unwrap_or(u32::MAX);
        let at = unit as usize;
        let rest = u32::try_from(self.units.len()).unwrap_or(NO_UNIT);
        let mut other = self.units[at];
        other.lines -= keep;
        self.units[at].lines = keep;
        self.units[at].next = rest;
        let nodes = self.caches.len();
        for node in 0..nodes {
            let slot = self.places[at * nodes + node];
            let new = match slot {
                NO_SLOT => NO_SLOT,
                slot => self.caches[node].split(slot, keep, rest),
            };
            self.places.push(new);
        }
        if other.modules != 0 {
            let home = usize::from(self.module(other.home));
            other.entry = self.directories[home].split(rest, other.lines);
        }
        self.units.push(other);
    }
}
