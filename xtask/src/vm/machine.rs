//! The emulated machine: what it has, and how its end is told from its console.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use super::shape::{Does, Shape};

/// A machine that is to be booted.
#[derive(Debug)]
pub(super) struct Boot<'a> {
    pub(super) kernel: &'a Path,
    pub(super) archive: &'a Path,
    pub(super) shape: &'a Shape,
    /// Where what the machine brings out on its second console goes.
    pub(super) brought: &'a Path,
    /// Arguments of the first process.
    pub(super) words: &'a [String],
}

impl Boot<'_> {
    /// Boots, passes the console on, and returns when the machine has switched itself off.
    pub(super) fn run(&self) -> Result<()> {
        let (emulator, package) = self.shape.arch.emulator();
        let mut child = Command::new(emulator)
            .args(self.arguments())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| {
                format!("{emulator} cannot be started: install the package {package}")
            })?;
        let outcome = watch(&mut child, self.shape);
        let _ = child.kill();
        child.wait()?;
        outcome
    }

    fn arguments(&self) -> Vec<String> {
        let Self { kernel, archive, shape, brought, words } = self;
        let mib: u32 = shape.nodes.iter().map(|node| node.mib).sum();
        let mut all: Vec<String> = [
            "-accel",
            threads(shape.does),
            "-nodefaults",
            "-nographic",
            "-no-reboot",
            "-serial",
            "stdio",
        ]
        .map(str::to_owned)
        .to_vec();
        all.extend(shape.arch.machine().iter().map(|word| (*word).to_owned()));
        all.extend(shape.arch.second_console(brought));
        all.extend(["-m".to_owned(), format!("{mib}M"), "-smp".to_owned()]);
        all.push(shape.cores().to_string());
        all.extend(nodes(shape));
        let settings = "quiet panic=-1 nowatchdog numa_balancing=disable mitigations=off";
        let own = shape.arch.settings();
        // What stands behind the dashes are arguments of the first process.
        let console = &format!("{own} {settings} -- {}", words.join(" "));
        let [kernel, archive] = [kernel, archive].map(|path| path.to_string_lossy().into_owned());
        all.extend(
            ["-kernel", &kernel, "-initrd", &archive, "-append", console].map(str::to_owned),
        );
        all
    }
}

/// How cores become threads here. One thread for all: one that pauses gives way to the next at once. With a thread for
/// each, on fewer real cores, who waits for another core spins until the host takes it away: a boot of 33 cores took
/// four times as long. Ranks of an MPI spin without a pause, and would keep the only thread for a tenth of a second.
fn threads(does: Does) -> &'static str {
    if does == Does::Tests { "tcg,thread=multi" } else { "tcg,thread=single" }
}

/// Regions with their memory and cores, and the distances between them.
fn nodes(shape: &Shape) -> Vec<String> {
    let mut all = Vec::new();
    for (id, node) in shape.nodes.iter().enumerate() {
        let mut words = format!("node,nodeid={id}");
        if node.mib > 0 {
            all.push("-object".to_owned());
            all.push(format!("memory-backend-ram,id=m{id},size={}M", node.mib));
            words += &format!(",memdev=m{id}");
        }
        if let Some((first, last)) = node.cores {
            words += &format!(",cpus={first}-{last}");
        }
        all.extend(["-numa".to_owned(), words]);
    }
    let ids = || (0..).zip(&shape.nodes).map(|(id, _)| id);
    for a in ids() {
        for b in ids().filter(|b| *b != a) {
            all.push("-numa".to_owned());
            all.push(format!("dist,src={a},dst={b},val={}", Shape::distance(a, b)));
        }
    }
    all
}

/// Reads the console to its end; the last line of the checks says how they went.
fn watch(child: &mut Child, shape: &Shape) -> Result<()> {
    let Shape { name, limit, .. } = shape;
    let console = child.stdout.take().context("the console")?;
    let (send, lines) = mpsc::channel();
    std::thread::spawn(move || {
        BufReader::new(console)
            .split(b'\n')
            .map_while(Result::ok)
            .all(|line| send.send(line).is_ok())
    });
    let end = Instant::now() + *limit;
    let mut verdict = None;
    loop {
        match lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                let line = String::from_utf8_lossy(&line);
                let line = plain(line.trim_end());
                // The lines of machines that run at the same time are told apart.
                let words = line.strip_prefix("vm: ").unwrap_or(line);
                super::super::ci::say(&format!("vm {name}: {words}"));
                verdict = summary(line).or(verdict);
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => bail!("the machine did not end in {limit:?}"),
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
    fn the_emulator_is_told_of_every_region_as_it_is() {
        let of = |name| nodes(&Shape::named(name).expect("it is there")).join(" ");
        let odd = of("memoryless");
        assert!(odd.contains("-numa node,nodeid=1,cpus=2-3 "), "{odd}");
        assert!(odd.contains("-numa node,nodeid=3,memdev=m3 ") && !odd.contains("id=m1"), "{odd}");
        assert!(odd.contains("dist,src=1,dst=0,val=15") && odd.contains("src=3,dst=0,val=40"));
        assert!(of("checks16").contains("nodeid=15,memdev=m15,cpus=30-32"));
    }

    #[test]
    fn only_the_closing_line_is_a_verdict() {
        assert_eq!(summary("vm: 3 passed, 1 failed"), Some((3, 1)));
        assert_eq!(summary("vm: FAILED  a check: 2 passed"), None);
        assert_eq!(summary("3 passed, 0 failed"), None);
    }
}
