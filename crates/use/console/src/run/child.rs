//! Runs the program as if nobody stood between it and the shell: signals go on to it, its exit
//! status comes back.

use std::time::Duration;

use anyhow::Result;
use nix::poll::PollTimeout;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::signals::{Signals, code_of, pass};
use super::start::Program;

impl Signals {
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
        self.look_out();
        if let Some(code) = self.wish()? {
            return Ok(code);
        }
        let child = self.start(program)?;
        loop {
            match waitpid(child, Some(WaitPidFlag::WNOHANG | WaitPidFlag::WUNTRACED))? {
                WaitStatus::Stopped(..) => self.stop_with(child),
                status => {
                    if let Some(code) = exit_code(status) {
                        return Ok(code);
                    }
                }
            }
            let timeout = watch.as_ref().and_then(|(every, _)| PollTimeout::try_from(*every).ok());
            if self.comes_within(timeout.unwrap_or(PollTimeout::NONE))? {
                self.pass_on(child)?;
            } else if let Some((_, watch)) = &mut watch {
                watch(child);
            }
        }
    }

    fn start(&self, program: &Program) -> Result<Pid> {
        let child = self.as_they_were(|before| program.start(before))?;
        self.welcome(child)?;
        Ok(child)
    }
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
}
