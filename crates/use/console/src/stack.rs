//! A stack that is large enough for a command, whatever the user's limit is (`ulimit -s`).
//!
//! The first thread's stack ends where the limit says, and a process that reaches it is killed without a word.

use std::process::ExitCode;
use std::thread::Builder;

use nix::sys::resource::{Resource, getrlimit};
use nix::sys::signal::{SigSet, SigmaskHow};

use crate::codes::FAILED;
use crate::output::complain;

/// What is enough for every command: as much as a thread of Rust's has. Debug builds take more than others.
const ENOUGH: u64 = 2 << 20;
/// What a thread is given in place of less.
const GIVEN: usize = 8 << 20;

/// Runs a command where its stack is large enough: here, unless the limit is smaller; then on a thread of its own. The
/// limit stays, so that programs that are started find it.
pub fn on_enough(command: impl FnOnce() -> ExitCode + Send + 'static) -> ExitCode {
    let limit = getrlimit(Resource::RLIMIT_STACK).map_or(u64::MAX, |(soft, _)| soft);
    run(limit, command)
}

fn run(limit: u64, command: impl FnOnce() -> ExitCode + Send + 'static) -> ExitCode {
    if limit >= ENOUGH {
        return command();
    }
    // Signals are the command's: here they would end it before its time. It has the mask that was, and this thread none
    // from before the other one is there.
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK);
    let with_signals = move || {
        if let Ok(before) = &before {
            let _ = before.thread_set_mask();
        }
        command()
    };
    let thread = Builder::new().name("command".to_owned()).stack_size(GIVEN).spawn(with_signals);
    let Ok(thread) = thread else {
        complain("isochrone: there is no memory for a stack; raise ulimit -v");
        return ExitCode::from(FAILED);
    };
    // One that panics has said so.
    thread.join().unwrap_or(ExitCode::from(101))
}

#[cfg(test)]
mod tests {
    use std::thread::{current, spawn};

    use nix::sys::signal::Signal;

    use super::*;

    /// The thread on which a command runs under a limit, and what it returns.
    fn named(limit: u64) -> (bool, ExitCode) {
        // On a thread of its own, of which signals may be blocked.
        let ran = spawn(move || {
            let (here, (told, found)) = (current().id(), std::sync::mpsc::channel());
            let code = run(limit, move || {
                told.send(current().id()).expect("somebody waits");
                ExitCode::from(7)
            });
            (found.recv().expect("it was told") == here, code)
        });
        ran.join().expect("no panic")
    }

    #[test]
    fn a_command_has_a_thread_of_its_own_where_the_limit_is_small() {
        assert_eq!(named(8 << 20), (true, ExitCode::from(7)));
        assert_eq!(named(100 << 10), (false, ExitCode::from(7)));
    }

    #[test]
    fn signals_come_to_the_command_as_before_and_to_nobody_else() {
        let ran = spawn(|| {
            let mask = || SigSet::thread_get_mask().expect("it is read");
            SigSet::from(Signal::SIGUSR2).thread_block().expect("it is set");
            let (told, found) = std::sync::mpsc::channel();
            run(100 << 10, move || {
                told.send(mask()).expect("somebody waits");
                ExitCode::SUCCESS
            });
            (found.recv().expect("it was told"), mask())
        });
        let (command, waits) = ran.join().expect("no panic");
        assert_eq!(command, SigSet::from(Signal::SIGUSR2));
        assert!([Signal::SIGINT, Signal::SIGTERM].into_iter().all(|it| waits.contains(it)));
    }
}
