//! Disjoint byte ranges, each with the tasks that last used it: found by one look where the same range
//! comes again, by an ordered map where ranges overlap in part.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::arena::slot::TaskRef;
use crate::footprint::Op;
use crate::range::{DataId, Range};

/// What the tasks of a group do, all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// One task that writes.
    Write,
    /// Tasks that read.
    Read,
    /// Tasks that write one after the other, in any order.
    Commutative,
    /// Tasks that add.
    Reduce(Op),
}

/// A range whose bytes have one history.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) range: Range,
    /// What a task that joins the group waits for.
    pub(super) front: Vec<TaskRef>,
    /// The tasks that used the range last, at once.
    pub(super) group: Vec<TaskRef>,
    pub(super) kind: Kind,
    /// Token of the group, where it needs one.
    pub(super) token: u16,
    /// Whether the group's tasks named exactly this range: only then may others join a group that
    /// shares a token.
    pub(super) whole: bool,
}

/// Segments of all data that the children of one task used.
#[derive(Debug, Default)]
pub(super) struct Segments {
    all: Vec<Segment>,
    /// Numbers of segments that are not in use.
    free: Vec<u32>,
    /// By data and first byte.
    ordered: BTreeMap<(u32, u64), u32>,
    /// The same, without order.
    starts: FxHashMap<(u32, u64), u32>,
}

impl Segments {
    pub(super) fn len(&self) -> usize {
        self.ordered.len()
    }

    #[inline]
    pub(super) fn get(&mut self, index: u32) -> &mut Segment {
        &mut self.all[index as usize]
    }

    /// The segment that is exactly `range`.
    #[inline]
    pub(super) fn exact(&self, range: Range) -> Option<u32> {
        let index = *self.starts.get(&(range.data.0, range.start))?;
        (self.all[index as usize].range == range).then_some(index)
    }

    /// Segments that share a byte with `range`, in order.
    pub(super) fn overlapping(&self, range: Range, out: &mut Vec<u32>) {
        out.clear();
        let data = range.data.0;
        let before = self.ordered.range(..(data, range.start)).next_back();
        let before = before.filter(|(_, index)| self.all[**index as usize].range.overlaps(range));
        out.extend(before.map(|(_, index)| *index));
        let rest = self.ordered.range((data, range.start)..(data, range.end()));
        out.extend(rest.map(|(_, index)| *index));
    }

    /// A new segment without history.
    pub(super) fn insert(&mut self, range: Range) -> u32 {
        let segment = Segment {
            range,
            front: Vec::new(),
            group: Vec::new(),
            kind: Kind::Write,
            token: 0,
            whole: false,
        };
        let index = if let Some(index) = self.free.pop() {
            self.all[index as usize] = segment;
            index
        } else {
            self.all.push(segment);
            u32::try_from(self.all.len() - 1).unwrap_or(u32::MAX)
        };
        self.ordered.insert((range.data.0, range.start), index);
        self.starts.insert((range.data.0, range.start), index);
        index
    }

    pub(super) fn remove(&mut self, index: u32) {
        let range = self.all[index as usize].range;
        self.ordered.remove(&(range.data.0, range.start));
        self.starts.remove(&(range.data.0, range.start));
        self.free.push(index);
    }

    /// Cuts a segment at a byte inside of it; the new one begins there.
    fn split(&mut self, index: u32, at: u64) -> u32 {
        let segment = self.get(index);
        let whole = segment.range;
        segment.range.bytes = at - whole.start;
        segment.whole = false;
        let (front, group) = (segment.front.clone(), segment.group.clone());
        let (kind, token) = (segment.kind, segment.token);
        let second = self.insert(Range { start: at, bytes: whole.end() - at, ..whole });
        let other = self.get(second);
        (other.front, other.group, other.kind, other.token) = (front, group, kind, token);
        second
    }

