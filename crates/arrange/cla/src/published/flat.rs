//! The flat broadcast of `coll/xhc`, as its source describes it in 2023.
//!
//! The root copies the payload into its copy-in line and raises the flag, which is another line. Children
//! poll the flag, copy the payload out, and each acknowledges on a line of its own; the root waits for all
//! of them. Flags are epochs that only grow.

use crate::program::{Buffer, Compare, Gone, Line, Lines, Rank, Recorded, Span, record};

/// The broadcast among so many ranks; rank 0 is the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flat {
    /// How many ranks.
    pub ranks: u16,
}

impl Flat {
    const FLAG: Line = Line(0);
    const DATA: Line = Line(2);
    /// What is broadcast.
    const BYTES: u32 = 8;

    /// Lines lie 128 bytes apart, as far as the source says so; none of them has a neighbour.
    const fn acknowledged(rank: u16) -> Line {
        Line(4 + 2 * rank as u32)
    }

    /// What `me` does in call `call`, the first of which is 0.
    ///
    /// # Errors
    /// [`Gone`] when a rank that is waited for has ended.
    pub fn run<L: Lines>(&self, lines: &mut L, me: Rank, call: u64) -> Result<(), Gone> {
        let epoch = call + 1;
        if me.0 > 0 {
            lines.wait(Self::FLAG, Compare::AtLeast, epoch)?;
            let mine = Span::of(Buffer::Receive, 0, Self::BYTES);
            lines.copy(Self::DATA.whole(Self::BYTES), mine);
            lines.write(Self::acknowledged(me.0), epoch);
            return Ok(());
        }
        lines.copy(Span::of(Buffer::Send, 0, Self::BYTES), Self::DATA.whole(Self::BYTES));
        lines.write(Self::FLAG, epoch);
        (1..self.ranks)
            .try_for_each(|child| lines.wait(Self::acknowledged(child), Compare::AtLeast, epoch))
    }

    /// Calls `from..to` written down.
    #[must_use]
    pub fn record(&self, from: u64, to: u64) -> Recorded {
        record(self.ranks, |lines, me| (from..to).try_for_each(|call| self.run(lines, me, call)))
    }
}
