//! What calls are expected to save in lines, and when that is worth a take-over: the same on all ranks.

use crate::config::Config;
use isochrone_cla::live::Kind;

/// How far a communicator is that is left to the MPI so far: the same on all its ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counting {
    /// Its calls.
    pub(crate) calls: u32,
    /// What they would have saved in lines, ns, by [`saves_ns`].
    pub(crate) saves: u64,
    /// What they must have been expected to save before its ranks agree on it again, ns.
    pub(crate) due: u64,
}

/// What a take-over costs where the memory is there, ns: two of the MPI's own calls and what is done beside them.
pub(crate) const PIECE_NS: u64 = 20_000;

impl Counting {
    pub(crate) fn new(config: &Config) -> Self {
        Self { calls: 0, saves: 0, due: PIECE_NS * u64::from(config.costs_before) }
    }

    /// Counts a call; whether its ranks agree now, on this call and those that follow.
    #[inline]
    pub(crate) const fn count(&mut self, kind: Kind, ranks: u16, calls_before: u32) -> bool {
        let agree = self.calls >= calls_before && self.saves >= self.due;
        self.calls = self.calls.saturating_add(1);
        self.saves += saves_ns(kind, ranks);
        agree
    }
}

/// What a call of so many ranks is expected to save in lines, ns: what the best MPI took longer than lines with 8 bytes
/// between two cores of one complex (docs/results/bench-coll-epyc-9005-vm.md, steady, near), for each round in which
/// the ranks are halved. It is the same on all ranks, whatever bytes they have.
pub(crate) const fn saves_ns(kind: Kind, ranks: u16) -> u64 {
    let rounds = (u16::BITS - ranks.saturating_sub(1).leading_zeros()) as u64;
    let each = match kind {
        Kind::Barrier => 60,
        Kind::Allreduce => 50,
        Kind::Broadcast | Kind::Reduce | Kind::Allgather => 30,
        Kind::Scatter | Kind::Gather | Kind::Alltoall | Kind::ReduceScatter => 20,
        Kind::Scan | Kind::Exscan => 20,
    };
    each * rounds
}
