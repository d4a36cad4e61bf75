//! Calls of a job that is only watched: all of them are the MPI's, their sizes are counted, and so is what lines would
//! have saved. Ranks tell one another nothing.
//!
//! When a communicator would have been taken over is what [`crate::worth`] says, with what that costs a job that is not
//! watched: so what is counted as saved are calls of a job under `isochrone run --mpi`, and none before.

use crate::config::{SeenCalls, SeenSize};
use crate::worth::{Counting, saves_ns};
use isochrone_cla::live::Kind;

/// Bytes from or to each rank up to which calls are counted together; there are larger ones, too.
pub(crate) const SIZES: [u32; 5] = [56, 504, 4096, 64 << 10, 1 << 20];

/// Bytes of a call up to which the table of savings holds: it is of 8 bytes, and measured savings of 64 and 256 are no
/// less (docs/results/bench-coll-epyc-9005-vm.md, steady, near). Those of 4 KiB are above and below nothing.
const TABLE_HOLDS: usize = 504;

/// Calls of one collective.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// By size; the last are larger.
    sizes: [u64; SIZES.len() + 1],
    /// Of which the size is not known.
    unsized_calls: u64,
    /// That would have been done in lines.
    in_lines: u64,
    saves_ns: u64,
}

impl Seen {
    /// One of so many bytes.
    fn count(&mut self, bytes: Option<usize>) {
        let class = |bytes: usize| SIZES.iter().filter(|most| bytes > **most as usize).count();
        match bytes.and_then(|bytes| self.sizes.get_mut(class(bytes))) {
            Some(calls) => *calls += 1,
            None => self.unsized_calls += 1,
        }
    }

    /// The last one would have been done in lines.
    fn in_lines(&mut self, kind: Kind, ranks: u16, bytes: usize) {
        self.in_lines += 1;
        if bytes <= TABLE_HOLDS {
            self.saves_ns = self.saves_ns.saturating_add(saves_ns(kind, ranks));
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.sizes.iter_mut().zip(other.sizes).for_each(|(all, own)| *all += own);
        self.unsized_calls += other.unsized_calls;
        self.in_lines += other.in_lines;
        self.saves_ns = self.saves_ns.saturating_add(other.saves_ns);
    }

    /// What a report says of them; nothing where there are none.
    pub(crate) fn calls(&self) -> Option<SeenCalls> {
        let bounds = SIZES.iter().copied().map(Some).chain([None]);
        let sizes = bounds.zip(self.sizes).filter(|(_, calls)| *calls > 0);
        let sizes: Vec<_> = sizes.map(|(bytes, calls)| SeenSize { bytes, calls }).collect();
        (self.unsized_calls > 0 || !sizes.is_empty()).then_some(SeenCalls {
            sizes,
            unsized_calls: self.unsized_calls,
            in_lines: self.in_lines,
            saves_ns: self.saves_ns,
        })
    }
}

/// How far a communicator would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    /// The MPI's so far.
    Counting(Counting),
    /// In lines.
    InLines,
    /// The MPI's.
    Refused,
}

/// What a communicator would come to when its ranks agree on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Would {
    BeTaken,
    BeRefused,
    /// Wait until its calls would have saved so many ns.
    Wait(u64),
}

impl Watched {
    /// Counts a call of `bytes` bytes, which may be done in lines where `may`. `agree` says what its ranks would come
    /// to.
    pub(crate) fn count(
        &mut self,
        seen: &mut Seen,
        call: &SeenCall,
        agree: impl FnOnce(&Counting) -> Would,
    ) {
        seen.count(call.bytes);
        if let Self::Counting(so_far) = self
            && so_far.count(call.kind, call.ranks, call.calls_before)
        {
            match agree(so_far) {
                Would::BeTaken => *self = Self::InLines,
                Would::BeRefused => *self = Self::Refused,
                Would::Wait(due) => so_far.due = due,
            }
        }
        if let (Self::InLines, Some(bytes), true) = (*self, call.bytes, call.may) {
            seen.in_lines(call.kind, call.ranks, bytes);
        }
    }
}

/// A call as it is counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeenCall {
    pub(crate) kind: Kind,
    pub(crate) ranks: u16,
    /// None where it does not come to that.
    pub(crate) bytes: Option<usize>,
    /// Whether such a call may be done in lines.
    pub(crate) may: bool,
    pub(crate) calls_before: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn call(kind: Kind, bytes: Option<usize>) -> SeenCall {
        SeenCall { kind, ranks: 2, bytes, may: true, calls_before: 0 }
    }

    #[test]
    fn each_call_is_counted_by_its_size() {
        let (mut watched, mut seen) = (Watched::Refused, Seen::default());
        for bytes in [0, 56, 57, 504, 505, 4096, 65_536, 65_537, 1 << 20, 1 << 30] {
            watched.count(&mut seen, &call(Kind::Broadcast, Some(bytes)), |_| Would::BeTaken);
        }
        watched.count(&mut seen, &call(Kind::Broadcast, None), |_| Would::BeTaken);
        let mut all = Seen::default();
        assert_eq!(all.calls(), None);
        all.add(&seen);
        all.add(&seen);
        let calls = all.calls().expect("there are some");
        let sizes: Vec<_> = calls.sizes.iter().map(|size| (size.bytes, size.calls)).collect();
        let bounds = [Some(56), Some(504), Some(4096), Some(65_536), Some(1 << 20), None];
        assert_eq!(sizes, bounds.into_iter().zip([4, 4, 4, 2, 4, 2]).collect::<Vec<_>>());
        assert_eq!((calls.unsized_calls, calls.in_lines, calls.saves_ns), (2, 0, 0));
    }

    #[test]
    fn what_lines_save_is_counted_from_when_they_would_be_worth_it() {
        let config = Config::default();
        let mut watched = Watched::Counting(Counting::new(&config));
        let (mut seen, each) = (Seen::default(), saves_ns(Kind::Barrier, 2));
        // Its ranks agree after what a piece costs, wait for what memory costs, and take it over then.
        let piece = Counting::new(&config).due;
        let due = 10 * piece;
        let mut asked = 0;
        let agree = |so_far: &Counting, asked: &mut u32| {
            *asked += 1;
            if so_far.due < due { Would::Wait(due) } else { Would::BeTaken }
        };
        let before = due.div_ceil(each);
        for _ in 0..before {
            watched.count(&mut seen, &call(Kind::Barrier, Some(0)), |so_far| {
                agree(so_far, &mut asked)
            });
        }
        assert_eq!((asked, seen.in_lines), (1, 0), "{watched:?}");
        for bytes in [0, 504, 505] {
            watched.count(&mut seen, &call(Kind::Barrier, Some(bytes)), |so_far| {
                agree(so_far, &mut asked)
            });
        }
        assert_eq!((asked, seen.in_lines, seen.saves_ns), (2, 3, 2 * each), "of two it is known");
        // What may not be in lines saves nothing.
        let told = SeenCall { may: false, ..call(Kind::Barrier, Some(0)) };
        watched.count(&mut seen, &told, |_| Would::BeTaken);
        assert_eq!((seen.in_lines, watched), (3, Watched::InLines));
    }
}
