//! What a worker's program has: who it is, the area, and the others.

use core::sync::atomic::{AtomicU64, Ordering};

use super::barrier::{self, Gone};
use super::context::{Context, at_once};
use super::process::Process;
use crate::names::Access;
use crate::pages::Trouble;

/// A worker of a team, in its own thread or process.
#[derive(Debug)]
pub struct Worker<'t> {
    process: &'t Process,
    context: &'t Context<'t>,
    epoch: u32,
}

impl<'t> Worker<'t> {
    pub(super) const fn new(context: &'t Context<'t>) -> Self {
        Self { process: context.process, context, epoch: 0 }
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
        self.process.common.slot(self.index()).store(mine.to_bits(), Ordering::Release);
        self.barrier()?;
        let slot =
            |worker| f64::from_bits(self.process.common.slot(worker).load(Ordering::Acquire));
        let sum = (0..self.workers()).map(slot).sum();
        // Nobody gives the next before all have read this.
        self.barrier()?;
        Ok(sum)
    }

    /// The area, as words that all workers share.
    #[must_use]
    pub fn words(&self) -> &'t [AtomicU64] {
        let first = self.process.area.base().cast::<AtomicU64>();
        // SAFETY: the area is mapped readable and writable in this process while the worker lives, faults
        // in it are resolved, its bytes are initialised (zeros or what was written), it is page-aligned,
        // and safe code has it as atomic words only.
        unsafe { std::slice::from_raw_parts(first, self.process.area.bytes() / 8) }
    }

    /// Fetches what is absent of a range of bytes of the area and keeps it in fast memory, mapped and
    /// writable, until [`Self::unpin`]: for buffers given to system calls, which fail with `EFAULT` on a
    /// page that is not mapped.
    ///
    /// # Errors
    /// [`Trouble`] where a page cannot be had; then nothing is pinned.
    pub fn pin(&self, from: usize, bytes: usize) -> Result<(), Trouble> {
        let pager = self.process.pager();
        let directory = pager.directory();
        let groups = self.groups(from, bytes);
        for (done, group) in groups.clone().enumerate() {
            directory.pin(group);
            // Every page is touched by a write: a system call may write there, too.
            let outcome =
                at_once(pager.fault(self.context, self.context.caller, group, Access::Write));
            if let Err(trouble) = outcome {
                groups.take(done + 1).for_each(|group| pager.unpin(self.context, group));
                return Err(trouble);
            }
        }
        Ok(())
    }

    /// Takes a pin of the same range back.
    pub fn unpin(&self, from: usize, bytes: usize) {
        let pager = self.process.pager();
        self.groups(from, bytes).for_each(|group| pager.unpin(self.context, group));
    }

    fn groups(
        &self,
        from: usize,
        bytes: usize,
    ) -> impl Iterator<Item = crate::names::Group> + Clone + use<'t> {
        let unit = self.process.area.group_bytes();
        let last = from.saturating_add(bytes).min(self.process.area.bytes());
        let numbers = from / unit..last.div_ceil(unit);
        numbers.map(|group| crate::names::Group(u32::try_from(group).unwrap_or(u32::MAX)))
    }
}
