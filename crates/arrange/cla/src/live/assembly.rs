//! Where all ranks of a team meet, to have clean lines: since too few are left, or since a call has left them in a
//! state that ranks do not know alike. What they tell one another there decides whether the call that they are in
//! begins anew.

use super::said::Said;
use super::word::Word;

/// It lies in the header of an area. All zero at the beginning.
#[derive(Debug)]
#[repr(C, align(128))]
pub(super) struct Assembly {
    /// How often any rank has come.
    came: Word,
    /// The latest call in which one came.
    latest: Word,
    /// The latest call that left lines unsound.
    unsound: Word,
    /// The latest call that a rank could not begin anew.
    spoilt: Word,
}

/// What all ranks that have met find alike, but for those behind others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// They are in the same call, and no earlier one left lines unsound.
    Sound,
    /// They are in the same call and begin it anew: an earlier one, up to this, had left lines unsound.
    Anew(u64),
    /// Another rank is in a later call, or cannot begin this one anew.
    Behind,
}

/// A rank where all meet.
pub(super) trait Attends {
    /// Why it cannot.
    type Error;
    /// Adds one to a word, and returns when all ranks have done so as often.
    fn all_come(&mut self, came: &Word) -> Result<(), Self::Error>;
    /// Makes its part of all lines what it was at the beginning. Nobody uses any.
    fn clear(&mut self) -> Result<(), Self::Error>;
}

impl Assembly {
    /// Call `call` has left lines unsound: all are to meet in the next one.
    pub(super) fn unsound_since(&self, call: u64) {
        self.unsound.raise(call);
    }

    /// The latest call that left lines unsound.
    pub(super) fn unsound(&self) -> u64 {
        self.unsound.load()
    }

    /// Whether a rank that has said `mine` and has met for all calls up to `met` is asked to meet.
    pub(super) fn asks(&self, mine: Said, met: u64) -> bool {
        // Partner: `unsound_since`.
        let since = self.unsound.load();
        since > met && mine.has_reached(since)
    }

    /// How often any rank has come so far.
    pub(super) fn came(&self) -> u64 {
        self.came.load()
    }

    /// Meets all ranks in call `call`, and has clean lines then. Whoever has met for all calls up to `met` tells
    /// whether its part of this call is `spoilt`.
    ///
    /// # Errors
    /// As [`Attends::all_come`] and [`Attends::clear`].
    pub(super) fn meet<R: Attends>(
        &self,
        rank: &mut R,
        call: u64,
        spoilt: bool,
        met: u64,
    ) -> Result<Found, R::Error> {
        self.tell(call, spoilt);
        rank.all_come(&self.came)?;
        // Nobody tells anything more before all have come once more.
        let found = self.found(call, met);
        if found == Found::Behind {
            return Ok(found);
        }
        rank.clear()?;
        rank.all_come(&self.came)?;
        Ok(found)
    }

    /// Says in which call a rank comes.
    pub(super) fn tell(&self, call: u64, spoilt: bool) {
        self.latest.raise(call);
        if spoilt {
            self.spoilt.raise(call);
        }
    }

    /// What was told.
    pub(super) fn found(&self, call: u64, met: u64) -> Found {
        let since = self.unsound.load();
        match (self.latest.load() == call, since > met) {
            (true, false) => Found::Sound,
            (true, true) if self.spoilt.load() != call => Found::Anew(since),
            _ => Found::Behind,
        }
    }

    #[cfg(all(loom, test))]
    pub(super) fn new() -> Self {
        let [came, latest, unsound, spoilt] = std::array::from_fn(|_| Word::new());
        Self { came, latest, unsound, spoilt }
    }
}
