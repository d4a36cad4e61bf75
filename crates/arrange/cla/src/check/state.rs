//! A program as the checker takes it, and the states that it goes through.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::contents::{Content, Contents, UNWRITTEN};
use super::fault::{Fault, FaultKind, Step};
use crate::program::{Buffer, Combine, Compare, Line, Operation, Place, Rank, Recorded, Span};

/// Units of bytes that follow one another, in shared lines or in a rank's own buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Units {
    pub(super) shared: bool,
    first: usize,
    count: usize,
}

impl Units {
    fn range(self) -> std::ops::Range<usize> {
        self.first..self.first + self.count
    }

    /// The first unit that both have, if any; only shared ones meet.
    pub(super) fn meets(self, other: Self) -> Option<usize> {
        let first = self.first.max(other.first);
        let end = self.range().end.min(other.range().end);
        (self.shared && other.shared && first < end).then_some(first)
    }
}

/// What an operation does to the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Wait { line: usize, compare: Compare, value: u64 },
    Write { line: usize, value: u64 },
    Add { line: usize, value: u64 },
    Move { src: Units, dst: Units, combine: Option<Combine> },
    Nothing,
}

/// A program over some calls.
#[derive(Debug)]
pub(super) struct Program {
    /// The operations of each rank, call after call.
    pub(super) steps: Vec<Vec<Step>>,
    pub(super) actions: Vec<Vec<Action>>,
    lines: usize,
    unit_bytes: u32,
    /// Units of each rank's send buffer; those of its receive buffer come after them.
    send_units: Vec<usize>,
    private_units: Vec<usize>,
}

impl Program {
    /// The program of some calls.
    pub(super) fn of(calls: &[Recorded], ranks: usize) -> Result<Self, Box<Fault>> {
        let mut steps: Vec<Vec<Step>> = vec![Vec::new(); ranks];
        for (call, recorded) in calls.iter().enumerate() {
            for ((rank, record), steps) in (0..).map(Rank).zip(&recorded.ranks).zip(&mut steps) {
                let all = record.operations.iter().enumerate();
                steps.extend(all.map(|(at, &operation)| Step { rank, call, at, operation }));
            }
        }
        let spans = || steps.iter().flatten().flat_map(|step| spans(&step.operation));
        let unit_bytes = spans()
            .flat_map(|span| [span.offset, span.bytes])
            .fold(Line::WORD_BYTES, greatest_common_divisor);
        let private = |rank: usize, of: Buffer| {
            let own = steps[rank].iter().flat_map(|step| spans_of(&step.operation, of));
            let end = own.map(|span| span.offset + span.bytes).max().unwrap_or(0);
            (end / unit_bytes) as usize
        };
        let send_units: Vec<usize> = (0..ranks).map(|rank| private(rank, Buffer::Send)).collect();
        let private_units =
            (0..ranks).map(|r| send_units[r] + private(r, Buffer::Receive)).collect();
        let lines = calls.iter().map(Recorded::lines).max().unwrap_or(0) as usize;
        let mut program =
            Self { steps, actions: Vec::new(), lines, unit_bytes, send_units, private_units };
        let action = |step: &Step| program.action(step);
        program.actions =
            program.steps.iter().map(|steps| steps.iter().map(action).collect()).collect();
        program.words_are_apart()?;
        Ok(program)
    }

    fn action(&self, step: &Step) -> Action {
        let line = |line: Line| line.0 as usize;
        match step.operation {
            Operation::Wait { line: l, compare, value } => {
                Action::Wait { line: line(l), compare, value }
            }
            Operation::Write { line: l, value } => Action::Write { line: line(l), value },
            Operation::Add { line: l, value } => Action::Add { line: line(l), value },
            Operation::Copy { src, dst } => {
                let (src, dst) = (self.units(step.rank, src), self.units(step.rank, dst));
                Action::Move { src, dst, combine: None }
            }
            Operation::Reduce { combine, src, dst } => {
                let (src, dst) = (self.units(step.rank, src), self.units(step.rank, dst));
                Action::Move { src, dst, combine: Some(combine) }
            }
            Operation::Claim { .. } => Action::Nothing,
        }
    }

