//! ReFrame, by which clusters are checked: Debian does not have it. PyPI does; it lies in a folder of its own below
//! `target`, and the test that runs `examples/fleet/reframe_fleet.py` is run.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::ci::say;
use crate::mpis::is_unless_offline;
use crate::package::tool::venv;

/// What is brought.
const PACKAGES: [&str; 1] = ["ReFrame-HPC==4.10.4"];

/// Brings it and runs the test. With `--unless-offline` it is no error that it cannot be had.
pub(crate) fn run(root: &Path, words: impl Iterator<Item = String>) -> Result<()> {
    let unless_offline = is_unless_offline(words)?;
    let folder = root.canonicalize()?.join("target/reframe");
    match venv(&folder, &PACKAGES) {
        Err(why) if unless_offline => {
            say(&format!(
                "the ReFrame test was not run, since pip does not bring ReFrame: {why:#}"
            ));
            return Ok(());
        }
        tried => tried?,
    };
    let mut test = Command::new("cargo");
    test.args(["test", "--locked", "-p", "isochrone", "--test", "e2e", "reframe"]);
    test.env("ISOCHRONE_TEST_REFRAME", folder.join("bin/reframe"));
    let status = test.current_dir(root).status()?;
    ensure!(status.success(), "the test that runs examples/fleet/reframe_fleet.py failed");
    Ok(())
}
