//! Ranks that give different bytes to one call, make different calls, or do a call by other means: nobody hangs,
//! whoever hears of it is told, and where the next call can be right it is.

#![allow(clippy::tests_outside_test_module, reason = "the whole file is tests")]

use isochrone_cla::live::{Arena, Kind, Reduction, Settings, Team, TeamError};
use isochrone_cla::program::Rank;
use isochrone_distance::{Cost, Distances, LineCosts, Term};
use isochrone_units::CoreId;
use std::sync::Arc;
use std::time::Duration;

/// What each of `ranks` ranks returns.
fn ranks<T: Send>(ranks: u16, work: impl Fn(&mut Team) -> T + Sync) -> Vec<T> {
    ranks_by(&Settings::default(), ranks, work)
}

fn ranks_by<T: Send>(
    settings: &Settings,
    ranks: u16,
    work: impl Fn(&mut Team) -> T + Sync,
) -> Vec<T> {
    at_once(Team::threads(ranks, settings).expect("shared memory"), work)
}

/// The same for ranks of a piece of an arena, which take more lines as they need them.
fn ranks_in_arena<T: Send>(ranks: u16, work: impl Fn(&mut Team) -> T + Sync) -> Vec<T> {
    let arena = Arena::create().expect("shared memory");
    let piece = arena.take(ranks, None).expect("room");
    let within = |rank| Team::within(&arena, piece, ranks, Rank(rank), Settings::default());
    at_once((0..ranks).map(|rank| within(rank).expect("room")).collect(), work)
}

fn at_once<T: Send>(team: Vec<Team>, work: impl Fn(&mut Team) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> =
            team.into_iter().map(|mut me| scope.spawn(move || work(&mut me))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no rank panics")).collect()
    })
}

fn unlike(mine: usize, theirs: u32) -> TeamError {
    TeamError::Unlike { mine, theirs: Some(theirs) }
}

/// Calls of every class after which lines must be where equal calls would have left them.
fn all_goes_on(me: &mut Team) {
    let (rank, count) = (u64::from(me.rank().0), u64::from(me.ranks()));
    for words in [1, 40, 3000] {
        for root in (0..me.ranks()).map(Rank) {
            let mut data = vec![if me.rank() == root { u64::from(root.0) + 7 } else { 0 }; words];
            me.broadcast(&mut data, root).expect("all give the same");
            assert_eq!(data, vec![u64::from(root.0) + 7; words]);
        }
        let mut sums = vec![0; words];
        me.allreduce(Reduction::Sum, &vec![rank; words], &mut sums).expect("all give the same");
        assert_eq!(sums, vec![count * (count - 1) / 2; words]);
        let all: Vec<u64> = (0..count).flat_map(|to| vec![to * 3; words]).collect();
        let mut block = vec![0; words];
        let given = if rank == 1 { &all[..] } else { &[] };
        me.scatter(given, &mut block, Rank(1)).expect("all give the same");
        assert_eq!(block, vec![rank * 3; words]);
        let mut blocks = vec![0; words * usize::from(me.ranks())];
        let place = if rank == 2 { &mut blocks[..] } else { &mut [] };
        me.gather(&block, place, Rank(2)).expect("all give the same");
        assert!(rank != 2 || blocks == all);
    }
    me.barrier().expect("all are there");
}

#[test]
fn the_root_of_a_broadcast_decides_and_others_are_told() {
    // Of one class, of two classes either way, of several chunks, nothing at all.
    let sizes = [
        (1, 5),
        (5, 1),
        (1, 40),
        (40, 1),
        (1, 4000),
        (4000, 1),
        (2000, 4000),
        (4000, 900),
        (0, 3),
        (3, 0),
    ];
    for (given, room) in sizes {
        for count in [3, 12] {
            ranks(count, |me| {
                let wrong = me.rank().0 % 3 == 1;
                for _ in 0..2 {
                    let words = if wrong { room } else { given };
                    let value = if me.rank().0 == 0 { 9_u64 } else { 1 };
                    let mut data = vec![value; words];
                    let done = me.broadcast(&mut data, Rank(0));
                    let fits = given.min(words);
                    assert_eq!(data[..fits], vec![9; fits], "{given} into {room}");
                    assert_eq!(data[fits..], vec![1; words - fits]);
                    let bytes = u32::try_from(given * 8).expect("small");
                    assert_eq!(done, if wrong { Err(unlike(room * 8, bytes)) } else { Ok(()) });
                }
                all_goes_on(me);
            });
        }
    }
}

