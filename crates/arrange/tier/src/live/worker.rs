//! What a worker's program has: who it is, the area, and the others.

use core::sync::atomic::{AtomicU64, Ordering};
use std::cell::RefCell;
use std::collections::BTreeMap;

use isochrone_os::signal::hold;

use super::acting::at_once;
use super::barrier::{self, Gone};
#[allow(unused_imports, reason = "named in the documentation")]
use super::common::NOTES;
use super::common::{Counters, DECLARATION_WORDS};
use super::context::Context;
use super::poison;
use super::process::Process;
use super::statistics::Statistics;
use crate::directory::Era;
use crate::names::{Access, Actor, Group};
use crate::pages::Trouble;

/// A worker of a team, in its own thread or process.
#[derive(Debug)]
pub struct Worker<'t> {
    process: &'t Process,
    context: &'t Context<'t>,
    epoch: u32,
    used: usize,
    /// What this worker has pinned, in which era and how often.
    pins: RefCell<BTreeMap<Group, (Era, u32)>>,
}

impl<'t> Worker<'t> {
    pub(super) const fn new(context: &'t Context<'t>) -> Self {
        let pins = RefCell::new(BTreeMap::new());
        Self { process: context.process, context, epoch: 0, used: 0, pins }
    }

    pub(super) const fn context(&self) -> &'t Context<'t> {
        self.context
    }

    /// Whether another worker ended, by whatever way, and will do nothing any more.
    #[must_use]
    pub fn is_gone(&self, worker: u16) -> bool {
        self.process.common.mail(worker)[0].load(Ordering::Acquire) != 0
            || self.process.is_dead(Actor(worker))
    }

    /// Its number, from 0.
    #[must_use]
    pub const fn index(&self) -> u16 {
        self.context.caller.actor.0
    }

    /// How many workers there are.
    #[must_use]
    pub const fn workers(&self) -> u16 {
        self.process.config.workers
    }

    /// Waits until all workers came here.
    ///
    /// # Errors
    /// [`Gone`] if one ended and will not come.
    pub fn barrier(&mut self) -> Result<(), Gone> {
        barrier::meet(self.process, &mut self.epoch)
    }

    /// The sum of what all workers give, the same to the last bit for each of them: added in the order of
    /// their numbers.
    ///
    /// # Errors
    /// [`Gone`] if one ended and will not come.
    pub fn sum(&mut self, mine: f64) -> Result<f64, Gone> {
        self.process.common.slot(self.index())[0].store(mine.to_bits(), Ordering::Release);
        self.barrier()?;
        let slot =
            |worker| f64::from_bits(self.process.common.slot(worker)[0].load(Ordering::Acquire));
        let sum = (0..self.workers()).map(slot).sum();
        // Nobody gives the next before all have read this.
        self.barrier()?;
        Ok(sum)
    }

    /// The first byte of the area, and how many there are.
    pub(super) fn extent(&self) -> (*mut u8, usize) {
        (self.process.area.base(), self.process.area.bytes())
    }

    /// Bytes from the start of the area to an address, `None` outside.
    #[must_use]
    pub fn offset_of(&self, address: usize) -> Option<usize> {
        let (base, bytes) = self.extent();
        address.checked_sub(base.addr()).filter(|offset| *offset < bytes)
    }

