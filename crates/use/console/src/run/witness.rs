//! Tells whether a signal was sent to the whole process group, whose programs have it by themselves.
//!
//! Nothing of what kill(2) leaves with its receiver says so. A process of ours waits in the same group with all signals
//! blocked, and takes back what is pending when it is asked: what is pending there was sent to the group. It ends with
//! the process that started it, also where that is killed.

use std::ffi::CString;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawn};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;

/// The first word by which the program knows that it is one.
pub const NAME: &str = "isochrone-signals";
/// The program that runs, whatever its file is called now.
const ITSELF: &str = "/proc/self/exe";
/// Who signals processes one after the other reaches all of them within this time.
const OTHERS: Duration = Duration::from_millis(2);
/// A witness that says nothing for so long is none.
const SILENCE: Duration = Duration::from_millis(200);

/// The process that waits, as the one that started it sees it.
#[derive(Debug)]
pub(super) struct Witness {
    /// Closed with this process, which ends the other one.
    asks: Option<UnixStream>,
    process: Pid,
    /// A bit for each signal that it has had and that nobody has asked for.
    had: u64,
}

impl Witness {
    /// Starts it, in the group of this process.
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
        Ok(Self { asks: Some(ours), process, had: 0 })
    }

    /// Whether the group has had this signal since it was asked for last.
    pub(super) fn has_had(&mut self, signal: Signal) -> bool {
        std::thread::sleep(OTHERS);
        match self.pending() {
            Ok(more) => self.had |= more,
            // It was killed or stopped; an answer that comes too late would be taken for another one.
            Err(_) => self.asks = None,
        }
        let bit = bit(signal as i32);
        let had = self.had & bit != 0;
        self.had &= !bit;
        had
    }

    /// Whatever the group has had until now is not asked for any more.
    pub(super) fn forget(&mut self) {
        if self.pending().is_err() {
            self.asks = None;
        }
        self.had = 0;
    }

    fn pending(&mut self) -> Result<u64> {
        let asks = self.asks.as_mut().context("there is none any more")?;
        asks.write_all(&[0])?;
        let mut bits = [0; 8];
        asks.read_exact(&mut bits)?;
        Ok(u64::from_ne_bytes(bits))
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        // One that was stopped would not end by itself. Its number is its own until it was waited for.
        let _ = kill(self.process, Signal::SIGKILL);
        let _ = waitpid(self.process, None);
    }
}

const fn bit(number: i32) -> u64 {
    if number >= 1 && number <= 64 { 1 << (number - 1) } else { 0 }
}

/// What the process does: says what is pending whenever it is asked, until nobody is there who could.
pub fn serve() -> ExitCode {
    let serves = || -> Result<()> {
        let pending = SignalFd::with_flags(&SigSet::all(), SfdFlags::SFD_NONBLOCK)?;
        let mut asks = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?);
        while asks.read(&mut [0])? == 1 {
            let mut bits = 0;
            while let Some(info) = pending.read_signal()? {
                bits |= i32::try_from(info.ssi_signo).map_or(0, bit);
            }
            asks.write_all(&u64::to_ne_bytes(bits))?;
        }
        Ok(())
    };
    if serves().is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_signal_has_a_bit() {
        let bits = [1, 2, 15, 64].map(bit);
        assert_eq!(bits, [1, 2, 1 << 14, 1 << 63]);
        assert_eq!([0, -1, 65].map(bit), [0; 3]);
    }
}
