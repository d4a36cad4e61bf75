//! Who takes part in a part: a worker, or the host, with the others' collectives at hand.

use core::num::NonZeroUsize;
use core::ptr::NonNull;
use core::sync::atomic::AtomicU64;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use isochrone_cla::live::{Number, Plain, Reduction, Settings, Team, TeamError};
use isochrone_cla::program::Rank;

use super::orders::{ARGUMENTS, END, Orders};
use crate::live::worker::Worker;

/// A part of a program.
pub(super) type Body<'p> =
    dyn Fn(&mut Member<'_, '_>, [u64; ARGUMENTS]) -> Result<u64, String> + Sync + 'p;

/// One of those that a part runs on.
#[derive(Debug)]
pub struct Member<'m, 't> {
    worker: &'m mut Worker<'t>,
    team: &'m mut Team,
}

impl<'t> Member<'_, 't> {
    /// Its number among those that the part runs on.
    #[must_use]
    pub fn index(&self) -> u16 {
        self.team.rank().0
    }

    /// How many the part runs on.
    #[must_use]
    pub fn members(&self) -> u16 {
        self.team.ranks()
    }

    /// The worker itself: pins, advice, pieces of the area.
    pub const fn worker(&mut self) -> &mut Worker<'t> {
        self.worker
    }

    /// This member's share of so many things that are dealt out evenly, in order.
    #[must_use]
    pub fn share(&self, things: usize) -> Range<usize> {
        let cut = |member: u16| things * usize::from(member) / usize::from(self.members().max(1));
        cut(self.index())..cut(self.index() + 1)
    }

    /// Words of the area at an address that came as a number.
    ///
    /// # Errors
    /// Words, for 0.
    ///
    /// # Panics
    /// If they do not lie in the area.
    pub fn global_words(&self, at: u64, words: u64) -> Result<&'t [AtomicU64], String> {
        let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        let at = NonZeroUsize::new(number(at)).ok_or("no address")?;
        let base = NonNull::new(self.worker.extent().0).ok_or("no area")?;
        Ok(self.worker.global_words(base.with_addr(at), number(words)))
    }

    /// Waits until all members came here.
    ///
    /// # Errors
    /// Words that say who ended.
    pub fn barrier(&mut self) -> Result<(), String> {
        self.team.barrier().map_err(words)
    }

    /// Combines what all members give, number by number; the same bits for each of them.
    ///
    /// # Errors
    /// Words, for another length of the result, or that say who ended.
    pub fn allreduce<T: Number>(
        &mut self,
        reduction: Reduction,
        data: &[T],
        result: &mut [T],
    ) -> Result<(), String> {
        self.team.allreduce(reduction, data, result).map_err(words)
    }

    /// The sum of what all members give.
    ///
    /// # Errors
    /// Words that say who ended.
    pub fn sum(&mut self, mine: f64) -> Result<f64, String> {
        let mut sum = [0.0];
        self.allreduce(Reduction::Sum, &[mine], &mut sum)?;
        Ok(sum[0])
    }

    /// Copies what one member has to all.
    ///
    /// # Errors
    /// Words, for a member that there is not, or that say who ended.
    pub fn broadcast<T: Plain>(&mut self, data: &mut [T], from: u16) -> Result<(), String> {
        self.team.broadcast(data, Rank(from)).map_err(words)
    }
}

/// Runs a part; one that fails takes the others' collectives along, so that nobody waits for it.
pub(super) fn run(
    worker: &mut Worker<'_>,
    team: &mut Team,
    parts: &[Box<Body<'_>>],
    part: u64,
    arguments: [u64; ARGUMENTS],
) -> Result<u64, String> {
    let body = usize::try_from(part).ok().and_then(|part| parts.get(part));
    let body = body.ok_or_else(|| "there is no such part".to_owned())?;
    let mut member = Member { worker, team };
    let outcome = catch_unwind(AssertUnwindSafe(|| body(&mut member, arguments)))
        .unwrap_or_else(|_| Err("it panicked (see standard error)".to_owned()));
    if outcome.is_err() {
        team.stop();
    }
    outcome
}

/// The team of all, or of the workers alone: made by its first rank, joined by the others.
pub(super) fn team(
    orders: &Orders,
    which: usize,
    rank: u16,
    ranks: u16,
    gone: impl Fn() -> bool,
) -> Result<Team, String> {
    const LOOK: Duration = Duration::from_millis(50);
    let team = if rank == 0 {
        let (team, place) = Team::found(ranks, Rank(0), Settings::default()).map_err(words)?;
        orders.publish(which, place);
        team
    } else {
        let place = orders.place(which, &gone).ok_or("another worker ended")?;
        Team::join(place, Rank(rank), Settings::default()).map_err(words)?
    };
    loop {
        match team.await_all(LOOK) {
            Ok(()) => return Ok(team),
            Err(TeamError::Late { .. }) if !gone() => {}
            Err(error) => return Err(words(error)),
        }
    }
}

/// A worker's life in a pool: one order after the other.
pub(super) fn serve(
    worker: &mut Worker<'_>,
    orders: &Orders,
    parts: &[Box<Body<'_>>],
) -> Result<u64, String> {
    let (index, workers) = (worker.index(), worker.workers());
    let somebody = || (0..workers).any(|other| worker.is_gone(other));
    let mut all = team(orders, 0, index, workers, somebody)?;
    let mut alone = team(orders, 1, index - 1, workers - 1, somebody)?;
    let mut seen = 0;
    let mut done = 0;
    loop {
        let next = orders.next(seen, || worker.is_gone(0));
        let (number, order) = next.ok_or("the host ended")?;
        seen = number;
        if order.part == END {
            return Ok(done);
        }
        let team = if order.with_host { &mut all } else { &mut alone };
        let result = run(worker, team, parts, order.part, order.arguments);
        orders.leave(index, number, result);
        done += 1;
    }
}

/// What a collective of `cla` says, in words.
pub(super) fn words(error: TeamError) -> String {
    error.to_string()
}
