//! The children of one task, as far as memory orders them.

use super::segments::{Kind, Segments};
use crate::arena::slot::TaskRef;
use crate::arena::{Arena, TOKENS};
use crate::footprint::Mode;
use crate::range::{DataId, Range};

/// Segments beyond which dead ones are looked for.
const SWEEP_AT: usize = 4096;

/// Ranges and who used them last, among the children of one task.
#[derive(Debug, Default)]
pub(crate) struct Domain {
    segments: Segments,
    /// Segments of the access at hand.
    parts: Vec<u32>,
    /// Number of the next token.
    token: u16,
    /// Segments at which dead ones are looked for next.
    sweep_at: usize,
    /// Whether groups may share tokens. Not below a task that holds one: it would wait for itself.
    pub(crate) ordered: bool,
}

impl Domain {
    /// Enters a child's range: what it must wait for goes to `before` (a task may stand there more than
    /// once, or be over). Returns the token, plus one, that the child needs for this range, or 0.
    #[inline]
    pub(crate) fn enter(
        &mut self,
        arena: &Arena,
        me: TaskRef,
        range: Range,
        mode: Mode,
        before: &mut Vec<TaskRef>,
    ) -> u16 {
        let kind = self.kind(mode);
        if let Some(index) = self.segments.exact(range) {
            return self.apply(arena, index, me, kind, before);
        }
        self.enter_slowly(arena, me, range, kind, before)
    }

    fn kind(&self, mode: Mode) -> Kind {
        match mode {
            Mode::In => Kind::Read,
            Mode::Out | Mode::InOut => Kind::Write,
            Mode::Commutative | Mode::Reduce(_) if self.ordered => Kind::Write,
            Mode::Commutative => Kind::Commutative,
            Mode::Reduce(op) => Kind::Reduce(op),
        }
    }

    #[cold]
    fn enter_slowly(
        &mut self,
        arena: &Arena,
        me: TaskRef,
        range: Range,
        kind: Kind,
        before: &mut Vec<TaskRef>,
    ) -> u16 {
        self.sweep(arena);
        let mut parts = core::mem::take(&mut self.parts);
        self.segments.cover(range, &mut parts);
        // A group with a token is of one range: a task that names several keeps its place instead.
        let kind = match kind {
            Kind::Commutative | Kind::Reduce(_) if parts.len() > 1 => Kind::Write,
            kind => kind,
        };
        let mut token = 0;
        for &index in &parts {
            token = self.apply(arena, index, me, kind, before);
        }
        if kind == Kind::Write && parts.len() > 1 {
            self.segments.merge(&parts);
        }
        self.parts = parts;
        token
    }

    /// Joins the group of a segment, or begins a new one.
    #[inline]
    fn apply(
        &mut self,
        arena: &Arena,
        index: u32,
        me: TaskRef,
        kind: Kind,
        before: &mut Vec<TaskRef>,
    ) -> u16 {
        let segment = self.segments.get(index);
        let joins =
            segment.kind == kind && (kind == Kind::Read || (kind != Kind::Write && segment.whole));
        if joins {
            before.extend_from_slice(&segment.front);
            if segment.group.len() == segment.group.capacity() {
                segment.group.retain(|task| arena.is_live(*task));
            }
            segment.group.push(me);
            return segment.token;
        }
        before.extend_from_slice(&segment.group);
        core::mem::swap(&mut segment.front, &mut segment.group);
        segment.group.clear();
        segment.group.push(me);
        segment.kind = kind;
        segment.whole = true;
        segment.token = match kind {
            Kind::Write | Kind::Read => 0,
            Kind::Commutative | Kind::Reduce(_) => {
                self.token = (self.token + 1) % TOKENS;
                self.token + 1
            }
        };
        segment.token
    }

    /// Tasks that somebody who uses `range` like this must wait for. Enters nothing.
    pub(crate) fn look(&mut self, range: Range, mode: Mode, before: &mut Vec<TaskRef>) {
        let mut parts = core::mem::take(&mut self.parts);
        self.segments.overlapping(range, &mut parts);
        for &index in &parts {
            let segment = self.segments.get(index);
            let reads = mode == Mode::In && segment.kind == Kind::Read;
            before.extend_from_slice(if reads { &segment.front } else { &segment.group });
        }
        self.parts = parts;
    }

    /// Data that is no more: its ranges mean nothing.
    pub(crate) fn forget(&mut self, data: DataId) {
        self.segments.forget(data);
    }

    /// Bounds the memory: segments without living tasks order nothing.
    fn sweep(&mut self, arena: &Arena) {
        if self.segments.len() >= self.sweep_at.max(SWEEP_AT) {
            self.segments.sweep(|task| arena.is_live(task));
            self.sweep_at = 2 * self.segments.len();
        }
    }
}
