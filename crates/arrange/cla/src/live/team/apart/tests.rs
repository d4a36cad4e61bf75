//! Calls that left lines unsound, by collectives that have no function of their own, and what cannot begin anew.

use crate::live::{Kind, Reduction, Settings, Team, TeamError};
use crate::program::{Combine, Element, Rank};

const SUM: Combine = Combine::Sum(Element::I64);

/// What each of `ranks` ranks returns.
fn ranks<T: Send>(ranks: u16, work: impl Fn(&mut Team) -> T + Sync) -> Vec<T> {
    let team = Team::threads(ranks, &Settings::default()).expect("shared memory");
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> =
            team.into_iter().map(|mut me| scope.spawn(move || work(&mut me))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no rank panics")).collect()
    })
}

/// One call of so many words over ones; what came.
fn ones(me: &mut Team, kind: Kind, words: usize) -> Result<Vec<i64>, TeamError> {
    let all = words * usize::from(me.ranks());
    let (send, mut receive) = (vec![1_i64; all], vec![0_i64; all]);
    let (from, to) = (send.as_ptr().cast(), receive.as_mut_ptr().cast());
    // SAFETY: both buffers have a block for each rank, more than any collective touches.
    unsafe { me.call(kind, Rank(0), words * 8, SUM, from, to) }.map(|()| receive)
}

#[test]
fn ranks_that_differ_in_a_scan_are_told_or_have_gone_on_and_all_goes_on() {
    for kind in [Kind::Scan, Kind::Exscan] {
        for (one, most) in [(40, 1), (1, 40), (1, 4000), (2000, 3000)] {
            ranks(4, |me| {
                let me_first = i64::from(me.rank().0);
                for _ in 0..3 {
                    let words = if me_first == 2 { one } else { most };
                    let done = ones(me, kind, words);
                    let unlike = matches!(done, Err(TeamError::Unlike { .. }));
                    assert!(unlike || done.is_ok() && me_first < 2, "{me_first}: {done:?}");
                    for words in [1, 40, 3000] {
                        let sums = ones(me, Kind::Allreduce, words).expect("all give the same");
                        assert_eq!(sums[..words], vec![4; words]);
                        let scanned = ones(me, Kind::Scan, words).expect("all give the same");
                        assert_eq!(scanned[..words], vec![me_first + 1; words]);
                    }
                }
            });
        }
    }
}

#[test]
fn a_reduction_in_place_that_has_begun_is_an_error_to_all_and_never_a_wrong_sum() {
    let done = ranks(3, |me| {
        // All have its lines, so that those who give do not wait for one another.
        for words in [1, 40] {
            ones(me, Kind::Gather, words).expect("all give the same");
        }
        let _told = ones(me, Kind::Gather, if me.rank().0 == 2 { 40 } else { 1 });
        let mut sums = [1_i64; 40];
        let place = sums.as_mut_ptr().cast::<u8>();
        // SAFETY: one place of so many bytes, for both.
        unsafe { me.call(Kind::Allreduce, Rank(0), 320, SUM, place, place) }
    });
    assert!(done.iter().all(Result::is_err), "{done:?}");
    assert!(done.contains(&Err(TeamError::Ahead)), "{done:?}");
}

#[test]
fn ranks_that_have_gone_on_too_far_are_an_error_to_all() {
    let done = ranks(3, |me| {
        let rank = me.rank();
        // All have its lines.
        for words in [1, 40] {
            ones(me, Kind::Gather, words).expect("all give the same");
            me.broadcast(&mut vec![0_u64; words], Rank(1)).expect("all give the same");
        }
        let _told = ones(me, Kind::Gather, if rank.0 == 2 { 40 } else { 1 });
        // One that had given gives once more, and is in the call after that when the root of the first one comes.
        let given = me.broadcast(&mut [u64::from(rank.0)], Rank(1));
        let sum = me.allreduce(Reduction::Sum, &[1_u64], &mut [0]);
        given.and(sum)
    });
    assert!(done.iter().all(Result::is_err), "{done:?}");
}
