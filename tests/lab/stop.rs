//! What computes ends as soon as it is asked to, and says what was not done.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{folder, json, machine, run};

/// Far more than anything here takes on any machine: this finds hangs, and measures nothing.
const HANGS: Duration = Duration::from_secs(120);

/// How a run ended, and all that it said.
struct Ended {
    code: Option<i32>,
    said: String,
}

/// A run of the laboratory that writes into a folder: nobody waits for a pipe.
fn started(here: &Path, words: &[&str]) -> Child {
    let file = |name: &str| File::create(here.join(name)).expect("a file can be made");
    Command::new(env!("CARGO_BIN_EXE_isochrone-lab"))
        .args(words)
        .current_dir(here)
        .stdin(Stdio::null())
        .stdout(file("out"))
        .stderr(file("err"))
        .spawn()
        .expect("it starts")
}

/// Its end; one that does not come to it is killed.
fn ended(mut child: Child, here: &Path, words: &[&str]) -> Ended {
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("it can be asked") {
            break status;
        }
        if begin.elapsed() > HANGS {
            child.kill().expect("it can be killed");
            child.wait().expect("it was killed");
            panic!("{words:?} goes on");
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let text = |name: &str| fs::read_to_string(here.join(name)).expect("it was made");
    Ended { code: status.code(), said: text("out") + &text("err") }
}

/// Waits until the run has taken over the signals, from when on its end is its own.
fn listens(child: &mut Child) {
    let begin = Instant::now();
    let bit = 1_u64 << (Signal::TERM.as_raw() - 1);
    let status = format!("/proc/{}/status", child.id());
    while child.try_wait().expect("it can be asked").is_none() && begin.elapsed() < HANGS {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        if caught.is_some_and(|mask| mask & bit != 0) {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Runs of tasks, references, simulations, maps in virtual time: all of them compute without looking.
#[test]
fn what_computes_without_looking_ends_when_it_is_asked_to() {
    let here = folder("lab-stop-computing");
    let _machine = machine();
    let large = ["--cores", "128", "--regions", "2"];
    for words in [
        &["bench", "cholesky", "--rows", "8192"][..],
        &["bench", "jacobi"],
        &["bench", "tier"],
        &["bench", "tier", "--only", "unmodified"],
        &["bench", "lu", "--rows", "8192"],
        &["bench", "taskbench"],
        &["bench", "advise"],
        &["bench", "sim"],
        &["sim", "cholesky"],
        &[&["scale"][..], &large].concat(),
    ] {
        for signal in [Signal::TERM, Signal::INT] {
            let mut child = started(&here, words);
            listens(&mut child);
            std::thread::sleep(Duration::from_millis(300));
            let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("an id");
            // One that has failed already says so below.
            let _ = kill_process(pid, signal);
            let ended = ended(child, &here, words);
            assert_eq!(ended.code, Some(3), "{words:?}: {}", ended.said);
            assert!(!ended.said.trim().is_empty(), "{words:?} says nothing");
        }
    }
}

/// What there was no time for is said, where something was measured and where nothing was.
#[test]
fn a_budget_ends_a_run_that_says_what_was_left_out() {
    let here = folder("lab-budget");
    let _machine = machine();
    for words in [
        &["bench", "cholesky", "--rows", "8192", "--budget", "1s"][..],
        &["bench", "jacobi", "--budget", "1s"],
    ] {
        let ended = ended(started(&here, words), &here, words);
        assert!(matches!(ended.code, Some(0 | 1)), "{words:?}: {:?}, {}", ended.code, ended.said);
        assert!(ended.said.contains("more with --budget"), "{words:?}: {}", ended.said);
    }
    let words =
        ["scale", "--cores", "128", "--regions", "2", "--within", "1s", "--json=scale.json"];
    let ended = ended(started(&here, &words), &here, &words);
    let said = ended.said.split_whitespace().collect::<Vec<_>>().join(" ");
    match ended.code {
        Some(0) => {
            let text = fs::read_to_string(here.join("scale.json")).expect("it was written");
            let found = json(&text);
            assert_eq!((&found["complete"], &found["within_s"]), (&false.into(), &1.0.into()));
            assert!(said.contains("left out: the map is not whole"), "{said}");
        }
        // Others had the cores, and it was not held against its truth in time.
        Some(1) => assert!(said.contains("more with --within"), "{said}"),
        code => panic!("{code:?}: {}", ended.said),
    }
}

#[test]
fn a_reproduction_ends_when_it_is_asked_to_and_keeps_finished_runs() {
    let here = folder("lab-stop");
    for (signal, name) in [(Signal::TERM, "terminated"), (Signal::INT, "interrupted")] {
        let results = here.join(name);
        let child = Command::new(env!("CARGO_BIN_EXE_isochrone-lab"))
            .args([
                "reproduce",
                "numa-aware-runtime",
                "--depth",
                "full",
                "--jobs",
                "2",
                "--results",
            ])
            .arg(&results)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        // The file is made when the runs begin.
        while !results.exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(300));
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("an id");
        kill_process(pid, signal).expect("it is there");
        let output = child.wait_with_output().expect("it ends");
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{err}");
        assert!(err.contains("stopped: what is finished stands in"), "{err}");
        assert!(err.contains("the same command does the rest") && output.stdout.is_empty());
        let runs = std::fs::read_to_string(&results).expect("it is there");
        let is_run = |line: &str| serde_json::from_str::<serde_json::Value>(line).is_ok();
        assert!(runs.lines().all(is_run), "{runs}");
    }
}

/// The command lines of processes that name a place.
fn named_by(place: &Path) -> Vec<String> {
    let place = place.to_str().expect("a name in UTF-8");
    let entries = fs::read_dir("/proc").expect("it is mounted").flatten();
    let lines = entries.filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.contains(place)).collect()
}

#[test]
fn all_papers_end_when_they_are_asked_to_with_a_site_of_what_is_there() {
    let here = folder("lab-stop-all");
    for (signal, name) in [(Signal::TERM, "terminated"), (Signal::INT, "interrupted")] {
        let site = here.join(name);
        let child = Command::new(env!("CARGO_BIN_EXE_isochrone-lab"))
            .args(["reproduce", "all", "--quick", "--site"])
            .arg(&site)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        // The folder is made before the work begins.
        while !site.join("kept").exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(300));
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("an id");
        kill_process(pid, signal).expect("it is there");
        let output = child.wait_with_output().expect("it ends");
        let left = named_by(&site);
        assert!(left.is_empty(), "who measures for it goes on: {left:?}");
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{err}");
        let page = std::fs::read_to_string(site.join("index.html")).expect("the first page");
        assert!(page.contains("Stopped before its end") && page.contains("of 61 out-of-sample"));
        let text = std::fs::read_to_string(site.join("exhibits.json")).expect("the figures");
        let found = json(&text);
        assert_eq!(found["format"], "isochrone-reproduce-all");
        // Lines are as wide as the terminal.
        let out = String::from_utf8_lossy(&output.stdout)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(out.contains("the same command does the rest"), "{out}");
    }
}

#[test]
fn depths_of_all_papers_are_of_no_single_one() {
    let here = folder("lab-all-words");
    for words in
        [&["cla", "--quick"][..], &["all", "--quick", "--paper"], &["all", "--html", "a.html"]]
    {
        let (output, _, err) = run(&here, &[&["reproduce"], words].concat());
        assert_eq!(output.status.code(), Some(2), "{words:?}: {err}");
    }
    assert!(!here.join("isochrone-papers").exists(), "nothing is made where nothing is done");
}
