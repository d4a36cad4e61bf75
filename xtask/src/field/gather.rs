//! The programs of the battery: built here, put into one archive for a machine without cargo, and found there.
//!
//! The archive has them twice: linked as everywhere, and static, for a machine whose C library is older than that of
//! the machine that built them. Static ones cannot open an MPI, and nothing can be preloaded into them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

const PROGRAMS: [&str; 2] = ["isochrone", "isochrone-lab"];
const LIBRARIES: [&str; 2] = ["libisochrone_malloc.so", "libisochrone_mpi.so"];
const RUNNER: &str = "xtask";
/// Folders of an archive, the better programs first.
const KINDS: [&str; 2] = ["dynamic", "static"];
const TARGET: &str = "x86_64-unknown-linux-gnu";
const README: &str = "\
On the machine that is to be measured, in this folder:

    ./xtask field --bin . --out results --minutes 40

What is done is skipped when it is started again. Results, logs and a description of the machine are in the folder
that --out names; results/summary.json says how each part went.
";

/// Builds the programs in a profile and puts them into `folder`.
pub(super) fn dynamic(root: &Path, profile: &str, folder: &Path) -> Result<()> {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let mut words = vec!["build", "--profile", profile, "--locked"];
    words.extend(["-p", "isochrone", "-p", "isochrone-lab", "-p", "isochrone-mpi"]);
    cargo(root, &words, &[])?;
    cargo(root, &["preload", "--locked"], &[])?;
    let built = target.join(folder_of(profile));
    let [malloc, mpi] = LIBRARIES;
    for name in PROGRAMS.iter().chain([&mpi]) {
        put(&built.join(name), &folder.join(name))?;
    }
    put(&target.join("release").join(malloc), &folder.join(malloc))
}

/// The same, static, and the battery itself.
fn fixed(root: &Path, profile: &str, stage: &Path) -> Result<()> {
    let target = root.join("target/field/static-build");
    let mut words = vec!["build", "--profile", profile, "--locked", "--target", TARGET];
    words.extend(["-p", "isochrone", "-p", "isochrone-lab", "-p", RUNNER]);
    let variables = [
        ("RUSTFLAGS", "-C target-feature=+crt-static".to_owned()),
        ("CARGO_TARGET_DIR", target.display().to_string()),
    ];
    cargo(root, &words, &variables)?;
    let built = target.join(TARGET).join(folder_of(profile));
    for name in PROGRAMS {
        put(&built.join(name), &stage.join("static").join(name))?;
    }
    put(&built.join(RUNNER), &stage.join(RUNNER))
}

/// Writes an archive with everything.
pub(super) fn pack(root: &Path, profile: &str, archive: &Path) -> Result<()> {
    let stage = root.join("target/field/pack");
    if stage.exists() {
        fs::remove_dir_all(&stage)?;
    }
    dynamic(root, profile, &stage.join("dynamic"))?;
    fixed(root, profile, &stage)?;
    fs::write(stage.join("README.txt"), README)?;
    let status =
        Command::new("tar").arg("-cf").arg(archive).arg("-C").arg(&stage).arg(".").status();
    ensure!(status.context("tar cannot be started")?.success(), "tar failed");
    Ok(())
}

/// Where cargo puts what it builds in a profile.
fn folder_of(profile: &str) -> &str {
    if profile == "dev" { "debug" } else { profile }
}

fn cargo(root: &Path, words: &[&str], variables: &[(&str, String)]) -> Result<()> {
    let variables = variables.iter().map(|(name, value)| (*name, value.as_str()));
    let status = Command::new("cargo").args(words).envs(variables).current_dir(root).status();
    ensure!(
        status.context("cargo cannot be started; --bin names a folder with programs")?.success(),
        "`cargo {}` failed",
        words.join(" ")
    );
    Ok(())
}

fn put(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to.parent().context("a path without a folder")?)?;
    // A program that runs cannot be written over.
    let _ = fs::remove_file(to);
    fs::copy(from, to).with_context(|| from.display().to_string())?;
    Ok(())
}

/// The folder below `bin` whose programs run on this machine, absolute, and what is said of others.
pub(super) fn find(bin: &Path) -> Result<(PathBuf, Vec<String>)> {
    let mut said = Vec::new();
    let places = [bin.to_path_buf()].into_iter().chain(KINDS.map(|kind| bin.join(kind)));
    for place in places.filter(|place| place.join(PROGRAMS[0]).is_file()) {
        let place = place.canonicalize()?;
        match PROGRAMS.iter().find_map(|name| refusal(&place.join(name))) {
            None => return Ok((place, said)),
            Some(why) => said.push(why),
        }
    }
    match said.is_empty() {
        true => bail!("no {} in {} nor in its folders {KINDS:?}", PROGRAMS[0], bin.display()),
        false => bail!("none of the programs runs here: {}", said.join("; ")),
    }
}

/// Why a program does not run here; `None` where it does.
fn refusal(program: &Path) -> Option<String> {
    let asked = Command::new(program).arg("--version").stdin(Stdio::null()).output();
    let why = match asked {
        Ok(output) if output.status.success() => return None,
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    Some(format!("{}: {}", program.display(), why.lines().next().unwrap_or("it fails")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder whose programs are another one.
    fn programs(folder: &Path, real: &str) {
        fs::create_dir_all(folder).unwrap();
        for name in PROGRAMS {
            std::os::unix::fs::symlink(real, folder.join(name)).unwrap();
        }
    }

    #[test]
    fn the_first_programs_that_run_are_taken_and_others_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let bin = folder.path();
        assert!(find(bin).unwrap_err().to_string().contains("no isochrone"));
        programs(&bin.join("dynamic"), "/bin/false");
        assert!(find(bin).unwrap_err().to_string().contains("runs here"));
        programs(&bin.join("static"), "/bin/true");
        let (found, said) = find(bin).unwrap();
        assert!(found.ends_with("static") && said.len() == 1, "{found:?} {said:?}");
        assert!(said[0].contains("dynamic/isochrone"), "{said:?}");
        programs(&bin.join("plain"), "/bin/true");
        assert!(find(&bin.join("plain")).unwrap().0.ends_with("plain"));
    }
}
