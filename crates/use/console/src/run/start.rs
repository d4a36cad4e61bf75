//! A program as it is to be started: its words, what is changed in its environment, and the
//! signals that it may receive.
//!
//! `std::process::Command` hands down the mask of blocked signals, and a shell that cannot
//! receive `SIGCHLD` waits for ever. A mask other than one's own takes `posix_spawn`.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::PipeWriter;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawnp};
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::Pid;

use crate::output;

/// A program to be started.
#[derive(Clone, Debug)]
pub struct Program {
    path: OsString,
    words: Vec<OsString>,
    changes: Vec<(OsString, Option<OsString>)>,
    silent: bool,
    input: Option<PathBuf>,
    output: Option<Arc<PipeWriter>>,
}

impl Program {
    /// The file at `path`, which is looked for in `PATH` if it has no slash, told that its words
    /// are these, its own name first.
    pub fn new(path: &OsStr, words: &[OsString]) -> Self {
        let (path, words) = (path.to_owned(), words.to_vec());
        Self { path, words, changes: Vec::new(), silent: false, input: None, output: None }
    }

    /// The same program with the same arguments and changes of the environment.
    pub fn of(command: &Command) -> Self {
        let path = command.get_program();
        let words: Vec<OsString> =
            std::iter::once(path).chain(command.get_args()).map(OsStr::to_owned).collect();
        let changes = command.get_envs();
        let changes = changes.map(|(name, value)| (name.to_owned(), value.map(OsStr::to_owned)));
        Self { changes: changes.collect(), ..Self::new(path, &words) }
    }

    /// Sets a variable of its environment, or takes it away.
    pub fn with(mut self, name: &str, value: Option<&OsStr>) -> Self {
        self.changes.push((name.into(), value.map(OsStr::to_owned)));
        self
    }

    /// Gives it nothing to read but what it is [told to](Program::reads), and throws away what it says.
    pub fn silently(mut self) -> Self {
        self.silent = true;
        self
    }

    /// Gives it a file to read, from its beginning.
    pub fn reads(mut self, input: &Path) -> Self {
        self.input = Some(input.to_owned());
        self
    }

    /// Lets it write into a pipe instead of standard output. The pipe ends when this value and all programs that have
    /// it are gone.
    pub fn writes_to(mut self, pipe: PipeWriter) -> Self {
        self.output = Some(Arc::new(pipe));
        self
    }

    /// Its name, for messages.
    pub fn name(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }

    /// Becomes this program (execve(2)): its process, its parent and who may signal it are ours, and so are its mask of
    /// signals, its affinity and its descriptors, of which ours are closed. Returns only where that failed.
    pub fn replace_us(&self) -> anyhow::Error {
        let mut command = Command::new(&self.path);
        let (name, words) = self.words.split_first().map_or((&self.path, &[][..]), |all| all);
        command.arg0(name).args(words);
        for (name, value) in &self.changes {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        anyhow::Error::new(command.exec()).context(format!("{} cannot be started", self.name()))
    }

    /// Starts it with these signals blocked and no others.
    pub fn start(&self, blocked: &SigSet) -> Result<Pid> {
        let words: Vec<CString> =
            self.words.iter().map(|word| c_string(word)).collect::<Result<_>>()?;
        let mut attributes = PosixSpawnAttr::init()?;
        attributes.set_sigmask(blocked)?;
        // Rust programs ignore it, and what is ignored is inherited.
        attributes.set_sigdefault(&SigSet::from_iter([Signal::SIGPIPE]))?;
        attributes.set_flags(
            PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK | PosixSpawnFlags::POSIX_SPAWN_SETSIGDEF,
        )?;
        let mut files = PosixSpawnFileActions::init()?;
        let nothing = File::options().read(true).write(true).open("/dev/null")?;
        if self.silent {
            for descriptor in 0..3 {
                files.add_dup2(nothing.as_raw_fd(), descriptor)?;
            }
        }
        let input = self.input.as_ref().map(|path| {
            File::open(path).with_context(|| format!("{} cannot be read", path.display()))
        });
        let input = input.transpose()?;
        if let Some(input) = &input {
            files.add_dup2(input.as_raw_fd(), 0)?;
        }
        if let Some(output) = &self.output {
            files.add_dup2(output.as_raw_fd(), 1)?;
        }
        let path = c_string(&self.path)?;
        posix_spawnp(&path, &files, &attributes, &words, &self.environment()?)
            .with_context(|| format!("{} cannot be started", self.name()))
    }

    fn environment(&self) -> Result<Vec<CString>> {
        let changed = |name: &OsStr| self.changes.iter().any(|(other, _)| other == name);
        let kept = output::environment().filter(|(name, _)| !changed(name));
        let set =
            self.changes.iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?)));
        kept.chain(set)
            .map(|(mut entry, value)| {
                entry.push("=");
                entry.push(value);
                c_string(&entry)
            })
            .collect()
    }
}

/// Whether [`Program::start`] failed since the system does not start such a file: a text, a script whose interpreter is
/// not there, what this user may not execute.
#[must_use]
pub fn is_refused(error: &anyhow::Error) -> bool {
    let errno = error.downcast_ref::<Errno>();
    errno.is_some_and(|errno| matches!(errno, Errno::ENOEXEC | Errno::ENOENT | Errno::EACCES))
}

fn c_string(words: &OsStr) -> Result<CString> {
    CString::new(words.as_bytes()).context("a word holds a zero byte, which no program can be told")
}
