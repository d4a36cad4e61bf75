//! How a team's channels are opened, and how lines are taken back where too few are left.

use super::Team;
use crate::collectives::Plan;
use crate::live::arena::Extension;
use crate::live::channel::{Channel, Opened};
use crate::live::error::TeamError;
use crate::live::kind::Kind;
use crate::live::layout::LINE_BYTES;
use crate::live::supply::Left;
use crate::program::{Compare, Rank};

impl Team {
    /// Opens a channel: its lines, and this rank's part.
    #[cold]
    pub(super) fn open(
        &mut self,
        kind: Kind,
        root: Rank,
        bytes: usize,
        index: usize,
    ) -> Result<(), TeamError> {
        let came = self.came;
        let plan = self.plan(kind, root, bytes)?;
        let (mut left, lines) = self.lines_of(&plan)?;
        if came != self.came {
            left = None;
        }
        self.opened_last = left.map(|left| Opened { index, left });
        self.channels[index] =
            Some(Box::new(Channel::new(&plan, self.me, &self.area, &lines, self.settings.locked)));
        Ok(())
    }

    /// Lines for a plan, and what was left before.
    fn lines_of(&mut self, plan: &Plan) -> Result<(Option<Left>, Vec<usize>), TeamError> {
        let left = Some(self.supply.left());
        loop {
            match self.supply.take(plan) {
                Err(TeamError::Full { wanted, .. }) => {
                    if !self.extend(wanted) {
                        break;
                    }
                }
                taken => return Ok((left, taken?)),
            }
        }
        self.supply.holds(plan)?;
        self.take_lines_back()?;
        Ok((None, self.supply.take(plan)?))
    }

    /// Has so many lines at least beside the area, if there is an arena with so much room. The rank that needs them
    /// first takes them for all, and nobody waits for anybody: ranks may differ in what they call. So there may be some
    /// that another rank took for a call that needed fewer.
    fn extend(&mut self, wanted: usize) -> bool {
        let (Some(arena), number) = (self.area.arena(), self.supply.more()) else { return false };
        let Some(word) = self.area.header().more.get(number) else { return false };
        if word.load() == 0 {
            let taken = arena.extension(wanted * LINE_BYTES).unwrap_or(Extension::NONE);
            word.answer(0, taken.word());
            if let Some((granule, bytes, _)) = taken.found().filter(|_| word.load() != taken.word())
            {
                arena.give_bytes(granule, bytes);
            }
        }
        let Some((granule, bytes, lines)) = Extension::of_word(word.load()).found() else {
            return false;
        };
        arena.touch(granule, bytes);
        self.supply.extend(lines);
        true
    }

    /// Closes all channels and has their lines for others. All ranks make the same calls, so all of them are here
    /// when one is: none is in a call, or will use the lines as they were handed out.
    fn take_lines_back(&mut self) -> Result<(), TeamError> {
        self.channels.iter_mut().for_each(|channel| *channel = None);
        self.all_have_come()?;
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
        self.all_have_come()?;
        self.supply.begin_again();
        Ok(())
    }

    /// Returns when every rank is here, without a channel.
    fn all_have_come(&mut self) -> Result<(), TeamError> {
        self.came += 1;
        let all = self.came * u64::from(self.ranks());
        let word = &self.area.header().taken_back.0;
        self.waits.publish(word, |word| word.add(1));
        self.waits.wait(word, Compare::AtLeast, all).map_err(|gone| self.gone(gone))
    }
}
