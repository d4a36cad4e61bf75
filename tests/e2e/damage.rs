//! Bad input and places that cannot be written: the cause and the way out, nothing half-written.

use std::fs;

use crate::support::{folder, isochrone, map, run};

fn refused(name: &str, bytes: &[u8]) -> String {
    let folder = folder(name);
    fs::write(folder.join("bad.atlas"), bytes).expect("written");
    let (output, out, err) = run(&folder, &["show", "bad.atlas"]);
    assert_eq!(output.status.code(), Some(1), "{out}");
    assert!(out.is_empty());
    err
}

#[test]
fn a_damaged_atlas_is_refused_with_the_reason() {
    let good = fs::read(map().folder.join("isochrone.atlas")).expect("an atlas");
    assert!(refused("truncated", &good[..good.len() / 2]).contains("truncated"));
    let mut flipped = good.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 0x40;
    assert!(refused("flipped", &flipped).contains("damaged"));
    assert!(
        refused("foreign", b"#!/bin/sh\nexit 0\n, and more than a header of it..............")
            .contains("not an atlas")
    );
    assert!(!refused("empty", b"").is_empty());
}

#[test]
fn a_missing_atlas_says_how_to_make_one() {
    let folder = folder("missing");
    let nowhere = folder.join("cache");
    let program = include_str!("../../examples/cla/figure1.cla");
    fs::write(folder.join("figure1.cla"), program).expect("written");
    // As far as anybody looks before the atlas: the head of a shared object.
    let library = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0";
    fs::write(folder.join("library.so"), library).expect("written");
    for line in [
        "show nowhere.atlas",
        "show --json",
        "show nowhere.atlas --query 0:0",
        "diff nowhere.atlas nowhere.atlas",
        "export --json",
        "predict bcast --threads 2",
        "predict bcast --threads 2 --atlas nowhere.atlas",
        "cla figure1.cla",
        "run --preload library.so --atlas nowhere.atlas -- true",
        "verify model",
        "reproduce cla --atlas nowhere.atlas",
    ] {
        let args = line.split_whitespace();
        let output = isochrone(&folder).args(args).env("XDG_CACHE_HOME", &nowhere).output();
        let output = output.expect("it runs");
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        // The laboratory is built with the whole workspace.
        if err.contains("-p isochrone-lab") {
            continue;
        }
        assert!(matches!(output.status.code(), Some(1 | 125)), "{line}: {err}");
        assert!(err.contains("no atlas") && err.contains("run `isochrone map`"), "{line}: {err}");
        assert_eq!(err.lines().count(), 1, "{line}: {err}");
    }
}

#[test]
fn a_place_that_cannot_be_written_is_said_before_measuring() {
    let folder = folder("unwritable");
    let begin = std::time::Instant::now();
    let (output, _, err) = run(&folder, &["map", "--out", "no/such/folder/x.atlas"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(err.contains("mkdir -p"), "{err}");
    let (output, _, err) = run(&folder, &["map", "--out", "/dev/null"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(err.contains("not a regular file"), "{err}");
    for option in ["--out", "--html", "--json"] {
        let (output, _, err) = run(&folder, &["map", option, "/sys/x"]);
        assert_eq!(output.status.code(), Some(1));
        assert!(err.contains(option) && err.contains("/sys/x: no permission"), "{err}");
    }
    // More than memory holds is refused before it is said how long all takes.
    let (output, _, err) = run(&folder, &["map", "--buffer", "100T"]);
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(err.starts_with("isochrone: --buffer 100 TiB") && err.lines().count() == 1, "{err}");
    assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 0);
    // Not a measurement: only that nothing was measured first.
    assert!(begin.elapsed().as_secs() < 5);
}

#[test]
fn a_directory_that_was_removed_is_named_as_such() {
    let gone = folder("removed");
    let words = format!("rmdir '{}'; exec \"$0\" map", gone.display());
    let mut shell = std::process::Command::new("sh");
    let shell = shell.args(["-c", &words, isochrone(&gone).get_program().to_str().expect("UTF-8")]);
    let output = shell.current_dir(&gone).output().expect("it runs");
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("this directory was removed"), "{err}");
}

#[test]
fn an_atlas_that_is_given_as_a_machine_is_named_as_an_atlas() {
    let atlas = map().folder.join("isochrone.atlas");
    let atlas = atlas.to_str().expect("a name in UTF-8");
    let folder = folder("atlas-as-machine");
    for words in [
        &["machine", atlas][..],
        &["machine", "--hwloc", atlas],
        &["predict", "bcast", "--machine", atlas],
    ] {
        let (output, _, err) = run(&folder, words);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {err}");
        assert!(err.contains("is an atlas") && err.contains("isochrone show"), "{words:?}: {err}");
    }
}

#[test]
fn a_core_that_is_not_there_is_named() {
    let (output, _, err) = run(&folder("cores"), &["map", "--quick", "--cores", "4095"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err.contains("4095"), "{err}");
}

#[test]
fn a_bad_machine_file_is_refused_with_its_line() {
    let folder = folder("toml");
    fs::write(folder.join("m.toml"), "name = \"m\"\nnonsense = 3\n").expect("written");
    let (output, _, err) = run(&folder, &["machine", "m.toml"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(err.contains("m.toml") && err.contains('2'), "{err}");
}
