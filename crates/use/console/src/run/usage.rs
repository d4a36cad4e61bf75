//! What a program took: time, and its largest resident memory.
//!
//! Linux tells a process the peak of all its children as one number, and counts a child's peak
//! from what the parent held when it started it (`exec` keeps the high-water mark). So each
//! program is started by a small process of its own, the hidden command `isochrone usage`. Where
//! the peak is not above that process's own, the program's high-water mark stands for it as it
//! was last seen in `/proc`, at most [`LOOK`] before the end. So it does where only processes of one name count, as
//! the server that a script starts beside its clients.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use super::child;
use super::digest::{Digest, Reading};
use super::signals::Signals;
use super::spent;
use super::start::Program;
use crate::args::parse_cores;
use crate::partner::ITSELF;

/// How often the high-water mark is looked at: a thousandth of the time that it takes.
const LOOK: Duration = Duration::from_millis(20);

/// What the hidden command takes.
#[derive(Clone, Debug, Args)]
pub struct UsageArgs {
    /// Where the usage goes, as JSON.
    #[arg(long)]
    out: PathBuf,
    /// `LD_PRELOAD` of the program.
    #[arg(long)]
    preload: Option<OsString>,
    /// `ISOCHRONE_CONFIG` of the program.
    #[arg(long)]
    config: Option<OsString>,
    /// The only cores that the program may use.
    #[arg(long)]
    cores: Option<String>,
    /// The program is killed after so many seconds.
    #[arg(long)]
    limit: Option<u32>,
    /// The memory of what the program starts under this name counts, and no other's.
    #[arg(long)]
    whose: Option<String>,
    /// A variable of the program's environment, `NAME=VALUE`.
    #[arg(long)]
    set: Vec<OsString>,
    /// Read what the program writes to standard output, and leave its digest.
    #[arg(long)]
    digest: bool,
    /// Do not look at the program while it runs: it has no high-water mark then.
    #[arg(long, conflicts_with = "limit")]
    blind: bool,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true)]
    command: Vec<OsString>,
}

/// What a program took, with the processes that it waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Usage {
    /// From its start to its end.
    pub seconds: f64,
    /// Processor time in the program.
    pub user_s: f64,
    /// Processor time in the kernel for it.
    pub system_s: f64,
    /// The largest resident memory of any one of its processes; `None` where it was too small to
    /// be told and ended before it was looked at.
    pub peak_rss_bytes: Option<u64>,
    /// What a shell would see.
    pub code: u8,
}

/// What a run left: what it took, and what it wrote where that was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// What it took.
    #[serde(flatten)]
    pub usage: Usage,
    /// What it wrote to standard output; nothing where nobody asked, or where a process that it left behind still
    /// writes.
    pub output: Option<Digest>,
}

/// A program to be measured.
#[derive(Clone, Debug, Default)]
pub struct Measured<'a> {
    /// `LD_PRELOAD`.
    pub preload: Option<OsString>,
    /// `ISOCHRONE_CONFIG`.
    pub config: Option<&'a Path>,
    /// Name of the processes whose memory counts; without one it is that of all.
    pub whose: Option<&'a str>,
    /// Other variables of its environment.
    pub set: Vec<(OsString, OsString)>,
    /// Whether what it writes to standard output is read for its digest.
    pub digest: bool,
    /// Whether nobody looks at it while it runs, where looks are what is measured. Nobody ends it in time then.
    pub blind: bool,
    /// The program and its arguments.
    pub command: Vec<OsString>,
}

impl Measured<'_> {
    /// The command that runs it, on `cores` alone and no longer than `limit_s` where these are
    /// given, and leaves its usage in `out`.
    pub fn command(
        &self,
        out: &Path,
        cores: Option<&[u16]>,
        limit_s: Option<u32>,
    ) -> Result<Command> {
        let mut command = Command::new(ITSELF);
        command.arg("usage").arg("--out").arg(out);
        if let Some(preload) = &self.preload {
            command.arg("--preload").arg(preload);
        }
        if let Some(config) = self.config {
            command.arg("--config").arg(config);
        }
        if let Some(cores) = cores {
            let list: Vec<String> = cores.iter().map(ToString::to_string).collect();
            command.arg("--cores").arg(list.join(","));
        }
        if let Some(limit) = limit_s {
            command.arg("--limit").arg(limit.to_string());
        }
        if let Some(name) = self.whose {
            command.arg("--whose").arg(name);
        }
        for (name, value) in &self.set {
            let mut word = name.clone();
            word.push("=");
            word.push(value);
            command.arg("--set").arg(word);
        }
        if self.digest {
            command.arg("--digest");
        }
        if self.blind {
            command.arg("--blind");
        }
        command.arg("--").args(&self.command);
        Ok(command)
    }
}

/// Reads what the hidden command left of what the program took.
pub fn read(out: &Path) -> Result<Usage> {
    Ok(read_account(out)?.usage)
}

/// Reads all that the hidden command left.
pub fn read_account(out: &Path) -> Result<Account> {
    let text = std::fs::read_to_string(out).context("the program left no account of itself")?;
    Ok(serde_json::from_str(&text)?)
}

