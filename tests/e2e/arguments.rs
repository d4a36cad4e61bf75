//! Arguments of every command, thousands of lines by one seed: read, and where a command measures nothing also run.
//! Whatever stands there is answered or refused, never by a panic, a signal or all of the memory.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use isochrone_atlas_store::contents::Contents;
use isochrone_atlas_store::encode;
use isochrone_view::fixtures::genoa;

use crate::support::folder;
use crate::words::{Words, read_all};

/// Commands that measure nothing and start nothing.
const PURE: [&str; 10] =
    ["predict", "cla", "machine", "pin", "show", "diff", "export", "man", "completions", "tier"];
/// How long one line may take: what takes longer is stopped, and has not gone wrong.
const LONGEST: Duration = Duration::from_secs(4);
/// Address space of a line, in KiB: what takes more ends by a signal.
const MOST_KIB: &str = "6000000";

#[test]
fn no_line_ends_the_parser() {
    read_all(isochrone_cli::command(), isochrone_cli::read, 2000);
}

#[test]
fn no_line_of_a_pure_command_ends_it() {
    run_lines("arguments", 1, 120);
}

/// The same for some minutes.
#[test]
#[ignore = "takes minutes: cargo test -p isochrone --test e2e arguments -- --ignored"]
fn no_line_of_very_many_ends_anything() {
    read_all(isochrone_cli::command(), isochrone_cli::read, 100_000);
    run_lines("arguments-many", 2, 10_000);
}

fn run_lines(name: &str, seed: u64, lines: usize) {
    let folder = folder(name);
    let mut root = isochrone_cli::command();
    root.build();
    let mut words = Words::new(seed);
    let lines: Vec<Vec<OsString>> = (0..lines).map(|_| words.line(&root, &PURE)).collect();
    let files = Files::new();
    let (one, other) = lines.split_at(lines.len() / 2);
    std::thread::scope(|scope| {
        for (name, lines) in [("one", one), ("other", other)] {
            let (place, files) = (folder.join(name), &files);
            scope.spawn(move || lines.iter().for_each(|line| run_line(&place, files, line)));
        }
    });
}

/// What lines name.
struct Files {
    whole: Vec<u8>,
    stopped: Vec<u8>,
}

impl Files {
    fn new() -> Self {
        let stopped = Contents { complete: false, transfers: Vec::new(), ..genoa() };
        let [whole, stopped] = [genoa(), stopped].map(|atlas| encode(&atlas).expect("an atlas"));
        Self { whole, stopped }
    }

    /// Lays them into a folder, as they were: a line may have written there.
    fn lay(&self, place: &Path) {
        let _ = fs::remove_dir_all(place);
        fs::create_dir_all(place).expect("a folder");
        for (name, bytes) in [
            ("isochrone.atlas", self.whole.as_slice()),
            ("other.atlas", self.stopped.as_slice()),
            ("words", b"words"),
            ("one.toml", b"name = \"m\"\ntitle = \"m\"\nsources = []\n"),
            ("figure1.cla", include_bytes!("../../examples/cla/figure1.cla")),
        ] {
            fs::write(place.join(name), bytes).expect("written");
        }
    }
}

fn run_line(place: &Path, files: &Files, line: &[OsString]) {
    files.lay(place);
    let said = place.join("said");
    let mut child = Command::new("sh")
        .args(["-c", "ulimit -v \"$0\" && exec \"$@\"", MOST_KIB])
        .arg(crate::command())
        .args(&line[1..])
        .current_dir(place)
        .env_remove("ISOCHRONE_ATLAS")
        .env("XDG_CACHE_HOME", place)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(fs::File::create(&said).expect("a file"))
        .spawn()
        .expect("it starts");
    let end = Instant::now() + LONGEST;
    let status = loop {
        if let Some(status) = child.try_wait().expect("it can be waited for") {
            break status;
        }
        if Instant::now() > end {
            child.kill().expect("it can be stopped");
            child.wait().expect("it can be waited for");
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let err = String::from_utf8_lossy(&fs::read(&said).expect("what it said")).into_owned();
    let shown: String = format!("{line:?}").chars().take(2000).collect();
    assert_eq!(status.signal(), None, "{shown}\n{err}");
    assert!(matches!(status.code(), Some(0..=4)), "{shown}: {:?}\n{err}", status.code());
    assert!(!err.contains("panicked"), "{shown}\n{err}");
}
