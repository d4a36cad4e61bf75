//! What computes ends as soon as it is asked to, and says what was not done.

use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{folder, json, run};

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