/// The hidden command: runs the program and leaves its usage.
pub fn run(args: &UsageArgs) -> Result<ExitCode> {
    let signals = Signals::hold()?;
    let name = args.command.first().context("no program was named")?;
    let mut program = Program::new(name, &args.command);
    let variables =
        [("LD_PRELOAD", &args.preload), (isochrone_malloc::CONFIG_VARIABLE, &args.config)];
    for (name, value) in variables {
        program = program.with(name, value.as_deref());
    }
    for word in &args.set {
        let (name, value) = variable(word)?;
        program = program.with(name, Some(value));
    }
    if let Some(list) = &args.cores {
        bind(list)?;
    }
    let mut digest = None;
    if args.digest {
        let (reading, pipe) = Reading::begin()?;
        program = program.writes_to(pipe);
        digest = Some(reading);
    }
    let mut seen = None;
    signals.look_out();
    let begin = Instant::now();
    let deadline = args.limit.map(|limit| begin + Duration::from_secs(u64::from(limit)));
    let mut look = |process: Pid| {
        seen = seen.max(match &args.whose {
            Some(name) => high_water_of(process, name),
            None => high_water(process),
        });
        if deadline.is_some_and(|deadline| Instant::now() > deadline) {
            child::kill(process);
        }
    };
    let watch = (!args.blind).then_some((LOOK, &mut look as &mut dyn FnMut(Pid)));
    let code = signals.run_watched(&program, watch)?;
    let seconds = begin.elapsed().as_secs_f64();
    let mut usage = of_children(seconds, code, seen)?;
    if args.whose.is_some() {
        usage.peak_rss_bytes = seen;
    }
    // Our end of the pipe, without which it never ends.
    drop(program);
    let account = Account { usage, output: digest.and_then(Reading::end) };
    std::fs::write(&args.out, serde_json::to_string(&account)?)
        .with_context(|| args.out.display().to_string())?;
    Ok(ExitCode::from(usage.code))
}

/// `NAME=VALUE` of an environment.
fn variable(word: &OsStr) -> Result<(&str, &OsStr)> {
    let at = word.as_bytes().iter().position(|byte| *byte == b'=');
    let (name, value) = word.as_bytes().split_at(at.context("--set takes NAME=VALUE")?);
    Ok((std::str::from_utf8(name)?, OsStr::from_bytes(&value[1..])))
}

/// Lets this process, and what it starts, use these cores alone.
fn bind(list: &str) -> Result<()> {
    let cores = parse_cores(list).map_err(anyhow::Error::msg)?;
    let mut set = CpuSet::new();
    for core in cores {
        set.set(usize::from(core)).with_context(|| format!("there is no core {core}"))?;
    }
    sched_setaffinity(Pid::from_raw(0), &set).context("the cores cannot be chosen")
}

/// `VmHWM` of a running process (proc(5)), bytes.
fn high_water(process: Pid) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The largest one of those of this name among a running process and what it has started, as far as the kernel says
/// what that is (`CONFIG_PROC_CHILDREN`).
fn high_water_of(process: Pid, name: &str) -> Option<u64> {
    let is_named = std::fs::read_to_string(format!("/proc/{process}/comm"))
        .is_ok_and(|comm| comm.trim_end() == name);
    let own = if is_named { high_water(process) } else { None };
    let threads =
        std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let lists =
        threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let started = lists.flat_map(|list| {
        list.split_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<_>>()
    });
    started.filter_map(|child| high_water_of(Pid::from_raw(child), name)).max().max(own)
}

fn of_children(seconds: f64, code: u8, seen: Option<u64>) -> Result<Usage> {
    let spent = spent::of_children()?;
    Ok(Usage {
        seconds,
        user_s: spent.user_s,
        system_s: spent.system_s,
        peak_rss_bytes: spent.peak_rss_bytes.or(seen),
        code,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufRead as _;
    use std::os::unix::process::CommandExt as _;

    #[test]
    fn a_variable_ends_at_its_first_equals_sign() {
        let of =
            |word| variable(OsStr::new(word)).ok().map(|(name, value)| (name, value.to_owned()));
        assert_eq!(of("A=b=c"), Some(("A", "b=c".into())));
        assert_eq!(of("A="), Some(("A", "".into())));
        assert_eq!(of("A"), None);
    }

    #[test]
    fn an_account_of_a_run_without_a_digest_is_read() {
        let usage = Usage { seconds: 1.5, code: 3, ..Usage::default() };
        let text = serde_json::to_string(&Account { usage, output: None }).unwrap();
        assert_eq!(serde_json::from_str::<Account>(&text).unwrap().usage, usage);
    }

    #[test]
    fn the_high_water_mark_of_this_process_is_read() {
        let seen = high_water(Pid::this());
        assert!(seen.is_some_and(|bytes| bytes > 64 << 10), "{seen:?}");
        assert_eq!(high_water(Pid::from_raw(i32::MAX)), None);
    }

    #[test]
    fn the_memory_of_a_process_is_found_by_its_name_below_another() {
        let mut script = Command::new("sh")
            .args(["-c", "sleep 60 & echo; wait"])
            .stdout(std::process::Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let said = script.stdout.take().map(std::io::BufReader::new);
        said.unwrap().read_line(&mut String::new()).unwrap();
        let of = |name| high_water_of(Pid::from_raw(script.id().cast_signed()), name);
        // It has its own name once it is no more the shell's copy.
        let found = (0..500).find_map(|_| {
            std::thread::sleep(Duration::from_millis(10));
            of("sleep")
        });
        let other = (of("sh").is_some(), of("slee"));
        nix::sys::signal::killpg(
            Pid::from_raw(script.id().cast_signed()),
            nix::sys::signal::SIGKILL,
        )
        .unwrap();
        script.wait().unwrap();
        assert!(found.is_some());
        assert_eq!(other, (true, None));
    }
}
