//! Rings of cells: how a line is used again and again without ever being set back.
//!
//! A message travels in *chunks*. Chunks that go the same way are numbered 1, 2, 3 ... over all calls, and
//! chunk `s` lies in slot `s mod slots`. The word of a slot's first line holds the number of the chunk in
//! it, so words only grow, a wait is `word >= s`, and nobody is harmed by a rank that ran ahead. A writer
//! comes round to a slot only after its readers said that they are done with it; they say so once for
//! half a ring, which takes the acknowledgement off the way of nearly every call.

use crate::program::{Buffer, Combine, Compare, Gone, Line, Lines, Span};

/// How chunk numbers go round, and when readers acknowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ring {
    /// Slots; a power of two.
    slots: u32,
    /// Chunks from one acknowledgement to the next; a power of two.
    period: u32,
}

impl Ring {
    /// `slots` slots, a power of two, acknowledged once for half of them.
    pub(super) const fn new(slots: u32) -> Self {
        Self { slots, period: if slots < 2 { 1 } else { slots / 2 } }
    }

    /// The same ring with an acknowledgement for each chunk.
    pub(super) const fn each(self) -> Self {
        Self { slots: self.slots, period: 1 }
    }

    /// How many slots.
    pub(super) const fn slots(self) -> u32 {
        self.slots
    }

    /// Chunks that a writer may be ahead of a reader whose own chunks it has to see first: each of two
    /// that exchange chunks reads chunk `s - lead` after it wrote chunk `s`, and what it reads tells that
    /// the other is done with `s - 2 lead - 2`.
    pub(super) const fn lead(self) -> u64 {
        (self.slots / 2).saturating_sub(1) as u64
    }

    /// Before chunk `s` is written: the chunk that readers must have acknowledged, if it is time to look.
    pub(super) const fn due(self, s: u64) -> Option<u64> {
        if (s - 1) & (self.period - 1) as u64 != 0 {
            return None;
        }
        let ahead = (self.slots - self.period) as u64;
        if s - 1 > ahead { Some(s - 1 - ahead) } else { None }
    }

    /// Whether a reader that is done with chunk `s` says so.
    pub(super) const fn acknowledged(self, s: u64) -> bool {
        s & (self.period - 1) as u64 == 0
    }

    /// Counters that readers need if they add to one line instead of writing a line each. One would not
    /// do: a reader that is ahead would count for one that is behind. Nobody adds to a counter again
    /// before the writer has seen all that was due there.
    pub(super) const fn counters(self) -> u32 {
        self.slots / self.period
    }

    /// The counter to which readers add when they are done with chunk `s`, and how often each of them
    /// has then done so.
    #[allow(clippy::cast_possible_truncation, reason = "a remainder by a u32")]
    pub(super) const fn counter(self, s: u64) -> (u32, u64) {
        let before = s / self.period as u64 - 1;
        let counters = self.counters() as u64;
        ((before % counters) as u32, before / counters + 1)
    }
}

/// The slots of one way: `slots` times `lines` lines that lie together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cells {
    first: Line,
    lines: u32,
    mask: u32,
    /// Whether a writer claims the next slot.
    claims: bool,
}

impl Cells {
    /// How many chunks ahead a reader looks whose writer is ahead of it: more than one, since the next
    /// one is asked for at once anyway.
    const FORESEEN: u64 = 3;

    /// Slots from line `first` on, of `lines` lines each.
    pub(super) const fn new(first: Line, lines: u32, ring: Ring, claims: bool) -> Self {
        Self { first, lines, mask: ring.slots - 1, claims: claims && ring.slots > 1 }
    }

    /// Raises the flag of chunk `s`, and claims the slot of the chunk after it. With one slot there is
    /// nothing to claim: readers still look at it.
    #[inline]
    pub(super) fn raise<L: Lines>(self, lines: &mut L, piece: Piece) {
        lines.write(self.at(piece.s), piece.s);
        let written = piece.lines();
        if self.claims {
            // The next message is most likely as long as this one.
            lines.claim(self.at(piece.s + 1), written);
        }
        lines.hand_over(self.at(piece.s), written);
    }

    /// Waits for the flag of chunk `s`.
    ///
    /// # Errors
    /// [`Gone`] when its writer has ended.
    #[inline]
    pub(super) fn wait<L: Lines>(self, lines: &mut L, s: u64) -> Result<(), Gone> {
        lines.wait(self.at(s), Compare::AtLeast, s)?;
        lines.came(self.at(s))?;
        self.foresee(lines, s);
        Ok(())
    }

