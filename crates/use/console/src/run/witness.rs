//! Tells whether a signal was sent to the whole process group, whose programs have it by themselves.
//!
//! Nothing of what kill(2) leaves with its receiver says so. A process of ours waits in the same group with all signals
//! blocked, and counts those that it is sent: they were sent to the group. It ends with the process that started it,
//! also where that is killed.

use std::ffi::CString;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawn};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::waitpid;
use nix::unistd::{Pid, getppid};

use crate::partner::ITSELF;

/// The first word by which the program knows that it is one.
pub const NAME: &str = "isochrone-signals";
/// A witness that says nothing for so long is none. On a busy machine it may have to wait for a core.
const SILENCE: Duration = Duration::from_secs(2);
/// Signals have numbers from 1 to 64.
const NUMBERS: usize = 64;

/// How often it is looked whether a stopped program goes on.
const LOOK_MS: u16 = 50;
/// The question what came, and the order to wake this process when a program goes on, whose number follows.
const ASK: u8 = 0;
const WAKE: u8 = 1;

/// How often each signal came, by its number less one.
type Counts = [u8; NUMBERS];

/// The process that waits, as the one that started it sees it.
#[derive(Debug)]
pub(super) struct Witness {
    /// Closed with this process, which ends the other one.
    asks: Option<UnixStream>,
    process: Pid,
    /// How often it has had each signal that nobody has asked for.
    had: Counts,
}

impl Witness {
    /// Starts it, in the group of this process, and waits until it is there.
    ///
    /// # Errors
    /// Where no process can be started, as without /proc.
    pub(super) fn start() -> Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_read_timeout(Some(SILENCE))?;
        let mut attributes = PosixSpawnAttr::init()?;
        attributes.set_sigmask(&SigSet::all())?;
        attributes.set_flags(PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK)?;
        let mut files = PosixSpawnFileActions::init()?;
        // Nothing that the user opened waits for it.
        for descriptor in 0..3 {
            files.add_dup2(theirs.as_raw_fd(), descriptor)?;
        }
        let words = [CString::new(NAME).context("a word")?];
        let none: [CString; 0] = [];
        let process = posix_spawn(ITSELF, &files, &attributes, &words, &none)?;
        drop(theirs);
        let mut witness = Self { asks: Some(ours), process, had: [0; NUMBERS] };
        witness.look();
        witness.asks.is_some().then_some(witness).context("it does not answer")
    }

    /// Lets it continue this process (`SIGCONT`) as soon as it is stopped and that one is not, until it is asked
    /// again.
    pub(super) fn wake_us_after(&mut self, process: Pid) {
        let mut order = vec![WAKE];
        order.extend(process.as_raw().to_ne_bytes());
        if self.asks.as_mut().is_some_and(|asks| asks.write_all(&order).is_err()) {
            self.asks = None;
        }
    }

    /// Whether that is what sent a signal.
    pub(super) fn is_from(&self, sender: Option<Pid>) -> bool {
        sender == Some(self.process)
    }

    /// Asks for what the group has had since it was asked last.
    pub(super) fn look(&mut self) {
        match self.since() {
            Ok(more) => {
                for (had, more) in self.had.iter_mut().zip(more) {
                    *had = had.saturating_add(more);
                }
            }
            // It was killed or stopped; an answer that comes too late would be taken for another one.
            Err(_) => self.asks = None,
        }
    }

    /// Whether the group has had this signal once more than it was asked for here.
    pub(super) fn has_had(&mut self, signal: Signal) -> bool {
        let had = self.had.get_mut(place(signal as i32)).filter(|had| **had > 0);
        had.map(|had| *had -= 1).is_some()
    }

    /// All that came of this signal was told: where two came as one here there is nothing left of them.
    pub(super) fn settle(&mut self, signal: Signal) {
        self.had[place(signal as i32)] = 0;
    }

    /// Whatever the group has had until now is not asked for any more.
    pub(super) fn forget(&mut self) {
        self.look();
        self.had = [0; NUMBERS];
    }

    fn since(&mut self) -> Result<Counts> {
        let asks = self.asks.as_mut().context("there is none any more")?;
        asks.write_all(&[ASK])?;
        let mut counts = [0; NUMBERS];
        asks.read_exact(&mut counts)?;
        Ok(counts)
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        // One that was stopped would not end by itself. Its number is its own until it was waited for.
        let _ = kill(self.process, Signal::SIGKILL);
        let _ = waitpid(self.process, None);
    }
}

/// Where a signal is counted.
fn place(number: i32) -> usize {
    usize::try_from(number - 1).unwrap_or(0).min(NUMBERS - 1)
}

/// Whether a process is stopped, as `/proc` says, or held by a debugger, after which it may be; one that is gone is
/// not.
fn is_stopped(process: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name before it may hold anything (proc(5)).
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['T', 't']))
}

/// What the process does: counts what is sent to it, and says it whenever it is asked, until nobody is there who could.
/// Each is counted when it comes, or two of a kind would be one.
pub fn serve() -> ExitCode {
    let serves = || -> Result<()> {
        let pending = SignalFd::with_flags(&SigSet::all(), SfdFlags::SFD_NONBLOCK)?;
        let mut asks = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?);
        let mut counts = [0_u8; NUMBERS];
        let mut stopped = None;
        loop {
            let mut waiting = [
                PollFd::new(pending.as_fd(), PollFlags::POLLIN),
                PollFd::new(asks.as_fd(), PollFlags::POLLIN),
            ];
            let time = stopped.map_or(PollTimeout::NONE, |_| PollTimeout::from(LOOK_MS));
            poll(&mut waiting, time)?;
            let is_asked = waiting[1].any() == Some(true);
            while let Some(info) = pending.read_signal()? {
                let count = &mut counts[place(i32::try_from(info.ssi_signo)?)];
                *count = count.saturating_add(1);
            }
            if is_asked {
                let mut order = [0];
                if asks.read(&mut order)? == 0 {
                    return Ok(());
                }
                stopped = None;
                if order == [WAKE] {
                    let mut number = [0; 4];
                    asks.read_exact(&mut number)?;
                    stopped = Some(Pid::from_raw(i32::from_ne_bytes(number)));
                } else {
                    asks.write_all(&std::mem::replace(&mut counts, [0; NUMBERS]))?;
                }
            }
            if stopped.is_some_and(|program| !is_stopped(program) && is_stopped(getppid())) {
                // Who is not there any more needs no waking.
                let _ = kill(getppid(), Signal::SIGCONT);
            }
        }
    };
    if serves().is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_signal_has_a_place() {
        assert_eq!([1, 2, 15, 64].map(place), [0, 1, 14, 63]);
        assert_eq!([0, -1, 65].map(place), [0, 0, 63]);
    }
}