    fn units(&self, rank: Rank, span: Span) -> Units {
        let in_units = |bytes: u32| (bytes / self.unit_bytes) as usize;
        let (shared, before) = match span.place {
            Place::Shared(line) => (true, line.0 as usize * self.units_per_line()),
            Place::Private(Buffer::Send) => (false, 0),
            Place::Private(Buffer::Receive) => (false, self.send_units[rank.index()]),
        };
        Units { shared, first: before + in_units(span.offset), count: in_units(span.bytes) }
    }

    const fn units_per_line(&self) -> usize {
        (Line::BYTES / self.unit_bytes) as usize
    }

    /// The line of a shared unit.
    pub(super) fn line_of(&self, unit: usize) -> u32 {
        u32::try_from(unit / self.units_per_line()).unwrap_or(u32::MAX)
    }

    /// No payload lies where a flag or a counter is.
    fn words_are_apart(&self) -> Result<(), Box<Fault>> {
        let mut is_word = vec![false; self.lines];
        for action in self.actions.iter().flatten() {
            if let Action::Wait { line, .. }
            | Action::Write { line, .. }
            | Action::Add { line, .. } = action
            {
                is_word[*line] = true;
            }
        }
        let per_line = self.units_per_line();
        let word = (Line::WORD_BYTES / self.unit_bytes) as usize;
        for (&step, action) in self.steps.iter().flatten().zip(self.actions.iter().flatten()) {
            let Action::Move { dst, .. } = action else { continue };
            let on_word =
                dst.range().find(|u| dst.shared && u % per_line < word && is_word[u / per_line]);
            if let Some(unit) = on_word {
                let kind = FaultKind::Word { step, line: self.line_of(unit) };
                return Err(Box::new(Fault { kind, after: Vec::new() }));
            }
        }
        Ok(())
    }

    /// How many ranks.
    pub(super) const fn ranks(&self) -> usize {
        self.steps.len()
    }

    /// No contents yet, in units of this program.
    pub(super) fn contents(&self) -> Contents {
        Contents::new(self.unit_bytes)
    }

    /// Nobody has done anything.
    pub(super) fn start(&self, contents: &mut Contents) -> State {
        let private = |rank: usize| {
            let given = |unit: usize| {
                let (buffer, unit) = match unit.checked_sub(self.send_units[rank]) {
                    Some(unit) => (Buffer::Receive, unit),
                    None => (Buffer::Send, unit),
                };
                contents.given(rank_of(rank), buffer, short(unit), 0)
            };
            (0..self.private_units[rank]).map(given).collect()
        };
        State {
            next: vec![0; self.ranks()],
            words: vec![0; self.lines],
            shared: vec![UNWRITTEN; self.lines * self.units_per_line()],
            private: (0..self.ranks()).map(private).collect(),
        }
    }

    /// What rank `rank` has received.
    pub(super) fn received<'a>(&self, state: &'a State, rank: usize) -> &'a [Content] {
        &state.private[rank][self.send_units[rank]..]
    }
}

/// How far every rank is, and what memory holds.
#[derive(Clone, Debug)]
pub(super) struct State {
    /// The next operation of each rank.
    pub(super) next: Vec<usize>,
    pub(super) words: Vec<u64>,
    shared: Vec<Content>,
    /// What each rank's buffers hold. This follows from how far the rank is, as long as no operation reads
    /// one thing in one order and another in another; so it is no part of a fingerprint.
    private: Vec<Vec<Content>>,
}

/// What was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// Nothing that is shared.
    Nothing,
    /// These contents.
    Contents(Vec<Content>),
    /// From a unit where nobody has written.
    Unwritten(usize),
}

