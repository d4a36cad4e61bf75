//! Frames beyond the fast tier's own, for a while: for who must have more in memory at once than the limit allows, and
//! says by how much.

use super::{Caller, Pager};
use crate::pages::Pages;

impl Pager<'_> {
    /// Adds frames to those that are free.
    pub fn lend<P: Pages>(&self, pages: &P, frames: u32) {
        self.give(pages, frames);
    }

    /// Takes frames back that were lent, and evicts for them; returns how many could be had. Where it is fewer than
    /// `frames`, what is in memory cannot leave now.
    pub async fn repay<P: Pages>(&self, pages: &P, caller: Caller, frames: u32) -> u32 {
        let mut repaid = self.frames.take(frames);
        while repaid < frames {
            let want = (frames - repaid).min(self.plan.batch);
            match self.evict(pages, caller, want).await {
                Ok(freed @ 1..) => {
                    let kept = freed.min(frames - repaid);
                    repaid += kept;
                    self.give(pages, freed - kept);
                }
                Ok(0) | Err(_) => break,
            }
        }
        repaid
    }
}
