//! A worker is stopped (`SIGSTOP`) while it has every frame of the fast tier in hand. That is no error: others
//! wait until it goes on, or until it is dead.

use core::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use isochrone_os::area::Words;
use isochrone_tier::Actor;
use isochrone_tier::live::far::Memory;
use isochrone_tier::live::{Config, Ended, Report, Team, Timed, Trap, Worker};
use isochrone_tier::policy::PolicyKind;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{Case, case};

pub(super) const CASES: &[Case] = &[
    case("who_waits_for_a_stopped_worker_is_told_of_no_error", goes_on),
    case("who_waits_for_a_stopped_worker_goes_on_when_it_is_killed", killed),
];

const PAGE_WORDS: usize = 512;
const PAGES: usize = 16;
const FRAMES: usize = 4;
/// Longer than any number of looks that could be mistaken for never.
const LONG: Duration = Duration::from_millis(2500);

/// Increments a word of its own on every page, round after round.
fn rounds(worker: &Worker<'_>) -> Result<u64, String> {
    const ROUNDS: u64 = 20;
    let mine = usize::from(worker.index());
    let word = |page: usize| &worker.words()[page * PAGE_WORDS + mine];
    for round in 0..ROUNDS {
        for page in 0..PAGES {
            let before = word(page).fetch_add(1, Ordering::Relaxed);
            if before != round {
                return Err(format!("page {page} holds {before} in round {round}"));
            }
        }
    }
    Ok(ROUNDS)
}

/// Waits until a process is stopped (proc_pid_stat(5): state T).
fn is_stopped(process: &AtomicU32) -> Pid {
    loop {
        let number = process.load(Ordering::Acquire);
        let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        if number > 0 && stat.split(") ").nth(1).is_some_and(|state| state.starts_with('T')) {
            return Pid::from_raw(number.cast_signed());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Worker 0 stops as it evicts everything; worker 1 then needs a frame; worker 2 sends a signal.
fn beside_stopped(signal: Signal, after: Duration) -> Report {
    let mut config = Config::new(PAGES << 12, FRAMES << 12, 3);
    config.policy = PolicyKind::Fifo;
    config.plan.batch = 8;
    config.spins = 20;
    config.trap = Some(Trap {
        actor: Actor(0),
        step: Timed::CopyOut,
        after: false,
        times: 0,
        signal: Signal::SIGSTOP as i32,
    });
    let told = Words::new(1).expect("shared words");
    let process = &told.as_slice()[0];
    let far = Memory::new(config.area_bytes, None).expect("addresses");
    let team = Team::new(config, Box::new(far)).expect("a team");
    let report = team.run(|worker| match worker.index() {
        0 => {
            process.store(std::process::id(), Ordering::Release);
            rounds(worker)
        }
        1 => {
            is_stopped(process);
            rounds(worker)
        }
        _ => {
            let stopped = is_stopped(process);
            std::thread::sleep(after);
            kill(stopped, signal).map_err(|errno| errno.to_string())?;
            rounds(worker)
        }
    });
    report.expect("a run")
}

fn goes_on() {
    let report = beside_stopped(Signal::SIGCONT, LONG);
    assert_eq!(report.workers, vec![Ended::Value(20); 3]);
}

fn killed() {
    let report = beside_stopped(Signal::SIGKILL, Duration::from_millis(100));
    assert_eq!(report.workers, [Ended::Killed(9), Ended::Value(20), Ended::Value(20)]);
}
