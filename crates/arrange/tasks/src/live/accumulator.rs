//! A reducing task's own values, combined with the common ones when it has done with them.

use core::fmt;
use core::ops::{Deref, DerefMut};

use crate::footprint::Op;
use crate::range::Part;
use crate::reduce::Reducible;
use crate::scheduler::Scheduler;

/// Values that begin neutral. Dropping it combines them with those of the range.
pub struct Accumulator<'m, T: Reducible> {
    pub(super) own: Vec<T>,
    pub(super) part: Part<T>,
    pub(super) op: Op,
    pub(super) token: u16,
    pub(super) scheduler: &'m Scheduler,
    pub(super) first: *mut T,
}

impl<T: Reducible> Drop for Accumulator<'_, T> {
    fn drop(&mut self) {
        let (first, len, op) = (self.first, self.part.len(), self.op);
        let own = &self.own;
        self.scheduler.with_token(self.token, || {
            // SAFETY: the range lies in registered memory, aligned for `T`; the task declared that it
            // reduces it, so only tasks that do the same use it now, and all of them combine under the
            // lock that is held here. `T` is valid for any bytes.
            let common = unsafe { core::slice::from_raw_parts_mut(first, len) };
            for (common, own) in common.iter_mut().zip(own) {
                *common = common.combine(*own, op);
            }
        });
    }
}

impl<T: Reducible> Deref for Accumulator<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.own
    }
}

impl<T: Reducible> DerefMut for Accumulator<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.own
    }
}

impl<T: Reducible + fmt::Debug> fmt::Debug for Accumulator<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.own.fmt(f)
    }
}
