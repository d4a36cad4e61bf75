//! The wish of the user that a run ends: Ctrl-C, and what asks a process to end (`SIGTERM`, `SIGHUP`), alike.
//!
//! A run either looks for the wish and ends with what it has ([`Interrupt::is_set`]), or has nothing to keep but what
//! stands in files already, and ends at once, wherever it is ([`Interrupt::ends_with`]): files are whole at every
//! moment. One that looks, and yet does not end soon, or not soon after its time, is ended ([`super::LastResort`]), and
//! what it has started with it.

use std::io::Write as _;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal, killpg};
use nix::unistd::Pid;

use super::overdue::Overdue;
use crate::codes::INTERRUPTED;
use crate::ignored::ignored;
use crate::output::complain;

/// A terminal and a parent process may both send what is one wish.
const ONE_WISH: Duration = Duration::from_millis(300);

/// What `ctrlc` takes over.
const TAKEN_OVER: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// Whether somebody wants an end: signals are of a process, so there is one.
static WANTED: AtomicBool = AtomicBool::new(false);
static STATE: Mutex<State> =
    Mutex::new(State { first: None, last_words: None, groups: Vec::new(), overdue: None });
/// Told where the state has changed.
pub(super) static CHANGED: Condvar = Condvar::new();

/// What is known of the wish, and what becomes of it.
pub(super) struct State {
    /// When the wish was uttered first.
    pub(super) first: Option<Instant>,
    /// What is said where the process ends at once.
    last_words: Option<String>,
    /// Groups of processes that do not outlive this one.
    groups: Vec<u32>,
    /// A run that is ended where it does not end by itself.
    pub(super) overdue: Option<Overdue>,
}

pub(super) fn state() -> MutexGuard<'static, State> {
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
        ONCE.call_once(|| {
            let _ = receive();
            drop(ctrlc::set_handler(on_signal));
        });
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
            end(&state, words, INTERRUPTED);
        }
    }
}

/// Lets come what is taken over, of what a parent may have blocked, and keeps away what is to be ignored: a handler is
/// set for that, too. Threads and programs that are started from now on are like this one.
fn receive() -> nix::Result<()> {
    let ignored = ignored();
    let (kept, let_in): (Vec<Signal>, Vec<Signal>) =
        TAKEN_OVER.into_iter().partition(|signal| ignored.contains(*signal));
    SigSet::from_iter(kept).thread_block()?;
    SigSet::from_iter(let_in).thread_unblock()
}

/// Runs on a thread of its own, not in a handler of signals: it may do what any thread may.
fn on_signal() {
    let mut state = state();
    let first = *state.first.get_or_insert_with(Instant::now);
    let again = WANTED.swap(true, Ordering::Relaxed) && first.elapsed() > ONE_WISH;
    if again || state.last_words.is_some() {
        end(&state, state.last_words.as_deref().unwrap_or_default(), INTERRUPTED);
    }
    CHANGED.notify_all();
}

fn pid(child: u32) -> Option<Pid> {
    i32::try_from(child).ok().filter(|id| *id > 0).map(Pid::from_raw)
}

#[allow(clippy::exit, reason = "whoever computes looks nowhere, and has nothing to clean up")]
pub(super) fn end(state: &State, words: &str, code: u8) -> ! {
    for group in state.groups.iter().filter_map(|group| pid(*group)) {
        let _ = killpg(group, Signal::SIGKILL);
    }
    if !words.is_empty() {
        // A line of progress may stand there.
        let _ = write!(std::io::stderr().lock(), "\r");
        complain(words);
    }
    std::process::exit(i32::from(code))
}

/// A program that was started here in a process group of its own, which ends with this one where that is ended amid
/// its work; not any more once this is dropped.
#[derive(Debug)]
pub struct Bound(u32);

impl Bound {
    /// Its group is killed where this process does not come to end it.
    pub fn to(child: &Child) -> Self {
        state().groups.push(child.id());
        Self(child.id())
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        state().groups.retain(|group| *group != self.0);
    }
}
