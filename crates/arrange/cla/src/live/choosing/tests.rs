//! All ranks obey the one that chooses, whatever they were given, and whatever becomes of it.

use super::*;
use crate::choice::synthetic::Synthetic;
use crate::collectives::{Shape, Tree};
use crate::live::agreed::{RUNS, runs};
use crate::live::{CLASSES, Reduction, Settings};
use crate::program::Gone;
use isochrone_distance::{Cost, Distances, LineCosts, Term};
use std::sync::{Arc, Mutex};

const RANKS: u16 = 12;
/// Who makes the team.
const FOUNDER: Rank = Rank(3);

fn said(cores: &[u16]) -> Option<[u32; RUNS]> {
    runs(cores.iter().copied().map(CoreId))
}

#[test]
fn cores_are_said_as_runs_and_too_many_are_not() {
    assert_eq!(said(&[]), Some([0; RUNS]));
    assert_eq!(said(&[3]), Some([3 << 16 | 1, 0, 0, 0]));
    assert_eq!(said(&[0, 1, 2, 3, 32, 33]), Some([4, 32 << 16 | 2, 0, 0]));
    assert!(said(&[0, 2, 4, 6]).is_some());
    assert_eq!(said(&[0, 2, 4, 6, 8]), None);
    let team = Team::threads(10, &Settings::default()).expect("memory");
    let agreed = team[0].area().agreed();
    let cores = [0, 1, 2, 7, 8191].map(CoreId);
    agreed.say(Rank(9), cores.into_iter());
    assert_eq!(agreed.cores(9), cores);
    agreed.say(Rank(9), (0..5).map(|core| CoreId(2 * core)));
    assert_eq!(agreed.cores(9), [], "more than can be said");
}

/// 16 cores of two sockets that are so far apart that lines should cross once.
fn two_far_sockets() -> Synthetic {
    Synthetic::new(&[8, 16], &[35.0, 400.0])
}

fn given(on: Option<Synthetic>) -> Settings {
    let shared = |on| -> Arc<dyn Distances + Send + Sync> { Arc::new(on) };
    Settings { distances: on.map(shared), ..Settings::default() }
}

/// Ranks of which each was given something else, and the founder `founder`.
fn team(founder: Settings) -> Vec<Team> {
    let (first, place) = Team::found(RANKS, FOUNDER, founder).expect("memory");
    let mut team = vec![first];
    for rank in (0..RANKS).map(Rank).filter(|rank| *rank != FOUNDER) {
        let others = [
            None,
            Some(Synthetic::new(&[4, 16], &[20.0, 900.0])),
            Some(Synthetic::new(&[16], &[50.0])),
        ];
        let own = given(others[rank.index() % 3].clone());
        team.push(Team::join(place, rank, own).expect("the team is there"));
    }
    team
}

/// The shapes by which the ranks of a team do their collectives, each rank's. `pretend`: each rank on a core of its
/// own.
fn shapes(team: Vec<Team>, pretend: bool) -> Vec<Vec<Shape>> {
    let found = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for mut me in team {
            let found = &found;
            scope.spawn(move || {
                let rank = me.rank();
                if pretend {
                    // Neighbours by number are far apart.
                    me.runs_on(&[CoreId(rank.0 % 2 * 8 + rank.0 / 2)]);
                }
                let mut own = Vec::new();
                for root in [0, 7] {
                    let mut word = [if rank.0 == root { 42 } else { 0 }];
                    me.broadcast(&mut word, Rank(root)).expect("nobody ends");
                    assert_eq!(word, [42]);
                    let mut sum = [if rank.0 == root { 0 } else { 1 }; 1];
                    let sum = if rank.0 == root { &mut sum[..] } else { &mut [] };
                    me.reduce(Reduction::Sum, &[u64::from(rank.0)], sum, Rank(root)).expect("here");
                    assert!(rank.0 != root || *sum == [66]);
                    for kind in [Kind::Broadcast, Kind::Reduce, Kind::Barrier] {
                        let plan = me.plan(kind, Rank(root), 8).expect("nobody ends");
                        own.push(plan.options().shape.clone());
                    }
                }
                me.barrier().expect("nobody ends");
                let chosen = me.chosen();
                let told = |kind, root: u16| {
                    let same =
                        |c: &&Chosen| (c.kind, c.root, c.bytes) == (kind, Rank(root), CLASSES[0]);
                    chosen.iter().find(same).map(|c| c.options.shape.clone())
                };
                for (at, root) in [(0, 0), (3, 7)] {
                    let chosen = told(Kind::Broadcast, root);
                    assert!(chosen.is_none_or(|shape| shape == own[at]), "what is told is gone by");
                }
                found.lock().expect("no panic").push(own);
            });
        }
    });
    found.into_inner().expect("no panic")
}

