//! One rank's part of a plan, ready to run, whichever way it goes.

use super::allgather::Allgather;
use super::allreduce::{Doubling, UpDown};
use super::alltoall::Alltoall;
use super::barrier::{Dissemination, TreeBarrier};
use super::broadcast::Broadcast;
use super::gather::Gather;
use super::kind::Kind;
use super::layout::{Layout, Needs};
use super::options::Shape;
use super::reduce::Reduce;
use super::reduce_scatter::ReduceScatter;
use super::ring::{Call, chunks};
use super::scan::{Exscan, Scan};
use super::scatter::Scatter;
use super::way::{Ranks, Way};
use crate::program::{Combine, Gone, Lines, Rank};

/// What one rank does. It holds line numbers and no lines: the same member runs live, is predicted and
/// is simulated.
#[derive(Clone, Debug)]
pub struct Member {
    /// Bytes of a call of the plan.
    pub(super) bytes: u32,
    /// Bytes that a chunk holds.
    pub(super) chunk: u32,
    pub(super) combine: Combine,
    pub(super) part: Part,
}

/// A way, by what a plan asks of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnyWay {
    /// As [`Way::RING_LEAST`].
    pub(super) ring_least: u32,
    /// As [`Way::IN_PLACE`].
    pub(super) in_place: bool,
    /// As [`Way::needs`].
    pub(super) needs: fn(&Ranks<'_>, Rank) -> Needs,
    /// As [`Way::new`].
    pub(super) part: fn(&Ranks<'_>, &Layout, Rank) -> Part,
}

macro_rules! parts {
    ($(
        $(#[$doc:meta])* $kind:ident $(($with:ident))? {
            names: $($names:ident)+,
            takes: $($takes:ident)+,
            sends: $($sends:ident)+, receives: $($receives:ident)+,
            ways: $($way:ident)+,
        }
    )*) => {
        /// One rank's part, by the way.
        #[derive(Clone, Debug)]
        pub(super) enum Part {
            $($( $way($way), )+)*
        }

        impl Part {
            #[inline]
            fn run<L: Lines>(&self, lines: &mut L, call: Call) -> Result<(), Gone> {
                match self {
                    $($( Self::$way(part) => part.run(lines, call), )+)*
                }
            }
        }

        impl AnyWay {
            /// The way of a collective over a shape; none where nothing goes over it.
            pub(super) fn of(kind: Kind, shape: &Shape) -> Option<Self> {
                let ways = match kind {
                    $( Kind::$kind => [$(
                        $way::SHAPES.have(shape).then(|| Self::new::<$way>(
                            |ranks, layout, me| Part::$way($way::new(ranks, layout, me))
                        ))
                    ),+].into_iter().flatten().next(), )*
                };
                ways
            }
        }
    };
}
crate::each_collective!(parts);

impl AnyWay {
    fn new<W: Way>(part: fn(&Ranks<'_>, &Layout, Rank) -> Part) -> Self {
        Self { ring_least: W::RING_LEAST, in_place: W::IN_PLACE, needs: W::needs, part }
    }
}

impl Member {
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
        self.part.run(lines, Call { before, bytes, chunk: self.chunk, combine })
    }
}
