//! What bytes hold: not numbers, but where they came from.

use std::collections::HashMap;
use std::fmt;

use crate::program::{Buffer, Combine, Rank};

/// The content of one unit of bytes: an index into [`Contents`].
pub(super) type Content = u32;

/// Nobody has written here.
pub(super) const UNWRITTEN: Content = 0;

/// Where a content came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Origin {
    Unwritten,
    /// What the caller of a rank put there before a call.
    Given {
        rank: Rank,
        buffer: Buffer,
        unit: u32,
        call: usize,
    },
    /// Two contents combined, left operand first.
    Combined {
        combine: Combine,
        left: Content,
        right: Content,
    },
}

/// All contents that there are so far.
#[derive(Debug)]
pub(super) struct Contents {
    origins: Vec<Origin>,
    known: HashMap<Origin, Content>,
    unit_bytes: u32,
}

impl Contents {
    /// No contents yet but what nobody has written; a unit is so many bytes.
    pub(super) fn new(unit_bytes: u32) -> Self {
        let known = HashMap::from([(Origin::Unwritten, UNWRITTEN)]);
        Self { origins: vec![Origin::Unwritten], known, unit_bytes }
    }

    /// What a rank's caller has put into a unit of a buffer before a call.
    pub(super) fn given(&mut self, rank: Rank, buffer: Buffer, unit: u32, call: usize) -> Content {
        self.number(Origin::Given { rank, buffer, unit, call })
    }

    /// Two contents combined.
    pub(super) fn combined(&mut self, combine: Combine, left: Content, right: Content) -> Content {
        self.number(Origin::Combined { combine, left, right })
    }

    fn number(&mut self, origin: Origin) -> Content {
        let next = Content::try_from(self.origins.len()).unwrap_or(Content::MAX);
        let content = *self.known.entry(origin).or_insert(next);
        if content == next {
            self.origins.push(origin);
        }
        content
    }

    /// A content in words.
    pub(super) fn words(&self, content: Content) -> String {
        match self.origins[content as usize] {
            Origin::Unwritten => "nothing".to_owned(),
            Origin::Given { rank, buffer, unit, call } => {
                let buffer = match buffer {
                    Buffer::Send => "Send",
                    Buffer::Receive => "Receive",
                };
                let byte = unit * self.unit_bytes;
                format!("{rank}'s {buffer}, byte {byte}, call {}", call + 1)
            }
            Origin::Combined { combine, left, right } => {
                format!("{combine:?}({}; {})", self.words(left), self.words(right))
            }
        }
    }
}

/// What a rank's receive buffer holds in the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// Whose buffer it is.
    pub rank: Rank,
    /// From which byte on.
    pub offset: u32,
    /// How many bytes, all from places that follow one another.
    pub bytes: u32,
    /// Where the first of them came from, in words.
    pub from: String,
}

impl fmt::Display for Delivered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rank, offset, bytes, from } = self;
        write!(f, "{rank} has {bytes} bytes from byte {offset} on: {from}")
    }
}

impl Contents {
    /// A rank's buffer in words: stretches whose contents follow one another are one.
    pub(super) fn stretches(&self, rank: Rank, units: &[Content]) -> Vec<Delivered> {
        let mut all: Vec<Delivered> = Vec::new();
        let mut before = UNWRITTEN;
        for (unit, &content) in (0..).zip(units) {
            if self.follows(before, content)
                && let Some(last) = all.last_mut()
            {
                last.bytes += self.unit_bytes;
            } else if !self.is_own(rank, content) {
                let from = self.words(content);
                let offset = unit * self.unit_bytes;
                all.push(Delivered { rank, offset, bytes: self.unit_bytes, from });
            }
            before = content;
        }
        all
    }

    /// Whether a content is what the rank's own receive buffer had anyhow.
    fn is_own(&self, of: Rank, content: Content) -> bool {
        match self.origins[content as usize] {
            Origin::Given { rank, buffer: Buffer::Receive, .. } => rank == of,
            Origin::Unwritten => true,
            _ => false,
        }
    }

    fn follows(&self, before: Content, content: Content) -> bool {
        match (self.origins[before as usize], self.origins[content as usize]) {
            (
                Origin::Given { rank, buffer, unit, call },
                Origin::Given { rank: r, buffer: b, unit: u, call: c },
            ) => (rank, buffer, call) == (r, b, c) && u == unit + 1 && buffer == Buffer::Send,
            (
                Origin::Combined { combine, left, right },
                Origin::Combined { combine: c, left: l, right: r },
            ) => combine == c && self.follows(left, l) && self.follows(right, r),
            _ => false,
        }
    }
}
