//! The primitives, as one trait.

use super::operation::{Combine, Compare};
use super::place::{Line, Rank, Span};

/// A rank that is waited for will never come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Gone {
    /// A rank ended in the middle of the program.
    #[error("{0} ended in the middle of a collective; end the others and run the program again")]
    Rank(Rank),
    /// Another rank gave up and said so to all.
    #[error("a rank gave up in the middle of a collective; its own error says why")]
    Stopped,
}

/// The primitives of CLa programs (HPDC 2015, section 3), over lines and spans.
///
/// None of them returns a loaded value, so an implementation may do the operation, write it down or
/// price it. A program passes an error on at once and does nothing more.
pub trait Lines {
    /// Copies `src` to `dst`, which have the same length and do not overlap (`cl_copy`).
    fn copy(&mut self, src: Span, dst: Span);

    /// Polls the word of `line` until `compare(word, value)` holds (`cl_wait`). What the rank that
    /// wrote the word had done before is visible afterwards.
    ///
    /// # Errors
    /// [`Gone`] when a rank of the program has ended or given up.
    fn wait(&mut self, line: Line, compare: Compare, value: u64) -> Result<(), Gone>;

    /// Writes `value` to the word of `line`, after all that this rank did before (`cl_write`).
    fn write(&mut self, line: Line, value: u64);

    /// Adds `value` to the word of `line` in one step, after all that this rank did before (`cl_add`).
    fn add(&mut self, line: Line, value: u64);

    /// Says that this rank will write the first `lines` lines from `line` on next, and waits for nothing
    /// (`cl_claim`, not in the paper). It changes no byte: live it fetches ownership ahead of the store
    /// (`prefetchw`), so that the invalidation of old readers is not on the way of the next call.
    fn claim(&mut self, line: Line, lines: u32);

    /// Says that this rank has written the first `lines` lines from `line` on for others to read, and
    /// will not read them: live they may be moved to where others find them sooner. It changes no byte
    /// and orders nothing, so the other readings leave it out.
    #[inline]
    fn hand_over(&mut self, _line: Line, _lines: u32) {}

    /// Says that this rank will wait for `line` in some calls. Live it is fetched ahead where its writer
    /// is ahead as well. It changes no byte and orders nothing, so the other readings leave it out.
    #[inline]
    fn foresee(&mut self, _line: Line) {}

    /// Says that the flag of a message of this call was seen on `line`. Live the bytes that its writer has are
    /// compared with this rank's; in the other readings all ranks have the same, so they leave it out.
    ///
    /// # Errors
    /// [`Gone`] where the message is not the one that this rank can go on with.
    #[inline]
    fn came(&mut self, _line: Line) -> Result<(), Gone> {
        Ok(())
    }

    /// As [`Self::wait`] for the flag of a message on `lines` lines from `line` on, which is read next. Live the other
    /// lines are asked for with every look at the flag, so that they cross with it and not after it. That changes no
    /// byte and orders nothing, so the other readings leave it out.
    ///
    /// # Errors
    /// As [`Self::wait`].
    #[inline]
    fn wait_for(
        &mut self,
        line: Line,
        _lines: u32,
        compare: Compare,
        value: u64,
    ) -> Result<(), Gone> {
        self.wait(line, compare, value)
    }

    /// `dst[i] = combine(dst[i], src[i])` over the elements of two spans of the same length
    /// (`cl_reduce`). The order of the operands is as written: `dst` first.
    fn reduce(&mut self, combine: Combine, src: Span, dst: Span);
}
