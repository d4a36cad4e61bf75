//! Up to how many bytes calls go through lines: fewer where a line takes long from one rank to the other, and what
//! there is beside lines moves bytes in one copy.
//!
//! Bytes in lines are written by one core and read by another, so they cross as lines do; a kernel that copies them
//! from process to process has them cross once. Where ranks are far and each both gives and takes, lines lose first.
//! The first rank finds out by the round trips that it measures to choose lines, and says it; no rank goes by a clock
//! of its own.

use isochrone_cla::live::Kind;

/// Nanoseconds of the shortest round trip of a line from which on ranks are far. Seen: 60 near and some 270 far, where
/// the limits below were found; nothing between.
const FAR_NS: f64 = 150.0;

/// Where calls go that have more bytes than go through lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beyond {
    /// Their bytes are copied once here, where they are only moved.
    pub(crate) once: bool,
    /// The MPI copies long messages once, where the kernel lets it: Open MPI does.
    pub(crate) mpi_once: bool,
}

/// Bytes from or to each rank that go through lines at most where ranks are far: the most for which nothing else was
/// faster by more than 5 %, with 16, 32 and 64 KiB (docs/method/collectives.md).
const fn most_far(kind: Kind, beyond: Beyond) -> usize {
    let Beyond { once, mpi_once } = beyond;
    match kind {
        Kind::Alltoall if once || mpi_once => 16 << 10,
        Kind::Alltoall => 32 << 10,
        Kind::Allgather | Kind::Scatter if once || mpi_once => 32 << 10,
        Kind::Gather if once => 32 << 10,
        Kind::Reduce if mpi_once => 32 << 10,
        _ => 64 << 10,
    }
}

/// Bytes of calls of each collective that go through lines at most, of a user's or the usual limit.
pub(crate) fn most(far: bool, beyond: Beyond, limit: usize) -> [usize; Kind::COUNT] {
    Kind::ALL.map(|kind| if far { most_far(kind, beyond).min(limit) } else { limit })
}

/// Whether these round trips, infinite where none was measured, say that ranks are far. The shortest counts: nothing
/// makes one too short, and beside other work most are too long.
pub(crate) fn are_far(cycles: &[f64], ns_of_cycle: f64) -> bool {
    let shortest = cycles.iter().copied().fold(f64::INFINITY, f64::min);
    shortest.is_finite() && shortest * ns_of_cycle >= FAR_NS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_trip_that_was_measured_says_whether_ranks_are_far() {
        let beside_others = [f64::INFINITY, 9000.0, 156.0, 400.0];
        assert!(!are_far(&beside_others, 0.4), "62 ns");
        assert!(are_far(&beside_others, 1.0), "156 ns");
        assert!(!are_far(&[], 1.0) && !are_far(&[f64::INFINITY; 2], 1.0), "nobody knows");
    }

    #[test]
    fn far_ranks_send_no_more_than_near_ones_nor_than_a_user_says() {
        for (once, mpi_once) in [(false, false), (false, true), (true, false), (true, true)] {
            let beyond = Beyond { once, mpi_once };
            assert_eq!(most(false, beyond, 1 << 20), [1 << 20; Kind::COUNT]);
            assert_eq!(most(true, beyond, 100), [100; Kind::COUNT]);
            let far = most(true, beyond, 1 << 20);
            assert_eq!(far[Kind::Broadcast as usize], 64 << 10);
            assert!(far[Kind::Alltoall as usize] < 64 << 10, "{far:?}");
            let moved = if once || mpi_once { 32 << 10 } else { 64 << 10 };
            assert_eq!(far[Kind::Allgather as usize], moved);
        }
    }
}
