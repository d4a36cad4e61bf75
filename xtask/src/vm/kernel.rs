//! Debian's cloud kernel, unpacked from its package into the build folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::arch::Arch;

/// The kernel image in `folder`; downloads the package where it is not there yet.
pub(super) fn find(folder: &Path, arch: Arch) -> Result<PathBuf> {
    if let Some(kernel) = image(folder)? {
        return Ok(kernel);
    }
    let source = Source::of(arch, folder)?;
    let package = source.newest()?;
    let done = source.run("apt-get", &["download", "-qq", &package], folder)?;
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

/// Where a package comes from.
struct Source {
    /// The package that always names the newest cloud kernel.
    newest: &'static str,
    /// Settings for apt.
    settings: Vec<String>,
}

impl Source {
    /// That of this machine for its own kind of processor. For another kind lists of packages are kept in `folder`, so
    /// that nothing of this machine is changed; they are those of the backports, since write-protection of shared
    /// memory, on which tiering stands, came to that kind with Linux 6.10.
    fn of(arch: Arch, folder: &Path) -> Result<Self> {
        if arch == Arch::X86 {
            return Ok(Self { newest: "linux-image-cloud-amd64", settings: Vec::new() });
        }
        const LIST: &str = "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] \
                            http://deb.debian.org/debian bookworm-backports main\n";
        let place = folder.join("apt");
        std::fs::create_dir_all(place.join("lists/partial"))?;
        std::fs::write(place.join("sources.list"), LIST)?;
        let place = place.canonicalize()?.display().to_string();
        let settings = [
            "APT::Architecture=arm64".to_owned(),
            "APT::Architectures=arm64".to_owned(),
            "APT::Sandbox::User=root".to_owned(),
            "Dir::Etc::sourceparts=/dev/null".to_owned(),
            format!("Dir::Etc::sourcelist={place}/sources.list"),
            format!("Dir::State::lists={place}/lists"),
            format!("Dir::Cache={place}/cache"),
        ];
        let source = Self { newest: "linux-image-cloud-arm64", settings: settings.to_vec() };
        ensure!(
            source.run("apt-get", &["update", "-qq"], folder)?,
            "apt cannot read the packages of arm64: is there a network?"
        );
        Ok(source)
    }

    /// The package that the one that names the newest depends on.
    fn newest(&self) -> Result<String> {
        let words = self.words(&["depends", self.newest]);
        let asked = Command::new("apt-cache").args(words).output();
        let out = asked.context("apt-cache cannot be started: this needs Debian")?;
        let text = String::from_utf8_lossy(&out.stdout);
        let package = text.lines().find_map(|line| line.trim().strip_prefix("Depends: "));
        match package {
            Some(package) => Ok(package.to_owned()),
            None => bail!(
                "apt does not know {}: run `apt-get update` as root, then try again",
                self.newest
            ),
        }
    }

    fn words(&self, arguments: &[&str]) -> Vec<String> {
        let settings = self.settings.iter().flat_map(|one| ["-o".to_owned(), one.clone()]);
        settings.chain(arguments.iter().map(|word| (*word).to_owned())).collect()
    }

    fn run(&self, program: &str, arguments: &[&str], folder: &Path) -> Result<bool> {
        let words = self.words(arguments);
        run(program, &words.iter().map(String::as_str).collect::<Vec<_>>(), folder)
    }
}

fn run(program: &str, arguments: &[&str], folder: &Path) -> Result<bool> {
    let status = Command::new(program).args(arguments).current_dir(folder).status();
    Ok(status.with_context(|| format!("{program} cannot be started"))?.success())
}