    /// Waits for the flag of a piece whose bytes are read next.
    ///
    /// # Errors
    /// As [`Self::wait`].
    #[inline]
    pub(super) fn wait_piece<L: Lines>(self, lines: &mut L, piece: Piece) -> Result<(), Gone> {
        let all = piece.lines();
        lines.wait_for(self.at(piece.s), all, Compare::AtLeast, piece.s)?;
        lines.came(self.at(piece.s))?;
        self.foresee(lines, piece.s);
        Ok(())
    }

    #[inline]
    fn foresee<L: Lines>(self, lines: &mut L, s: u64) {
        if u64::from(self.mask) >= Self::FORESEEN {
            lines.foresee(self.at(s + Self::FORESEEN));
        }
    }

    /// The first line of the slot of chunk `s`.
    #[allow(clippy::cast_possible_truncation, reason = "the mask keeps the low bits alone")]
    #[inline]
    pub(super) const fn at(self, s: u64) -> Line {
        self.first.plus((s as u32 & self.mask) * self.lines)
    }
}

/// One call: which chunks went this way before, and how many bytes go now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    /// Chunks of all calls before.
    pub(super) before: u64,
    /// Bytes of this call.
    pub(super) bytes: u32,
    /// Bytes that a chunk holds.
    pub(super) chunk: u32,
    /// How elements are combined, in collectives that do.
    pub(super) combine: Combine,
}

/// Chunks that `bytes` bytes need. A call without bytes is one empty chunk, so it still synchronises.
pub(super) const fn chunks(bytes: u32, chunk: u32) -> u32 {
    // Nearly every call is one chunk, and a division takes longer than the rest of it.
    if bytes <= chunk { 1 } else { bytes.div_ceil(chunk) }
}

/// A piece of a call's bytes: what one chunk carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// The chunk's number.
    pub(super) s: u64,
    /// Where its bytes begin.
    pub(super) offset: u32,
    /// How many they are.
    pub(super) bytes: u32,
}

impl Call {
    /// How many chunks.
    pub(super) const fn chunks(self) -> u64 {
        chunks(self.bytes, self.chunk) as u64
    }

    /// The number of the last chunk.
    pub(super) const fn last(self) -> u64 {
        self.before + self.chunks()
    }

    /// The piece that chunk `s` carries.
    #[allow(clippy::cast_possible_truncation, reason = "a call has fewer chunks than bytes or one")]
    #[inline]
    pub(super) const fn piece(self, s: u64) -> Piece {
        let offset = (s - self.before - 1) as u32 * self.chunk;
        let left = self.bytes - offset;
        Piece { s, offset, bytes: if left < self.chunk { left } else { self.chunk } }
    }

    /// All pieces in order.
    #[inline]
    pub(super) fn pieces(self) -> impl Iterator<Item = Piece> {
        (self.before + 1..=self.last()).map(move |s| self.piece(s))
    }
}

impl Piece {
    /// A chunk that carries nothing.
    pub(super) const fn empty(s: u64) -> Self {
        Self { s, offset: 0, bytes: 0 }
    }

    /// Lines that hold it and its flag.
    #[inline]
    const fn lines(self) -> u32 {
        (self.bytes + Line::WORD_BYTES).div_ceil(Line::BYTES)
    }

    /// The piece in a buffer in which the message begins at byte `from`.
    #[inline]
    pub(super) const fn within(self, buffer: Buffer, from: u32) -> Span {
        Span::of(buffer, from + self.offset, self.bytes)
    }

    /// The piece in its slot.
    #[inline]
    pub(super) const fn inside(self, cells: Cells) -> Span {
        cells.at(self.s).payload(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For every ring: whoever waits as `due` says never writes a slot that is not acknowledged, and
    /// never waits for what no reader will say.
    #[test]
    fn a_slot_is_written_again_after_it_was_acknowledged() {
        for slots in [1, 2, 4, 8, 16] {
            for ring in [Ring::new(slots), Ring::new(slots).each()] {
                let mut known = 0;
                for s in 1..200_u64 {
                    if let Some(due) = ring.due(s) {
                        assert!(ring.acknowledged(due), "{ring:?}: nobody says {due}");
                        assert!(due < s, "{ring:?}: {due} comes after {s}");
                        known = due;
                    }
                    assert!(known + u64::from(slots) >= s, "{ring:?}: {s} over {known}");
                }
            }
        }
    }

    #[test]
    fn pieces_cover_a_message() {
        let combine = Combine::Sum(crate::program::Element::I32);
        let call = Call { before: 10, bytes: 300, chunk: 120, combine };
        let pieces = call.pieces().map(|p| (p.s, p.offset, p.bytes)).collect::<Vec<_>>();
        assert_eq!(pieces, [(11, 0, 120), (12, 120, 120), (13, 240, 60)]);
        let empty = Call { before: 0, bytes: 0, chunk: 56, combine };
        assert_eq!(empty.pieces().map(|p| p.bytes).collect::<Vec<_>>(), [0]);
    }
}
