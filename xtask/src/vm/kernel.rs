//! Debian's cloud kernel, unpacked from its package into the build folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

/// The package that always names the newest cloud kernel.
const NEWEST: &str = "linux-image-cloud-amd64";

/// The kernel image in `folder`; downloads the package where it is not there yet.
pub(super) fn find(folder: &Path) -> Result<PathBuf> {
    if let Some(kernel) = image(folder)? {
        return Ok(kernel);
    }
    let package = newest()?;
    let done = run("apt-get", &["download", "-qq", &package], folder)?;
    ensure!(
        done,
        "`apt-get download {package}` failed: run `apt-get update` as root, then try again"
    );
    let archive = file(folder, |name| name.starts_with(&package))?.context("no package came")?;
    let unpacked = folder.join("kernel");
    let paths =
        [archive.as_path(), unpacked.as_path()].map(|path| path.to_string_lossy().into_owned());
    ensure!(
        run("dpkg-deb", &["-x", &paths[0], &paths[1]], folder)?,
        "dpkg-deb cannot unpack {}",
        paths[0]
    );
    image(folder)?.context("the kernel's package has no image in boot/")
}

fn image(folder: &Path) -> Result<Option<PathBuf>> {
    let boot = folder.join("kernel/boot");
    if boot.is_dir() { file(&boot, |name| name.starts_with("vmlinuz")) } else { Ok(None) }
}

fn file(folder: &Path, wanted: impl Fn(&str) -> bool) -> Result<Option<PathBuf>> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| wanted(&name.to_string_lossy())) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// The package that [`NEWEST`] depends on.
fn newest() -> Result<String> {
    let asked = Command::new("apt-cache").args(["depends", NEWEST]).output();
    let out = asked.context("apt-cache cannot be started: this needs Debian")?;
    let text = String::from_utf8_lossy(&out.stdout);
    let package = text.lines().find_map(|line| line.trim().strip_prefix("Depends: "));
    match package {
        Some(package) => Ok(package.to_owned()),
        None => bail!("apt does not know {NEWEST}: run `apt-get update` as root, then try again"),
    }
}

fn run(program: &str, arguments: &[&str], folder: &Path) -> Result<bool> {
    let status = Command::new(program).args(arguments).current_dir(folder).status();
    Ok(status.with_context(|| format!("{program} cannot be started"))?.success())
}
