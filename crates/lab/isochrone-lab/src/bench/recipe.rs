//! Programs and libraries of ours over what others use, compiled where a benchmark runs.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use isochrone_console::run::ended::{alone, ended};

use super::budget::Stop;

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
    /// Compiles it in `scratch`, as long as somebody wants it.
    pub(super) fn compile(&self, scratch: &Path, stop: &Stop) -> Result<PathBuf> {
        let (name, text) = self.source;
        let (source, program) = (scratch.join(name), scratch.join(self.name));
        std::fs::write(&source, text)?;
        let said = scratch.join("compiler.txt");
        let mut command = self.command(&source, &program, scratch);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::from(File::create(&said)?));
        let child = alone(&mut command).spawn();
        let mut child = child.with_context(|| format!("{} is not installed", self.compiler))?;
        let status = ended(&mut child, &|| stop.is_set())?;
        let status =
            status.with_context(|| format!("{} was ended before its time", self.compiler))?;
        if !status.success() {
            let text = std::fs::read(&said)?;
            let text = String::from_utf8_lossy(&text);
            let first = text.lines().find(|line| line.contains("error")).unwrap_or("no reason");
            bail!("{} does not compile it ({first})", self.compiler);
        }
        Ok(program)
    }

    /// The compiler, as it is started. One that is ended leaves its temporary files, which go with `scratch`.
    fn command(&self, source: &Path, program: &Path, scratch: &Path) -> Command {
        let mut command = Command::new(self.compiler);
        command.args(["-O2", "-march=native"]).arg(source).arg("-o").arg(program);
        command.args(self.options).env("TMPDIR", scratch);
        command
    }

    /// Why it has no figures, and what to do.
    pub(super) fn advice(&self, why: &anyhow::Error) -> String {
        format!("{} has no figures: {why:#}; apt-get install {}", self.name, self.package)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_compiler_leaves_behind_lies_in_the_folder_that_goes() {
        let recipe = Recipe {
            name: "a",
            package: "gcc",
            compiler: "gcc",
            source: ("a.c", ""),
            options: &[],
        };
        let scratch = Path::new("/scratch");
        let command = recipe.command(&scratch.join("a.c"), &scratch.join("a"), scratch);
        let folder = command.get_envs().find(|(name, _)| *name == "TMPDIR");
        assert_eq!(folder, Some(("TMPDIR".as_ref(), Some(scratch.as_os_str()))));
    }
}
