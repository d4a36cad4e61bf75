//! The ReFrame test of `examples/fleet` under ReFrame, on fleets whose nodes have left their atlases already.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::fleet::{fleet, scaled};

/// Names the program; `cargo xtask reframe` brings it.
const REFRAME: &str = "ISOCHRONE_TEST_REFRAME";
/// A launcher of ReFrame that starts nothing, and leaves what a fleet's nodes would have left.
const SETTINGS: &str = r#"
import os
from reframe.core.backends import register_launcher
from reframe.core.launchers import JobLauncher

@register_launcher("made")
class Made(JobLauncher):
    def command(self, job):
        return ["sh", "-c", "'mkdir atlases && cp " + os.environ["FLEET"] + "/*.atlas atlases'"]

nodes = {"name": "nodes", "scheduler": "local", "launcher": "made", "environs": ["builtin"]}
site_configuration = {"systems": [{"name": "made", "hostnames": [".*"], "partitions": [nodes]}]}
"#;

/// Whether the test passes on so many nodes, and what is said.
fn passes(reframe: &Path, here: &Path, tasks: usize) -> (bool, String) {
    let check =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/fleet/reframe_fleet.py");
    fs::write(here.join("settings.py"), SETTINGS).expect("it is written");
    let folder = crate::command().parent().expect("a folder").to_owned();
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let all = [folder].into_iter().chain(std::env::split_paths(&paths));
    let output = Command::new(reframe)
        .args(["-C", "settings.py", "--prefix", ".", "-r", "-S", &format!("num_tasks={tasks}")])
        .arg("-c")
        .arg(check)
        .current_dir(here)
        .env("PATH", std::env::join_paths(all).expect("plain paths"))
        .env("FLEET", here)
        .env("HOME", here)
        .env("RFM_COLORIZE", "no")
        .output()
        .expect("ReFrame starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = said + &String::from_utf8_lossy(&output.stderr);
    // What could not be loaded is no test that failed.
    assert!(said.contains("Ran 1/1 test case(s)"), "{said}");
    (output.status.success(), said)
}

#[test]
#[allow(clippy::print_stderr, reason = "says why it was skipped")]
fn a_reframe_test_is_green_on_equal_nodes_alone() {
    let Some(reframe) = std::env::var_os(REFRAME) else {
        eprintln!("skipped: {REFRAME} says nothing (cargo xtask reframe)");
        return;
    };
    let reframe = Path::new(&reframe);
    let well = fleet("reframe-well", 24, |_| ());
    let (passed, said) = passes(reframe, &well, 24);
    assert!(passed, "{said}");
    // A launcher that started one task less.
    let (passed, said) = passes(reframe, &well, 25);
    assert!(!passed && said.contains("24 nodes left an atlas, of 25"), "{said}");
    let slow = fleet("reframe-slow", 24, |contents| scaled(contents, 2.0));
    let (passed, said) = passes(reframe, &slow, 24);
    assert!(!passed && said.contains("a node deviates") && said.contains("n01"), "{said}");
    let few = fleet("reframe-few", 2, |_| ());
    let (passed, said) = passes(reframe, &few, 2);
    assert!(!passed && said.contains("nothing could be compared"), "{said}");
}
