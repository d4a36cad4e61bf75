//! Ctrl-C and termination keep what was measured, whenever they come; a killed run leaves no half file, and what was
//! over before the kill.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{folder, isochrone, library, machine, map, mapped_machine, run};

fn start(folder: &Path) -> Child {
    isochrone(folder)
        .args(["map", "--memory", "64M", "--seed", "3"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts")
}

fn start_silently(folder: &Path, args: &[&str]) -> Child {
    let mut command = isochrone(folder);
    command.args(args).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("the binary starts")
}

fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(pid, signal).expect("the process is there");
}

/// Waits until an experiment is over, whatever else this machine does.
fn until_something_is_saved(child: &mut Child, folder: &Path) {
    let partial = folder.join("isochrone.atlas.partial");
    while !partial.exists() {
        assert!(child.try_wait().expect("it can be asked").is_none(), "it saves before it ends");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let name = |e: std::io::Result<fs::DirEntry>| e.map(|e| e.file_name());
    let mut names: Vec<String> =
        entries.map(|e| name(e).expect("an entry").to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The end of a run that was asked to end. One that does not end is killed.
fn end(child: &mut Child) -> ExitStatus {
    /// Far more than it takes on any machine: this finds hangs, and measures nothing.
    const HANGS: Duration = Duration::from_secs(60);
    let asked = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("it can be asked") {
            return status;
        }
        if asked.elapsed() > HANGS {
            child.kill().expect("it can be killed");
            panic!("it goes on {HANGS:?} after it was asked to end");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn ctrl_c_keeps_what_was_measured_and_says_incomplete() {
    let folder = folder("ctrl-c");
    let _machine = machine();
    let mut child = start(&folder);
    until_something_is_saved(&mut child, &folder);
    signal(&child, Signal::INT);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(names(&folder), ["isochrone.atlas", "isochrone.html"]);
    let (output, out, err) = run(&folder, &["show", "isochrone.atlas"]);
    assert!(output.status.success(), "{err}");
    assert!(out.contains("incomplete"), "{out}");
}

/// The command under a limit of the stack below which it works on a second thread.
fn on_a_second_thread(folder: &Path, words: &str) -> Child {
    let mut shell = std::process::Command::new("bash");
    shell.args(["-c", &format!("ulimit -s 1024 && exec \"$0\" {words}")]);
    shell.arg(isochrone(folder).get_program()).current_dir(folder);
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    shell.spawn().expect("a shell")
}

#[test]
fn a_small_stack_changes_nothing_of_ctrl_c() {
    let folder = folder("ctrl-c-stack");
    let _machine = mapped_machine();
    for asks in [Signal::INT, Signal::TERM] {
        let mut child = on_a_second_thread(&folder, "map --memory 64M --seed 3 --force");
        until_something_is_saved(&mut child, &folder);
        signal(&child, asks);
        assert_eq!(end(&mut child).code(), Some(3), "{asks:?}");
        assert_eq!(names(&folder), ["isochrone.atlas", "isochrone.html"]);
        names(&folder).iter().for_each(|name| fs::remove_file(folder.join(name)).expect("there"));
    }
    // One that goes on to the program, which decides.
    // By itself it ends after a minute or more.
    let script = "trap \"echo told; exit 7\" INT TERM; : > begun; \
                  i=0; while [ $i -lt 1200 ]; do i=$((i + 1)); sleep 0.05; done";
    for asks in [Signal::INT, Signal::TERM] {
        let words = format!(
            "run --force --preload '{}' --atlas '{}' -- sh -c '{script}'",
            library().display(),
            map().folder.join("isochrone.atlas").display()
        );
        let mut child = on_a_second_thread(&folder, &words);
        while !folder.join("begun").exists() {
            assert!(child.try_wait().expect("it can be asked").is_none(), "it begins");
            std::thread::sleep(Duration::from_millis(5));
        }
        signal(&child, asks);
        assert_eq!(end(&mut child).code(), Some(7), "{asks:?}");
        let output = child.wait_with_output().expect("it has ended");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "told\n", "{asks:?}");
        fs::remove_file(folder.join("begun")).expect("it is there");
    }
}

#[test]
fn ctrl_c_leaves_a_complete_atlas_as_it_is() {
    let folder = folder("ctrl-c-complete");
    let whole = fs::read(map().folder.join("isochrone.atlas")).expect("an atlas");
    fs::write(folder.join("isochrone.atlas"), &whole).expect("written");
    let _machine = machine();
    let mut child = start(&folder);
    until_something_is_saved(&mut child, &folder);
    signal(&child, Signal::INT);
    let output = child.wait_with_output().expect("it ends");
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{err}");
    assert!(err.contains("isochrone.atlas stays") && err.contains("interrupted"), "{err}");
    assert!(fs::read(folder.join("isochrone.atlas")).expect("an atlas") == whole);
    assert_eq!(names(&folder), ["isochrone.atlas", "isochrone.atlas.partial", "isochrone.html"]);
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

#[test]
fn termination_is_answered_whenever_it_comes() {
    let folder = folder("terminated");
    let _machine = machine();
    // Before the first experiment, in block latency, and in what comes behind it.
    for after_ms in [100, 700, 2000, 4000, 7000] {
        let args = ["map", "--budget", "10s", "--memory", "64M", "--force", "--json", "map.json"];
        let mut child = start_silently(&folder, &args);
        std::thread::sleep(Duration::from_millis(after_ms));
        signal(&child, Signal::TERM);
        let status = end(&mut child);
        let left = names(&folder);
        match status.code() {
            // All that was measured is there, and nothing else.
            Some(0 | 3) => assert_eq!(left, ["isochrone.atlas", "isochrone.html", "map.json"]),
            // Nothing was measured yet, or it had not even begun.
            Some(1) => assert!(left.is_empty(), "after {after_ms} ms: {left:?}"),
            _ => {
                assert_eq!(status.signal(), Some(Signal::TERM.as_raw()), "{status}");
                assert!(left.is_empty(), "after {after_ms} ms: {left:?}");
            }
        }
        left.iter().for_each(|name| fs::remove_file(folder.join(name)).expect("it is there"));
    }
}

#[test]
fn a_killed_run_leaves_the_experiments_that_were_over() {
    let folder = folder("killed");
    let _machine = machine();
    let args = ["map", "--quick", "--memory", "16M", "--seed", "3"];
    let mut child = start_silently(&folder, &args);
    until_something_is_saved(&mut child, &folder);
    child.kill().expect("it is there");
    let status = child.wait().expect("it ends");
    assert_eq!(status.signal(), Some(Signal::KILL.as_raw()));
    assert_eq!(names(&folder), ["isochrone.atlas.partial"]);
    let (output, out, err) = run(&folder, &["show", "isochrone.atlas.partial"]);
    assert!(output.status.success(), "{err}");
    assert!(out.contains("incomplete"), "{out}");
    // The next one leaves the whole and nothing of its own beside it; what was there stays where its grades are better.
    let (output, _, err) = run(&folder, &args);
    assert_eq!(output.status.code(), Some(0), "{err}");
    let mut left = names(&folder);
    left.retain(|name| name != "isochrone.atlas.partial");
    assert_eq!(left, ["isochrone.atlas", "isochrone.html"]);
}

#[test]
fn what_is_measured_for_a_run_goes_with_it_whenever_it_is_ended() {
    let folder = folder("run-ended");
    let scratch = folder.join("scratch");
    fs::create_dir(&scratch).expect("a folder");
    for after_ms in [5, 20, 300, 1500] {
        let _machine = machine();
        let mut command = isochrone(&folder);
        command.args(["run", "--report", "--", "true"]).env("TMPDIR", &scratch);
        command.env("XDG_CACHE_HOME", folder.join("no atlas here"));
        let mut child = command.stderr(Stdio::null()).spawn().expect("the binary starts");
        std::thread::sleep(Duration::from_millis(after_ms));
        signal(&child, Signal::TERM);
        let status = end(&mut child);
        let shell = status.code().or(status.signal().map(|by| 128 + by));
        assert_eq!(shell, Some(143), "after {after_ms} ms");
        assert!(names(&scratch).is_empty(), "after {after_ms} ms: {:?}", names(&scratch));
    }
}

#[test]
fn a_signal_that_whoever_starts_it_ignores_ends_nothing() {
    let folder = folder("nohup");
    let _machine = machine();
    let map = "trap '' HUP; exec \"$0\" map --quick --only transfer --memory 16M --force";
    let program = isochrone(&folder).get_program().to_owned();
    let mut command = std::process::Command::new("sh");
    command.args(["-c", map]).arg(program).current_dir(&folder);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("a shell");
    std::thread::sleep(Duration::from_millis(300));
    signal(&child, Signal::HUP);
    assert_eq!(end(&mut child).code(), Some(0));
}
