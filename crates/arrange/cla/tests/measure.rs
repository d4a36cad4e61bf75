//! What lines cost is measured without harm to the calls that come after.

#![allow(clippy::tests_outside_test_module, reason = "the whole file is tests")]

use isochrone_cla::live::{Kind, Loads, Settings, Team, TeamError, Which};
use isochrone_cla::program::Rank;

fn loads(bytes: usize, owner: Rank, asker: Rank) -> Loads {
    Loads { kind: Kind::Broadcast, root: Rank(0), bytes, owner, asker, repeats: 3, tick: 1 }
}

/// Measures both ways, then broadcasts some messages, and looks whether they may be measured again.
fn one_rank(mut me: Team) -> Vec<usize> {
    let mut counts = Vec::new();
    for which in [Which::All, Which::AfterTheFirst] {
        for (owner, asker) in [(Rank(0), Rank(1)), (Rank(1), Rank(0))] {
            for bytes in [8, 256, 4096] {
                let cycles =
                    me.copy_cycles(loads(bytes, owner, asker), which).expect("both are there");
                assert!(
                    cycles.iter().all(|times| times.len() == 3 && times.is_sorted()),
                    "{cycles:?}"
                );
                if me.rank() == asker {
                    counts.push(cycles.len());
                }
            }
        }
    }
    for call in 0..40_u64 {
        let sent: Vec<u64> = (0..32).map(|word| call * 100 + word).collect();
        let mut data = if me.rank() == Rank(0) { sent.clone() } else { vec![0; 32] };
        me.broadcast(&mut data, Rank(0)).expect("both are there");
        assert_eq!(data, sent);
    }
    let again = me.copy_cycles(loads(256, Rank(0), Rank(1)), Which::All);
    assert_eq!(again, Err(TeamError::Begun));
    counts
}

#[test]
fn messages_are_timed_before_the_first_call_and_calls_are_right_afterwards() {
    let team = Team::threads(2, &Settings::default()).expect("shared memory");
    let counts: Vec<Vec<usize>> = std::thread::scope(|scope| {
        let ranks: Vec<_> = team.into_iter().map(|me| scope.spawn(move || one_rank(me))).collect();
        ranks.into_iter().map(|rank| rank.join().expect("no rank panics")).collect()
    });
    // A line has no message of several; the others have as many slots as their rings.
    assert_eq!(counts, [[0, 16, 8, 0, 16, 8], [0, 16, 8, 0, 16, 8]]);
}

#[test]
fn only_two_ranks_of_the_team_are_measured() {
    let mut team = Team::threads(2, &Settings::default()).expect("shared memory");
    let me = &mut team[0];
    for (owner, asker) in [(Rank(0), Rank(0)), (Rank(0), Rank(2))] {
        let refused = me.copy_cycles(loads(256, owner, asker), Which::All);
        assert!(matches!(refused, Err(TeamError::Rank { .. })), "{refused:?}");
    }
}
