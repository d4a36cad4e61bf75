//! The arenas of this process: memory that it shares with other ranks of its node, made once and used by all
//! communicators of ranks that have it.

use isochrone_cla::live::{Arena, Piece};
use isochrone_cla::program::Rank;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many a process has at most. A program whose first communicator in lines has all ranks of a node needs one.
const MOST: usize = 16;

/// Those that this process has.
#[derive(Debug, Default)]
pub(crate) struct Arenas(Mutex<Vec<Arc<Arena>>>);

/// A piece that a communicator's first rank took for it, as it tells the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    /// The arena's number.
    pub(crate) number: u64,
    pub(crate) piece: Piece,
}

/// The same at the rank that took it.
#[derive(Debug)]
pub(crate) struct Offer {
    arena: Arc<Arena>,
    piece: Piece,
    ranks: u16,
}

impl Offer {
    /// Takes a piece for `ranks` ranks, where there is room.
    pub(crate) fn of(arena: Arc<Arena>, ranks: u16, chooser: Option<Rank>) -> Option<Self> {
        let piece = arena.take(ranks, chooser).ok()?;
        Some(Self { arena, piece, ranks })
    }

    pub(crate) fn told(&self) -> Told {
        Told { number: self.arena.number(), piece: self.piece }
    }

    /// Nobody has made a team in it.
    pub(crate) fn back(self) {
        self.arena.give_back(self.piece, self.ranks);
    }
}

impl Arenas {
    fn all(&self) -> MutexGuard<'_, Vec<Arc<Arena>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A piece for `ranks` ranks, of the arena that most processes have: it is the likeliest that all of them do.
    pub(crate) fn offer(&self, ranks: u16, chooser: Option<Rank>) -> Option<Offer> {
        let most = self.all().iter().max_by_key(|arena| arena.processes()).cloned()?;
        if most.processes() < u32::from(ranks) {
            return None;
        }
        Offer::of(most, ranks, chooser)
    }

    /// The arena of this number, if this process has it.
    pub(crate) fn find(&self, number: u64) -> Option<Arc<Arena>> {
        self.all().iter().find(|arena| arena.number() == number).cloned()
    }

    /// Whether there may be no more.
    pub(crate) fn is_full(&self) -> bool {
        self.all().len() >= MOST
    }

    /// Whether processes that share one of them are more than their cores.
    pub(crate) fn are_crowded(&self) -> bool {
        self.all().iter().any(|arena| !arena.has_cores())
    }

    pub(crate) fn add(&self, arena: Arc<Arena>) {
        self.all().push(arena);
    }

    /// Bytes that all of them have taken from the system.
    pub(crate) fn bytes(&self) -> usize {
        self.all().iter().map(|arena| arena.bytes()).sum()
    }
}
