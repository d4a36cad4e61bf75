//! Ctrl-C keeps what was measured; a killed run leaves no half file.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{folder, isochrone, machine, map, run};

fn start(folder: &Path) -> Child {
    isochrone(folder)
        .args(["map", "--memory", "64M", "--seed", "3"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts")
}

fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(pid, signal).expect("the process is there");
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn ctrl_c_keeps_what_was_measured_and_says_incomplete() {
    let folder = folder("ctrl-c");
    let _machine = machine();
    let child = start(&folder);
    std::thread::sleep(Duration::from_millis(1500));
    signal(&child, Signal::INT);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    let mut left = names(&folder);
    left.sort();
    assert_eq!(left, ["isochrone.atlas", "isochrone.html"]);
    let (output, out, err) = run(&folder, &["show", "isochrone.atlas"]);
    assert!(output.status.success(), "{err}");
    assert!(out.contains("incomplete"), "{out}");
}

#[test]
fn ctrl_c_leaves_a_complete_atlas_as_it_is() {
    let folder = folder("ctrl-c-complete");
    let whole = fs::read(map().folder.join("isochrone.atlas")).expect("an atlas");
    fs::write(folder.join("isochrone.atlas"), &whole).expect("written");
    let _machine = machine();
    let child = start(&folder);
    std::thread::sleep(Duration::from_millis(1500));
    signal(&child, Signal::INT);
    let output = child.wait_with_output().expect("it ends");
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{err}");
    assert!(err.contains("isochrone.atlas stays") && err.contains("interrupted"), "{err}");
    assert!(fs::read(folder.join("isochrone.atlas")).expect("an atlas") == whole);
    let mut left = names(&folder);
    left.sort();
    assert_eq!(left, ["isochrone.atlas", "isochrone.atlas.partial", "isochrone.html"]);
}

#[test]
fn a_killed_run_leaves_nothing() {
    let folder = folder("kill");
    let _machine = machine();
    let mut child = start(&folder);
    std::thread::sleep(Duration::from_millis(1500));
    signal(&child, Signal::KILL);
    let status = child.wait().expect("it ends");
    assert!(!status.success());
    assert!(names(&folder).is_empty(), "{:?}", names(&folder));
}
