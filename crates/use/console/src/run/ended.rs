//! Waits for a process, and ends it with all that it has started where nobody wants it any more.
//!
//! A process that is to be ended that way has a group of its own ([`alone`]): what it starts belongs to it, and
//! what a terminal sends reaches us alone, who then decide.

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::progress::Bound;

/// Between two looks whether it has ended: at first, and at most. What is measured meanwhile notices twenty
/// looks a second as little as anything.
const LOOK: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));
/// Time to end by itself when it is told to, before it is killed.
const GRACE: Duration = Duration::from_millis(800);

/// The command in a process group of its own.
pub fn alone(command: &mut Command) -> &mut Command {
    command.process_group(0)
}

/// Waits until a child that runs [`alone`] has ended. `None` if it was ended here, with its group, since `stop`
/// said so.
///
/// # Errors
/// Where it cannot be waited for.
pub fn ended(child: &mut Child, stop: &dyn Fn() -> bool) -> Result<Option<ExitStatus>> {
    let _bound = Bound::to(child);
    let mut look = LOOK.0;
    loop {
        if let Some(status) = child.try_wait().context("a process cannot be waited for")? {
            return Ok(Some(status));
        }
        if stop() {
            end(child);
            return Ok(None);
        }
        std::thread::sleep(look);
        look = (look * 2).min(LOOK.1);
    }
}

/// Ends a child that runs [`alone`], and its group: it is asked to end, and killed where it does not. It takes
/// a second at most.
pub fn end(child: &mut Child) {
    let Some(group) = group(child) else { return };
    // Who has gone already needs no signal.
    let _ = killpg(group, Signal::SIGTERM);
    let begin = Instant::now();
    while begin.elapsed() < GRACE && matches!(child.try_wait(), Ok(None)) {
        std::thread::sleep(LOOK.0);
    }
    let _ = killpg(group, Signal::SIGKILL);
    let _ = child.wait();
}

/// Kills a child that runs [`alone`], and its group, and does not wait until it is gone: that of a large one takes as
/// long as the system needs to take its memory back.
pub fn kill(child: &Child) {
    let _ = group(child).map(|group| killpg(group, Signal::SIGKILL));
}

/// Its group, which has its number.
fn group(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().filter(|id| *id > 0).map(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read};
    use std::process::Stdio;

    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::null());
        alone(&mut command);
        command
    }

    #[test]
    fn who_ends_is_waited_for() {
        let mut child = shell("exit 3").spawn().unwrap();
        let status = ended(&mut child, &|| false).unwrap();
        assert_eq!(status.and_then(|status| status.code()), Some(3));
    }

    #[test]
    fn who_does_not_is_ended_with_what_it_started() {
        let script = "trap '' TERM; sleep 1000 & echo begun; wait";
        let mut child = shell(script).stdout(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut String::new()).unwrap();
        assert!(ended(&mut child, &|| true).unwrap().is_none());
        // Whoever is left has the pipe open.
        let (told, ends) = std::sync::mpsc::channel();
        std::thread::spawn(move || told.send(out.read_to_end(&mut Vec::new()).is_ok()));
        assert_eq!(ends.recv_timeout(Duration::from_secs(60)), Ok(true), "somebody is left");
    }
}
