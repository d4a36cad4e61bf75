//! The emulated machine: what it has, and how its end is told from its console.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// Regions, two to a module.
const REGIONS: u16 = 16;
/// Two cores a region, and one more: 32 workers and one who evicts.
const CORES: u16 = 2 * REGIONS + 1;
const REGION_MIB: u16 = 160;
/// A boot and all checks take about a minute; after this something hangs.
const LIMIT: Duration = Duration::from_secs(300);

/// Boots, passes the console on, and returns when the machine has switched itself off.
pub(super) fn boot(kernel: &Path, archive: &Path, only: &[String]) -> Result<()> {
    let mut child = Command::new("qemu-system-x86_64")
        .args(arguments(kernel, archive, only))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("qemu-system-x86_64 cannot be started: install the package qemu-system-x86")?;
    let outcome = watch(&mut child);
    let _ = child.kill();
    child.wait()?;
    outcome
}

fn arguments(kernel: &Path, archive: &Path, only: &[String]) -> Vec<String> {
    let memory = format!("{}M", u32::from(REGIONS) * u32::from(REGION_MIB));
    let mut all: Vec<String> = [
        "-accel",
        "tcg,thread=multi",
        "-cpu",
        "max",
        "-nodefaults",
        "-nographic",
        "-no-reboot",
        "-serial",
        "stdio",
        "-m",
        &memory,
    ]
    .map(str::to_owned)
    .to_vec();
    all.extend(["-smp".to_owned(), CORES.to_string()]);
    for region in 0..REGIONS {
        let last = if region + 1 == REGIONS { CORES - 1 } else { 2 * region + 1 };
        all.push("-object".to_owned());
        all.push(format!("memory-backend-ram,id=m{region},size={REGION_MIB}M"));
        all.push("-numa".to_owned());
        all.push(format!("node,nodeid={region},memdev=m{region},cpus={}-{last}", 2 * region));
    }
    for a in 0..REGIONS {
        for b in (0..REGIONS).filter(|b| *b != a) {
            let distance = if a / 2 == b / 2 { 15 } else { 40 };
            all.push("-numa".to_owned());
            all.push(format!("dist,src={a},dst={b},val={distance}"));
        }
    }
    let words = "console=ttyS0 quiet panic=-1 nowatchdog numa_balancing=disable mitigations=off";
    // What stands behind the dashes are arguments of the first process.
    let words = &format!("{words} -- {}", only.join(" "));
    let [kernel, archive] = [kernel, archive].map(|path| path.to_string_lossy().into_owned());
    all.extend(["-kernel", &kernel, "-initrd", &archive, "-append", words].map(str::to_owned));
    all
}

/// Reads the console to its end; the last line of the checks says how they went.
fn watch(child: &mut Child) -> Result<()> {
    let console = child.stdout.take().context("the console")?;
    let (send, lines) = mpsc::channel();
    std::thread::spawn(move || {
        BufReader::new(console)
            .split(b'\n')
            .map_while(Result::ok)
            .all(|line| send.send(line).is_ok())
    });
    let end = Instant::now() + LIMIT;
    let mut verdict = None;
    loop {
        match lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                let line = String::from_utf8_lossy(&line);
                let line = plain(line.trim_end());
                super::super::ci::say(line);
                verdict = summary(line).or(verdict);
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => bail!("the machine did not end in {LIMIT:?}"),
        }
    }
    let (passed, failed) =
        verdict.context("the machine ended before its checks did: its console is above")?;
    ensure!(failed == 0 && passed > 0, "{failed} of {} checks failed", passed + failed);
    Ok(())
}

/// What stands behind the firmware's control sequences, which would clear the reader's screen.
fn plain(line: &str) -> &str {
    line.rsplit_once("\x1b[2J").map_or(line, |(_, rest)| rest)
}

/// Passed and failed of the line `vm: 3 passed, 0 failed`.
fn summary(line: &str) -> Option<(u32, u32)> {
    let (passed, failed) =
        line.strip_prefix("vm: ")?.strip_suffix(" failed")?.split_once(" passed, ")?;
    Some((passed.parse().ok()?, failed.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_closing_line_is_a_verdict() {
        assert_eq!(summary("vm: 3 passed, 1 failed"), Some((3, 1)));
        assert_eq!(summary("vm: FAILED  a check: 2 passed"), None);
        assert_eq!(summary("3 passed, 0 failed"), None);
    }
}