/// Distances that are long in coming and say nothing.
#[derive(Debug)]
struct Slow;

impl Slow {
    fn nothing<T>() -> Option<T> {
        std::thread::sleep(Duration::from_millis(300));
        None
    }
}

impl Distances for Slow {
    fn line_costs(&self, _: CoreId, _: CoreId) -> Option<LineCosts> {
        Self::nothing()
    }

    fn term(&self, _: Term) -> Option<Cost> {
        Self::nothing()
    }

    fn levels(&self) -> usize {
        Self::nothing().unwrap_or(1)
    }

    fn group(&self, _: usize, _: CoreId) -> Option<u16> {
        Self::nothing()
    }
}

#[test]
fn ranks_that_find_it_while_they_wait_for_a_shape_go_on_as_well() {
    let settings = Settings { distances: Some(Arc::new(Slow)), ..Settings::default() };
    ranks_by(&settings, 3, |me| {
        me.runs_on(&[CoreId(me.rank().0)]);
        let words = if me.rank().0 == 0 { 1 } else { 5 };
        let mut data = vec![9_u64; words];
        let done = me.broadcast(&mut data, Rank(0));
        assert_eq!(done, if me.rank().0 == 0 { Ok(()) } else { Err(unlike(40, 8)) });
        me.barrier().expect("lines are where equal bytes would have left them");
    });
}

#[test]
fn the_root_of_a_scatter_decides_and_others_are_told() {
    for (given, room) in [(1, 5), (5, 1), (1, 40), (4000, 2), (2000, 4000)] {
        ranks(3, |me| {
            let wrong = me.rank().0 == 2;
            let words = if wrong { room } else { given };
            let all = vec![5_u64; given * 3];
            let mut block = vec![1; words];
            let send = if me.rank().0 == 0 { &all[..] } else { &[] };
            let done = me.scatter(send, &mut block, Rank(0));
            assert_eq!(block[..given.min(words)], vec![5; given.min(words)]);
            assert_eq!(done.is_err(), wrong, "{done:?}");
            all_goes_on(me);
        });
    }
}

#[test]
fn reductions_and_gathers_of_one_class_tell_and_go_on() {
    ranks(4, |me| {
        let wrong = me.rank().0 == 3;
        let words = if wrong { 2 } else { 4 };
        let mut sums = vec![0; words];
        let done = me.allreduce(Reduction::Sum, &vec![1_u64; words], &mut sums);
        assert!(matches!(done, Err(TeamError::Unlike { .. })), "everybody hears of it: {done:?}");
        let place = if me.rank().0 == 0 { &mut sums[..] } else { &mut [] };
        let done = me.reduce(Reduction::Sum, &vec![1_u64; words], place, Rank(0));
        assert_eq!(done.is_err(), me.rank().0 == 0, "who hears from others: {done:?}");
        let mut all = vec![0_u64; words * 4];
        let done = me.allgather(&vec![1_u64; words], &mut all);
        assert!(matches!(done, Err(TeamError::Unlike { .. })), "{done:?}");
        let mut all = if me.rank().0 == 1 { all } else { Vec::new() };
        let done = me.gather(&vec![1_u64; words], &mut all, Rank(1));
        assert_eq!(done.is_err(), me.rank().0 == 1, "{done:?}");
        all_goes_on(me);
    });
}

/// Those that give have gone on by then.
#[test]
fn the_root_of_a_gather_takes_what_others_give_and_all_goes_on() {
    let sizes = [(1, 5), (5, 1), (1, 40), (40, 1), (1, 4000), (4000, 1), (2000, 3000), (3000, 900)];
    for (room, given) in sizes {
        let work = |me: &mut Team| {
            let is_root = me.rank() == Rank(1);
            for _ in 0..2 {
                let words = if is_root { room } else { given };
                let mut all = vec![1_u64; if is_root { room * 3 } else { 0 }];
                let done = me.gather(&vec![9_u64; words], &mut all, Rank(1));
                let bytes = u32::try_from(given * 8).expect("small");
                assert_eq!(done, if is_root { Err(unlike(room * 8, bytes)) } else { Ok(()) });
                for (rank, block) in all.chunks(room).enumerate() {
                    let fits = if rank == 1 { room } else { given.min(room) };
                    assert_eq!(block[..fits], vec![9; fits], "{given} into {room}");
                    assert_eq!(block[fits..], vec![1; room - fits], "no more than was given");
                }
            }
            all_goes_on(me);
        };
        ranks(3, work);
        ranks_in_arena(3, work);
    }
}