    /// Cuts and fills so that segments cover `range` and nothing beyond it; they are in `out`, in
    /// order.
    pub(super) fn cover(&mut self, range: Range, out: &mut Vec<u32>) {
        self.overlapping(range, out);
        if let Some(&first) = out.first()
            && self.get(first).range.start < range.start
        {
            out[0] = self.split(first, range.start);
        }
        if let Some(&last) = out.last()
            && self.get(last).range.end() > range.end()
        {
            self.split(last, range.end());
        }
        let (mut at, mut i) = (range.start, 0);
        while at < range.end() {
            let next =
                out.get(i).map_or(range.end(), |index| self.all[*index as usize].range.start);
            if at < next {
                let filled = self.insert(Range { start: at, bytes: next - at, ..range });
                out.insert(i, filled);
                at = next;
            } else {
                at = self.all[out[i] as usize].range.end();
            }
            i += 1;
        }
    }

    /// Makes one segment of neighbours that cover a range; the first one's history stays.
    pub(super) fn merge(&mut self, parts: &[u32]) -> u32 {
        let end = parts.last().map_or(0, |last| self.get(*last).range.end());
        for part in &parts[1..] {
            self.remove(*part);
        }
        let first = self.get(parts[0]);
        first.range.bytes = end - first.range.start;
        parts[0]
    }

    /// Leaves out segments whose every task is over.
    pub(super) fn sweep(&mut self, is_live: impl Fn(TaskRef) -> bool) {
        let dead: Vec<u32> = self
            .ordered
            .values()
            .copied()
            .filter(|index| {
                let segment = &self.all[*index as usize];
                !segment.group.iter().chain(&segment.front).any(|task| is_live(*task))
            })
            .collect();
        for index in dead {
            self.remove(index);
        }
    }

    /// Forgets everything about one piece of data.
    pub(super) fn forget(&mut self, data: DataId) {
        let of_data: Vec<u32> =
            self.ordered.range((data.0, 0)..=(data.0, u64::MAX)).map(|(_, index)| *index).collect();
        for index in of_data {
            self.remove(index);
        }
    }
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, end: u64) -> Range {
        Range { data: DataId(7), start, bytes: end - start }
    }

    fn bounds(segments: &mut Segments, parts: &[u32]) -> Vec<(u64, u64)> {
        parts.iter().map(|i| segments.get(*i).range).map(|r| (r.start, r.end())).collect()
    }

    #[test]
    fn a_range_is_covered_exactly_and_what_was_there_is_cut() {
        let mut segments = Segments::default();
        let mut out = Vec::new();
        segments.cover(range(10, 20), &mut out);
        assert_eq!(bounds(&mut segments, &out), [(10, 20)]);
        segments.cover(range(30, 40), &mut out);
        segments.cover(range(15, 35), &mut out);
        assert_eq!(bounds(&mut segments, &out), [(15, 20), (20, 30), (30, 35)]);
        segments.overlapping(range(0, 100), &mut out);
        assert_eq!(bounds(&mut segments, &out), [(10, 15), (15, 20), (20, 30), (30, 35), (35, 40)]);
        segments.cover(range(12, 13), &mut out);
        assert_eq!(bounds(&mut segments, &out), [(12, 13)]);
        assert_eq!(segments.len(), 7);
        let other = Range { data: DataId(8), start: 12, bytes: 1 };
        segments.overlapping(other, &mut out);
        assert!(out.is_empty());
    }

    #[test]
    fn a_segment_is_found_again_whatever_happened_to_others() {
        let mut segments = Segments::default();
        let mut out = Vec::new();
        for i in 0..1000 {
            segments.cover(range(i * 8, i * 8 + 8), &mut out);
        }
        for i in 0..1000 {
            let index = segments.exact(range(i * 8, i * 8 + 8)).expect("nothing touched it");
            assert_eq!(segments.get(index).range, range(i * 8, i * 8 + 8));
            assert_eq!(segments.exact(range(i * 8, i * 8 + 7)), None);
        }
        segments.cover(range(0, 8000), &mut out);
        assert_eq!(out.len(), 1000);
        let merged = segments.merge(&out);
        assert_eq!(segments.get(merged).range, range(0, 8000));
        assert_eq!((segments.len(), segments.exact(range(8, 16))), (1, None));
        assert_eq!(segments.exact(range(0, 8000)), Some(merged));
    }
}
