//! Taking over what a dead owner left. Each owned state says what may have happened to the page and what
//! must not be done again. A dead actor costs at most the frames that it had in hand: one batch.

use super::{Caller, Pager};
use crate::directory::{Flags, State, Word};
use crate::names::{Group, Run};
use crate::pages::{Event, Fetch, Pages, Trouble};

impl Pager<'_> {
    /// Brings an entry to rest whose owner is dead.
    ///
    /// # Errors
    /// [`Trouble`] where the group cannot be had; the entry is at rest all the same.
    pub(super) async fn rescue<P: Pages>(
        &self,
        pages: &P,
        caller: Caller,
        group: Group,
        seen: Word,
    ) -> Result<(), Trouble> {
        if self.directory.take_over(group, seen, caller.actor).is_err() {
            return Ok(());
        }
        pages.count(Event::Rescued, 1);
        let flags = Flags { clean: false, ..seen.flags() };
        match seen.state() {
            State::Seeking => {
                self.rest(pages, group, State::Absent, seen.flags());
                Ok(())
            }
            State::Filling => self.fill_again(pages, caller, group, flags).await,
            // The page is there, and the far copy may be torn: not clean, so it will be written again.
            State::Mapping | State::Writing => {
                self.rest(pages, group, State::Resident, flags);
                Ok(())
            }
            // The same, and it was taken off its list.
            State::Evicting => {
                self.rest(pages, group, State::Resident, flags);
                self.enlist(pages, caller, Run::of(group)).await;
                Ok(())
            }
            State::Punching => self.punch_again(pages, group, flags).await,
            State::Absent | State::Resident => Ok(()),
        }
    }

    /// The dead owner may have brought nothing, a part or all; what is there may have been written
    /// already by the worker that a mover brought it for. Filling keeps what is there. The frame is the
    /// dead owner's.
    async fn fill_again<P: Pages>(
        &self,
        pages: &P,
        caller: Caller,
        group: Group,
        flags: Flags,
    ) -> Result<(), Trouble> {
        self.directory.join(group, caller.space);
        let (into, stored) = (Some(caller.space), flags.stored);
        let fetch = Fetch { into, stored, protect: false, foreseen: false };
        if let Err(trouble) = pages.fill(Run::of(group), fetch).await {
            // Parts may be there, and written: they stay, and the next fault fetches the rest.
            self.rest(pages, group, State::Absent, flags);
            self.give(pages, 1);
            return Err(trouble);
        }
        let flags = Flags { marker: false, ..flags };
        self.arrive(pages, caller, Run::of(group), flags).await;
        Ok(())
    }

    /// The far copy is whole: the page goes, if it is not gone.
    async fn punch_again<P: Pages>(
        &self,
        pages: &P,
        group: Group,
        flags: Flags,
    ) -> Result<(), Trouble> {
        if let Err(trouble) = pages.punch(Run::of(group)).await {
            self.rest(pages, group, State::Resident, flags);
            return Err(trouble);
        }
        self.directory.part(group);
        self.rest(pages, group, State::Absent, Flags { marker: false, ..flags });
        self.give(pages, 1);
        Ok(())
    }
}
