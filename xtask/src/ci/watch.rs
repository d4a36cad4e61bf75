//! What a step waits for without end, or leaves running: it is found, named and ended, so that the gate ends.
//!
//! Every process of a step carries a variable with a value of its own. By it they are found, whoever their parent is by
//! now and whatever group they have made.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The variable that the processes of a step carry.
const NAME: &str = "ISOCHRONE_GATE_STEP";

/// What all processes of one step carry, or of one program.
#[derive(Debug)]
pub(crate) struct Mark(String);

impl Mark {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        Self(format!("{}.{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)))
    }

    pub(crate) fn put_on(&self, command: &mut Command) {
        command.env(NAME, &self.0);
    }

    /// Ends whatever carries it.
    pub(crate) fn end_all(&self) {
        self.processes().iter().for_each(Process::end);
    }

    /// The processes that carry it, this moment.
    pub(super) fn processes(&self) -> Vec<Process> {
        let word = format!("{NAME}={}", self.0).into_bytes();
        let folders = fs::read_dir("/proc").into_iter().flatten().flatten();
        let ids = folders.filter_map(|folder| folder.file_name().to_str()?.parse().ok());
        ids.filter_map(|id| Process::read(id, &word)).collect()
    }
}

/// A process, as `/proc` shows it.
#[derive(Clone, Debug)]
pub(super) struct Process {
    id: i32,
    /// The program of its parent.
    parent: String,
    program: PathBuf,
    words: Vec<String>,
    folder: PathBuf,
    environment: Vec<(String, String)>,
    /// Where in the kernel it waits.
    waits: String,
}

impl Process {
    fn read(id: i32, word: &[u8]) -> Option<Self> {
        let of = |what: &str| format!("/proc/{id}/{what}");
        let environment = fs::read(of("environ")).ok()?;
        if !environment.split(|byte| *byte == 0).any(|one| one == word) {
            return None;
        }
        let stat = fs::read_to_string(of("stat")).ok()?;
        let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?;
        Some(Self {
            id,
            parent: fs::read_to_string(format!("/proc/{parent}/comm"))
                .unwrap_or_default()
                .trim()
                .to_owned(),
            program: fs::read_link(of("exe")).ok()?,
            words: texts(&fs::read(of("cmdline")).ok()?),
            folder: fs::read_link(of("cwd")).ok()?,
            environment: texts(&environment)
                .iter()
                .filter_map(|one| {
                    one.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()))
                })
                .collect(),
            waits: fs::read_to_string(of("wchan")).unwrap_or_default(),
        })
    }

    /// Whether this is a test binary that cargo started; what a test started is none.
    pub(super) fn is_test_binary(&self) -> bool {
        self.parent == "cargo"
            && self.program.parent().is_some_and(|folder| folder.ends_with("deps"))
    }

    /// Whether cargo or a compiler is at work there.
    fn builds(&self) -> bool {
        let name = self.program.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("cargo") || name.starts_with("rust") || self.parent == "cargo"
    }

    pub(super) fn end(&self) {
        let _ = kill(Pid::from_raw(self.id), Signal::SIGKILL);
    }

    /// A line about it: its number, its words and where it waits.
    pub(super) fn line(&self) -> String {
        let words: String = self.words.join(" ").chars().take(160).collect();
        format!("  {} {words} [waits in {}]", self.id, self.waits)
    }

    /// The command that starts it again as it was started.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(self.words.iter().skip(1)).current_dir(&self.folder);
        command.env_clear().envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }
}

fn texts(bytes: &[u8]) -> Vec<String> {
    let words = bytes.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    words.map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// What is ended where a step has said nothing for too long while a test binary runs.
///
/// A test mostly waits for a program that it started. With that ended, the test fails by its name and all others go
/// on. Where no such program is left the test binary waits for itself, and is ended.
pub(super) fn stuck(processes: &[Process]) -> Vec<&Process> {
    if !processes.iter().any(Process::is_test_binary) {
        return Vec::new();
    }
    let started: Vec<_> = processes.iter().filter(|process| !process.builds()).collect();
    match started.is_empty() {
        false => started,
        true => processes.iter().filter(|process| process.is_test_binary()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(parent: &str, program: &str) -> Process {
        Process {
            id: i32::MAX,
            parent: parent.to_owned(),
            program: program.into(),
            words: vec![program.to_owned(), "--exact".to_owned()],
            folder: "/".into(),
            environment: Vec::new(),
            waits: String::new(),
        }
    }

    #[test]
    fn a_process_is_found_by_its_mark_and_ended_though_its_parent_has_gone() {
        let mark = Mark::new();
        let mut shell = Command::new("sh");
        mark.put_on(shell.args(["-c", "sleep 1000 >/dev/null 2>&1 & exit 0"]));
        assert!(shell.status().expect("a shell").success());
        let found = mark.processes();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].line().contains("sleep 1000"), "{}", found[0].line());
        assert!(Mark::new().processes().is_empty());
        found[0].end();
        while !mark.processes().is_empty() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn what_a_test_started_is_ended_before_the_test_binary() {
        let cargo = process("xtask", "/bin/cargo");
        let binary = process("cargo", "/target/debug/deps/e2e-0123");
        let started = process("e2e-0123", "/target/debug/isochrone");
        let compiler = process("cargo", "/toolchain/bin/rustc");
        let all = [cargo.clone(), binary.clone(), started];
        let programs =
            |found: Vec<&Process>| found.iter().map(|p| p.program.clone()).collect::<Vec<_>>();
        assert_eq!(programs(stuck(&all)), [PathBuf::from("/target/debug/isochrone")]);
        assert_eq!(programs(stuck(&all[..2])), [binary.program]);
        assert!(stuck(&[cargo, compiler]).is_empty(), "a build may be silent");
    }

    #[test]
    fn a_program_is_started_again_as_it_was() {
        let mark = Mark::new();
        let mut first = Command::new("sleep");
        mark.put_on(first.arg("1000"));
        let mut first = first.spawn().expect("sleep");
        while mark.processes().is_empty() {
            std::thread::yield_now();
        }
        let known = mark.processes();
        let mut second = known[0].command().spawn().expect("sleep again");
        while mark.processes().len() < 2 {
            std::thread::yield_now();
        }
        for (child, process) in [&mut first, &mut second].into_iter().zip(mark.processes()) {
            process.end();
            child.wait().expect("ended");
        }
    }
}
