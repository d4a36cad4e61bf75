//! Every figure of README stands in a recorded file, and a page that says something else is found out.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::folder;

fn tree() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// What the laboratory says of these sources, and with which exit code.
struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

fn claims(words: &[&str], tree: &Path) -> Said {
    let output = Command::new(env!("CARGO_BIN_EXE_isochrone-lab"))
        .arg("claims")
        .args(words)
        .arg("--tree")
        .arg(tree)
        .env("COLUMNS", "200")
        .stdin(Stdio::null())
        .output()
        .expect("it starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Said { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
}

#[test]
fn every_figure_of_readme_is_as_it_was_recorded() {
    let said = claims(&["--check"], &tree());
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    assert!(said.out.contains("0 of them differ"), "{}", said.out);
}

#[test]
fn a_figure_that_was_not_recorded_is_named_and_has_an_exit_code() {
    let here = folder("claims-other");
    let other = here.join("tree");
    fs::create_dir_all(other.join("docs")).expect("made");
    // A link: the recorded files are the same.
    let results = tree().canonicalize().expect("the sources").join("docs/results");
    std::os::unix::fs::symlink(results, other.join("docs/results")).expect("linked");
    let page = fs::read_to_string(tree().join("README.md")).expect("the page");
    let cell = "| 0.985 |";
    assert!(page.contains(cell), "this test changes a figure that README no longer has");
    fs::write(other.join("README.md"), page.replace(cell, "| 0.995, and 7.5 |")).expect("written");
    let said = claims(&["--check"], &other);
    assert_eq!(said.code, Some(4), "{}{}", said.out, said.err);
    assert!(said.out.contains("0.985") && said.out.contains("7.5"), "{}", said.out);
}

#[test]
fn where_there_are_no_sources_it_says_so() {
    let here = folder("claims-nowhere");
    let said = claims(&["--check"], &here);
    assert_eq!(said.code, Some(1), "{}", said.out);
    assert!(said.err.contains("--tree") && said.out.is_empty(), "{}", said.err);
    assert_eq!(claims(&[], &here).code, Some(2), "neither --check nor --measure");
}
