//! A stack that is large enough for a command, whatever the user's limit is (`ulimit -s`).
//!
//! The first thread's stack ends where the limit says, and a process that reaches it is killed without a word.

use std::process::ExitCode;
use std::thread::Builder;

use nix::sys::resource::{Resource, getrlimit};
use nix::sys::signal::SigSet;

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
    let Ok(thread) = Builder::new().name("command".to_owned()).stack_size(GIVEN).spawn(command)
    else {
        complain("isochrone: there is no memory for a stack; raise ulimit -v");
        return ExitCode::from(FAILED);
    };
    // Signals are the command's: here they would end it before its time.
    let _ = SigSet::all().thread_block();
    // One that panics has said so.
    thread.join().unwrap_or(ExitCode::from(101))
}

#[cfg(test)]
mod tests {
    use std::thread::{current, spawn};

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
}
