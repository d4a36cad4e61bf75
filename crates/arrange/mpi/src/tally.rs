//! How a communicator's calls were done, counted as they are made, and what a report says of it.

use crate::config::{Counts, Details, LeftCalls, SizedCalls};
use crate::watched::Seen;
use crate::worth::saves_ns;
use isochrone_cla::live::{CLASSES, Kind};

/// Why the MPI does one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByMpi {
    /// The job is only watched.
    Watched,
    /// Its communicator is the MPI's so far.
    SoFar,
    /// Its communicator is the MPI's.
    Comm,
    /// So the user said.
    Told,
    Bytes,
    Operation,
    /// Many bytes that cannot be copied once.
    Layout,
    Nodes,
    /// There are too few lines.
    Room,
    /// The MPI refuses it.
    Wrong,
    /// Another rank left it to the MPI.
    Others,
}

impl ByMpi {
    const ALL: [Self; 11] = [
        Self::Watched,
        Self::SoFar,
        Self::Comm,
        Self::Told,
        Self::Bytes,
        Self::Operation,
        Self::Layout,
        Self::Nodes,
        Self::Room,
        Self::Wrong,
        Self::Others,
    ];

    const fn words(self) -> &'static str {
        match self {
            Self::Watched => "the job was only watched",
            Self::SoFar => "before its communicator was worth it",
            Self::Comm => "its communicator is the MPI's",
            Self::Told => "this collective is the MPI's, as it was told",
            Self::Bytes => "more bytes than are done in lines",
            Self::Operation => "a type or an operation that lines do not have",
            Self::Layout => "many bytes that do not lie together, or on a device",
            Self::Nodes => "over several nodes the MPI does it",
            Self::Room => "no shared memory was left for its lines",
            Self::Wrong => "the MPI refuses what it was given",
            Self::Others => "another rank left it to the MPI",
        }
    }
}

/// Calls of one collective.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// In lines, by class of size.
    lines: [u64; CLASSES.len()],
    /// Copied once.
    once: u64,
    across: u64,
    /// Of those across nodes, how many several leaders of each node had parts of.
    in_parts: u64,
    left: [u64; ByMpi::ALL.len()],
    /// Of those that were left, how many were combined in the order of ranks.
    pub(crate) in_order: u64,
    saved_ns: u64,
    /// Of a job that is only watched.
    pub(crate) seen: Seen,
}

/// The class of a call of so many bytes.
#[inline]
pub(crate) fn class(bytes: usize) -> u8 {
    u8::from(bytes > CLASSES[0] as usize) + u8::from(bytes > CLASSES[1] as usize)
}

/// Calls of one kind from which on it is looked whether they have doubled.
const DOUBLED_LEAST: u64 = 64;

#[inline]
const fn doubled(calls: u64) -> bool {
    calls.is_power_of_two() && calls >= DOUBLED_LEAST
}

impl Tally {
    /// One in lines, of this [class](class()). Whether there are twice as many now as when that was true last.
    #[inline]
    pub(crate) fn in_lines(&mut self, class: u8) -> bool {
        let Some(lines) = self.lines.get_mut(usize::from(class)) else { return false };
        *lines += 1;
        doubled(*lines)
    }

    /// One whose bytes were copied once, as [`Self::in_lines`].
    #[inline]
    pub(crate) const fn once(&mut self) -> bool {
        self.once += 1;
        doubled(self.once)
    }

    /// One in lines within nodes, as [`Self::in_lines`].
    #[inline]
    pub(crate) const fn across(&mut self, in_parts: bool) -> bool {
        self.across += 1;
        self.in_parts += in_parts as u64;
        doubled(self.across)
    }

    /// One by the MPI, as [`Self::in_lines`].
    #[inline]
    pub(crate) const fn left(&mut self, why: ByMpi) -> bool {
        self.left[why as usize] += 1;
        doubled(self.left[why as usize])
    }

    /// Adds those of a communicator of `ranks` ranks that ended.
    pub(crate) fn add(&mut self, other: &Self, kind: Kind, ranks: u16) {
        self.lines.iter_mut().zip(other.lines).for_each(|(all, own)| *all += own);
        self.left.iter_mut().zip(other.left).for_each(|(all, own)| *all += own);
        self.across += other.across;
        self.in_parts += other.in_parts;
        self.once += other.once;
        self.in_order += other.in_order;
        self.seen.add(&other.seen);
        let in_lines: u64 = other.lines.iter().sum();
        self.saved_ns += in_lines.saturating_mul(saves_ns(kind, ranks));
    }

    pub(crate) fn counts(&self) -> Counts {
        let lines: u64 = self.lines.iter().sum();
        let (lines, mpi) = (lines + self.once, self.left.iter().sum());
        Counts { lines, across: self.across, mpi }
    }

    /// What a report says beside the counts.
    pub(crate) fn details(&self) -> Details {
        let sizes = self.lines.iter().zip(CLASSES).filter(|(calls, _)| **calls > 0);
        let reasons = ByMpi::ALL.into_iter().zip(self.left).filter(|(_, calls)| *calls > 0);
        Details {
            sizes: sizes.map(|(&calls, bytes)| SizedCalls { bytes, calls }).collect(),
            by_the_mpi: reasons
                .map(|(why, calls)| LeftCalls { why: why.words().to_owned(), calls })
                .collect(),
            copied_once: self.once,
            in_order: self.in_order,
            in_parts: self.in_parts,
            saved_ns: self.saved_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_apart_by_size_and_by_reason() {
        let mut own = Tally::default();
        for bytes in [0, 56, 57, 504, 505, 1 << 20] {
            assert!(!own.in_lines(class(bytes)));
        }
        ByMpi::ALL.into_iter().for_each(|why| assert!(!own.left(why)));
        own.left(ByMpi::Bytes);
        own.across(true);
        own.once();
        own.in_order += 1;
        let mut all = Tally::default();
        all.add(&own, Kind::Allreduce, 2);
        all.add(&own, Kind::Allreduce, 2);
        assert_eq!(all.counts(), Counts { lines: 14, across: 2, mpi: 24 });
        let details = all.details();
        let sizes: Vec<_> = details.sizes.iter().map(|sized| (sized.bytes, sized.calls)).collect();
        assert_eq!(sizes, [(56, 4), (504, 4), (1 << 20, 4)]);
        let calls: Vec<_> = details.by_the_mpi.iter().map(|left| left.calls).collect();
        assert_eq!(calls, [2, 2, 2, 2, 4, 2, 2, 2, 2, 2, 2]);
        assert_eq!((details.copied_once, details.in_order, details.in_parts), (2, 2, 2));
        assert_eq!(all.saved_ns, 12 * saves_ns(Kind::Allreduce, 2));
        assert_eq!(Tally::default().details(), Details::default());
        let doubles: Vec<_> = (1..=300).filter(|_| Tally::left(&mut own, ByMpi::Nodes)).collect();
        assert_eq!(doubles, [63, 127, 255], "beside the one of before");
    }
}
