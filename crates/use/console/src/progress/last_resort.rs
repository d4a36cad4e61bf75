//! The end of a run that was asked to end, or whose time is over, and that does not end by itself: something takes long
//! that looks for no wish, on a machine where others take the cores.
//!
//! Nobody is kept waiting for long ([`GRACE`]), whatever a run does. What it had is lost then, and a line says so;
//! files are whole at every moment. It costs a thread that sleeps.

use std::sync::PoisonError;
use std::thread;
use std::time::{Duration, Instant};

use super::interrupt::{CHANGED, end, state};
use super::overdue::{GRACE, Overdue};
use crate::codes::{FAILED, INTERRUPTED};

/// The share of its time that a run may take beyond it, and the least of that.
const BEYOND: f64 = 0.15;
const BEYOND_LEAST: Duration = GRACE;

/// Ends the process where a run does not end by itself; no longer once this is dropped.
#[derive(Debug)]
pub struct LastResort(());

impl LastResort {
    /// For a run of this name that begins now. With a time to it, it is ended soon after that is over.
    pub fn arm(name: &str, time: Option<Duration>) -> Self {
        let beyond = |time: Duration| time.mul_f64(BEYOND).max(BEYOND_LEAST);
        let until = time.map(|time| Instant::now() + time + beyond(time));
        let (name, doing) = (name.to_owned(), String::new());
        state().overdue = Some(Overdue { name, doing, until });
        // Where no thread can be had, the run ends by itself or not at all, as before.
        let _ = thread::Builder::new().name("last-resort".to_owned()).spawn(watch);
        Self(())
    }

    /// What the run does from now on, in a few words.
    pub fn doing(&self, words: &str) {
        if let Some(overdue) = &mut state().overdue {
            words.clone_into(&mut overdue.doing);
        }
    }

    /// From now on it has no time to keep, and ends as it does or where somebody wants that.
    pub fn takes_its_time(&self) {
        if let Some(overdue) = &mut state().overdue {
            overdue.until = None;
        }
    }
}

impl Drop for LastResort {
    fn drop(&mut self) {
        state().overdue = None;
        CHANGED.notify_all();
    }
}

/// Sleeps until somebody must be ended, or nobody need be.
fn watch() {
    let mut state = state();
    while let Some(overdue) = &state.overdue {
        let now = Instant::now();
        state = match overdue.end(state.first) {
            None => CHANGED.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(at) if at > now => {
                let waited = CHANGED.wait_timeout(state, at - now);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            Some(_) => {
                let (wished, code) = match state.first {
                    Some(_) => (true, INTERRUPTED),
                    None => (false, FAILED),
                };
                end(&state, &overdue.words(wished), code)
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read};
    use std::process::{Child, Command, Stdio};

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    use super::super::{Bound, Interrupt};
    use super::*;
    use crate::run::ended::{alone, ended};

    /// A run that looks for nothing and never ends, with a program of its own.
    #[test]
    #[ignore = "what the child of another test does"]
    #[allow(clippy::zombie_processes, reason = "it is ended amid a run")]
    fn child_process() {
        let _interrupt = Interrupt::install();
        let run = LastResort::arm("a run", None);
        run.doing("what never ends");
        let mut sleep = Command::new("sleep");
        sleep.arg("1000").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let below = alone(&mut sleep).spawn().unwrap();
        let _bound = Bound::to(&below);
        #[allow(clippy::print_stdout, reason = "the other test waits for it")]
        {
            println!("\nbegun {}", below.id());
        }
        loop {
            thread::park();
        }
    }

    /// The child, and the number of the program that it has started.
    fn begun() -> (Child, i32) {
        let name = "progress::last_resort::tests::child_process";
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", name, "--ignored", "--nocapture"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = alone(&mut command).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let below = lines
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix("begun ").and_then(|number| number.parse().ok()));
        (child, below.expect("it says so first"))
    }

    #[test]
    fn a_run_that_does_not_end_is_ended_with_what_it_started_and_says_amid_what() {
        /// Far more than it takes on any machine: this finds hangs, and measures nothing.
        const HANGS: Duration = Duration::from_secs(60);
        let (mut child, below) = begun();
        kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGTERM).unwrap();
        let asked = Instant::now();
        let status = ended(&mut child, &|| asked.elapsed() > HANGS).unwrap();
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(status.and_then(|status| status.code()), Some(3), "{said}");
        assert!(said.contains("a run: stopped amid: what never ends"), "{said}");
        // Nobody waits for it any more but the system, which may take its time.
        let is_there = || {
            let state = std::fs::read_to_string(format!("/proc/{below}/stat")).unwrap_or_default();
            state.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
        };
        while is_there() {
            assert!(asked.elapsed() < HANGS, "what it started goes on");
            thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn a_run_that_has_ended_is_left_alone() {
        let run = LastResort::arm("a run", Some(Duration::ZERO));
        run.doing("nothing");
        let of = |what: fn(&Overdue) -> bool| state().overdue.as_ref().map(what);
        assert_eq!(of(|run| run.doing == "nothing"), Some(true));
        assert_eq!(of(|run| run.until.is_some()), Some(true), "it has a time to keep");
        run.takes_its_time();
        assert_eq!(
            of(|run| run.until.is_none()),
            Some(true),
            "what it has is printed, however late"
        );
        drop(run);
        assert!(state().overdue.is_none());
    }
}
