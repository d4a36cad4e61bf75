//! Calls whose bytes are copied once, from rank to rank: every byte is right; ranks that give different bytes, or do a
//! call by other means, are told, and the next call is right again.

use crate::live::{Kind, Settings, Team, TeamError};
use crate::program::{Combine, Element, Rank};

/// Bytes from which on calls are copied once.
const FROM: usize = 4096;
/// What collectives that combine nothing are given.
const NOTHING: Combine = Combine::Sum(Element::I32);

/// What each of `ranks` ranks returns, that found that they reach each other's memory.
fn ranks<T: Send>(ranks: u16, work: impl Fn(&mut Team) -> T + Sync) -> Vec<T> {
    let settings = Settings { single_copy_bytes: Some(FROM), ..Settings::default() };
    let team = Team::threads(ranks, &settings).expect("shared memory");
    let work = |mut me: Team| {
        assert_eq!(me.reach(), None);
        assert!(!me.is_single(Kind::Broadcast, FROM), "nobody has looked");
        assert_eq!(me.try_reach(), Ok(true));
        assert!(me.is_single(Kind::Broadcast, FROM) && !me.is_single(Kind::Gather, FROM - 1));
        assert!(!me.is_single(Kind::Allreduce, 1 << 20), "it combines");
        work(&mut me)
    };
    let work = &work;
    std::thread::scope(|scope| {
        let threads: Vec<_> = team.into_iter().map(|me| scope.spawn(move || work(me))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no rank panics")).collect()
    })
}

#[test]
fn each_collective_is_copied_once_from_bytes_of_its_own() {
    for found in ranks(2, |me| {
        me.copy_once_from(|kind| if kind == Kind::Alltoall { 100 } else { usize::MAX });
        all_moves(me, 200);
        (
            me.is_single(Kind::Alltoall, 100),
            me.is_single(Kind::Alltoall, 99),
            me.is_single(Kind::Broadcast, 1 << 20),
        )
    }) {
        assert_eq!(found, (true, false, false));
    }
}

fn unlike(mine: usize, theirs: usize) -> TeamError {
    TeamError::Unlike { mine, theirs: u32::try_from(theirs).ok() }
}

/// What rank `of` gives for rank `to`.
fn block(of: u16, to: u16, bytes: usize) -> Vec<u8> {
    let seed = usize::from(of) * 31 + usize::from(to) * 7;
    let number = |i: usize| u8::try_from((i * 13 + i / 255 + seed) % 251).expect("small");
    (0..bytes).map(number).collect()
}

/// All calls that may be copied once, with all roots.
fn all_moves(me: &mut Team, bytes: usize) {
    let (rank, ranks) = (me.rank().0, me.ranks());
    let blocks = |one: &dyn Fn(u16) -> Vec<u8>| (0..ranks).flat_map(one).collect::<Vec<_>>();
    for root in 0..ranks {
        let whole = block(root, root, bytes);
        let mut data = if rank == root { whole.clone() } else { vec![0; bytes] };
        me.broadcast(&mut data, Rank(root)).expect("all give the same");
        assert_eq!(data, whole);
        let given = if rank == root { blocks(&|to| block(root, to, bytes)) } else { vec![] };
        let mut got = vec![0; bytes];
        me.scatter(&given, &mut got, Rank(root)).expect("all give the same");
        assert_eq!(got, block(root, rank, bytes));
        let mut all = vec![0; if rank == root { bytes * usize::from(ranks) } else { 0 }];
        me.gather(&block(rank, root, bytes), &mut all, Rank(root)).expect("all give the same");
        assert!(rank != root || all == blocks(&|of| block(of, root, bytes)));
    }
    let mut all = vec![0; bytes * usize::from(ranks)];
    me.allgather(&block(rank, 0, bytes), &mut all).expect("all give the same");
    assert_eq!(all, blocks(&|of| block(of, 0, bytes)));
    let given = blocks(&|to| block(rank, to, bytes));
    let expected = blocks(&|of| block(of, rank, bytes));
    let mut in_place = given.clone();
    for (send, receive) in
        [(given.as_ptr(), all.as_mut_ptr()), (in_place.as_ptr(), in_place.as_mut_ptr())]
    {
        // SAFETY: a block for each rank on either side, the same memory or another.
        let done = unsafe { me.call(Kind::Alltoall, Rank(0), bytes, NOTHING, send, receive) };
        done.expect("all give the same");
    }
    assert!(all == expected && in_place == expected);
}

#[test]
fn every_byte_is_where_it_belongs() {
    for count in [1, 2, 3, 5] {
        ranks(count, |me| {
            for bytes in [FROM - 1, FROM, FROM + 1, 65_536, (1 << 20) + 1] {
                all_moves(me, bytes);
            }
        });
    }
}

#[test]
fn the_root_of_a_broadcast_decides_how_it_goes_and_others_are_told() {
    // Copied once with less room and more, through lines where others would copy, and the other way round.
    for (given, room) in [
        (9000, 8000),
        (8000, 9000),
        (9000, 40),
        (9000, 400),
        (9000, 3000),
        (40, 9000),
        (3000, 9000),
    ] {
        ranks(3, |me| {
            for _ in 0..2 {
                let wrong = me.rank().0 == 1;
                let bytes = if wrong { room } else { given };
                let mut data = vec![if me.rank().0 == 0 { 9_u8 } else { 1 }; bytes];
                let done = me.broadcast(&mut data, Rank(0));
                let fits = given.min(bytes);
                assert_eq!(data[..fits], vec![9; fits], "{given} into {room}");
                assert_eq!(data[fits..], vec![1; bytes - fits]);
                assert_eq!(done, if wrong { Err(unlike(room, given)) } else { Ok(()) });
            }
            all_moves(me, FROM);
            all_moves(me, 100);
        });
    }
}

#[test]
fn blocks_of_other_lengths_are_told() {
    ranks(3, |me| {
        let (rank, wrong) = (me.rank().0, me.rank().0 == 1);
        let bytes = if wrong { 5000 } else { 6000 };
        let mut all = vec![0_u8; 18_000];
        let given = vec![7_u8; bytes];
        let done = me.allgather(&given, &mut all[..3 * bytes]);
        assert_eq!(done, Err(if wrong { unlike(5000, 6000) } else { unlike(6000, 5000) }));
        let place = if rank == 0 { &mut all[..] } else { &mut [] };
        let done = me.gather(&given, place, Rank(0));
        assert!(matches!(done, Err(TeamError::Unlike { .. })), "{done:?}");
        let root = if rank == 0 { vec![8_u8; 18_000] } else { vec![] };
        let mut block = vec![1; bytes];
        let done = me.scatter(&root, &mut block, Rank(0));
        assert_eq!(done, if wrong { Err(unlike(5000, 6000)) } else { Ok(()) });
        assert_eq!(block, vec![8; bytes]);
        all_moves(me, 5000);
    });
}

#[test]
fn who_speaks_first_leaves_a_call_to_other_means_and_others_follow() {
    ranks(3, |me| {
        for kind in [Kind::Broadcast, Kind::Scatter, Kind::Gather, Kind::Allgather] {
            // The root, or any rank where there is none.
            let leaves = me.rank().0 == if kind.rooted() { 0 } else { 2 };
            let mut data = vec![u8::try_from(me.rank().0).expect("small"); 15_000];
            let before = data.clone();
            let done = if leaves {
                me.single_by_other_means(kind, Rank(0))
            } else {
                let send = before.as_ptr();
                // SAFETY: 5000 bytes of three ranks on either side.
                unsafe { me.call(kind, Rank(0), 5000, NOTHING, send, data.as_mut_ptr()) }
            };
            assert_eq!(done, Err(TeamError::Elsewhere), "{kind:?}");
            assert_eq!(data, before, "nothing was written");
        }
        // A rank that the root tells nothing of its buffers has no room.
        let done = if me.rank().0 == 1 {
            me.by_other_means(Kind::Broadcast, Rank(0))
        } else {
            me.broadcast(&mut vec![0_u8; 5000], Rank(0))
        };
        assert_eq!(done, if me.rank().0 == 1 { Err(unlike(usize::MAX, 5000)) } else { Ok(()) });
        all_moves(me, 5000);
    });
}
