//! What a mover does, which computes nothing itself: it fetches what workers will touch, maps it into the
//! table of the one that will, keeps some frames free, and writes back early what will leave soon.

use super::batch::{Batch, Claims};
use super::evict::Then;
use super::{Caller, Pager};
use crate::directory::{Flags, State};
use crate::names::{Access, Actor, Group, Run, Space};
use crate::pages::{Event, Fetch, Pages, Trouble, Wish};
use crate::prefetch::{Predictor, Prefetch};

/// A window, and the reserve, are at most one in this many of the frames: more would evict what was just
/// fetched.
const FEW_FRAMES: u32 = 4;

/// Where a mover gets its work from.
#[allow(async_fn_in_trait, reason = "a future is polled by the mover that made it, never sent")]
pub trait Orders {
    /// The oldest wish that nobody has served.
    fn next(&self) -> Option<Wish>;
    /// Whether all is over.
    fn is_over(&self) -> bool;
    /// Sleeps until there is a wish or frames are needed; may return early.
    async fn idle(&self);
}

/// How a mover goes about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Habit {
    /// What it takes a fault for a sign of.
    pub prefetch: Prefetch,
    /// Groups that it fetches for a fault.
    pub window: u32,
    /// Leave the middle group of a window out of every table, so that its touch asks for the next window
    /// before this one is used up, and shows that the window is used at all.
    pub markers: bool,
    /// Frames to keep free; the movers share the work.
    pub reserve: u32,
    /// Write back early what will leave soon.
    pub write_back: bool,
}

impl Default for Habit {
    fn default() -> Self {
        Self {
            prefetch: Prefetch::Next,
            window: 128,
            markers: true,
            reserve: 256,
            write_back: false,
        }
    }
}

/// A mover.
#[derive(Debug)]
pub struct Mover {
    actor: Actor,
    habit: Habit,
    predictor: Predictor,
    runs: Vec<Run>,
}

impl Mover {
    /// A mover that has seen nothing yet.
    #[must_use]
    pub fn new(actor: Actor, habit: Habit, pager: &Pager<'_>) -> Self {
        let shape = pager.shape();
        let most = (shape.frames / FEW_FRAMES).max(1);
        let habit =
            Habit { window: habit.window.min(most), reserve: habit.reserve.min(most), ..habit };
        let workers = u32::from(shape.workers);
        let predictor = Predictor::new(habit.prefetch, habit.window, shape.groups, workers);
        Self { actor, habit, predictor, runs: Vec::new() }
    }

    /// Works until it is told that all is over. `space_of` says whose tables a worker uses.
    pub async fn run<P: Pages, O: Orders>(
        &mut self,
        pager: &Pager<'_>,
        pages: &P,
        orders: &O,
        space_of: impl Fn(u32) -> Space,
    ) {
        let caller = |worker: u32| Caller { actor: self.actor, space: space_of(worker), worker };
        let mut turn = u32::from(self.actor.0);
        while !orders.is_over() {
            if let Some(wish) = orders.next() {
                let there = |group| pager.directory.look(group).state() != State::Absent;
                self.predictor.predict(wish, there, &mut self.runs);
                let marker = self.habit.markers.then(|| middle(&self.runs)).flatten();
                let caller = caller(wish.worker);
                for run in &self.runs {
                    // What cannot be had is told to the worker that touches it.
                    if pager.prefetch(pages, caller, *run, wish.access, marker).await.is_err() {
                        break;
                    }
                }
                continue;
            }
            turn = (turn + 1) % u32::from(pager.shape.workers);
            let caller = caller(turn);
            let busy = if pager.free() < self.habit.reserve {
                let freed = pager.evict(pages, caller, pager.plan.mover_batch).await;
                freed.is_ok_and(|freed| {
                    pager.give(pages, freed);
                    freed > 0
                })
            } else {
                self.habit.write_back
                    && pager.write_back(pages, caller).await.is_ok_and(|written| written > 0)
            };
            if !busy {
                orders.idle().await;
            }
        }
    }
}

/// How neighbours are brought.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bringing {
    /// Into no table, as a marker.
    pub(super) marker: bool,
    /// As [`Fetch::foreseen`].
    pub(super) foreseen: bool,
}

/// The group in the middle of what is fetched.
fn middle(runs: &[Run]) -> Option<Group> {
    let all: u32 = runs.iter().map(|run| run.groups).sum();
    runs.iter().flat_map(|run| run.iter()).nth(all as usize / 2)
}