    /// What the area is used as.
    pub(super) fn kind(&self) -> &'t AtomicU64 {
        self.process.common.kind()
    }

    /// The first byte that no array has.
    pub(super) const fn used(&self) -> usize {
        self.used
    }

    pub(super) fn use_up_to(&mut self, end: usize) {
        self.used = end.next_multiple_of(self.process.area.group_bytes());
    }

    /// Meets all others and compares what each brings with what this worker brings. The same answer for
    /// all is not promised, so who is told no must not go on.
    pub(super) fn compare(
        &mut self,
        mine: [u64; DECLARATION_WORDS],
        holds: impl Fn(&[u64], &[u64], u16) -> bool,
    ) -> Result<bool, Gone> {
        for (word, value) in self.process.common.slot(self.index()).iter().zip(mine) {
            word.store(value, Ordering::Relaxed);
        }
        self.barrier()?;
        let agreed = (0..self.workers()).all(|worker| {
            let mut theirs = [0; DECLARATION_WORDS];
            for (to, from) in theirs.iter_mut().zip(self.process.common.slot(worker)) {
                *to = from.load(Ordering::Relaxed);
            }
            holds(&theirs, &mine, worker)
        });
        // Nobody brings the next before all have compared this.
        self.barrier()?;
        Ok(agreed)
    }

    /// What was counted of this worker until now.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.process.common.counters(self.context.caller.actor)
    }

    /// What was counted of all workers until now.
    #[must_use]
    pub fn counters_of_workers(&self) -> Counters {
        self.counters_of(0..self.workers())
    }

    /// What was counted of all movers until now.
    #[must_use]
    pub fn counters_of_movers(&self) -> Counters {
        self.counters_of(self.workers()..self.workers() + self.process.config.movers)
    }

    /// What became of the area's pages until now.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let process = self.process;
        let one = |worker| process.common.counters(Actor(worker));
        Statistics {
            workers: (0..self.workers()).map(one).collect(),
            movers: self.counters_of_movers(),
            group_bytes: process.area.group_bytes(),
            frames: process.shape.frames,
            ns_per_cycle: process.born.ns_per_cycle(),
            serves_system_calls: self.context.serves_system_calls(),
        }
    }

    fn counters_of(&self, actors: std::ops::Range<u16>) -> Counters {
        let all = actors.map(|actor| self.process.common.counters(Actor(actor)));
        all.fold(Counters::none(), |sum, counters| sum.and(&counters))
    }

    /// Leaves a number for the report, at one of [`NOTES`] places.
    pub fn note(&self, place: usize, value: u64) {
        if let Some(word) = self.process.common.notes(self.index()).get(place) {
            word.store(value, Ordering::Release);
        }
    }

    /// Fetches what is absent of a range of bytes of the area and keeps it in fast memory, mapped and
    /// writable, until [`Self::unpin`], or the end of the worker: for buffers given to system
    /// calls, which fail with `EFAULT` on a page that is not mapped.
    ///
    /// # Errors
    /// [`Trouble`] where a page cannot be had; then nothing is pinned.
    pub fn pin(&self, from: usize, bytes: usize) -> Result<(), Trouble> {
        let _held = hold();
        let pager = self.process.pager();
        let directory = pager.directory();
        let mut done = Vec::new();
        for group in self.groups(from, bytes) {
            done.push((group, directory.pin(group)));
            // Every page is touched by a write: a system call may write there, too.
            let outcome =
                at_once(pager.fault(self.context, self.context.caller, group, Access::Write));
            if let Err(trouble) = outcome {
                done.into_iter().for_each(|(group, era)| pager.unpin(self.context, group, era));
                return Err(trouble);
            }
        }
        let mut pins = self.pins.borrow_mut();
        for (group, era) in done {
            let mine = pins.entry(group).or_insert((era, 0));
            // Those of an era that is over have ended.
            *mine = if mine.0 == era { (era, mine.1 + 1) } else { (era, 1) };
        }
        Ok(())
    }

    /// Takes a pin of the same range back.
    ///
    /// # Errors
    /// [`Trouble::NotPinned`] where this worker has no pin of all of it: it pinned less, or another worker did, or the
    /// piece was given back. Then nothing is unpinned.
    pub fn unpin(&self, from: usize, bytes: usize) -> Result<(), Trouble> {
        let _held = hold();
        let pager = self.process.pager();
        let mut pins = self.pins.borrow_mut();
        let era = |group: Group| Some(pager.directory().era(group));
        let groups = self.groups(from, bytes);
        if !groups.clone().all(|group| pins.get(&group).map(|(era, _)| *era) == era(group)) {
            return Err(Trouble::NotPinned);
        }
        for group in groups {
            let Some((era, times)) = pins.get_mut(&group) else { continue };
            pager.unpin(self.context, group, *era);
            *times -= 1;
            if *times == 0 {
                pins.remove(&group);
            }
        }
        poison::clear(self.context);
        Ok(())
    }

    fn groups(&self, from: usize, bytes: usize) -> impl Iterator<Item = Group> + Clone + use<'t> {
        let unit = self.process.area.group_bytes();
        let last = from.saturating_add(bytes).min(self.process.area.bytes());
        let numbers = from / unit..last.div_ceil(unit);
        numbers.map(|group| Group(u32::try_from(group).unwrap_or(u32::MAX)))
    }
}

/// What it pinned nobody else can unpin.
impl Drop for Worker<'_> {
    fn drop(&mut self) {
        let _held = hold();
        let pager = self.process.pager();
        for (group, (era, times)) in self.pins.take() {
            (0..times).for_each(|_| pager.unpin(self.context, group, era));
        }
    }
}
