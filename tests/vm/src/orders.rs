//! Obeys a list of orders, a line each, as the first process of a machine on which the two programs are tried.
//! `xtask/src/vm/orders.rs` writes them. It knows nothing of what programs print: that is judged outside.
//!
//! ```text
//! mount KIND PLACE         mounts the kernel's files
//! folder PLACE             makes a folder
//! write PLACE TEXT         writes one of the kernel's files
//! run SECONDS PROGRAM ...  runs a program; one that fails or takes longer is a failed check
//! ends CODE SECONDS PROGRAM ...  the same of one that ends with this exit code
//! test SECONDS FOLDER PROGRAM ...  runs tests in a folder; how many passed is said. One of which no test ends for so
//!                                  long is a failed check
//! pages BYTES              sees that the kernel's pages have this size
//! bring NAME PLACE         writes a file to the second console, with its name and size in front
//! bring-bytes NAME PLACE   the same of a file that is no text, as a string of hexadecimal digits
//! ```

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::mount::{MsFlags, mount};

use isochrone_os::pages::kernel_page_bytes;

use crate::console::say;

/// Where the list lies, if there is one.
pub(crate) const PLACE: &str = "/orders";
/// The console that files go out on: the second serial port, which on AArch64 is the first of its kind.
const SECOND: &str = if cfg!(target_arch = "aarch64") { "/dev/ttyS0" } else { "/dev/ttyS1" };
/// What a program prints.
const LOG: &str = "/tmp/log";
/// What programs are told. With `CI` a test that lacks something fails, and is not passed over. The last is for tests
/// of the preloaded library, which build it where there is a cargo.
const VARIABLES: [(&str, &str); 7] = [
    ("HOME", "/tmp"),
    ("TMPDIR", "/tmp"),
    ("PATH", "/usr/bin:/bin:/usr/sbin:/sbin"),
    ("CI", "true"),
    // Threads of OpenMP that wait for work would take the time of those that have some.
    ("OMP_NUM_THREADS", "4"),
    ("OMP_WAIT_POLICY", "passive"),
    ("ISOCHRONE_TEST_LIBRARY", "/lib/libisochrone_malloc.so"),
];
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
            std::fs::create_dir_all(place)?;
            Ok("made".to_owned())
        }
        ["write", place, text] => {
            std::fs::write(place, text)?;
            let holds = std::fs::read_to_string(place).unwrap_or_default();
            Ok(format!("holds {:?}", holds.lines().next().unwrap_or_default()))
        }
        ["run", seconds, program, ref words @ ..] => {
            let limit = Limit::Whole(Duration::from_secs(seconds.parse()?));
            run(limit, 0, "/tmp", program, words, &mut |_| ())
        }
        ["ends", code, seconds, program, ref words @ ..] => {
            let limit = Limit::Whole(Duration::from_secs(seconds.parse()?));
            run(limit, code.parse()?, "/tmp", program, words, &mut |_| ())
        }
        ["test", seconds, folder, program, ref words @ ..] => {
            let (begin, mut passed) = (Instant::now(), 0);
            // A suite takes minutes: each test is told as it ends.
            let mut each = |line: &str| {
                if line.starts_with("test ") && line.contains(" ... ") {
                    passed += usize::from(line.contains(" ... ok"));
                    say(&format!("  {line} (at {:.0} s)", begin.elapsed().as_secs_f64()));
                }
            };
            let limit = Limit::Silence(Duration::from_secs(seconds.parse()?));
            run(limit, 0, folder, program, words, &mut each)?;
            Ok(format!("{passed} tests passed"))
        }
        ["pages", bytes] => {
            let found = kernel_page_bytes();
            ensure!(found == bytes.parse::<usize>()?, "{found} bytes");
            Ok(format!("{found} bytes"))
        }
        ["bring", name, place] => bring(name, &read(place)?),
        ["bring-bytes", name, place] => {
            let digits: String = read(place)?.iter().map(|byte| format!("{byte:02x}")).collect();
            bring(name, format!("\"{digits}\"").as_bytes())
        }
        _ => bail!("no such order"),
    }
}

/// How long a program may take.
#[derive(Clone, Copy, Debug)]
enum Limit {
    /// From its start on.
    Whole(Duration),
    /// From the last line on that it printed.
    Silence(Duration),
}

/// Runs a program, which must end with this code; `each` is told what it prints, a line at a time.
fn run(
    limit: Limit,
    code: i32,
    folder: &str,
    program: &str,
    words: &[&str],
    each: &mut dyn FnMut(&str),
) -> Result<String> {
    let log = File::create(LOG).context(LOG)?;
    let mut child = Command::new(program)
        .args(words)
        .env_clear()
        .envs(VARIABLES)
        .current_dir(folder)
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .context(program.to_owned())?;
    let mut printed = Printed { log: File::open(LOG)?, lines: Vec::new(), rest: Vec::new() };
    let status = wait(&mut child, limit, &mut || printed.tell(each))?;
    let as_wanted = |status: &ExitStatus| status.code() == Some(code);
    if !status.as_ref().is_some_and(as_wanted) {
        for line in &printed.lines[printed.lines.len().saturating_sub(SHOWN)..] {
            say(&format!("  | {line}"));
        }
    }
    let status = status.with_context(|| match limit {
        Limit::Whole(time) => format!("it did not end in {time:?}"),
        Limit::Silence(time) => format!("it said nothing for {time:?}"),
    })?;
    ensure!(as_wanted(&status), "{status}");
    Ok(status.to_string())
}

/// What a program has printed so far.
struct Printed {
    log: File,
    lines: Vec<String>,
    /// A line without its end.
    rest: Vec<u8>,
}

impl Printed {
    /// Reads on, and tells of each line that has come; whether one has.
    fn tell(&mut self, each: &mut dyn FnMut(&str)) -> Result<bool> {
        let before = self.lines.len();
        self.log.read_to_end(&mut self.rest).context(LOG)?;
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            each(&line);
            self.lines.push(line);
        }
        Ok(self.lines.len() > before)
    }
}

/// The program's end; none where it took too long and was killed. `look` is called now and then, and once after it, and
/// tells whether the program has said something.
fn wait(
    child: &mut Child,
    limit: Limit,
    look: &mut dyn FnMut() -> Result<bool>,
) -> Result<Option<ExitStatus>> {
    let mut begin = Instant::now();
    let (Limit::Whole(time) | Limit::Silence(time)) = limit;
    while begin.elapsed() < time {
        let ended = child.try_wait()?;
        if look()? && matches!(limit, Limit::Silence(_)) {
            begin = Instant::now();
        }
        if ended.is_some() {
            return Ok(ended);
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
