//! A channel: the lines of one collective with one root and one size class, and how far it has come.

use super::area::Area;
use super::error::TeamError;
use super::lines::{Buffers, Heard, Hears, Live};
use super::said::{Said, Tag, Told};
use super::supply::Left;
use super::waits::Waits;
use crate::collectives::{Member, Plan};
use crate::program::{Combine, Gone, Rank};
use std::ptr::NonNull;
use std::sync::Arc;

/// One rank's end of a channel.
#[derive(Debug)]
pub(super) struct Channel {
    member: Member,
    table: Box<[NonNull<u8>]>,
    /// Chunks of all calls so far.
    before: u64,
    /// Whether flags are written by locked instructions.
    locked: bool,
    /// Whether `Send` and `Receive` may be the same memory.
    in_place: bool,
    /// The lines live as long as the area.
    _area: Arc<Area>,
}

// SAFETY: the table points into the area, which is shared memory that any thread may use by the
// program's protocol; a channel has one user at a time, since every call takes it exclusively.
unsafe impl Send for Channel {}

impl Channel {
    pub(super) fn new(
        plan: &Plan,
        me: Rank,
        area: &Arc<Area>,
        lines: &[usize],
        locked: bool,
    ) -> Self {
        Self {
            member: plan.member(me),
            table: lines.iter().map(|&line| area.line(line)).collect(),
            before: 0,
            locked,
            in_place: plan.in_place(),
            _area: Arc::clone(area),
        }
    }

    pub(super) const fn in_place(&self) -> bool {
        self.in_place
    }

    /// Whether a call was made.
    pub(super) const fn has_called(&self) -> bool {
        self.before > 0
    }

    /// Where the lines of the plan lie, by their numbers there.
    pub(super) fn lines(&self) -> &[NonNull<u8>] {
        &self.table
    }

    /// One call, of which this rank told others `said`. Where a rank that follows ends astray, nothing has been done
    /// yet.
    #[inline]
    pub(super) fn call(
        &mut self,
        bytes: u32,
        combine: Combine,
        waits: &Waits,
        buffers: Buffers,
        said: Said,
        hears: Hears,
    ) -> Result<(), Ended> {
        let before = self.before;
        let heard = Heard::new(Tag::of(said), hears);
        let mut live = Live::new(&self.table, waits, buffers, heard);
        live.locked = self.locked;
        let ended = self.member.call(&mut live, before, bytes, combine);
        if ended.is_ok() {
            self.before += self.member.chunks(bytes);
        }
        match (ended, live.heard.unlike) {
            (Ok(()), None) => Ok(()),
            (Ok(()), Some(theirs)) => Err(Ended::Unlike(theirs)),
            (Err(_), _) if live.heard.astray => Err(Ended::Astray),
            (Err(gone), _) => Err(Ended::Gone(gone)),
        }
    }
}

/// How a call ended that did not end well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// A rank is gone, or others were found to make another call.
    Gone(Gone),
    /// Another rank has other bytes; the channel is where it would be with the same.
    Unlike(Told),
    /// A message is not of this call, or of bytes that go another way.
    Astray,
}

/// Why a call was not done in lines.
#[derive(Debug)]
pub(super) enum Failed {
    /// It could not be begun.
    Unopened(TeamError),
    /// It ended before it was done.
    Ended(Ended),
}

/// A channel that a call has opened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opened {
    /// Its number.
    pub(super) index: usize,
    /// What was left of the lines before.
    pub(super) left: Left,
}

impl From<TeamError> for Failed {
    fn from(error: TeamError) -> Self {
        Self::Unopened(error)
    }
}

impl From<Ended> for Failed {
    fn from(ended: Ended) -> Self {
        Self::Ended(ended)
    }
}
