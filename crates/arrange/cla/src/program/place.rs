//! What a program may address: lines that all ranks share, and the caller's own buffers.

use std::fmt;

/// One participant of a program, `0..ranks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank(pub u16);

impl Rank {
    /// The rank as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {}", self.0)
    }
}

/// A 64-byte line that all ranks share, numbered from 0 within its program.
///
/// The first eight bytes are its *word*, which flags and counters use; every word is 0 before the first
/// epoch. Which physical line stands behind a number is the live reading's choice, so flags can lie on
/// lines that are near both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Line(pub u32);

impl Line {
    /// Bytes of a line's word.
    pub const WORD_BYTES: u32 = 8;
    /// Bytes beside the word: the payload that travels with a flag.
    pub const PAYLOAD_BYTES: u32 = 56;
    /// Bytes of a line.
    pub const BYTES: u32 = 64;

    /// The line `n` further on.
    #[must_use]
    pub const fn plus(self, n: u32) -> Self {
        Self(self.0 + n)
    }

    /// `bytes` bytes beside the word of this line, running on into whole lines after it where they do
    /// not fit: the first line holds [`Line::PAYLOAD_BYTES`] of them.
    #[must_use]
    pub const fn payload(self, bytes: u32) -> Span {
        Span { place: Place::Shared(self), offset: Self::WORD_BYTES, bytes }
    }

    /// `bytes` bytes from the beginning of this line, running on into the lines after it.
    #[must_use]
    pub const fn whole(self, bytes: u32) -> Span {
        Span { place: Place::Shared(self), offset: 0, bytes }
    }
}

/// A buffer of the caller, private to each rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Buffer {
    /// What this rank gives.
    Send,
    /// What this rank gets.
    Receive,
}

/// Where a span begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// In shared lines, from this one on.
    Shared(Line),
    /// In a buffer of the rank that names it.
    Private(Buffer),
}

/// Bytes that lie together: where, not what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The line or buffer that `offset` counts from.
    pub place: Place,
    /// Bytes from there to the first one.
    pub offset: u32,
    /// How many bytes.
    pub bytes: u32,
}

impl Span {
    /// `bytes` bytes of a private buffer, from byte `offset` on.
    #[must_use]
    pub const fn of(buffer: Buffer, offset: u32, bytes: u32) -> Self {
        Self { place: Place::Private(buffer), offset, bytes }
    }

    /// The lines that the span touches: first and count, counted from the place's beginning. A buffer
    /// is taken to begin at a line's first byte. An empty span touches none.
    #[must_use]
    pub const fn touched(self) -> (u32, u32) {
        let first = self.offset / Line::BYTES;
        if self.bytes == 0 {
            return (first, 0);
        }
        (first, (self.offset + self.bytes - 1) / Line::BYTES - first + 1)
    }

    /// The shared lines that the span touches; none for a private one.
    pub fn shared_lines(self) -> impl Iterator<Item = Line> {
        let (first, count) = self.touched();
        let base = match self.place {
            Place::Shared(line) => Some(line.plus(first)),
            Place::Private(_) => None,
        };
        (0..count).filter_map(move |n| base.map(|line| line.plus(n)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_runs_on_into_the_next_line() {
        let lines = |bytes| Line(7).payload(bytes).shared_lines().collect::<Vec<_>>();
        assert_eq!(lines(0), []);
        assert_eq!(lines(56), [Line(7)]);
        assert_eq!(lines(57), [Line(7), Line(8)]);
        assert_eq!(lines(56 + 64), [Line(7), Line(8)]);
        assert_eq!(lines(56 + 65), [Line(7), Line(8), Line(9)]);
        assert_eq!(Span::of(Buffer::Send, 60, 8).touched(), (0, 2));
        assert_eq!(Span::of(Buffer::Send, 60, 8).shared_lines().count(), 0);
    }
}
