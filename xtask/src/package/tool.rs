//! Programs that packing takes: those of the system, with the package that brings them, and Python's, in folders of
//! their own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

/// Runs a program to its end.
///
/// # Errors
/// It is not there, then what brings it; or it failed.
pub(super) fn run(command: &mut Command, package: &str) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.stdin(Stdio::null()).status();
    let status = status.with_context(|| format!("{name} cannot be started: install {package}"))?;
    ensure!(status.success(), "{name} failed ({status})");
    Ok(())
}

/// The same, and what it printed.
///
/// # Errors
/// As [`run`], with what it said on standard error.
pub(super) fn output(command: &mut Command, package: &str) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("{name} cannot be started: install {package}"))?;
    if !output.status.success() {
        bail!("{name} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A folder with a Python of its own and packages for it.
#[derive(Debug)]
pub(crate) struct Venv(PathBuf);

/// Makes such a folder, or finds it with the same packages.
///
/// # Errors
/// There is no Python with `venv`, or a package cannot be had.
pub(crate) fn venv(folder: &Path, packages: &[&str]) -> Result<Venv> {
    let (venv, wanted) = (Venv(folder.to_owned()), packages.join("\n"));
    let list = folder.join("packages");
    if std::fs::read_to_string(&list).is_ok_and(|had| had == wanted) {
        return Ok(venv);
    }
    let mut python = Command::new("python3");
    run(python.args(["-m", "venv", "--clear"]).arg(folder), "python3-venv")?;
    venv.install(packages.iter().copied())?;
    std::fs::write(list, wanted)?;
    Ok(venv)
}

impl Venv {
    /// A program in it.
    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.0.join("bin").join(name)
    }

    /// Installs packages, or files of packages.
    pub(super) fn install<P: AsRef<std::ffi::OsStr>>(
        &self,
        packages: impl IntoIterator<Item = P>,
    ) -> Result<()> {
        let mut pip = Command::new(self.program("python"));
        // Whoever is offline is told soon.
        pip.args(["-m", "pip", "install", "-q", "--disable-pip-version-check", "--retries", "1"]);
        run(pip.args(packages), "python3-pip")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_or_is_not_there_is_named() {
        let of = |name: &str| run(&mut Command::new(name), "some-package");
        assert!(of("true").is_ok());
        assert!(of("false").expect_err("it fails").to_string().starts_with("false failed"));
        let absent = of("no-such-program").expect_err("it is not there").to_string();
        assert!(absent.contains("install some-package"), "{absent}");
        let mut shell = Command::new("sh");
        let said = output(shell.args(["-c", "echo why >&2; exit 3"]), "dash");
        assert_eq!(said.expect_err("it fails").to_string(), "sh failed: why");
    }
}
