//! Runs the program as if nobody stood between it and the shell: signals go on to it, its exit
//! status comes back.
//!
//! Signals are blocked and read from a descriptor, so nothing runs in a handler. What was sent to the
//! whole group is not passed on: the program has it already. Stops and continues of a terminal
//! (Ctrl-Z, fg) are left alone: they reach the whole job by themselves.

use std::cell::{Cell, RefCell};
use std::os::fd::AsFd;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpgid, getpgrp};

use super::start::Program;
use super::witness::Witness;
use crate::ignored::ignored;

/// What is passed on, but for what is ignored, which the program ignores too. A terminal sends its own to the
/// program as well, see [`from_a_process`].
const FORWARDED: [Signal; 7] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGWINCH,
];

/// Those that ask for an end.
const ENDING: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];

/// Holds the signals of this process from its making on.
#[derive(Debug)]
pub struct Signals {
    descriptor: SignalFd,
    /// The first that asked for an end.
    wish: Cell<Option<Signal>>,
    /// What was blocked before, as programs are to have it.
    before: SigSet,
    /// Where there is none, what was sent to the whole group is passed on as well, and comes twice.
    witness: RefCell<Option<Witness>>,
}

impl Signals {
    /// Blocks them; to be called before any thread is started, which would receive them, and before anything is made
    /// that is to go with this process.
    pub fn hold() -> Result<Self> {
        let ignored = ignored();
        let mut set: SigSet = FORWARDED.into_iter().filter(|s| !ignored.contains(*s)).collect();
        set.add(Signal::SIGCHLD);
        let advice = "signals cannot be held; allow rt_sigprocmask and signalfd in the sandbox";
        let before = set.thread_swap_mask(SigmaskHow::SIG_BLOCK).context(advice)?;
        // Not for the program: it would find a descriptor that it did not open.
        Ok(Self {
            descriptor: SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC).context(advice)?,
            wish: Cell::new(None),
            before,
            witness: RefCell::new(None),
        })
    }

    /// Lets them come again, as before: what came meanwhile comes now.
    pub fn release(self) -> Result<()> {
        self.before.thread_set_mask().context("signals stay blocked")
    }

    /// Runs the program to its end: what a shell calls that end. Where somebody has asked for an end before, it is not
    /// started.
    pub fn run(&self, program: &Program) -> Result<u8> {
        self.run_watched(program, None)
    }

    /// Runs the program to its end and calls `watch` with its number, again and again after the
    /// time given.
    pub fn run_watched(
        &self,
        program: &Program,
        mut watch: Option<(Duration, &mut dyn FnMut(Pid))>,
    ) -> Result<u8> {
        if let Some(code) = self.wish()? {
            return Ok(code);
        }
        if self.witness.borrow().is_none() {
            *self.witness.borrow_mut() = Witness::start().ok();
        }
        let child = program.start(&self.before)?;
        if let Some(witness) = self.witness.borrow_mut().as_mut() {
            // What came before this program did has not reached it. What comes now may come twice, but is not lost.
            witness.forget();
        }
        loop {
            if let Some(code) = exit_code(waitpid(child, Some(WaitPidFlag::WNOHANG))?) {
                return Ok(code);
            }
            let timeout = watch.as_ref().and_then(|(every, _)| PollTimeout::try_from(*every).ok());
            let mut waiting = [PollFd::new(self.descriptor.as_fd(), PollFlags::POLLIN)];
            match poll(&mut waiting, timeout.unwrap_or(PollTimeout::NONE)) {
                Ok(0) => {
                    if let Some((_, watch)) = &mut watch {
                        watch(child);
                    }
                }
                Ok(_) => self.pass_on(Some(child))?,
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error).context("signals cannot be waited for"),
            }
        }
    }

    /// Whether somebody has asked for an end, whatever the program made of it, or between two programs: what a shell
    /// calls the end by that signal.
    pub fn wish(&self) -> Result<Option<u8>> {
        loop {
            let mut waiting = [PollFd::new(self.descriptor.as_fd(), PollFlags::POLLIN)];
            match poll(&mut waiting, PollTimeout::ZERO) {
                Ok(0) => return Ok(self.wish.get().map(code_of)),
                Ok(_) => self.pass_on(None)?,
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error).context("signals cannot be waited for"),
            }
        }
    }

    fn pass_on(&self, child: Option<Pid>) -> Result<()> {
        let Some(info) = self.descriptor.read_signal()? else { return Ok(()) };
        let known = i32::try_from(info.ssi_signo).ok().and_then(|n| Signal::try_from(n).ok());
        let Some(signal) = known.filter(|s| *s != Signal::SIGCHLD) else { return Ok(()) };
        if ENDING.contains(&signal) && self.wish.get().is_none() {
            self.wish.set(Some(signal));
        }
        let mut witness = self.witness.borrow_mut();
        let had = witness.as_mut().is_some_and(|witness| witness.has_had(signal));
        let to_all = had || !from_a_process(info.ssi_code);
        if let Some(child) = child.filter(|child| !(to_all && is_of_our_group(*child))) {
            pass(child, signal);
        }
        Ok(())
    }
}

/// Whether it is in the process group of this process. `timeout` and `setsid` leave it, and what is
/// sent to the group, or typed at its terminal, does not reach them.
fn is_of_our_group(process: Pid) -> bool {
    getpgid(Some(process)) == Ok(getpgrp())
}

/// `kill` and its like have codes of 0 and less (sigaction(2)). What a terminal sends comes from
/// the kernel and goes to every process of the job, the program included.
fn from_a_process(code: i32) -> bool {
    code <= 0
}

fn pass(process: Pid, signal: Signal) {
    // It may have ended just now, and then nobody is left to be told.
    let _ = nix::sys::signal::kill(process, signal);
}

/// Ends a process that was started here and not waited for yet.
pub fn kill(process: Pid) {
    pass(process, Signal::SIGKILL);
}

/// What a shell calls the end of a program: its exit code, or 128 and the signal. `None` for one
/// that has not ended.
fn exit_code(status: WaitStatus) -> Option<u8> {
    match status {
        WaitStatus::Exited(_, code) => Some(u8::try_from(code & 0xff).unwrap_or(u8::MAX)),
        WaitStatus::Signaled(_, signal, _) => Some(code_of(signal)),
        _ => None,
    }
}

/// What a shell calls the end by a signal.
fn code_of(signal: Signal) -> u8 {
    u8::try_from(128 + signal as i32).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_as_a_shell_names_them() {
        let pid = Pid::from_raw(1);
        assert_eq!(exit_code(WaitStatus::Exited(pid, 0)), Some(0));
        assert_eq!(exit_code(WaitStatus::Exited(pid, 7)), Some(7));
        assert_eq!(exit_code(WaitStatus::Signaled(pid, Signal::SIGKILL, false)), Some(137));
        let dumped = WaitStatus::Signaled(pid, Signal::SIGSEGV, true);
        assert_eq!(exit_code(dumped), Some(139), "with a core dump");
        assert_eq!(exit_code(WaitStatus::StillAlive), None);
    }

    #[test]
    fn only_what_a_process_sent_is_passed_on() {
        // SI_USER, SI_QUEUE, SI_TKILL; SI_KERNEL and the codes of SIGCHLD are positive.
        assert!([0, -1, -6].into_iter().all(from_a_process));
        assert!(![0x80, 1].into_iter().any(from_a_process));
    }
}
