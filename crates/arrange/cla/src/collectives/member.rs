//! One rank's part of a plan, ready to run.

use super::allgather::Allgather;
use super::allreduce::{Doubling, UpDown};
use super::barrier::{Dissemination, TreeBarrier};
use super::broadcast::Broadcast;
use super::gather::Gather;
use super::layout::Layout;
use super::options::Shape;
use super::plan::{Collective, Plan};
use super::reduce::Reduce;
use super::ring::{Call, chunks};
use super::scatter::Scatter;
use crate::program::{Combine, Element, Gone, Lines, Rank};

/// What one rank does. It holds line numbers and no lines: the same member runs live, is predicted and
/// is simulated.
#[derive(Clone, Debug)]
pub struct Member {
    bytes: u32,
    chunk: u32,
    combine: Combine,
    part: Part,
}

#[derive(Clone, Debug)]
enum Part {
    Broadcast(Broadcast),
    TreeBarrier(TreeBarrier),
    Dissemination(Dissemination),
    Reduce(Reduce),
    UpDown(UpDown),
    Doubling(Doubling),
    Scatter(Scatter),
    Gather(Gather),
    Allgather(Allgather),
}

impl Member {
    pub(super) fn new(plan: &Plan, layout: &Layout, me: Rank) -> Self {
        let options = plan.options();
        let part = match (plan.collective(), &options.shape) {
            (Collective::Broadcast, Shape::Tree(tree)) => {
                Part::Broadcast(Broadcast::new(layout, options, tree, me))
            }
            (Collective::Barrier, Shape::Tree(tree)) => {
                Part::TreeBarrier(TreeBarrier::new(layout, options, tree, me))
            }
            (Collective::Barrier, Shape::Exchange) => {
                Part::Dissemination(Dissemination::new(layout, plan.ranks(), me))
            }
            (Collective::Reduce(_), Shape::Tree(tree)) => {
                Part::Reduce(Reduce::new(layout, tree, me))
            }
            (Collective::Allreduce(_), Shape::Tree(tree)) => {
                Part::UpDown(UpDown::new(layout, options, tree, me))
            }
            (Collective::Allreduce(_), Shape::Exchange) => {
                Part::Doubling(Doubling::new(layout, plan.ranks(), me))
            }
            (Collective::Scatter, Shape::Tree(tree)) => {
                Part::Scatter(Scatter::new(layout, tree, me))
            }
            (Collective::Gather, Shape::Tree(tree)) => Part::Gather(Gather::new(layout, tree, me)),
            (Collective::Allgather, shape) => {
                Part::Allgather(Allgather::new(layout, options, shape, plan.ranks(), me))
            }
            (
                Collective::Broadcast
                | Collective::Reduce(_)
                | Collective::Scatter
                | Collective::Gather,
                Shape::Exchange,
            ) => unreachable!("a plan with a root has a tree"),
        };
        // Collectives that combine nothing never look at it.
        let combine = plan.collective().combine().unwrap_or(Combine::Sum(Element::I32));
        Self { bytes: plan.bytes(), chunk: options.chunk_bytes(), combine, part }
    }

    /// Call number `epoch`, counted from 0, with the plan's bytes.
    ///
    /// # Errors
    /// [`Gone`] when a rank that is waited for has ended.
    #[inline]
    pub fn run<L: Lines>(&self, lines: &mut L, epoch: u64) -> Result<(), Gone> {
        let before = epoch * self.chunks(self.bytes);
        self.call(lines, before, self.bytes, self.combine)
    }

    /// Chunks that a call with `bytes` bytes takes of the plan's rings.
    #[must_use]
    pub const fn chunks(&self, bytes: u32) -> u64 {
        chunks(bytes, self.chunk) as u64
    }

    /// One call with `bytes` bytes, whole elements of `combine` where elements are combined, after calls
    /// that took `before` chunks together. All ranks make the same calls in the same order.
    ///
    /// # Errors
    /// [`Gone`] when a rank that is waited for has ended.
    #[inline]
    pub fn call<L: Lines>(
        &self,
        lines: &mut L,
        before: u64,
        bytes: u32,
        combine: Combine,
    ) -> Result<(), Gone> {
        let call = Call { before, bytes, chunk: self.chunk, combine };
        match &self.part {
            Part::Broadcast(part) => part.run(lines, call),
            Part::TreeBarrier(part) => part.run(lines, call),
            Part::Dissemination(part) => part.run(lines, call),
            Part::Reduce(part) => part.run(lines, call),
            Part::UpDown(part) => part.run(lines, call),
            Part::Doubling(part) => part.run(lines, call),
            Part::Scatter(part) => part.run(lines, call),
            Part::Gather(part) => part.run(lines, call),
            Part::Allgather(part) => part.run(lines, call),
        }
    }
}
