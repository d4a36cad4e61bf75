//! How a team's channels are opened, and how lines are taken back where too few are left.

use super::Team;
use crate::live::channel::{Channel, Opened};
use crate::live::error::TeamError;
use crate::live::kind::Kind;
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
        let (left, came) = (self.supply.left(), self.came);
        let plan = self.plan(kind, root, bytes)?;
        let lines = match self.supply.take(&plan) {
            Err(TeamError::Full { .. }) => {
                self.supply.holds(&plan)?;
                self.take_lines_back()?;
                self.supply.take(&plan)?
            }
            taken => taken?,
        };
        self.opened_last = (came == self.came).then_some(Opened { index, left });
        self.channels[index] =
            Some(Box::new(Channel::new(&plan, self.me, &self.area, &lines, self.settings.locked)));
        Ok(())
    }

    /// Closes all channels and has their lines for others. All ranks make the same calls, so all of them are here
    /// when one is: none is in a call, or will use the lines as they were handed out.
    fn take_lines_back(&mut self) -> Result<(), TeamError> {
        self.channels.iter_mut().for_each(|channel| *channel = None);
        self.all_have_come()?;
        let (used, ranks) = (self.supply.used(), usize::from(self.ranks()));
        let part = |rank: usize| used * rank / ranks;
        let mine = part(self.me.index())..part(self.me.index() + 1);
        // SAFETY: every rank clears another part. All have closed their channels, which nobody opens before all
        // have come once more.
        unsafe { self.area.clear(mine) };
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
