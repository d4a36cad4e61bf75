//! What ranks said of one call, compared: whether they can go on together.

use super::kind::Kind;
use super::said::{Said, Told, root_decides, root_hears};
use super::word::Word;
use crate::program::Rank;

/// What others said of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Differing {
    /// Nobody is known to have said anything else.
    Nobody,
    /// Somebody has other bytes, which go by the same lines.
    Goes(Told),
    /// Somebody said what this rank cannot go on with.
    Astray(Said),
}

/// What others said of the call of which `me` said `mine`: each of them in a word. Nothing where they have not come to
/// it yet, or have gone on since.
pub(super) fn differing<'a>(
    mine: Said,
    me: Rank,
    others: impl Iterator<Item = (Rank, &'a Word)>,
) -> Differing {
    let mut goes = Differing::Nobody;
    for (rank, word) in others {
        let theirs = Said::of_word(word.load());
        if !theirs.of_the_call(mine) || theirs == mine {
            continue;
        }
        if differs(mine, me, rank, theirs) {
            return Differing::Astray(theirs);
        }
        goes = Differing::Goes(theirs.told());
    }
    goes
}

/// Whether `me` cannot go on with what `rank` said of the same call.
pub(super) fn differs(mine: Said, me: Rank, rank: Rank, theirs: Said) -> bool {
    if !mine.same_collective(theirs) || mine == theirs {
        return mine != theirs;
    }
    let (kind, root) = (mine.kind(), mine.root());
    if root_decides(kind) {
        // What others than the root have is their own affair.
        return rank == root && me != root;
    }
    if kind == Kind::Gather && me == root {
        // There may be fewer bytes than room, and what comes after them is not the call's.
        return true;
    }
    // The root takes what others give, whatever it has itself.
    let heard = root_hears(kind) && rank == root && mine.told().is_in_lines();
    !heard && !mine.told().goes_with(theirs.told())
}

/// What a rank says in `word` of the call of `mine`, once it has come to it: nothing, if it has gone on since.
pub(super) fn come(word: &Word, mine: Said) -> Option<Option<Said>> {
    let said = Said::of_word(word.load());
    said.has_come_to(mine).then(|| said.of_the_call(mine).then_some(said))
}
