//! How a piece of an arena becomes a team's area, and is given back where no team was made.

use super::area::Area;
use super::arena::{Arena, Piece};
use super::error::TeamError;
use crate::program::Rank;

impl Arena {
    /// Takes a piece for a team of `ranks` ranks, in which `chooser` chooses shapes, if anybody does. All its ranks
    /// make a team [within](super::Team::within) it, or it is [given back](Self::give_back).
    ///
    /// # Errors
    /// [`TeamError`] where there is no room.
    pub fn take(&self, ranks: u16, chooser: Option<Rank>) -> Result<Piece, TeamError> {
        let first = self.take_bytes(Self::piece_bytes(ranks))?;
        let piece = Piece { first, team: self.next_team() };
        Area::prepare(self, piece, ranks, chooser);
        Ok(piece)
    }

    /// Whether this process can make a team in a piece that another one took.
    #[must_use]
    pub fn is_ready(&self, piece: Piece, ranks: u16) -> bool {
        Area::is_prepared(self, piece, ranks)
    }

    /// Gives a piece back in which no team was made.
    pub fn give_back(&self, piece: Piece, ranks: u16) {
        Area::unprepare(self, piece);
        self.give_bytes(piece.first, Self::piece_bytes(ranks));
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::live::area::here_at;
    use crate::live::arena::GRANULE;
    use crate::live::supply::Supply;
    use crate::live::sync::Ordering;
    use crate::live::{CLASSES, Kind, Reduction, Settings, Team, TeamError, Usual, channel_plan};
    use crate::program::{Combine, Element};
    use isochrone_os::affinity::CoreSet;
    use std::sync::Arc;

    /// Ranks of one team in a new piece of an arena, each by its own mapping, as processes have it.
    fn team(arenas: &[Arc<Arena>]) -> Vec<Team> {
        let ranks = u16::try_from(arenas.len()).expect("few");
        let piece = arenas[0].take(ranks, None).expect("room");
        let piece = Piece::of_numbers(piece.numbers());
        let within = |(rank, arena)| {
            Team::within(arena, piece, ranks, Rank(rank), Settings::default()).expect("taken")
        };
        (0..ranks).zip(arenas).map(within).collect()
    }

    fn arenas(ranks: usize) -> Vec<Arc<Arena>> {
        let first = Arena::create().expect("shared memory");
        let join = |_| Arena::join(first.place()).expect("it is there");
        let others: Vec<_> = (1..ranks).map(join).collect();
        std::iter::once(first).chain(others).collect()
    }

    /// All ranks at once, each with its number.
    fn all(team: &mut [Team], work: impl Fn(&mut Team, i64) + Sync) {
        std::thread::scope(|scope| {
            for me in team {
                let work = &work;
                scope.spawn(move || work(me, i64::from(me.rank().0)));
            }
        });
    }

    fn sums(me: &mut Team, mine: i64, elements: usize) {
        let ranks = i64::from(me.ranks());
        let mut sum = vec![0; elements];
        me.allreduce(Reduction::Sum, &vec![mine; elements], &mut sum).expect("all are here");
        assert!(sum.iter().all(|&sum| sum == ranks * (ranks - 1) / 2), "{elements}");
        let mut word = vec![mine; elements];
        me.broadcast(&mut word, Rank(1)).expect("all are here");
        assert!(word.iter().all(|&word| word == 1));
    }

    #[test]
    fn teams_come_and_go_in_the_same_memory() {
        let arenas = arenas(2);
        let mut used = Vec::new();
        for round in 0..300 {
            let mut two = team(&arenas);
            let mut again = team(&arenas);
            // Long messages in some of them, which need more than a piece.
            let elements = if round % 10 == 9 { 5000 } else { 1 };
            all(&mut two, |me, mine| sums(me, mine, elements));
            all(&mut again, |me, mine| (0..9).for_each(|_| sums(me, mine, 20)));
            drop(again);
            all(&mut two, |me, mine| sums(me, mine, 3));
            drop(two);
            used.push(arenas[0].bytes());
        }
        assert_eq!(used[299], used[30], "nothing grows");
        assert!(used[0] <= 3 * GRANULE, "two pieces and the front: {}", used[0]);
        assert_eq!((arenas[0].processes(), arenas[0].number()), (2, arenas[1].number()));
        let cores = CoreSet::of_this_thread().expect("Linux").len();
        assert_eq!(arenas[0].has_cores(), cores >= 2);
    }

    #[test]
    fn a_piece_is_clean_and_another_team_is_not_taken_for_it() {
        let arenas = arenas(2);
        let mut two = team(&arenas);
        all(&mut two, |me, mine| [1, 20, 3000].into_iter().for_each(|n| sums(me, mine, n)));
        drop(two);
        let piece = arenas[0].take(2, Some(Rank(0))).expect("room");
        let bytes = Arena::piece_bytes(2);
        let words = Arena::range(piece.first, bytes).start / 8;
        let words = arenas[1].shared().as_ptr().cast::<u64>().wrapping_add(words);
        // SAFETY: the piece, which nobody writes to now.
        let read = |word: usize| unsafe { words.wrapping_add(word).read_volatile() };
        let marks = (0..bytes / 8).filter(|&word| read(word) != 0).count();
        assert!((1..=3).contains(&marks), "its mark, its ranks, and who chooses: {marks}");
        arenas[0].give_back(piece, 2);
        assert_eq!((0..bytes / 8).filter(|&word| read(word) != 0).count(), 0);
        let other = arenas[0].take(2, None).expect("room");
        assert_eq!(other.first, piece.first);
        assert_ne!(other.team, piece.team);
    }

    #[test]
    fn a_piece_has_lines_for_calls_of_one_line() {
        let arenas = arenas(1);
        assert_eq!(Arena::piece_bytes(128), 1 << 20);
        for (ranks, bytes) in [(2, 64 << 10), (8, 64 << 10), (16, 128 << 10)] {
            assert_eq!(Arena::piece_bytes(ranks), bytes);
            let piece = arenas[0].take(ranks, None).expect("room");
            let me = Team::within(&arenas[0], piece, ranks, Rank(0), Settings::default());
            let lines = me.expect("taken").area().lines();
            let mut supply = Supply::new(lines, None);
            // Lines for pairs of many are apart.
            let paired = |kind: &Kind| matches!(kind, Kind::Alltoall | Kind::ReduceScatter);
            for kind in Kind::ALL.into_iter().filter(|kind| ranks == 2 || !paired(kind)) {
                let plan = channel_plan(&Usual, kind, ranks, Rank(0), 56).expect("it fits");
                assert_eq!(supply.holds(&plan), Ok(()), "{ranks} ranks, {kind:?}");
                // Of two ranks it has them for all at once.
                assert!(ranks > 2 || supply.take(&plan).is_ok(), "{kind:?}");
            }
        }
    }

    /// One call over bytes that nobody looks at.
    fn any(me: &mut Team, kind: Kind, root: u16, bytes: usize) -> Result<(), TeamError> {
        let all = bytes * usize::from(me.ranks());
        let (send, mut receive) = (vec![0_u8; all], vec![0_u8; all]);
        let sum = Combine::Sum(Element::I64);
        // SAFETY: both buffers have a block for each rank, more than any collective touches.
        unsafe { me.call(kind, Rank(root), bytes, sum, send.as_ptr(), receive.as_mut_ptr()) }
    }

    /// Every collective, class and root once.
    fn every(me: &mut Team) {
        for kind in Kind::ALL {
            for bytes in [8, 64, 512] {
                let roots = if kind.rooted() { me.ranks() } else { 1 };
                for root in 0..roots {
                    any(me, kind, root, bytes).expect("it has lines");
                }
            }
        }
    }

    #[test]
    fn sixteen_ranks_have_lines_for_all_and_make_no_plan_twice() {
        let arenas = arenas(16);
        let mut ranks = team(&arenas);
        all(&mut ranks, |me, _| {
            every(me);
            let rooted = Kind::ALL.iter().filter(|kind| kind.rooted()).count();
            let channels = CLASSES.len() * (rooted * 16 + Kind::COUNT - rooted);
            assert_eq!(me.plans(), channels as u64, "one for each");
            every(me);
            assert_eq!((me.plans(), me.taken_back()), (channels as u64, 0), "steady");
        });
        let pieces = ranks[0].area().more();
        assert!((1..12).contains(&pieces), "each as large as all before: {pieces}");
    }

    #[test]
    fn a_call_that_found_no_lines_is_refused_without_another_plan() {
        let arenas = arenas(3);
        let mut three = team(&arenas);
        // Nobody else gets anything any more.
        let taken = (0..64).filter(|_| arenas[0].extension(64 << 20).is_ok()).count()
            + (0..9999).filter(|_| arenas[0].extension(1).is_ok()).count();
        assert!(taken > 3);
        all(&mut three, |me, _| {
            any(me, Kind::Barrier, 0, 0).expect("the piece has lines for it");
            for _ in 0..5 {
                let full = any(me, Kind::Allreduce, 0, 5000).expect_err("there is no room");
                assert!(matches!(full, TeamError::Full { .. }), "{full}");
                any(me, Kind::Barrier, 0, 0).expect("all are where they were");
            }
            assert_eq!(me.plans(), 2);
        });
    }

    #[test]
    fn lines_that_were_chosen_stay_chosen() {
        let arenas = arenas(2);
        let mut two = team(&arenas);
        let pairs = two[0].candidates().1.len();
        all(&mut two, |me, mine| {
            let far: Vec<f64> =
                (0..pairs).map(|pair| -f64::from(u32::try_from(pair).expect("few"))).collect();
            me.choose_lines_by(if mine == 0 { &far } else { &[] }).expect("all are here");
            sums(me, mine, 1);
        });
        drop(two);
        let again = team(&arenas);
        let last = u32::try_from(pairs - 1).expect("few");
        for me in &again {
            let order = me.area().ordered().expect("it is kept");
            assert_eq!((order[0], order.len()), (last, pairs));
        }
    }

    #[test]
    fn a_rank_that_ended_is_missed_in_every_team() {
        let arenas = arenas(1);
        let piece = arenas[0].take(2, None).expect("room");
        let settings = Settings::default();
        let mut left = Team::within(&arenas[0], piece, 2, Rank(0), settings).expect("taken");
        // As the kernel leaves it when a process ends: it said that it is here, and nobody sits there.
        left.area().states()[1].store(here_at(arenas[0].seat() + 1), Ordering::Release);
        let mut sum = [0];
        let missed = left.allreduce(Reduction::Sum, &[1], &mut sum).expect_err("the other ended");
        assert!(matches!(missed, TeamError::Gone(_)), "{missed}");
    }
}