#[test]
fn others_of_a_gather_may_differ_within_a_class() {
    ranks(4, |me| {
        let words = [1, 30, 20, 40][me.rank().index()];
        let mut all = vec![1_u64; if words == 1 { 4 } else { 0 }];
        let done = me.gather(&vec![7_u64; words], &mut all, Rank(0));
        assert_eq!(done, if words == 1 { Err(unlike(8, 320)) } else { Ok(()) });
        assert!(all.iter().all(|&word| word == 7), "{all:?}");
        all_goes_on(me);
    });
}

/// They have gone on, and what they gave lies in lines of which not one kind serves for all: all meet in the next call.
#[test]
fn others_of_a_gather_or_a_reduction_may_differ_in_lines_and_all_goes_on() {
    for (one, most) in [(40, 1), (1, 40), (4000, 1), (1, 4000), (2000, 3000)] {
        for count in if one == 40 { &[3, 4, 12][..] } else { &[3] } {
            let work = |me: &mut Team| {
                let is_root = me.rank().0 == 0;
                let told = |done: Result<(), TeamError>| match done {
                    Ok(()) => assert!(!is_root, "{one} and {most} words"),
                    // Who gives more than a ring has room for, or hears from others in a tree, is told as well.
                    Err(told) => assert!(matches!(told, TeamError::Unlike { .. }), "{told:?}"),
                };
                for _ in 0..2 {
                    let words = if me.rank().0 == 2 { one } else { most };
                    let (given, blocks) = (vec![1_u64; words], usize::from(me.ranks()));
                    let mut all = vec![0; if is_root { words * blocks } else { 0 }];
                    told(me.gather(&given, &mut all, Rank(0)));
                    all_goes_on(me);
                    let mut sum = vec![0; if is_root { words } else { 0 }];
                    told(me.reduce(Reduction::Sum, &given, &mut sum, Rank(0)));
                    all_goes_on(me);
                }
            };
            ranks(*count, work);
            ranks_in_arena(*count, work);
        }
    }
}

#[test]
fn a_reduction_of_other_bytes_at_its_root_is_told_there_and_all_goes_on() {
    for (root, others) in [(1, 40), (40, 1), (1, 4000), (4000, 1)] {
        let work = |me: &mut Team| {
            let is_root = me.rank() == Rank(0);
            for _ in 0..2 {
                let words = if is_root { root } else { others };
                let mut sum = vec![0; if is_root { root } else { 0 }];
                let done = me.reduce(Reduction::Sum, &vec![1_u64; words], &mut sum, Rank(0));
                let bytes = u32::try_from(others * 8).expect("small");
                assert_eq!(done, if is_root { Err(unlike(root * 8, bytes)) } else { Ok(()) });
            }
            all_goes_on(me);
        };
        ranks(3, work);
        ranks_in_arena(3, work);
    }
}

/// Nobody is done with such a call, so all are told, meet and begin with clean lines.
#[test]
fn where_all_hear_from_all_they_are_told_and_all_goes_on() {
    for (most, one) in [(1, 40), (40, 1), (1, 4000), (4000, 1), (2000, 3000)] {
        let work = |me: &mut Team| {
            for _ in 0..2 {
                let words = if me.rank() == Rank(2) { one } else { most };
                let told = |done: Result<(), TeamError>| {
                    assert!(matches!(done, Err(TeamError::Unlike { .. })), "{done:?}");
                };
                let given = vec![1_u64; words];
                told(me.allreduce(Reduction::Sum, &given, &mut vec![0; words]));
                told(me.allgather(&given, &mut vec![0; words * 3]));
            }
            all_goes_on(me);
        };
        ranks(3, work);
        ranks_in_arena(3, work);
    }
}

