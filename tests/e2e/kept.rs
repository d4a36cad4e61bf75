//! What was measured is never lost: no better atlas is replaced, places are tried first, and what fails at the end
//! takes nothing with it.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use crate::support::{folder, isochrone, machine, map, run, skip, tool};

/// The least that measures something on one core.
const LITTLE: [&str; 7] = ["map", "--quick", "--only", "region", "--buffer", "4M", "--memory=4M"];

fn names(folder: &std::path::Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let mut names: Vec<String> = entries.map(|e| name(e.expect("an entry"))).collect();
    names.sort();
    names
}

#[test]
fn nothing_measured_is_a_failure_and_touches_no_file() {
    let folder = folder("nothing");
    let whole = fs::read(map().folder.join("isochrone.atlas")).expect("an atlas");
    fs::write(folder.join("isochrone.atlas"), &whole).expect("written");
    let _machine = machine();
    let args = ["map", "--only", "transfer", "--cores", "0", "--memory", "4M", "--json", "m.json"];
    let (output, out, err) = run(&folder, &args);
    assert_eq!(output.status.code(), Some(1), "{out}{err}");
    assert!(err.contains("nothing was measured"), "{err}");
    assert!(out.is_empty(), "{out}");
    assert_eq!(names(&folder), ["isochrone.atlas"]);
    assert!(fs::read(folder.join("isochrone.atlas")).expect("an atlas") == whole);
}

#[test]
fn a_lesser_atlas_does_not_replace_a_complete_one() {
    let folder = folder("lesser");
    let whole = fs::read(map().folder.join("isochrone.atlas")).expect("an atlas");
    fs::write(folder.join("isochrone.atlas"), &whole).expect("written");
    let _machine = machine();
    let (output, out, err) = run(&folder, &LITTLE);
    assert_eq!(output.status.code(), Some(0), "{out}{err}");
    assert!(err.contains("isochrone.atlas stays: the new one lacks block latency"), "{err}");
    assert!(out.contains("atlas   isochrone.atlas.partial"), "{out}");
    assert_eq!(names(&folder), ["isochrone.atlas", "isochrone.atlas.partial", "isochrone.html"]);
    assert!(fs::read(folder.join("isochrone.atlas")).expect("an atlas") == whole);
    let (output, _, err) = run(&folder, &["show", "isochrone.atlas.partial"]);
    assert!(output.status.success(), "{err}");
    let mut forced = LITTLE.to_vec();
    forced.push("--force");
    let (output, _, err) = run(&folder, &forced);
    assert_eq!(output.status.code(), Some(0), "{err}");
    assert!(fs::read(folder.join("isochrone.atlas")).expect("an atlas") != whole);
}

#[test]
fn one_file_for_two_outputs_is_wrong_usage() {
    let folder = folder("twice");
    for other in ["x", "./x", "../twice/x"] {
        let (output, _, err) = run(&folder, &["map", "--out", "x", "--html", other]);
        assert_eq!(output.status.code(), Some(2), "{err}");
        assert!(err.contains("one file") && err.contains("--html"), "{err}");
    }
    assert!(names(&folder).is_empty());
}

#[test]
fn a_summary_is_printed_though_figures_cannot_be_written() {
    let folder = folder("full-device");
    let _machine = machine();
    let mut args = LITTLE.to_vec();
    args.extend(["--html", "/dev/null", "--json", "/dev/full"]);
    let (output, out, err) = run(&folder, &args);
    assert_eq!(output.status.code(), Some(1), "{out}{err}");
    assert!(err.contains("/dev/full: no space left"), "{err}");
    assert!(out.contains("Latency atlas of") && out.contains("atlas   isochrone.atlas"), "{out}");
    assert_eq!(names(&folder), ["isochrone.atlas"]);
    assert!(!fs::metadata("/dev/null").expect("a device").is_file());
}

#[test]
fn what_is_said_is_printed_though_figures_cannot_be_written() {
    let folder = folder("full-figures");
    let atlas = map().folder.join("isochrone.atlas");
    let atlas = atlas.to_str().expect("a name in UTF-8");
    for words in [
        &["show", atlas][..],
        &["diff", atlas, atlas],
        &["machine"],
        &["machine", "--list"],
        &["predict", "bcast", "--threads", "4", "--machine", "xeon-e5-2660-2s"],
        &["advise", "--atlas", atlas],
        &["tier", "check"],
    ] {
        let (_, table, _) = run(&folder, words);
        let (output, out, err) = run(&folder, &[words, &["--json=/dev/full"]].concat());
        assert_eq!(output.status.code(), Some(1), "{words:?}: {out}{err}");
        assert!(err.contains("/dev/full: no space left"), "{words:?}: {err}");
        // The load of a machine changes from line to line.
        assert!(
            !table.is_empty() && out.lines().next() == table.lines().next(),
            "{words:?}: {out}"
        );
    }
}

#[test]
fn help_that_cannot_be_printed_is_no_success() {
    let folder = folder("full-help");
    for words in [&["--help"][..], &["map", "-h"], &["--version"]] {
        let full = fs::File::options().write(true).open("/dev/full").expect("a device");
        let output = isochrone(&folder).args(words).stdout(full).output().expect("it runs");
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {err}");
        assert!(err.contains("standard output cannot be written"), "{words:?}: {err}");
    }
}

#[test]
fn a_small_limit_of_the_stack_ends_no_command() {
    let folder = folder("small-stack");
    let atlas = map().folder.join("isochrone.atlas");
    for words in ["show", "advise --atlas"] {
        let line = format!("ulimit -s 100 && exec \"$0\" {words} \"$1\"");
        let mut shell = Command::new("bash");
        shell.args(["-c", &line]).arg(isochrone(&folder).get_program()).arg(&atlas);
        let output = shell.current_dir(&folder).output().expect("it runs");
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !output.stdout.is_empty(), "{words}: {err}");
    }
}

#[test]
fn a_full_disk_is_found_before_measuring() {
    let Some(unshare) = tool("unshare") else { return };
    if !rustix::process::geteuid().is_root() {
        return skip("only root may mount a small disk");
    }
    let folder = folder("full-disk");
    let script = "mount -t tmpfs -o size=64k none . || exit 77; cd \"$PWD\"; \
                  \"$0\" map --quick --memory 4M; code=$?; ls -A; exit $code";
    let output = Command::new(unshare)
        .args(["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_isochrone")])
        .current_dir(&folder)
        .output()
        .expect("unshare starts");
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    if err.starts_with("unshare:") || output.status.code() == Some(77) {
        return skip("this container may not mount a small disk");
    }
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("nothing is measured") && err.contains("no space left"), "{err}");
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn a_limit_of_file_sizes_is_said_and_is_a_programs_own_again() {
    let limited = |folder: &std::path::Path, words: &[&str]| {
        Command::new("sh")
            .args(["-c", "ulimit -f 8; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_isochrone")])
            .args(words)
            .current_dir(folder)
            .output()
            .expect("a shell starts")
    };
    let output = limited(&map().folder, &["show", "--html=limited.html"]);
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("limited.html") && err.contains("ile too large"), "{err}");
    assert!(!map().folder.join("limited.html").exists(), "nothing is half written");
    let here = folder("file-limit");
    let output = limited(&here, &["run", "--", "sh", "-c", "exec head -c 100000 /dev/zero > big"]);
    let signal = output.status.signal();
    assert_eq!(signal, Some(rustix::process::Signal::XFSZ.as_raw()), "as without us: {output:?}");
}
