//! What a worker does that touched a group which it does not map.
//!
//! It decides by the directory alone, not by the kind of fault: in a signal handler there is nothing but
//! an address.

use super::mover::Bringing;
use super::{Caller, Pager};
use crate::directory::{Era, Flags, State, Word};
use crate::names::{Access, Group, Run};
use crate::pages::{Event, Fetch, Pages, Trouble, Wish};

/// How a fault was resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The group was fetched.
    Missing,
    /// The group was there, and is mapped now.
    Minor,
    /// The group was mapped, and may be written now.
    Granted,
}

impl Pager<'_> {
    /// Makes a group usable for a worker. When it returns the access may be tried again.
    ///
    /// # Errors
    /// [`Trouble`] where the group cannot be had; the entry is as it was.
    pub async fn fault<P: Pages>(
        &self,
        pages: &P,
        caller: Caller,
        group: Group,
        access: Access,
    ) -> Result<Outcome, Trouble> {
        let (mut late, mut alone) = (false, false);
        loop {
            let seen = self.directory.look(group);
            match seen.state() {
                State::Absent if self.plan.cluster > 1 && !alone => {
                    alone = true;
                    if self.fetch_cluster(pages, caller, group, access).await {
                        return Ok(Outcome::Missing);
                    }
                }
                State::Absent => {
                    if self.directory.claim(group, seen, State::Seeking, caller.actor).is_ok() {
                        return self.fetch(pages, caller, group, seen.flags(), access).await;
                    }
                }
                State::Resident => {
                    if self.directory.claim(group, seen, State::Mapping, caller.actor).is_ok() {
                        if late {
                            pages.count(Event::Late, 1);
                        }
                        return self.share(pages, caller, group, seen.flags(), access).await;
                    }
                }
                State::Filling => {
                    late |= !self.is_worker(seen.owner());
                    self.wait(pages, caller, group, seen).await?;
                }
                _ => {
                    pages.count(Event::Waited, 1);
                    self.wait(pages, caller, group, seen).await?;
                }
            }
        }
    }

    /// Fetches a group with those that follow it, up to the first that is not absent. False where this one did not
    /// come: then it is fetched alone, and what is in the way is told.
    ///
    /// They are claimed before there is room for them, so that what leaves can be written while they are read.
    async fn fetch_cluster<P: Pages>(
        &self,
        pages: &P,
        caller: Caller,
        group: Group,
        access: Access,
    ) -> bool {
        let (most, me) = (self.plan.cluster.min(self.shape.groups - group.0), caller.actor);
        let claimed = self.claim_absent(Run { first: group, groups: most }, State::Seeking, me);
        if claimed == 0 {
            return false;
        }
        let stored = self.directory.look(group).flags().stored;
        if stored {
            pages.foresee(Run { first: group, groups: claimed });
        }
        let frames = self.frames_for(pages, caller, claimed).await.unwrap_or(0);
        let come = frames.min(claimed);
        self.give(pages, frames - come);
        let flags = Flags { stored, ..Flags::default() };
        for late in (come..claimed).map(|step| Group(group.0 + step)) {
            self.rest(pages, late, State::Absent, flags);
        }
        if come == 0 {
            return false;
        }
        let run = Run { first: group, groups: come };
        run.iter().for_each(|group| self.directory.advance(group, State::Filling, flags, me));
        let how = Bringing { marker: false, foreseen: stored };
        if self.bring(pages, caller, run, access, how).await.is_err() {
            return false;
        }
        if come > 1 {
            pages.count(Event::Prefetched, come - 1);
        }
        self.fetched(pages, caller, group, access);
        true
    }

    /// Counts a group that a worker fetched, and tells the movers.
    fn fetched<P: Pages>(&self, pages: &P, caller: Caller, group: Group, access: Access) {
        pages.count(Event::Missing, 1);
        if self.departures.is_recent(group, self.shape.frames) {
            pages.count(Event::Refetched, 1);
        }
        pages.wish(Wish { worker: caller.worker, group, access });
    }

    /// Fetches a group that the caller claimed.
    async fn fetch<P: Pages>(
        &self,
        pages: &P,
        caller: Caller,
        group: Group,
        flags: Flags,
        access: Access,
    ) -> Result<Outcome, Trouble> {
        if flags.stored {
            pages.foresee(Run::of(group));
        }
        if let Err(trouble) = self.frame(pages, caller).await {
            self.rest(pages, group, State::Absent, flags);
            return Err(trouble);
        }
        self.directory.advance(group, State::Filling, flags, caller.actor);
        let protect = self.plan.clean && access == Access::Read;
        self.directory.join(group, caller.space);
        let (into, stored) = (Some(caller.space), flags.stored);
        let fetch = Fetch { into, stored, protect, foreseen: stored };
        if let Err(trouble) = pages.fill(Run::of(group), fetch).await {
            self.rest(pages, group, State::Absent, flags);
            self.give(pages, 1);
            return Err(trouble);
        }
        let flags = Flags { stored: flags.stored, clean: protect, marker: false };
        self.arrive(pages, caller, Run::of(group), flags).await;
        self.fetched(pages, caller, group, access);
        Ok(Outcome::Missing)
    }

    /// Lets groups that the caller fetched be resident, and puts them on its list.
    pub(super) async fn arrive<P: Pages>(&self, pages: &P, caller: Caller, run: Run, flags: Flags) {
        let shard = self.policy.home(caller.worker);
        for group in run.iter() {
            self.directory.set_home(group, shard.0);
            self.rest(pages, group, State::Resident, flags);
        }
        self.enlist(pages, caller, run).await;
    }

    /// Puts groups on the list of the caller's worker.
    pub(super) async fn enlist<P: Pages>(&self, pages: &P, caller: Caller, run: Run) {
        for group in run.iter() {
            let shard = crate::policy::Shard(self.directory.home(group));
            self.lock(pages, shard, caller.actor).await;
            self.policy.insert(shard, group, self.directory.count(group));
            self.unlock(pages, shard);
        }
        self.nudge(pages);
    }

    /// Maps a group that is there, and that the caller claimed, into the caller's table.
    async fn share<P: Pages>(
        &self,
        pages: &P,
        caller: Caller,
        group: Group,
        flags: Flags,
        access: Access,
    ) -> Result<Outcome, Trouble> {
        let had = self.directory.shares(group, caller.space);
        let protect = flags.clean && access == Access::Read && !had;
        self.directory.join(group, caller.space);
        let mapped = pages.map(group, caller.space, protect).await;
        let after = Flags { clean: protect, marker: false, ..flags };
        self.rest(pages, group, State::Resident, after);
        mapped?;
        if self.policy.heeds_mappings() {
            let shard = crate::policy::Shard(self.directory.home(group));
            self.lock(pages, shard, caller.actor).await;
            self.policy.mapped(shard, group, self.directory.count(group));
            self.unlock(pages, shard);
        }
        if flags.marker {
            pages.count(Event::MarkerTouched, 1);
            pages.wish(Wish { worker: caller.worker, group, access });
        }
        pages.count(if had { Event::Granted } else { Event::Minor }, 1);
        Ok(if had { Outcome::Granted } else { Outcome::Minor })
    }

    /// Gives frames back.
    pub(super) fn give<P: Pages>(&self, pages: &P, frames: u32) {
        if let Some(word) = self.frames.give(frames) {
            pages.wake(word);
        }
    }

    /// Puts an entry to rest and wakes who waits for it, or for a victim.
    pub(super) fn rest<P: Pages>(&self, pages: &P, group: Group, state: State, flags: Flags) {
        if self.directory.release(group, state, flags) {
            pages.wake(self.directory.word(group));
        }
        if state == State::Resident {
            self.nudge(pages);
        }
    }

    /// Tells who waits for a frame that a group can be evicted now.
    fn nudge<P: Pages>(&self, pages: &P) {
        if let Some(word) = self.frames.nudge() {
            pages.wake(word);
        }
    }

    /// Does something to the tables of a group that is absent, as its owner, so that nobody brings it meanwhile; `None`
    /// where it is not absent.
    pub fn while_absent<P: Pages, T>(
        &self,
        pages: &P,
        caller: Caller,
        group: Group,
        act: impl FnOnce() -> T,
    ) -> Option<T> {
        loop {
            let seen = self.directory.look(group);
            if seen.state() != State::Absent {
                return None;
            }
            if self.directory.claim(group, seen, State::Seeking, caller.actor).is_ok() {
                let done = act();
                self.rest(pages, group, State::Absent, seen.flags());
                return Some(done);
            }
        }
    }

    /// Takes a pin back, if it has not ended; the group may leave again when the last is gone.
    pub fn unpin<P: Pages>(&self, pages: &P, group: Group, era: Era) {
        if self.directory.unpin(group, era) {
            self.nudge(pages);
        }
    }

    /// Waits until an owned entry changes, and takes it over where its owner is dead.
    pub(super) async fn wait<P: Pages>(
        &self,
        pages: &P,
        caller: Caller,
        group: Group,
        seen: Word,
    ) -> Result<(), Trouble> {
        let Ok(announced) = self.directory.announce(group, seen) else { return Ok(()) };
        pages.wait(self.directory.word(group), announced.0).await;
        if self.directory.look(group) == announced && pages.is_dead(announced.owner()) {
            return self.rescue(pages, caller, group, announced).await;
        }
        Ok(())
    }
}