#[test]
fn what_cannot_go_on_is_an_error_to_all_and_not_a_hang() {
    let gone = |done: &Result<(), TeamError>| done.is_err();
    // Other classes, other chunks, other collectives, other roots.
    let allreduced = ranks(3, |me| {
        let words = if me.rank().0 == 2 { 100 } else { 1 };
        me.allreduce(Reduction::Sum, &vec![1_u64; words], &mut vec![0; words])
    });
    assert!(allreduced.iter().all(gone), "{allreduced:?}");
    assert!(allreduced.iter().any(|done| matches!(done, Err(TeamError::Unlike { .. }))));
    let gathered = ranks(3, |me| {
        let words = if me.rank().0 == 2 { 3000 } else { 2000 };
        let mut all = vec![0; if me.rank().0 == 0 { words * 3 } else { 0 }];
        let first = me.gather(&vec![1_u64; words], &mut all, Rank(0));
        // Those that only give may have left the first one.
        if first.is_err() { first } else { me.barrier() }
    });
    assert!(gathered.iter().all(gone), "{gathered:?}");
    let mixed = ranks(2, |me| match me.rank().0 {
        0 => me.barrier(),
        _ => me.allreduce(Reduction::Sum, &[1_u64], &mut [0]),
    });
    assert!(mixed.contains(&Err(TeamError::Apart)) && mixed.iter().all(gone), "{mixed:?}");
    let roots = ranks(2, |me| {
        // Each waits for the other to give.
        let root = Rank(1 - me.rank().0);
        me.broadcast(&mut [1_u64], root)
    });
    assert!(roots.contains(&Err(TeamError::Apart)) && roots.iter().all(gone), "{roots:?}");
}

#[test]
fn a_call_by_other_means_is_so_for_all_or_an_error() {
    // Everybody: nothing happens in lines.
    ranks(3, |me| {
        for kind in Kind::ALL {
            assert_eq!(me.by_other_means(kind, Rank(1)), Ok(()));
        }
        all_goes_on(me);
    });
    // The root of a broadcast: those in lines are sent after it, whatever their bytes.
    for words in [1, 40, 4000] {
        ranks(3, |me| {
            if me.rank() == Rank(1) {
                assert_eq!(me.by_other_means(Kind::Broadcast, Rank(1)), Ok(()));
            } else {
                let done = me.broadcast(&mut vec![0_u64; words], Rank(1));
                assert_eq!(done, Err(TeamError::Elsewhere));
            }
            all_goes_on(me);
        });
    }
    // Not the root: it hears what the root gave.
    ranks(3, |me| {
        if me.rank() == Rank(2) {
            let done = me.by_other_means(Kind::Broadcast, Rank(1));
            assert_eq!(done, Err(unlike(usize::MAX, 32)));
        } else {
            assert_eq!(me.broadcast(&mut [0_u64; 4], Rank(1)), Ok(()));
        }
        all_goes_on(me);
    });
    // Where all hear from all, and those who give to a root that does it in lines: all have come, and all are told.
    ranks(3, |me| {
        let done = match me.rank().0 {
            1 => me.by_other_means(Kind::Allreduce, Rank(0)),
            _ => me.allreduce(Reduction::Sum, &[1_u64], &mut [0]),
        };
        assert!(matches!(done, Err(TeamError::Unlike { .. })), "{done:?}");
        all_goes_on(me);
        let mut all = [0_u64; 3];
        let done = match me.rank().0 {
            1 => me.gather(&[1], &mut all, Rank(1)),
            _ => me.by_other_means(Kind::Gather, Rank(1)),
        };
        assert!(matches!(done, Err(TeamError::Unlike { .. })), "{done:?}");
        all_goes_on(me);
    });
    // The root of a gather alone: it takes what the others gave.
    ranks(3, |me| {
        let done = match me.rank().0 {
            1 => me.by_other_means(Kind::Gather, Rank(1)),
            _ => me.gather(&[1_u64; 30], &mut [], Rank(1)),
        };
        let told = Err(unlike(usize::MAX, 240));
        assert_eq!(done, if me.rank() == Rank(1) { told } else { Ok(()) });
        all_goes_on(me);
    });
}
