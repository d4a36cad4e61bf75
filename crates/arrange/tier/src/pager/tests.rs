//! The drivers against a model machine, on many orders of their steps: workers increment, movers fetch,
//! evict and write back, the far tier fails, actors are killed at any step; what a page holds in the end
//! must be what was written.

mod model;
mod run;

use proptest::prelude::*;

use super::*;
use crate::policy::PolicyKind;
use crate::prefetch::Prefetch;
use run::{Play, Report};

fn play() -> impl Strategy<Value = Play> {
    let shape = (1..5_u16, 0..3_u16, 2..12_u32, 3..20_u32, any::<bool>());
    let policy = prop::sample::select(PolicyKind::ALL.to_vec());
    let prefetch = prop::sample::select(vec![
        Prefetch::None,
        Prefetch::Next,
        Prefetch::Stride,
        Prefetch::Tree,
    ]);
    let habits = (prefetch, 1..6_u32, any::<bool>(), 0..3_u32, any::<bool>());
    (shape, policy, habits, 1..5_u32, any::<bool>(), any::<u64>()).prop_map(
        |((workers, movers, frames, groups, separated), policy, habits, batch, clean, seed)| {
            let (prefetch, window, markers, reserve, write_back) = habits;
            Play {
                shape: Shape {
                    groups,
                    frames: frames.min(groups),
                    spaces: if separated { workers } else { 1 },
                    workers,
                    policy,
                },
                plan: Plan {
                    batch,
                    mover_batch: 3,
                    cluster: if seed % 3 == 0 { 4 } else { 1 },
                    clean,
                    ..Plan::default()
                },
                habit: Habit { prefetch, window, markers, reserve, write_back },
                movers,
                steps: 60,
                failures: 0,
                kills: 0,
                seed,
            }
        },
    )
}

fn check(play: &Play) -> Result<Report, TestCaseError> {
    let report = play.run();
    prop_assert_eq!(&report.wrong, &Vec::<String>::new());
    Ok(report)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Nothing is lost, no frame is made up or lost, and all who sleep are woken.
    #[test]
    fn every_increment_is_in_the_end(play in play()) {
        let report = check(&play)?;
        prop_assert_eq!(report.failed, 0);
        prop_assert_eq!(report.frames_lost, 0);
    }

    /// A far tier that fails now and then fails accesses, and nothing else.
    #[test]
    fn a_failing_far_tier_loses_nothing(play in play(), failures in 1..40_u32) {
        let report = check(&Play { failures, ..play })?;
        prop_assert_eq!(report.frames_lost, 0);
    }

    /// Actors are killed at any step: survivors go on with everything that was written. Each costs at
    /// most the frames that it had in hand, and there are enough of them here for that: all but one for the
    /// largest run, and those of one more batch.
    #[test]
    fn the_dead_take_nothing_with_them(play in play(), kills in 1..4_u32) {
        const IN_HAND: u32 = 7 + 4;
        let shape = play.shape;
        let (groups, frames) = (shape.groups + 30, shape.frames + 3 * IN_HAND);
        let shape = Shape { groups, frames, ..shape };
        let report = check(&Play { kills, shape, steps: 120, ..play })?;
        prop_assert_eq!(report.failed, 0);
        let possible = 0..=i64::from(kills * IN_HAND);
        prop_assert!(possible.contains(&report.frames_lost), "{}", report.frames_lost);
    }
}

/// One play that must lose something if groups are copied while they can be written.
fn contended(protect: bool, seed: u64) -> Play {
    let shape = Shape { groups: 3, frames: 2, spaces: 2, workers: 2, policy: PolicyKind::Fifo };
    Play {
        shape,
        plan: Plan { batch: 1, protect, ..Plan::default() },
        habit: Habit { reserve: 1, prefetch: Prefetch::None, ..Habit::default() },
        movers: 1,
        steps: 200,
        failures: 0,
        kills: 0,
        seed,
    }
}

#[test]
fn the_wrong_order_is_seen_to_lose() {
    let wrong =
        |protect| (0..20_u64).filter(move |seed| !contended(protect, *seed).run().wrong.is_empty());
    assert_eq!(wrong(true).count(), 0);
    assert!(wrong(false).count() > 10, "copying before protecting loses updates");
}

#[test]
fn what_comes_is_read_while_something_else_leaves() {
    for cluster in [1, 4] {
        let mut play = contended(true, 3);
        (play.shape.groups, play.shape.frames, play.plan.cluster) = (16, 8, cluster);
        (play.movers, play.plan.batch) = (0, 2);
        let report = play.run();
        assert_eq!(report.wrong, Vec::<String>::new());
        assert!(report.read_ahead > 0, "clusters of {cluster}");
    }
}

#[test]
fn one_seed_is_one_run() {
    let report = |seed| contended(true, seed).run();
    assert_eq!(report(4), report(4));
    assert_ne!(report(4), report(6));
}

#[test]
fn a_fast_tier_that_is_all_pinned_is_an_error_and_not_a_hang() {
    let mut play = contended(true, 1);
    play.movers = 0;
    assert!(play.pinned_is_an_error());
}

#[test]
fn who_has_no_frame_waits_for_an_evictor_that_is_stopped_and_not_for_a_dead_one() {
    let mut play = contended(true, 1);
    play.movers = 0;
    assert!(play.waits_for_who_is_stopped(false));
    assert!(play.waits_for_who_is_stopped(true));
}

#[test]
fn what_the_dead_held_is_taken_over() {
    let rescued: u64 = (1..30)
        .map(|seed| {
            let mut play = Play { kills: 2, movers: 2, ..contended(true, 2 * seed) };
            (play.shape.groups, play.shape.frames) = (12, 8);
            let report = play.run();
            assert_eq!(report.wrong, Vec::<String>::new());
            report.events.get(&crate::pages::Event::Rescued).copied().unwrap_or(0)
        })
        .sum();
    assert!(rescued > 0, "some died as owners");
}
