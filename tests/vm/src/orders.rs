//! Obeys a list of orders, a line each, as the first process of a machine on which the two programs are tried.
//! `xtask/src/vm/orders.rs` writes them. It knows nothing of what programs print: that is judged outside.
//!
//! ```text
//! mount KIND PLACE         mounts the kernel's files
//! folder PLACE             makes a folder
//! write PLACE TEXT         writes one of the kernel's files
//! run SECONDS PROGRAM ...  runs a program; one that fails or takes longer is a failed check
//! bring NAME PLACE         writes a file to the second console, with its name and size in front
//! bring-bytes NAME PLACE   the same of a file that is no text, as a string of hexadecimal digits
//! ```

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::mount::{MsFlags, mount};

use crate::console::say;

/// Where the list lies, if there is one.
pub(crate) const PLACE: &str = "/orders";
/// The console that files go out on: the second serial port, which on AArch64 is the first of its kind.
const SECOND: &str = if cfg!(target_arch = "aarch64") { "/dev/ttyS0" } else { "/dev/ttyS1" };
/// What a program prints.
const LOG: &str = "/tmp/log";
/// Lines of it that are shown where it fails.
const SHOWN: usize = 30;
/// How often a program is asked whether it is over.
const LOOK: Duration = Duration::from_millis(20);

/// Obeys one line; says what was seen.
pub(crate) fn obey(line: &str) -> Result<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        ["mount", kind, place] => {
            std::fs::create_dir_all(place)?;
            mount(Some(kind), place, Some(kind), MsFlags::empty(), None::<&str>)?;
            Ok("mounted".to_owned())
        }
        ["folder", place] => {
            std::fs::create_dir(place)?;
            Ok("made".to_owned())
        }
        ["write", place, text] => {
            std::fs::write(place, text)?;
            let holds = std::fs::read_to_string(place).unwrap_or_default();
            Ok(format!("holds {:?}", holds.lines().next().unwrap_or_default()))
        }
        ["run", seconds, program, ref words @ ..] => {
            run(Duration::from_secs(seconds.parse()?), program, words)
        }
        ["bring", name, place] => bring(name, &read(place)?),
        ["bring-bytes", name, place] => {
            let digits: String = read(place)?.iter().map(|byte| format!("{byte:02x}")).collect();
            bring(name, format!("\"{digits}\"").as_bytes())
        }
        _ => bail!("no such order"),
    }
}

fn run(limit: Duration, program: &str, words: &[&str]) -> Result<String> {
    let log = File::create(LOG).context(LOG)?;
    let mut child = Command::new(program)
        .args(words)
        .env_clear()
        .envs([("HOME", "/tmp"), ("TMPDIR", "/tmp"), ("PATH", "/bin")])
        .current_dir("/tmp")
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .context(program.to_owned())?;
    let status = wait(&mut child, limit)?;
    if !status.is_some_and(|status| status.success()) {
        let text = String::from_utf8_lossy(&std::fs::read(LOG)?).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        for line in &lines[lines.len().saturating_sub(SHOWN)..] {
            say(&format!("  | {line}"));
        }
    }
    let status = status.with_context(|| format!("it did not end in {limit:?}"))?;
    ensure!(status.success(), "{status}");
    Ok(status.to_string())
}

/// The program's end; none where it took too long and was killed.
fn wait(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let begin = Instant::now();
    while begin.elapsed() < limit {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        std::thread::sleep(LOOK);
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}

fn read(place: &str) -> Result<Vec<u8>> {
    std::fs::read(place).with_context(|| place.to_owned())
}

fn bring(name: &str, text: &[u8]) -> Result<String> {
    let mut console = OpenOptions::new().write(true).open(SECOND).context(SECOND)?;
    writeln!(console, "== {name} {}", text.len())?;
    console.write_all(text)?;
    writeln!(console)?;
    Ok(format!("{} bytes", text.len()))
}
