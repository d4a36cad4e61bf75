//! Signals of a process that stands between a program and its shell: they go on to the program, as if nobody stood
//! there.
//!
//! They are blocked and read from a descriptor, so nothing runs in a handler. What was sent to the
//! whole group is not passed on: the program has it already. Where a program at a terminal stops, so does this process,
//! and the shell sees one job.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::os::fd::AsFd;

use anyhow::{Context, Result};
use isochrone_os::signal::ignore_children;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd, siginfo};

use nix::unistd::{Pid, getpgid, getpgrp, getpid, getppid, getsid};

use super::witness::Witness;
use crate::ignored::ignored;

/// What is passed on. A terminal sends its own to the program as well, see [`is_for_all`].
const FORWARDED: [Signal; 15] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGWINCH,
    Signal::SIGALRM,
    Signal::SIGVTALRM,
    Signal::SIGPROF,
    Signal::SIGIO,
    Signal::SIGPWR,
    Signal::SIGXCPU,
    Signal::SIGTSTP,
    Signal::SIGCONT,
];

/// Those that the kernel sends for a terminal.
const OF_TERMINALS: [Signal; 6] = [
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTSTP,
    Signal::SIGWINCH,
    Signal::SIGHUP,
    Signal::SIGCONT,
];
/// Those that ask for an end.
const ENDING: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];
/// Who signals processes one after the other reaches all of them within this time.
const OTHERS_MS: u16 = 2;
/// So many are passed on at once, however fast others come.
const AT_ONCE: usize = 32;

/// Holds the signals of this process from its making on.
#[derive(Debug)]
pub struct Signals {
    descriptor: SignalFd,
    /// The first that asked for an end.
    wish: Cell<Option<Signal>>,
    /// What came before there was a program: it comes to the next one, or to this process when it has them again.
    early: RefCell<Vec<Signal>>,
    /// What was blocked before, as programs are to have it.
    before: SigSet,
    /// What was ignored: it asks this process for nothing.
    ignored: SigSet,
    /// Whether ends of children were ignored, as programs are to have it.
    ignores_children: bool,
    /// Where there is none, what was sent to the whole group is passed on as well, and comes twice.
    witness: RefCell<Option<Witness>>,
}

/// One that came.
#[derive(Clone, Copy, Debug)]
struct Came {
    signal: Signal,
    /// Every process of the group has it.
    is_for_all: bool,
    /// Who sent it, if it was a process.
    sender: Option<Pid>,
}

impl Signals {
    /// Blocks them; to be called before any thread is started, which would receive them, and before anything is made
    /// that is to go with this process.
    pub fn hold() -> Result<Self> {
        let ignored = ignored();
        // Also what is ignored: a program may want to have it all the same. While it is blocked the kernel keeps it.
        let mut set: SigSet = FORWARDED.into_iter().collect();
        set.add(Signal::SIGCHLD);
        let advice = "signals cannot be held; allow rt_sigprocmask and signalfd in the sandbox";
        let before = set.thread_swap_mask(SigmaskHow::SIG_BLOCK).context(advice)?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok(Self {
            // Not for the program: it would find a descriptor that it did not open.
            descriptor: SignalFd::with_flags(&set, flags).context(advice)?,
            wish: Cell::new(None),
            early: RefCell::new(Vec::new()),
            before,
            ignored,
            ignores_children: ignore_children(false),
            witness: RefCell::new(None),
        })
    }

    /// Lets them come again, as before: what came meanwhile comes now.
    pub fn release(self) -> Result<()> {
        if self.ignores_children {
            ignore_children(true);
        }
        self.early.take().into_iter().for_each(|signal| pass(getpid(), signal));
        self.before.thread_set_mask().context("signals stay blocked")
    }

    /// Gets ready to tell what the whole group is sent, which takes some milliseconds. [`Self::run`] does it, too.
    pub fn look_out(&self) {
        let mut witness = self.witness.borrow_mut();
        if witness.is_none() {
            *witness = Witness::start().ok();
        }
    }

    /// Starts a program with signals as they were before: `start` is told which were blocked.
    pub(super) fn as_they_were<T>(&self, start: impl FnOnce(&SigSet) -> Result<T>) -> Result<T> {
        self.forget();
        if self.ignores_children {
            ignore_children(true);
        }
        let started = start(&self.before);
        ignore_children(false);
        started
    }

    /// A program was started. What came until now may have come before there was one, so it comes once more: until it
    /// has a handler of its own the first one ends it.
    pub(super) fn welcome(&self, child: Pid) -> Result<()> {
        let came = self.came()?;
        if !came.is_empty() {
            self.forget();
        }
        self.early.take().into_iter().for_each(|signal| pass(child, signal));
        came.into_iter().for_each(|came| self.hand_on(came, child));
        Ok(())
    }

    /// Hands one on that this process alone has: to the program, or if it sent it to its parent, which would be ours.
    fn hand_on(&self, came: Came, child: Pid) {
        if came.sender == Some(child) {
            return pass(getppid(), came.signal);
        }
        self.is_wish(came.signal);
        pass(child, came.signal);
    }

    /// Stops as the program has, and goes on when it does, or without a witness when this process is told to.
    pub(super) fn stop_with(&self, child: Pid) {
        let mut witness = self.witness.borrow_mut();
        if let Some(witness) = witness.as_mut() {
            witness.wake_us_after(child);
        }
        stop_at_terminal();
        if let Some(witness) = witness.as_mut() {
            // It is not to wake us any more.
            witness.look();
        }
    }

    /// What the group has had until now is not asked for.
    fn forget(&self) {
        if let Some(witness) = self.witness.borrow_mut().as_mut() {
            witness.forget();
        }
    }

