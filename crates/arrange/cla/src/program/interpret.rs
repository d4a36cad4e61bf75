//! Programs on plain bytes, one operation of one rank at a time: what a call must leave in every buffer.
//!
//! It knows no time and no caches. Whoever calls it says whose turn it is.

use super::operation::Operation;
use super::place::{Buffer, Line, Place, Rank, Span};
use super::record::Recorded;

/// Shared lines, all zero at first, and the buffers of every rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    lines: Vec<u8>,
    /// What each rank gives.
    pub send: Vec<Vec<u8>>,
    /// What each rank gets.
    pub receive: Vec<Vec<u8>>,
}

impl Memory {
    /// With `lines` lines and these buffers, one of each kind for a rank.
    #[must_use]
    pub fn new(lines: u32, send: Vec<Vec<u8>>, receive: Vec<Vec<u8>>) -> Self {
        Self { lines: vec![0; lines as usize * Line::BYTES as usize], send, receive }
    }

    fn bytes(&mut self, rank: Rank, span: Span) -> &mut [u8] {
        let (memory, base) = match span.place {
            Place::Shared(line) => (&mut self.lines, line.0 as usize * Line::BYTES as usize),
            Place::Private(Buffer::Send) => (&mut self.send[rank.index()], 0),
            Place::Private(Buffer::Receive) => (&mut self.receive[rank.index()], 0),
        };
        let from = base + span.offset as usize;
        &mut memory[from..from + span.bytes as usize]
    }

    fn word(&mut self, line: Line) -> u64 {
        let word = self.bytes(Rank(0), line.whole(Line::WORD_BYTES));
        word.try_into().map_or(0, u64::from_ne_bytes)
    }

    fn set(&mut self, line: Line, value: u64) {
        let word = self.bytes(Rank(0), line.whole(Line::WORD_BYTES));
        word.copy_from_slice(&value.to_ne_bytes());
    }

    /// Does an operation of `rank`. A wait is done when its word is what it waits for.
    ///
    /// # Panics
    /// If it uses a line or a byte of a buffer that is not there.
    pub fn step(&mut self, rank: Rank, operation: &Operation) -> bool {
        match *operation {
            Operation::Copy { src, dst } => {
                let bytes = self.bytes(rank, src).to_vec();
                self.bytes(rank, dst).copy_from_slice(&bytes);
            }
            Operation::Reduce { combine, src, dst } => {
                let bytes = self.bytes(rank, src).to_vec();
                combine.combine(self.bytes(rank, dst), &bytes);
            }
            Operation::Write { line, value } => self.set(line, value),
            Operation::Add { line, value } => {
                let sum = self.word(line).wrapping_add(value);
                self.set(line, sum);
            }
            Operation::Claim { .. } => {}
            Operation::Wait { line, compare, value } => {
                return compare.holds(self.word(line), value);
            }
        }
        true
    }

    /// Lets all ranks do one call, each as far as it can go in its turn. Whether all came to the end.
    ///
    /// # Panics
    /// As [`Self::step`].
    pub fn call(&mut self, call: &Recorded) -> bool {
        let mut at = vec![0; call.ranks.len()];
        loop {
            let mut moved = false;
            for (rank, record) in (0_u16..).map(Rank).zip(&call.ranks) {
                while let Some(operation) = record.operations.get(at[rank.index()])
                    && self.step(rank, operation)
                {
                    at[rank.index()] += 1;
                    moved = true;
                }
            }
            if !moved {
                return at.iter().zip(&call.ranks).all(|(&at, r)| at == r.operations.len());
            }
        }
    }
}
