//! The tree as one archive, for a machine without a package manager or without its administrator: it runs from whatever
//! folder it is unpacked in.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::stage::Stage;
use super::tool;
use crate::ci::say;

/// Makes the archive and one with what debuggers read; the files.
pub(super) fn pack(stage: &Stage, out: &Path) -> Result<Vec<PathBuf>> {
    let name = format!("isochrone-{}-{}", stage.version, std::env::consts::ARCH);
    let tree = packed(&stage.tree, &name, &out.join(format!("{name}.tar.xz")))?;
    let debug = packed(&stage.debug, &name, &out.join(format!("{name}-debug.tar.xz")))?;
    Ok(vec![tree, debug])
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

/// Unpacks it elsewhere and runs what is in it.
pub(super) fn attempt(made: &[PathBuf], stage: &Stage) -> Result<()> {
    let folder = stage.folder.join("unpacked");
    std::fs::create_dir_all(&folder)?;
    let archive = made.first().context("nothing was made")?;
    let mut tar = Command::new("tar");
    tool::run(
        tar.arg("-xf").arg(archive).args(["--strip-components=1", "-C"]).arg(&folder),
        "tar",
    )?;
    let command = folder.join("bin/isochrone");
    let words: [&[&str]; 3] = [&["machine"], &["bench", "--help"], &["run", "--", "true"]];
    for words in words {
        tool::output(Command::new(&command).args(words), "nothing: it was unpacked")?;
    }
    let version =
        tool::output(Command::new(&command).arg("--version"), "nothing: it was unpacked")?;
    ensure!(version.contains(&stage.version), "{version}");
    say(&format!("{}: unpacked and used", archive.display()));
    Ok(())
}