    /// Whether somebody has asked for an end, whatever the program made of it, or between two programs: what a shell
    /// calls the end by that signal.
    pub fn wish(&self) -> Result<Option<u8>> {
        for Came { signal, .. } in self.came()? {
            match signal {
                // There is nobody else who could stop. What wakes is over when it is read.
                Signal::SIGTSTP if !self.ignored.contains(signal) => stop_at_terminal(),
                Signal::SIGTSTP | Signal::SIGCONT => {}
                signal if self.is_wish(signal) || self.ignored.contains(signal) => {}
                signal => self.early.borrow_mut().push(signal),
            }
        }
        Ok(self.wish.get().map(code_of))
    }

    /// Whether this process is to end by it, which is remembered.
    fn is_wish(&self, signal: Signal) -> bool {
        let kept = self.ignored.contains(signal) || self.before.contains(signal);
        let is_wish = ENDING.contains(&signal) && !kept;
        if is_wish && self.wish.get().is_none() {
            self.wish.set(Some(signal));
        }
        is_wish
    }

    /// Whether a signal comes within this time.
    pub(super) fn comes_within(&self, time: PollTimeout) -> Result<bool> {
        let mut waiting = [PollFd::new(self.descriptor.as_fd(), PollFlags::POLLIN)];
        match poll(&mut waiting, time) {
            Ok(many) => Ok(many > 0),
            Err(Errno::EINTR) => Ok(true),
            Err(error) => Err(error).context("signals cannot be waited for"),
        }
    }

    /// What has come, but for ends and stops of children.
    fn came(&self) -> Result<Vec<Came>> {
        let mut all = Vec::new();
        while let Some(info) = self.descriptor.read_signal()? {
            all.extend(Came::of(&info));
        }
        Ok(all)
    }

    pub(super) fn pass_on(&self, child: Pid) -> Result<()> {
        let mut all = self.came()?;
        // The group may be sent it one process after the other. Until nothing comes, or many would become one.
        while !all.is_empty()
            && all.len() < AT_ONCE
            && self.comes_within(PollTimeout::from(OTHERS_MS))?
        {
            all.extend(self.came()?);
        }
        let mut witness = self.witness.borrow_mut();
        if let Some(witness) = witness.as_mut().filter(|_| !all.is_empty()) {
            witness.look();
        }
        for came in &all {
            let Came { signal, is_for_all, sender } = *came;
            let had = witness.as_mut().is_some_and(|witness| witness.has_had(signal));
            if witness.as_ref().is_some_and(|witness| witness.is_from(sender)) {
                // It has woken us, and nobody else.
            } else if (had || is_for_all) && is_of_our_group(child) {
                self.is_wish(signal);
            } else {
                self.hand_on(*came, child);
            }
        }
        if let Some(witness) = witness.as_mut() {
            all.iter().for_each(|came| witness.settle(came.signal));
        }
        Ok(())
    }
}

impl Came {
    /// `None` for ends of children, and what is not passed on.
    fn of(info: &siginfo) -> Option<Self> {
        let signal = i32::try_from(info.ssi_signo).ok().and_then(|n| Signal::try_from(n).ok())?;
        let is_for_all = is_for_all(signal, info.ssi_code, getsid(None) == Ok(getpid()));
        let sender = i32::try_from(info.ssi_pid).ok().filter(|_| info.ssi_code <= 0);
        let sender = sender.map(Pid::from_raw);
        (signal != Signal::SIGCHLD).then_some(Self { signal, is_for_all, sender })
    }
}

/// Stops this process where a shell waits for that: one that has given a terminal to the job.
fn stop_at_terminal() {
    if File::open("/dev/tty").is_ok() {
        pass(getpid(), Signal::SIGSTOP);
    }
}

/// Whether it is in the process group of this process. `timeout` and `setsid` leave it, and what is
/// sent to the group, or typed at its terminal, does not reach them.
fn is_of_our_group(process: Pid) -> bool {
    getpgid(Some(process)) == Ok(getpgrp())
}

/// Whether a signal goes to every process of the job by its kind. `kill` and its like have codes of 0 and less
/// (sigaction(2)), and may mean one process. What a terminal sends comes from the kernel and goes to all, the program
/// included; but for its end, which is said to the leader of its session alone. Timers and limits are one process's.
fn is_for_all(signal: Signal, code: i32, leads_session: bool) -> bool {
    let is_said_to_the_leader = matches!(signal, Signal::SIGHUP | Signal::SIGCONT);
    code > 0 && OF_TERMINALS.contains(&signal) && !(leads_session && is_said_to_the_leader)
}

pub(super) fn pass(process: Pid, signal: Signal) {
    // It may have ended just now, and then nobody is left to be told.
    let _ = nix::sys::signal::kill(process, signal);
}

/// What a shell calls the end by a signal.
pub(super) fn code_of(signal: Signal) -> u8 {
    u8::try_from(128 + signal as i32).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_sends_is_for_all_but_for_its_end() {
        // SI_USER, SI_QUEUE, SI_TKILL.
        assert!(![0, -1, -6].into_iter().any(|code| is_for_all(Signal::SIGHUP, code, true)));
        const SI_KERNEL: i32 = 0x80;
        assert!(is_for_all(Signal::SIGINT, SI_KERNEL, true));
        assert!(is_for_all(Signal::SIGHUP, SI_KERNEL, false));
        assert!(!is_for_all(Signal::SIGHUP, SI_KERNEL, true));
        assert!(!is_for_all(Signal::SIGALRM, SI_KERNEL, false), "of alarm(2)");
    }
}