impl Pager<'_> {
    /// Fetches what is absent of a run and maps it into the caller's table; returns how many groups came.
    /// Those that somebody else is at are left to them.
    ///
    /// # Errors
    /// [`Trouble`] where one cannot be had; those before it came.
    pub async fn prefetch<P: Pages>(
        &self,
        pages: &P,
        caller: Caller,
        run: Run,
        access: Access,
        marker: Option<Group>,
    ) -> Result<u32, Trouble> {
        let (mut at, end) = (run.first.0, run.first.0 + run.groups);
        let mut came = 0;
        while at < end {
            if self.directory.look(Group(at)).state() != State::Absent {
                at += 1;
                continue;
            }
            let frames = self.frames_for(pages, caller, self.plan.chunk.min(end - at)).await?;
            if frames == 0 {
                return Ok(came);
            }
            let first = Group(at);
            let alone = marker.is_some_and(|marker| marker == first);
            let ahead =
                marker.filter(|marker| marker.0 > at).map_or(end, |marker| marker.0.min(end));
            let most = if alone { 1 } else { frames.min(self.plan.chunk).min(ahead - at) };
            let run = Run { first, groups: most };
            let claimed = self.claim_absent(run, State::Filling, caller.actor);
            at += claimed.max(1);
            self.give(pages, frames - claimed);
            if claimed == 0 {
                continue;
            }
            let how = Bringing { marker: alone, foreseen: false };
            self.bring(pages, caller, Run { first, groups: claimed }, access, how).await?;
            pages.count(if alone { Event::Marked } else { Event::Prefetched }, claimed);
            came += claimed;
        }
        Ok(came)
    }

    /// Frames for what one transfer brings. Where too few are free, room for all of it is made first: fetched as
    /// frames come, each group would take a transfer of its own just when transfers are what all wait for. Only
    /// the first frame is worth another worker's group, or an error.
    pub(super) async fn frames_for<P: Pages>(
        &self,
        pages: &P,
        caller: Caller,
        wanted: u32,
    ) -> Result<u32, Trouble> {
        let batch = self.batch_of(caller.actor);
        let mut frames = self.frames.take(wanted);
        if frames == 0 {
            frames = self.evict(pages, caller, batch).await?;
        }
        while (1..wanted).contains(&frames) {
            match self.evict_own(pages, caller, batch).await {
                Ok(0) | Err(_) => break,
                Ok(freed) => frames += freed,
            }
        }
        Ok(frames)
    }

    /// Claims groups from the first of a run on, up to one that is not absent or not stored alike; returns how many.
    pub(super) fn claim_absent(&self, run: Run, state: State, me: Actor) -> u32 {
        let stored = self.directory.look(run.first).flags().stored;
        let claimed = run.iter().take_while(|group| {
            let seen = self.directory.look(*group);
            seen.state() == State::Absent
                && seen.flags().stored == stored
                && self.directory.claim(*group, seen, state, me).is_ok()
        });
        u32::try_from(claimed.count()).unwrap_or(0)
    }

    /// Fetches neighbours that the caller claimed and has frames for.
    pub(super) async fn bring<P: Pages>(
        &self,
        pages: &P,
        caller: Caller,
        run: Run,
        access: Access,
        Bringing { marker, foreseen }: Bringing,
    ) -> Result<(), Trouble> {
        let stored = self.directory.look(run.first).flags().stored;
        let into = (!marker).then_some(caller.space);
        if let Some(space) = into {
            run.iter().for_each(|group| self.directory.join(group, space));
        }
        let protect = self.plan.clean && access == Access::Read;
        if let Err(trouble) = pages.fill(run, Fetch { into, stored, protect, foreseen }).await {
            for group in run.iter() {
                self.rest(pages, group, State::Absent, Flags { stored, ..Flags::default() });
            }
            self.give(pages, run.groups);
            return Err(trouble);
        }
        // A marker is in no table, so nobody can write it: clean until somebody maps it.
        let clean = protect || (marker && self.plan.clean);
        self.arrive(pages, caller, run, Flags { stored, clean, marker }).await;
        Ok(())
    }

    /// Writes back some of those that will leave next, so that they can leave without a copy; returns how
    /// many it wrote.
    ///
    /// # Errors
    /// [`Trouble`] where the far tier or the kernel refused; nothing left.
    pub async fn write_back<P: Pages>(&self, pages: &P, caller: Caller) -> Result<u32, Trouble> {
        let mut batch = Batch::new();
        let shard = self.policy.home(caller.worker);
        self.lock(pages, shard, caller.actor).await;
        let mut claims = Claims {
            directory: self.directory,
            me: caller.actor,
            state: State::Writing,
            batch: &mut batch,
            busy: false,
            wanted: |seen| !seen.flags().clean,
        };
        self.policy.peek(shard, self.batch_of(caller.actor), &mut claims);
        self.unlock(pages, shard);
        batch.sort();
        let (mut at, mut written, mut last) = (0, 0, Ok(()));
        while let Some((run, flags)) = batch.run(at, &self.directory) {
            at += run.groups as usize;
            if run.iter().any(|group| self.directory.is_pinned(group)) {
                // Pinned after it was offered: a system call may be about to write there.
                run.iter().for_each(|group| self.rest(pages, group, State::Resident, flags));
                continue;
            }
            let saved = self.copy(pages, run, Then::Stays).await;
            let ok = saved.is_ok();
            let flags =
                Flags { stored: flags.stored || ok, clean: ok && self.plan.protect, ..flags };
            run.iter().for_each(|group| self.rest(pages, group, State::Resident, flags));
            match saved {
                Ok(()) => written += run.groups,
                Err(trouble) => last = Err(trouble),
            }
        }
        if written > 0 {
            pages.count(Event::WrittenEarly, written);
        }
        last.map(|()| written)
    }
}
