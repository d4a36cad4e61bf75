//! The Python wheel: the module of `python/`, the C library that it calls, and the tree's programs and preloaded
//! libraries where pip puts scripts and data. Nothing is compiled for Python, so one wheel serves all versions.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::stage::Stage;
use super::tool;
use super::tool::{Venv, venv};
use crate::ci::say;

/// What makes a wheel.
const TOOLS: [&str; 2] = ["hatchling==1.33.0", "auditwheel==6.8.2"];
/// What it asks for, and what it is tried with.
const TRIED_WITH: [&str; 3] = ["numpy>=1.22", "pytest>=8", "mypy>=1.10"];

/// An atlas that is the same everywhere.
const STORED: &str = "fuzz/corpus/atlas_reader/valid-exact-cells";

/// Makes the wheel; the file.
pub(super) fn pack(root: &Path, stage: &Stage, out: &Path) -> Result<Vec<PathBuf>> {
    let tools = tools(root)?;
    let arch = std::env::consts::ARCH;
    let tag = format!("manylinux_{}", stage.glibc().tag());
    let platform = format!("{tag}_{arch}");
    let mut pip = Command::new(tools.program("python"));
    pip.args(["-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"])
        .args(["--disable-pip-version-check", "-w"])
        .arg(out)
        .arg(root.join("python"))
        .env("ISOCHRONE_TREE", &stage.tree)
        .env("ISOCHRONE_PLATFORM", &platform);
    tool::run(&mut pip, "python3-venv")?;
    let wheel = out.join(format!("isochrone-{}-py3-none-{platform}.whl", stage.version));
    ensure!(wheel.exists(), "pip made no {}", wheel.display());
    let mut audit = Command::new(tools.program("auditwheel"));
    let said = tool::output(audit.arg("show").arg(&wheel), "nothing: pip has brought it")?;
    ensure!(said.contains(&tag), "auditwheel does not find {tag}:\n{said}");
    Ok(vec![wheel])
}

/// Whether pip brings what makes and tries a wheel; then it is there.
pub(super) fn ready(root: &Path) -> Result<()> {
    tools(root)?;
    tried(root)?;
    Ok(())
}

fn tools(root: &Path) -> Result<Venv> {
    venv(&root.join("target/package/wheel-tools"), &TOOLS)
}

/// An environment with nothing of ours.
fn tried(root: &Path) -> Result<Venv> {
    venv(&root.join("target/package/tried"), &TRIED_WITH)
}

/// Installs it where nothing else is, and runs its tests, types and example there, away from the sources.
pub(super) fn attempt(root: &Path, made: &[PathBuf], stage: &Stage) -> Result<()> {
    let wheel = made.first().context("nothing was made")?;
    let tried = tried(root)?;
    // Of one version there are many builds.
    tried.install([Path::new("--force-reinstall"), Path::new("--no-deps"), wheel])?;
    let folder = stage.folder.join("python");
    std::fs::create_dir_all(&folder)?;
    // The example takes the atlas that is there; that maps are made is a test's.
    std::fs::copy(root.join(STORED), folder.join("isochrone.atlas"))?;
    let python = root.join("python");
    let in_folder = |name: &str| {
        let mut command = Command::new(tried.program(name));
        command.current_dir(&folder);
        command
    };
    let mut pytest = in_folder("pytest");
    tool::run(
        pytest.arg("-q").args(["-p", "no:cacheprovider"]).arg(python.join("tests")),
        "pytest",
    )?;
    let mut mypy = in_folder("mypy");
    mypy.args(["--strict", "-p", "isochrone"]);
    tool::run(&mut mypy, "mypy")?;
    let mut mypy = in_folder("mypy");
    tool::run(mypy.arg("--strict").arg(python.join("tests")).arg(python.join("examples")), "mypy")?;
    tool::run(in_folder("python").arg(python.join("examples/atlas.py")), "python3")?;
    say(&format!("{}: installed and used", wheel.display()));
    Ok(())
}
