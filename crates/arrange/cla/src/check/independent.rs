//! Which operation may be taken first without looking at the other orders.
//!
//! If nothing that the other ranks can do before it touches what the next operation of a rank uses, then
//! taking that operation first loses no order that differs in anything that can be seen: the set of it alone
//! is persistent (Godefroid, "Partial-Order Methods for the Verification of Concurrent Systems", LNCS 1032,
//! chapter 4). Programs end, so no operation is put off for ever.

use super::state::{Action, Program, State};
use crate::program::Compare;

/// A rank whose next operation may be taken alone.
pub(super) fn alone(program: &Program, state: &State) -> Option<usize> {
    let mut goes_on = (0..program.ranks()).filter(|&rank| state.goes_on(program, rank));
    goes_on.find(|&rank| {
        let action = state.action(program, rank).unwrap_or(Action::Nothing);
        let mut others = (0..program.ranks()).filter(|&other| other != rank);
        others.all(|other| harmless(program, state, rank, action, other))
    })
}

/// Whether nothing that `other` can do before `rank` goes on touches what `action` uses.
fn harmless(program: &Program, state: &State, rank: usize, action: Action, other: usize) -> bool {
    let left = &program.actions[other][state.next[other]..];
    for (n, later) in left.iter().enumerate() {
        if let Action::Wait { line, compare, value } = *later
            && !compare.holds(state.words[line], value)
            && !left[..n].iter().any(|own| changes(*own, line))
            && only_writer(program, state, rank, other, line)
        {
            // It cannot come past this before `rank` has gone on.
            return commutes(state, action, *later);
        }
        if !commutes(state, action, *later) {
            return false;
        }
    }
    true
}

/// Whether of all ranks but `but` only `rank` can still change a word.
fn only_writer(program: &Program, state: &State, rank: usize, but: usize, line: usize) -> bool {
    (0..program.ranks()).filter(|&other| other != rank && other != but).all(|other| {
        let left = &program.actions[other][state.next[other]..];
        !left.iter().any(|later| changes(*later, line))
    })
}

fn changes(action: Action, word: usize) -> bool {
    match action {
        Action::Write { line, .. } | Action::Add { line, .. } => line == word,
        _ => false,
    }
}

/// Whether `first` can be done before or after another rank's `later` with the same outcome, if `later` can
/// be done before it at all.
fn commutes(state: &State, first: Action, later: Action) -> bool {
    match (first, later) {
        (Action::Move { src, dst, .. }, Action::Move { src: from, dst: to, .. }) => {
            dst.meets(from).is_none() && dst.meets(to).is_none() && src.meets(to).is_none()
        }
        (Action::Write { line, value }, Action::Wait { line: l, compare, value: v })
            if line == l =>
        {
            // The wait holds now, and must hold after; or it cannot be done before the write.
            !compare.holds(state.words[line], v) || compare.holds(value, v)
        }
        (Action::Add { line, .. }, Action::Wait { line: l, compare, .. }) if line == l => {
            compare == Compare::AtLeast
        }
        (Action::Wait { line, compare, value }, Action::Write { line: l, value: v })
            if line == l =>
        {
            compare.holds(v, value)
        }
        (Action::Wait { line, compare, .. }, Action::Add { line: l, .. }) if line == l => {
            compare == Compare::AtLeast
        }
        (
            Action::Write { line, .. },
            Action::Write { line: l, .. } | Action::Add { line: l, .. },
        )
        | (Action::Add { line, .. }, Action::Write { line: l, .. }) => line != l,
        _ => true,
    }
}