/// Broadcast and reduce by the usual rule from root 0.
fn usual() -> Shape {
    Shape::Tree(Tree::regular(RANKS, Rank(0), 4))
}

#[test]
fn ranks_that_were_given_different_distances_obey_the_one_that_chooses() {
    let all = shapes(team(given(Some(two_far_sockets()))), true);
    assert_eq!(all.len(), usize::from(RANKS));
    assert!(all.iter().all(|own| *own == all[0]), "{all:?}");
    assert_ne!(all[0][0], usual(), "broadcast");
    assert_ne!(all[0][1], usual(), "reduce");
    assert_eq!(all[0][2], Shape::Exchange, "no tree is a better barrier");
}

#[test]
fn where_the_founder_was_given_none_all_go_by_the_usual_rule() {
    let all = shapes(team(given(None)), false);
    assert!(all.iter().all(|own| own[0] == usual() && own[1] == usual()), "{all:?}");
}

#[test]
fn where_ranks_have_no_cores_of_their_own_all_go_by_the_usual_rule() {
    let all = shapes(team(given(Some(Synthetic::new(&[8, 8192], &[35.0, 95.0])))), false);
    assert!(all.iter().all(|own| *own == all[0]));
    // Who runs this on more cores than ranks may have a choice.
    if isochrone_os::affinity::CoreSet::of_this_thread()
        .is_ok_and(|cores| cores.len() < usize::from(RANKS))
    {
        assert_eq!(all[0][0], usual());
    }
}

/// Distances that must not be asked for.
#[derive(Debug)]
struct Secret;

impl Distances for Secret {
    fn line_costs(&self, _: CoreId, _: CoreId) -> Option<LineCosts> {
        panic!("asked, on purpose")
    }

    fn term(&self, _: Term) -> Option<Cost> {
        panic!("asked, on purpose")
    }

    fn levels(&self) -> usize {
        panic!("asked, on purpose")
    }

    fn group(&self, _: usize, _: CoreId) -> Option<u16> {
        panic!("asked, on purpose")
    }
}

#[test]
fn a_rank_that_panics_while_choosing_is_missed() {
    let settings = Settings { distances: Some(Arc::new(Secret)), ..Settings::default() };
    let team = Team::threads(4, &settings).expect("memory");
    std::thread::scope(|scope| {
        let ranks: Vec<_> = team
            .into_iter()
            .map(|mut me| scope.spawn(move || (me.rank(), me.barrier(), me.barrier())))
            .collect();
        for (n, rank) in ranks.into_iter().enumerate() {
            let gone = Err(TeamError::Gone(Gone::Rank(Rank(0))));
            match rank.join() {
                Ok((rank, first, second)) => {
                    assert!(
                        rank != Rank(0) && first == gone && second == gone,
                        "{rank}: {first:?}"
                    );
                }
                Err(_) => assert_eq!(n, 0, "the one that chooses panics alone"),
            }
        }
    });
}

#[test]
fn two_ranks_choose_nothing_and_wait_for_nothing() {
    let settings = Settings { distances: Some(Arc::new(Secret)), ..Settings::default() };
    let mut team = Team::threads(2, &settings).expect("memory");
    // The root of a broadcast returns though nobody else was called.
    for bytes in CLASSES {
        team[0].broadcast(&mut vec![1_u8; bytes as usize / 8 * 8 / 64], Rank(0)).expect("alone");
    }
    let plan = team[1].plan(Kind::Broadcast, Rank(0), 8).expect("a root");
    assert_eq!(plan.options().shape, Shape::Tree(Tree::flat(2, Rank(0))));
    assert!(team[1].plan(Kind::Broadcast, Rank(2), 8).is_err(), "no rank has that number");
}

#[test]
fn what_was_chosen_stays_when_lines_are_taken_back() {
    // Room for some channels; each root has its own.
    let few = Settings { bytes: Some(48 << 10), ..given(Some(two_far_sockets())) };
    let team = Team::threads(RANKS, &few).expect("memory");
    std::thread::scope(|scope| {
        for mut me in team {
            scope.spawn(move || {
                me.runs_on(&[CoreId(me.rank().0)]);
                let before = me.plan(Kind::Reduce, Rank(1), 8).expect("nobody ends");
                assert_ne!(before.options().shape, Shape::Tree(Tree::regular(RANKS, Rank(1), 4)));
                for round in 0..3_u64 {
                    for root in (0..RANKS).map(Rank) {
                        let mut data = [if me.rank() == root { round + 7 } else { 0 }; 40];
                        me.broadcast(&mut data, root).expect("nobody ends");
                        assert_eq!(data, [round + 7; 40]);
                        me.broadcast(&mut data[..1], root).expect("nobody ends");
                    }
                }
                assert_eq!(me.plan(Kind::Reduce, Rank(1), 8).expect("nobody ends"), before);
            });
        }
    });
}
