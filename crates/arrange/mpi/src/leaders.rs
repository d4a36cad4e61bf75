//! The ranks that speak for their nodes: the first of each, or several, of which each takes a part of a long message.
//!
//! Leaders of one number on all nodes have a communicator of the MPI. Where a node has fewer ranks than leaders, a rank
//! is several of them, and makes their calls in the order of their numbers, as all do.

use crate::abi::{Handle, Mpi};
use crate::among::{free, least};
use crate::why::Why;
use isochrone_cla::program::Rank;
use std::ffi::c_int;

/// Bytes from which on a message has a part for each leader. No network was at hand to measure this with: it is what
/// MPIs begin to send in pieces.
const PARTS_FROM: usize = 16 << 10;

/// The leaders of nodes, as a rank of one sees them.
#[derive(Debug)]
pub(crate) struct Leaders {
    /// Ranks of this node.
    ranks: u16,
    /// By number, the communicator of those leaders; on them only.
    comms: Vec<Option<Handle>>,
}

/// What one leader of each node has of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Its first byte.
    pub(crate) first: usize,
    pub(crate) bytes: usize,
    /// Who leads it on this node.
    pub(crate) leader: Rank,
    /// Where its leaders are, on them only.
    pub(crate) comm: Option<Handle>,
}

impl Leaders {
    /// The first ranks of nodes, of which this node has so many.
    pub(crate) fn first(ranks: u16, comm: Option<Handle>) -> Self {
        Self { ranks, comms: vec![comm] }
    }

    /// Adds others, so that there are `wanted`, but no more than the largest node of `comm` has ranks. All ranks of it
    /// make this call now, each as `rank` of node `node`.
    pub(crate) fn add(
        &mut self,
        mpi: &Mpi,
        comm: Handle,
        rank: Rank,
        node: u16,
        wanted: u16,
    ) -> Result<(), Why> {
        if wanted <= 1 {
            return Ok(());
        }
        let [least] = least(mpi, comm, [-c_int::from(self.ranks)]).ok_or(Why::Failed)?;
        let most = u16::try_from(-least).unwrap_or(self.ranks);
        for number in 1..wanted.min(most) {
            let leads = self.of_number(number) == rank;
            let color = if leads { 0 } else { Mpi::UNDEFINED };
            let mut made: Handle = 0;
            let split = mpi.functions().comm_split;
            // SAFETY: a collective call that all ranks make now; the result has room for either kind of handle.
            let failed = unsafe { split(comm, color, c_int::from(node), &raw mut made) };
            if failed != 0 {
                return Err(Why::Failed);
            }
            self.comms.push(leads.then_some(made));
        }
        Ok(())
    }

    /// Who leads of this node.
    const fn of_number(&self, number: u16) -> Rank {
        Rank(number % self.ranks)
    }

    /// The communicator of the first ranks, on them only.
    pub(crate) fn first_comm(&self) -> Option<Handle> {
        self.comms.first().copied().flatten()
    }

    /// The parts of a message of so many bytes, in the order of their leaders: each of whole `unit`s, but that the last
    /// has what is left.
    pub(crate) fn parts(
        &self,
        bytes: usize,
        unit: usize,
    ) -> impl ExactSizeIterator<Item = Part> + '_ {
        let count = if bytes < PARTS_FROM { 1 } else { self.comms.len() };
        let edge = move |n: usize| if n == count { bytes } else { bytes / unit * n / count * unit };
        self.comms[..count].iter().enumerate().map(move |(n, &comm)| {
            let (first, number) = (edge(n), u16::try_from(n).unwrap_or(0));
            Part { first, bytes: edge(n + 1) - first, leader: self.of_number(number), comm }
        })
    }

    /// Gives their communicators back.
    pub(crate) fn free(&mut self, mpi: &Mpi) {
        self.comms.drain(..).flatten().for_each(|mut comm| free(mpi, &mut comm));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_all_of_a_message_in_whole_elements_and_a_short_one_is_one() {
        let leaders = Leaders { ranks: 2, comms: vec![Some(7), None, Some(9)] };
        for (bytes, unit) in [(PARTS_FROM, 8), (20_000, 4), (16_385, 8), (1 << 20, 1)] {
            let parts: Vec<Part> = leaders.parts(bytes, unit).collect();
            let mut end = 0;
            for part in &parts {
                assert_eq!((part.first, part.first % unit), (end, 0), "{parts:?}");
                assert!(part.bytes.abs_diff(bytes / 3) <= 2 * unit, "{parts:?}");
                end += part.bytes;
            }
            assert_eq!(end, bytes);
            let of = |n: usize| (parts[n].leader, parts[n].comm);
            assert_eq!(
                [of(0), of(1), of(2)],
                [(Rank(0), Some(7)), (Rank(1), None), (Rank(0), Some(9)),]
            );
        }
        let whole = Part { first: 0, bytes: 4096, leader: Rank(0), comm: Some(7) };
        assert_eq!(leaders.parts(4096, 4).collect::<Vec<_>>(), [whole]);
        assert_eq!(leaders.parts(0, 8).len(), 1);
    }
}
