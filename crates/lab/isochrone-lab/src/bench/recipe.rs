//! Programs and libraries of ours over what others use, compiled where a benchmark runs.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// A peer that is compiled from our source.
pub(super) struct Recipe {
    pub(super) name: &'static str,
    /// Debian's packages that it needs.
    pub(super) package: &'static str,
    pub(super) compiler: &'static str,
    /// Name and text.
    pub(super) source: (&'static str, &'static str),
    /// What stands behind the source: libraries, and what else differs.
    pub(super) options: &'static [&'static str],
}

impl Recipe {
    /// Compiles it in `scratch`.
    pub(super) fn compile(&self, scratch: &Path) -> Result<PathBuf> {
        let (name, text) = self.source;
        let (source, program) = (scratch.join(name), scratch.join(self.name));
        std::fs::write(&source, text)?;
        let output = Command::new(self.compiler)
            .args(["-O2", "-march=native"])
            .arg(&source)
            .arg("-o")
            .arg(&program)
            .args(self.options)
            .output()
            .with_context(|| format!("{} is not installed", self.compiler))?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            let first = text.lines().find(|line| line.contains("error")).unwrap_or("no reason");
            bail!("{} does not compile it ({first})", self.compiler);
        }
        Ok(program)
    }

    /// Why it has no figures, and what to do.
    pub(super) fn advice(&self, why: &anyhow::Error) -> String {
        format!("{} has no figures: {why:#}; apt-get install {}", self.name, self.package)
    }
}
