//! The tree as one archive, for a machine without a package manager or without its administrator: it runs from whatever
//! folder it is unpacked in.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::stage::Stage;
use super::tool;
use super::tree::{COMMAND, PRELOADED};
use crate::ci::say;

/// Makes the archive and one with what debuggers read; the files.
pub(super) fn pack(stage: &Stage, out: &Path) -> Result<Vec<PathBuf>> {
    let name = format!("isochrone-{}-{}", stage.version, std::env::consts::ARCH);
    let tree = packed(&stage.tree, &name, &out.join(format!("{name}.tar.xz")))?;
    let debug = packed(&stage.debug, &name, &out.join(format!("{name}-debug.tar.xz")))?;
    Ok(vec![tree, debug])
}

/// Makes an archive of the command alone, which starts on every Linux of this processor, and one with what debuggers
/// read. The libraries that it preloads are beside it; they stand on glibc, and where that is not, `run` says so.
pub(super) fn pack_static(
    root: &Path,
    profile: &str,
    stage: &Stage,
    out: &Path,
) -> Result<Vec<PathBuf>> {
    let built = super::built::build_static(root, profile)?;
    let (tree, debug) = (stage.folder.join("static"), stage.folder.join("static-debug"));
    super::tree::put(&built, &tree.join(COMMAND))?;
    super::symbols::split_one(&tree, &debug, COMMAND)?;
    let asks = tool::output(Command::new("objdump").arg("-p").arg(tree.join(COMMAND)), "binutils")?;
    ensure!(!asks.contains("INTERP") && !asks.contains("NEEDED"), "{COMMAND} is not static");
    for library in PRELOADED {
        super::tree::put(&stage.tree.join(library), &tree.join(library))?;
    }
    let mut copy = Command::new("cp");
    tool::run(copy.arg("-a").arg(stage.tree.join("share")).arg(&tree), "coreutils")?;
    let name = format!("isochrone-{}-{}-static", stage.version, std::env::consts::ARCH);
    let archive = packed(&tree, &name, &out.join(format!("{name}.tar.xz")))?;
    let debug = packed(&debug, &name, &out.join(format!("{name}-debug.tar.xz")))?;
    Ok(vec![archive, debug])
}

/// A folder under another name, the same bytes whenever the folder is the same.
fn packed(folder: &Path, name: &str, archive: &Path) -> Result<PathBuf> {
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0"])
        .arg(format!("--transform=s,^\\.,{name},S"))
        .arg("-cJf")
        .arg(archive)
        .arg("-C")
        .arg(folder)
        .arg(".");
    tool::run(&mut tar, "tar and xz-utils")?;
    Ok(archive.to_owned())
}

/// Unpacks it elsewhere and runs what is in it, below the name of a folder.
pub(super) fn attempt(made: &[PathBuf], stage: &Stage, name: &str) -> Result<()> {
    let folder = stage.folder.join(name);
    std::fs::create_dir_all(&folder)?;
    let archive = made.first().context("nothing was made")?;
    let mut tar = Command::new("tar");
    tool::run(
        tar.arg("-xf").arg(archive).args(["--strip-components=1", "-C"]).arg(&folder),
        "tar",
    )?;
    let command = folder.join(COMMAND);
    let mut all: Vec<&[&str]> = vec![&["machine"], &["run", "--", "true"]];
    if folder.join("libexec").exists() {
        all.push(&["bench", "--help"]);
    }
    for words in all {
        tool::output(Command::new(&command).args(words), "nothing: it was unpacked")?;
    }
    let version =
        tool::output(Command::new(&command).arg("--version"), "nothing: it was unpacked")?;
    ensure!(version.contains(&stage.version), "{version}");
    say(&format!("{}: unpacked and used", archive.display()));
    Ok(())
}