impl State {
    /// The next operation of a rank.
    pub(super) fn action(&self, program: &Program, rank: usize) -> Option<Action> {
        program.actions[rank].get(self.next[rank]).copied()
    }

    /// Whether a rank can go on.
    pub(super) fn goes_on(&self, program: &Program, rank: usize) -> bool {
        match self.action(program, rank) {
            None => false,
            Some(Action::Wait { line, compare, value }) => compare.holds(self.words[line], value),
            Some(_) => true,
        }
    }

    /// A rank does its next operation; what that reads.
    pub(super) fn advance(
        &mut self,
        program: &Program,
        contents: &mut Contents,
        rank: usize,
    ) -> Read {
        let at = self.next[rank];
        let step = program.steps[rank][at];
        if at > 0 && program.steps[rank][at - 1].call != step.call {
            for unit in 0..program.send_units[rank] {
                self.private[rank][unit] =
                    contents.given(step.rank, Buffer::Send, short(unit), step.call);
            }
        }
        self.next[rank] += 1;
        match program.actions[rank][at] {
            Action::Wait { .. } | Action::Nothing => Read::Nothing,
            Action::Write { line, value } => {
                self.words[line] = value;
                Read::Nothing
            }
            Action::Add { line, value } => {
                self.words[line] = self.words[line].wrapping_add(value);
                Read::Nothing
            }
            Action::Move { src, dst, combine } => self.copy(contents, rank, src, dst, combine),
        }
    }

    fn copy(
        &mut self,
        contents: &mut Contents,
        rank: usize,
        src: Units,
        dst: Units,
        combine: Option<Combine>,
    ) -> Read {
        let read = |state: &Self, units: Units| -> Vec<Content> {
            let from = if units.shared { &state.shared } else { &state.private[rank] };
            from[units.range()].to_vec()
        };
        let from = read(self, src);
        let mut seen = if src.shared { from.clone() } else { Vec::new() };
        let mut unwritten = first_unwritten(src, &from);
        let new = match combine {
            None => from,
            Some(combine) => {
                let to = read(self, dst);
                if dst.shared {
                    seen.extend(&to);
                }
                unwritten = unwritten.or_else(|| first_unwritten(dst, &to));
                let pairs = to.into_iter().zip(from);
                pairs.map(|(left, right)| contents.combined(combine, left, right)).collect()
            }
        };
        let to = if dst.shared { &mut self.shared } else { &mut self.private[rank] };
        to[dst.range()].copy_from_slice(&new);
        match unwritten {
            Some(unit) => Read::Unwritten(unit),
            None if seen.is_empty() => Read::Nothing,
            None => Read::Contents(seen),
        }
    }

    /// 128 bits that tell the state from others.
    pub(super) fn fingerprint(&self) -> (u64, u64) {
        let half = |salt: u8| {
            let mut hasher = DefaultHasher::new();
            (salt, &self.next, &self.words, &self.shared).hash(&mut hasher);
            hasher.finish()
        };
        (half(0), half(1))
    }
}

fn first_unwritten(units: Units, contents: &[Content]) -> Option<usize> {
    let at = contents.iter().position(|&content| units.shared && content == UNWRITTEN)?;
    Some(units.first + at)
}

fn spans(operation: &Operation) -> Vec<Span> {
    match *operation {
        Operation::Copy { src, dst } | Operation::Reduce { src, dst, .. } => vec![src, dst],
        _ => Vec::new(),
    }
}

fn spans_of(operation: &Operation, buffer: Buffer) -> impl Iterator<Item = Span> {
    spans(operation).into_iter().filter(move |span| span.place == Place::Private(buffer))
}

const fn greatest_common_divisor(mut a: u32, mut b: u32) -> u32 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn rank_of(rank: usize) -> Rank {
    Rank(u16::try_from(rank).unwrap_or(u16::MAX))
}

fn short(unit: usize) -> u32 {
    u32::try_from(unit).unwrap_or(u32::MAX)
}
