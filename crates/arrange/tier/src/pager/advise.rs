//! What a program says of its own groups: they will be needed, they will not be for long, or what they hold
//! is worth nothing any more.

use super::batch::Batch;
use super::{Caller, Pager};
use crate::directory::{Flags, State};
use crate::names::{Access, Group, Run};
use crate::pages::{Pages, Trouble};
use crate::policy::Shard;

/// What is advised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// It will be touched soon: it is fetched now, in large pieces, and mapped into the caller's table. At
    /// most half of the fast tier, since more would drive itself out.
    WillNeed,
    /// It will not be touched for long: it leaves now, except what is pinned.
    Cold,
    /// What it holds is worth nothing: it leaves without a copy, and reads as zeros from now on. What is
    /// pinned stays as it is.
    Discard,
}

/// What becomes of a group that is pinned and discarded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pinned {
    Stays,
    Goes,
}

/// `WillNeed` fetches at most one in this many of the frames.
const NEEDED_PART: u32 = 2;

impl Pager<'_> {
    /// Does what is advised.
    ///
    /// # Errors
    /// [`Trouble`] where the far tier or the kernel refuses; what was done stays done.
    pub async fn advise<P: Pages>(
        &self,
        pages: &P,
        caller: Caller,
        run: Run,
        advice: Advice,
    ) -> Result<(), Trouble> {
        let first = run.first.0.min(self.shape.groups);
        let run = Run { groups: run.groups.min(self.shape.groups - first), ..run };
        match advice {
            Advice::WillNeed => {
                let most = (self.shape.frames / NEEDED_PART).max(1);
                let run = Run { groups: run.groups.min(most), ..run };
                self.prefetch(pages, caller, run, Access::Write, None).await.map(drop)
            }
            Advice::Cold => self.cool(pages, caller, run).await,
            Advice::Discard => {
                for group in run.iter() {
                    self.discard(pages, caller, group, Pinned::Stays).await?;
                }
                Ok(())
            }
        }
    }

    /// Forgets what a run holds that is given back, and all of its pins: who has them has nothing there any more.
    ///
    /// # Errors
    /// [`Trouble`] where the kernel refuses; what was done stays done.
    pub async fn give_up<P: Pages>(
        &self,
        pages: &P,
        caller: Caller,
        run: Run,
    ) -> Result<(), Trouble> {
        for group in run.iter() {
            self.directory.end_pins(group);
            self.discard(pages, caller, group, Pinned::Goes).await?;
        }
        Ok(())
    }

    /// Evicts what is at rest of a run.
    async fn cool<P: Pages>(&self, pages: &P, caller: Caller, run: Run) -> Result<(), Trouble> {
        let mut groups = run.iter().peekable();
        while groups.peek().is_some() {
            let mut batch = Batch::new();
            for group in groups.by_ref() {
                let seen = self.directory.look(group);
                let at_rest = seen.state() == State::Resident && !self.directory.is_pinned(group);
                let claim = |state| self.directory.claim(group, seen, state, caller.actor).is_ok();
                if at_rest && claim(State::Evicting) {
                    self.strike_off(pages, caller, group).await;
                    batch.push(group);
                }
                if batch.is_full() {
                    break;
                }
            }
            let freed = self.leave(pages, caller, &mut batch).await?;
            self.give(pages, freed);
        }
        Ok(())
    }

    /// Takes a group that the caller claimed off its list.
    async fn strike_off<P: Pages>(&self, pages: &P, caller: Caller, group: Group) {
        let shard = Shard(self.directory.home(group));
        self.lock(pages, shard, caller.actor).await;
        self.policy.remove(group);
        self.unlock(pages, shard);
    }

    /// Lets a group be absent and nothing be stored.
    async fn discard<P: Pages>(
        &self,
        pages: &P,
        caller: Caller,
        group: Group,
        pinned: Pinned,
    ) -> Result<(), Trouble> {
        let nothing = Flags::default();
        let stays = || pinned == Pinned::Stays && self.directory.is_pinned(group);
        loop {
            let seen = self.directory.look(group);
            let claim = |state| self.directory.claim(group, seen, state, caller.actor).is_ok();
            match seen.state() {
                State::Absent if !seen.flags().stored => return Ok(()),
                State::Absent => {
                    if claim(State::Seeking) {
                        pages.forget(Run::of(group));
                        self.rest(pages, group, State::Absent, nothing);
                        return Ok(());
                    }
                }
                State::Resident if stays() => return Ok(()),
                State::Resident => {
                    if claim(State::Punching) {
                        return self.drop_claimed(pages, caller, group).await;
                    }
                }
                _ => self.wait(pages, caller, group, seen).await?,
            }
        }
    }

    async fn drop_claimed<P: Pages>(
        &self,
        pages: &P,
        caller: Caller,
        group: Group,
    ) -> Result<(), Trouble> {
        // From here on who takes over finds nothing stored.
        self.directory.advance(group, State::Punching, Flags::default(), caller.actor);
        self.strike_off(pages, caller, group).await;
        if let Err(trouble) = pages.punch(Run::of(group)).await {
            self.rest(pages, group, State::Resident, Flags::default());
            self.enlist(pages, caller, Run::of(group)).await;
            return Err(trouble);
        }
        pages.forget(Run::of(group));
        self.directory.part(group);
        self.rest(pages, group, State::Absent, Flags::default());
        self.give(pages, 1);
        Ok(())
    }
}
