//! How a team's channels are opened, and how lines are taken back where too few are left.

use super::Team;
use crate::collectives::Plan;
use crate::live::arena::Extension;
use crate::live::assembly::{Attends, Found};
use crate::live::channel::{Channel, Opened};
use crate::live::error::TeamError;
use crate::live::kind::Kind;
use crate::live::layout::LINE_BYTES;
use crate::live::openings::Lack;
use crate::live::said::goes_on;
use crate::live::supply::Left;
use crate::live::word::Word;
use crate::program::Rank;
use std::sync::Arc;

/// Calls from one time that a team of an arena takes its lines back to the next. Then all ranks wait for each other,
/// and every channel is opened anew: some hundred microseconds for each.
const BACK_AGAIN: u64 = 1 << 14;

impl Team {
    /// Opens a channel: its lines, and this rank's part. One that was refused is refused again without a plan.
    #[cold]
    pub(super) fn open(
        &mut self,
        kind: Kind,
        root: Rank,
        bytes: usize,
        index: usize,
    ) -> Result<(), TeamError> {
        if let Some(lack) = self.openings.lacking.get(&index).filter(|lack| self.calls < lack.until)
        {
            return Err(lack.why.clone());
        }
        if goes_on(kind) {
            self.givers_are_alike(root, bytes)?;
        }
        let came = self.openings.came;
        self.openings.plans += 1;
        let plan = self.plan(kind, root, bytes)?;
        let (mut left, lines) = match self.lines_of(&plan) {
            Ok(found) => found,
            Err(why @ TeamError::Full { .. }) => {
                let lack = Lack { until: self.refused_until(&plan), why: why.clone() };
                self.openings.lacking.insert(index, lack);
                return Err(why);
            }
            Err(other) => return Err(other),
        };
        self.openings.lacking.remove(&index);
        if came != self.openings.came {
            left = None;
        }
        self.openings.last = left.map(|left| Opened { index, left });
        self.channels[index] =
            Some(Box::new(Channel::new(&plan, self.me, &self.area, &lines, self.settings.locked)));
        Ok(())
    }

    /// Up to which call a plan that found too few lines is refused. The same on all ranks: each counts the same calls.
    fn refused_until(&self, plan: &Plan) -> u64 {
        // Nothing is added to a supply that could not be extended.
        if self.supply.holds(plan).is_err() { u64::MAX } else { self.openings.back_from }
    }

    /// Lines for a plan, and what was left before.
    fn lines_of(&mut self, plan: &Plan) -> Result<(Option<Left>, Vec<usize>), TeamError> {
        let left = Some(self.supply.left());
        loop {
            match self.supply.take(plan) {
                Err(full @ TeamError::Full { wanted, .. }) => {
                    if self.extend(wanted)? {
                        continue;
                    }
                    self.supply.holds(plan)?;
                    // A team of an arena has other means, and its lines would go to and fro.
                    if self.area.arena().is_some() && self.calls < self.openings.back_from {
                        return Err(full);
                    }
                    break;
                }
                taken => return Ok((left, taken?)),
            }
        }
        self.openings.back_from = self.calls + BACK_AGAIN;
        self.take_lines_back(false)?;
        Ok((None, self.supply.take(plan)?))
    }

    /// Has so many lines at least beside the area, if there is an arena with so much room: as many as there are so far,
    /// so that a few pieces are enough for whatever is called. The rank that needs them first takes them for all, and
    /// the others that need them wait for it: each taking as much for a moment, they would find no room. Ranks may
    /// differ in what they call, so there may be some that another rank took for a call that needed fewer.
    fn extend(&mut self, wanted: usize) -> Result<bool, TeamError> {
        let (area, number) = (Arc::clone(&self.area), self.supply.more());
        let (Some(arena), Some(word)) = (area.arena(), area.header().more.get(number)) else {
            return Ok(false);
        };
        if word.answer(0, Extension::TAKING.word()) {
            let (needed, as_much) = (wanted * LINE_BYTES, self.supply.lines() * LINE_BYTES);
            let taken = arena.extension(needed.max(as_much));
            let taken = taken.or_else(|_| arena.extension(needed)).unwrap_or(Extension::NONE);
            word.store(taken.word());
        } else {
            let came = self.waits.wait_awake(word, Extension::TAKEN);
            came.map_err(|gone| self.gone(gone))?;
        }
        let Some((granule, bytes, lines)) = Extension::of_word(word.load()).found() else {
            return Ok(false);
        };
        arena.touch(granule, bytes);
        self.supply.extend(lines);
        Ok(true)
    }

    /// Closes all channels and has their lines for others. All ranks make the same calls, so all of them are here
    /// when one is: none is in a call, or will use the lines as they were handed out. Whoever has begun its call, and
    /// may have lost what it gives, says that this is `spoilt`.
    pub(super) fn take_lines_back(&mut self, spoilt: bool) -> Result<Found, TeamError> {
        self.channels.iter_mut().for_each(|channel| *channel = None);
        let (flags, run, lines) = self.supply.used();
        self.area.had_used(flags, run, lines);
        let (area, call, met) = (Arc::clone(&self.area), self.calls, self.waits.met());
        let found = area.header().assembly.meet(self, call, spoilt, met)?;
        match found {
            Found::Behind => return Err(self.give_up(TeamError::Ahead)),
            Found::Anew(since) => {
                self.waits.has_met(since);
                self.openings.due = false;
            }
            Found::Sound => {}
        }
        self.supply.begin_again();
        Ok(found)
    }

    /// Plans that this rank made to open channels, whether it got their lines or not.
    #[cfg(test)]
    pub(in crate::live) const fn plans(&self) -> u64 {
        self.openings.plans
    }

    /// How often this rank waited for all others to take lines back.
    #[cfg(test)]
    pub(in crate::live) const fn taken_back(&self) -> u64 {
        self.openings.came
    }
}

impl Attends for Team {
    type Error = TeamError;

    fn all_come(&mut self, came: &Word) -> Result<(), TeamError> {
        self.openings.came += 1;
        self.openings.met_at = self.calls;
        let all = self.openings.came * u64::from(self.ranks());
        self.waits.publish(came, |word| word.add(1));
        self.waits.wait_for_all(came, all).map_err(|gone| self.gone(gone))
    }

    fn clear(&mut self) -> Result<(), TeamError> {
        // Ranks that gave different bytes to their last call have used different lines.
        let (flags, run, lines) = self.area.most_used();
        while self.supply.more() < run && self.extend(0)? {}
        self.supply.has_used(flags, run, lines);
        let ranks = usize::from(self.ranks());
        let (flags, ..) = self.supply.used();
        let singles = self.supply.first_flags(flags).map(|flag| flag..flag + 1);
        for run in singles.chain(self.supply.used_runs()) {
            let part = |rank: usize| run.start + run.len() * rank / ranks;
            let mine = part(self.me.index())..part(self.me.index() + 1);
            // SAFETY: lines that this team handed out, of which every rank clears another part. All have closed their
            // channels, which nobody opens before all have come once more.
            unsafe { self.area.clear(mine) };
        }
        Ok(())
    }
}
