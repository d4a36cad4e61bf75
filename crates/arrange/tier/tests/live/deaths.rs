//! Workers, movers and the parent are killed at every step of an eviction and of a fetch. Survivors go on,
//! and what they wrote is there: never zeros in place of data.

use core::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use isochrone_os::area::Words;
use isochrone_os::process::{End, Side, end, fork, wait};
use isochrone_tier::Actor;
use isochrone_tier::live::far::Memory;
use isochrone_tier::live::{Config, Ended, Report, Tables, Team, Timed, Trap, Worker};
use isochrone_tier::pages::Event;

use super::{Case, case};

pub(super) const CASES: &[Case] = &[
    case("a_worker_killed_at_any_step_takes_nothing_along", || kill_each(0)),
    case("a_mover_killed_at_any_step_takes_nothing_along", || kill_each(3)),
    case("a_parent_killed_at_any_step_takes_nothing_along", kill_parent),
    case("who_meets_a_dead_worker_is_told", meet_the_dead),
    case("a_mover_of_threads_may_die", mover_of_threads),
];

const PAGE_WORDS: usize = 512;
const STEPS: [Timed; 4] = [Timed::Protect, Timed::CopyOut, Timed::Punch, Timed::Fill];

/// Three workers and a mover; a dead one costs at most the frames that it had in hand.
fn config(tables: Tables) -> Config {
    let mut config = Config::new(256 << 12, 96 << 12, 3);
    config.tables = tables;
    config.movers = 1;
    config.plan.batch = 8;
    config.habit.window = 8;
    config.spins = 20;
    config
}

/// Increments words of its own on random pages, then looks at every one of them. Returns how many pages
/// it found as it left them.
fn own_words(worker: &Worker<'_>, times: u64) -> Result<u64, String> {
    let words = worker.words();
    let mine = usize::from(worker.index()) + 1;
    let mut counts = vec![0_u64; words.len() / PAGE_WORDS];
    let mut random = 0x2545_f491_4f6c_dd1d_u64.wrapping_mul(mine as u64);
    for _ in 0..times {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let page = usize::try_from(random >> 20).unwrap_or(0) % counts.len();
        words[page * PAGE_WORDS + mine].fetch_add(1, Ordering::Relaxed);
        counts[page] += 1;
    }
    for (page, count) in counts.iter().enumerate() {
        let seen = words[page * PAGE_WORDS + mine].load(Ordering::Relaxed);
        if seen != *count {
            return Err(format!("page {page} holds {seen} and not {count}"));
        }
    }
    Ok(counts.len() as u64)
}

fn run(config: Config) -> Report {
    let far = Memory::new(config.area_bytes, None).expect("addresses");
    let team = Team::new(config, Box::new(far)).expect("a team");
    team.run(|worker| own_words(worker, 3000)).expect("a run")
}

fn traps(actor: u16) -> impl Iterator<Item = Trap> {
    STEPS.into_iter().flat_map(move |step| {
        [(false, 3), (true, 3), (true, 40)].map(|(after, times)| Trap {
            actor: Actor(actor),
            step,
            after,
            times,
            signal: 9,
        })
    })
}

fn kill_each(actor: u16) {
    let mut rescued = 0;
    for trap in traps(actor) {
        let report = run(Config { trap: Some(trap), ..config(Tables::Separated) });
        for (number, ended) in report.workers.iter().enumerate() {
            let expected =
                if number == usize::from(actor) { Ended::Killed(9) } else { Ended::Value(256) };
            assert_eq!(*ended, expected, "worker {number}, {trap:?}");
        }
        rescued += report.of_workers().and(&report.of_movers()).events(Event::Rescued);
    }
    assert!(rescued > 0, "nobody died as the owner of anything");
}

fn kill_parent() {
    for trap in traps(0) {
        let told = Words::new(8).expect("shared words");
        let program = match fork().expect("one thread") {
            Side::Child => {
                let mut config = Config { trap: Some(trap), ..config(Tables::Separated) };
                config.parent_works = true;
                let far = Memory::new(config.area_bytes, None).expect("addresses");
                let team = Team::new(config, Box::new(far)).expect("a team");
                let _ = team.run(|worker| {
                    let well = own_words(worker, 3000).is_ok();
                    let word = &told.as_slice()[usize::from(worker.index())];
                    word.store(if well { 1 } else { 2 }, Ordering::Release);
                    Ok(0)
                });
                end(3);
            }
            Side::Parent(program) => program,
        };
        assert_eq!(wait(program, true).expect("a child"), Some(End::Signal(9)), "{trap:?}");
        let begin = Instant::now();
        let told = |worker: usize| told.as_slice()[worker].load(Ordering::Acquire);
        while (told(1) == 0 || told(2) == 0) && begin.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(2));
        }
        assert_eq!((told(0), told(1), told(2)), (0, 1, 1), "{trap:?}");
    }
}

fn meet_the_dead() {
    let far = Memory::new(256 << 12, None).expect("addresses");
    let team = Team::new(config(Tables::Separated), Box::new(far)).expect("a team");
    let report = team
        .run(|worker| {
            worker.barrier().map_err(|gone| gone.to_string())?;
            if worker.index() == 1 {
                end(5);
            }
            match worker.sum(1.0) {
                // The other survivor may be told first, and be gone too.
                Err(_) => Ok(11),
                Ok(sum) => Err(format!("the dead gave {sum}")),
            }
        })
        .expect("a run");
    assert_eq!(report.workers, [Ended::Value(11), Ended::Silent(5), Ended::Value(11)]);
}

fn mover_of_threads() {
    for trap in traps(3).step_by(3) {
        let report = run(Config { trap: Some(trap), ..config(Tables::Shared) });
        assert_eq!(report.workers, vec![Ended::Value(256); 3], "{trap:?}");
    }
}
