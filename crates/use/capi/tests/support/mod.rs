//! Programs in C, compiled against the header and run with the library that was built with the test.

#![allow(dead_code, reason = "each binary of tests takes a part")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Links with the shared library.
pub(crate) const SHARED: &str = "-lisochrone";

/// A path in this crate.
pub(crate) fn of_crate(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The folder of the library that was built with this test.
pub(crate) fn libraries() -> PathBuf {
    let test = std::env::current_exe().expect("a test is a program");
    let folder = test.parent().expect("it lies somewhere").to_owned();
    let both = ["libisochrone.so", "libisochrone.a"].map(|name| folder.join(name));
    both.iter().for_each(|path| assert!(path.exists(), "{} was not built", path.display()));
    folder
}

pub(crate) fn succeeded(output: &Output) {
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {words}", output.status);
}

/// The same of a program that may find that this machine or user has not what it tries (77).
pub(crate) fn succeeded_or_left_out(output: &Output) {
    if output.status.code() != Some(77) {
        succeeded(output);
    }
}

/// A compiled program and the folder that it needs.
pub(crate) struct Program {
    folder: tempfile::TempDir,
    path: PathBuf,
}

impl Program {
    /// Compiles a source with all warnings as errors. The library is found under its soname.
    pub(crate) fn build(compiler: &str, options: &[&str], source: &str, library: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["libisochrone.so", "libisochrone.so.0"] {
            std::os::unix::fs::symlink(
                libraries().join("libisochrone.so"),
                folder.path().join(name),
            )
            .expect("a link");
        }
        let path = folder.path().join("program");
        let output = Command::new(compiler)
            .args(["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-pthread"])
            .args(options)
            .arg("-I")
            .arg(of_crate("include"))
            .arg(of_crate(source))
            .arg("-o")
            .arg(&path)
            .arg(format!("-L{}", folder.path().display()))
            .args(library.replace("LIBRARIES", &libraries().display().to_string()).split(' '))
            .output()
            .expect("a compiler, which building this needs as well");
        succeeded(&output);
        Self { folder, path }
    }

    /// Compiles a source, and links nothing.
    pub(crate) fn compiles(compiler: &str, options: &[&str], source: &str) {
        let output = Command::new(compiler)
            .args([
                "-Wall",
                "-Wextra",
                "-Wpedantic",
                "-Werror",
                "-pthread",
                "-c",
                "-o",
                "/dev/null",
            ])
            .args(options)
            .arg("-I")
            .arg(of_crate("include"))
            .arg(of_crate(source))
            .output()
            .expect("a compiler, which building this needs as well");
        succeeded(&output);
    }

    /// Runs it with so many KiB of addresses.
    pub(crate) fn run_limited(&self, arguments: &[&str], kib: u64) -> Output {
        let output = Command::new("sh")
            .args(["-c", &format!("ulimit -v {kib}; exec \"$0\" \"$@\"")])
            .arg(&self.path)
            .args(arguments)
            .env("LD_LIBRARY_PATH", self.folder.path())
            .output()
            .expect("a shell");
        succeeded(&output);
        output
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.run_with(arguments, [])
    }

    pub(crate) fn run_with<const N: usize>(
        &self,
        arguments: &[&str],
        variables: [(&str, &str); N],
    ) -> Output {
        let output = self.output_with(arguments, variables);
        succeeded(&output);
        output
    }

    /// What it did, whether it succeeded or not.
    pub(crate) fn output(&self, arguments: &[&str]) -> Output {
        self.output_with(arguments, [])
    }

    pub(crate) fn output_with<const N: usize>(
        &self,
        arguments: &[&str],
        variables: [(&str, &str); N],
    ) -> Output {
        Command::new(&self.path)
            .args(arguments)
            .envs(variables)
            .env("LD_LIBRARY_PATH", self.folder.path())
            .output()
            .expect("it was built")
    }
}
