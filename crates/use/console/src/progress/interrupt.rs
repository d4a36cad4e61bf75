//! The wish of the user that a run ends: Ctrl-C, and what asks a process to end (`SIGTERM`, `SIGHUP`), alike.
//!
//! A run either looks for the wish and ends with what it has ([`Interrupt::is_set`]), or has nothing to keep but what
//! stands in files already, and ends at once, wherever it is ([`Interrupt::ends_with`]): files are whole at every
//! moment. Programs that were started are told ([`Forwarded`]).

use std::io::Write as _;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::codes::INTERRUPTED;

/// A terminal and a parent process may both send what is one wish.
const ONE_WISH: Duration = Duration::from_millis(300);

/// Whether somebody wants an end: signals are of a process, so there is one.
static WANTED: AtomicBool = AtomicBool::new(false);
static STATE: Mutex<State> =
    Mutex::new(State { first: None, last_words: None, children: Vec::new() });

struct State {
    /// When the wish was uttered first.
    first: Option<Instant>,
    /// What is said where the process ends at once.
    last_words: Option<String>,
    /// Processes that are told.
    children: Vec<u32>,
}

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Set by Ctrl-C and by termination.
#[derive(Clone, Debug)]
pub struct Interrupt(());

impl Interrupt {
    /// Takes over the signals, once for the process. A second one ends the program at once.
    pub fn install() -> Self {
        static ONCE: Once = Once::new();
        // Where signals cannot be taken over, they do what they always did.
        ONCE.call_once(|| drop(ctrlc::set_handler(on_signal)));
        Self(())
    }

    /// Whether the user wants the run to end.
    pub fn is_set(&self) -> bool {
        WANTED.load(Ordering::Relaxed)
    }

    /// From now on the process ends as soon as the user wants it to, or now where that is so already, with one line
    /// that says what was not done.
    pub fn ends_with(&self, words: &str) {
        let mut state = state();
        state.last_words = Some(words.to_owned());
        if self.is_set() {
            end(&state, i32::from(INTERRUPTED));
        }
    }
}

/// Runs on a thread of its own, not in a handler of signals: it may do what any thread may.
fn on_signal() {
    let mut state = state();
    let first = *state.first.get_or_insert_with(Instant::now);
    state.children.iter().copied().for_each(tell);
    let again = WANTED.swap(true, Ordering::Relaxed) && first.elapsed() > ONE_WISH;
    if again || state.last_words.is_some() {
        end(&state, i32::from(INTERRUPTED));
    }
}

fn tell(child: u32) {
    let pid = i32::try_from(child).map(Pid::from_raw);
    // It may have ended just now, and then nobody is left to be told.
    let _ = pid.map(|pid| kill(pid, Signal::SIGTERM));
}

#[allow(clippy::exit, reason = "whoever computes looks nowhere, and has nothing to clean up")]
fn end(state: &State, code: i32) -> ! {
    if let Some(words) = &state.last_words {
        // A line of progress may stand there.
        let _ = writeln!(std::io::stderr().lock(), "\r{words}");
    }
    std::process::exit(code)
}

/// A program that was started here and is asked to end when this one is; not any more once this is dropped.
#[derive(Debug)]
pub struct Forwarded(u32);

impl Forwarded {
    /// Tells this child from now on. It does nothing where no signals were taken over.
    pub fn to(child: &Child) -> Self {
        let mut state = state();
        state.children.push(child.id());
        if WANTED.load(Ordering::Relaxed) {
            tell(child.id());
        }
        Self(child.id())
    }
}

impl Drop for Forwarded {
    fn drop(&mut self) {
        state().children.retain(|child| *child != self.0);
    }
}
