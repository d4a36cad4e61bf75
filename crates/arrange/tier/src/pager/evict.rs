//! Making room: victims are claimed in a batch, cut into runs, and each run is frozen, copied out and
//! punched. In that order nothing is lost: what a worker wrote before its table was frozen is in the
//! copy, and afterwards it cannot write before the group is absent and fetched again.

use super::batch::{Batch, Claims};
use super::{BATCH_MOST, Caller, Pager};
use crate::directory::{Flags, State};
use crate::names::Run;
use crate::pages::{Event, Pages, Trouble};
use crate::policy::Shard;

/// Groups that stay in every queue while any other has more: one instruction may need four pages at once (a
/// copy whose source and destination both cross a boundary), and who evicts what it has just fetched never
/// gets on.
const KEPT: u32 = 4;

/// What becomes of a run that is copied out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// It leaves: whoever touches it before it has left may have a fault.
    Leaves,
    /// It stays, and is read as before; its next write is seen.
    Stays,
}

impl Pager<'_> {
    /// Evicts up to `want` groups; returns how many frames are the caller's now, 0 where every candidate
    /// was pinned or on its way already.
    ///
    /// # Errors
    /// [`Trouble`] if none could leave and the far tier or the kernel was the reason; all are as they
    /// were.
    pub async fn evict<P: Pages>(
        &self,
        pages: &P,
        caller: Caller,
        want: u32,
    ) -> Result<u32, Trouble> {
        let mut batch = Batch::new();
        for keep in [KEPT, 0] {
            for shard in self.policy.order(caller.worker) {
                self.offer(pages, caller, shard, want, keep, &mut batch).await;
                if !batch.groups().is_empty() {
                    return self.leave(pages, caller, &mut batch).await;
                }
            }
        }
        Ok(0)
    }

    /// Evicts up to `want` groups that came for the caller's worker, for what is to come ahead of its use: never
    /// another worker's, and never the last of a queue.
    pub(super) async fn evict_own<P: Pages>(
        &self,
        pages: &P,
        caller: Caller,
        want: u32,
    ) -> Result<u32, Trouble> {
        let mut batch = Batch::new();
        let shard = self.policy.home(caller.worker);
        self.offer(pages, caller, shard, want, KEPT, &mut batch).await;
        self.leave(pages, caller, &mut batch).await
    }

    /// Claims victims of a shard, and leaves so many groups in it.
    async fn offer<P: Pages>(
        &self,
        pages: &P,
        caller: Caller,
        shard: Shard,
        want: u32,
        keep: u32,
        batch: &mut Batch,
    ) {
        self.lock(pages, shard, caller.actor).await;
        let most = self.policy.len(shard).saturating_sub(keep).min(BATCH_MOST);
        let mut claims = Claims {
            directory: self.directory,
            me: caller.actor,
            state: State::Evicting,
            batch,
            busy: false,
            wanted: |_| true,
        };
        self.policy.evict(shard, want.min(most), &mut claims);
        self.unlock(pages, shard);
    }

    /// Evicts what the caller claimed and took off its lists; returns how many frames are the caller's now.
    pub(super) async fn leave<P: Pages>(
        &self,
        pages: &P,
        caller: Caller,
        batch: &mut Batch,
    ) -> Result<u32, Trouble> {
        batch.sort();
        let (mut freed, mut at, mut last) = (0, 0, None);
        while let Some((run, flags)) = batch.run(at, &self.directory) {
            at += run.groups as usize;
            match self.evict_run(pages, caller, run, flags).await {
                Ok(groups) => freed += groups,
                Err(trouble) => last = Some(trouble),
            }
        }
        if freed > 0 {
            pages.count(Event::Batch, 1);
            pages.count(Event::Evicted, freed);
            if self.is_worker(caller.actor) {
                pages.count(Event::EvictedByWorker, freed);
            }
        }
        match last {
            Some(trouble) if freed == 0 => Err(trouble),
            _ => Ok(freed),
        }
    }

    /// Evicts groups that the caller claimed, that the same tables map and that have the same flags;
    /// returns how many left.
    async fn evict_run<P: Pages>(
        &self,
        pages: &P,
        caller: Caller,
        run: Run,
        flags: Flags,
    ) -> Result<u32, Trouble> {
        if run.iter().any(|group| self.directory.is_pinned(group)) {
            // Pinned after the policy offered it. Rare, so all of the run stays.
            self.keep(pages, caller, run, flags).await;
            return Ok(0);
        }
        if !flags.clean
            && let Err(trouble) = self.copy(pages, run, Then::Leaves).await
        {
            self.keep(pages, caller, run, Flags { clean: false, ..flags }).await;
            return Err(trouble);
        }
        let stored = flags.stored || !flags.clean;
        let after = Flags { stored, clean: false, marker: false };
        for group in run.iter() {
            self.directory.advance(group, State::Punching, after, caller.actor);
        }
        if let Err(trouble) = pages.punch(run).await {
            self.keep(pages, caller, run, after).await;
            return Err(trouble);
        }
        self.departures.note(run);
        let shared = self.directory.count(run.first) > 1;
        for group in run.iter() {
            self.directory.part(group);
            self.rest(pages, group, State::Absent, after);
        }
        if flags.clean {
            pages.count(Event::EvictedClean, run.groups);
        }
        if shared {
            pages.count(Event::EvictedShared, run.groups);
        }
        if flags.marker {
            pages.count(Event::MarkerWasted, run.groups);
        }
        Ok(run.groups)
    }

    /// Copies a run out that nobody writes any more unseen.
    pub(super) async fn copy<P: Pages>(
        &self,
        pages: &P,
        run: Run,
        then: Then,
    ) -> Result<(), Trouble> {
        let tables = self.directory.sharers(run.first).filter(|_| self.plan.protect);
        for space in tables {
            match then {
                Then::Leaves => pages.freeze(run, space).await?,
                Then::Stays => pages.protect(run, space).await?,
            }
        }
        pages.copy_out(run).await
    }

    /// Lets a run that cannot leave be resident again. Where it is frozen the next write, or the next access, is a
    /// fault, which gives permission back.
    async fn keep<P: Pages>(&self, pages: &P, caller: Caller, run: Run, flags: Flags) {
        for group in run.iter() {
            self.rest(pages, group, State::Resident, flags);
            self.enlist(pages, caller, Run::of(group)).await;
        }
    }
}
