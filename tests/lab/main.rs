//! The laboratory's real binary, started by the command as users start it. No figure is judged.

#![allow(clippy::tests_outside_test_module, reason = "this whole binary is tests")]

mod arguments;
mod bench;
mod claims;
mod coll;
mod formats;
mod start;
mod stop;
#[path = "../support.rs"]
#[allow(dead_code, reason = "what only the tests of the command use")]
mod support;
#[path = "../words.rs"]
mod words;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Where the command of this build is: beside the laboratory. A test of the whole workspace has built it, a test of the
/// laboratory alone builds it now.
fn command() -> PathBuf {
    static COMMAND: OnceLock<PathBuf> = OnceLock::new();
    let beside = || {
        let laboratory = Path::new(env!("CARGO_BIN_EXE_isochrone-lab"));
        let command = laboratory.with_file_name("isochrone");
        if !command.exists() {
            let folder = laboratory.parent().expect("a program lies in a folder");
            let profile = if folder.ends_with("release") { "release" } else { "dev" };
            let built = Command::new(env!("CARGO"))
                .args(["build", "-p", "isochrone", "--profile", profile, "--target-dir"])
                .arg(folder.parent().expect("a profile's folder lies in the target folder"))
                .current_dir(env!("CARGO_MANIFEST_DIR"))
                .status()
                .expect("cargo runs");
            assert!(built.success(), "the command does not build");
        }
        command
    };
    COMMAND.get_or_init(beside).clone()
}
