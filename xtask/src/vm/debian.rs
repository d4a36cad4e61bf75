//! Debian's packages, of this machine's kind of processor or of another one: downloaded and unpacked into the build
//! folder, never installed. Lists of another kind's packages lie in that folder, and this machine's are not touched.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

/// A set of packages, as apt is told of it.
pub(super) struct Debian {
    /// Where archives come to lie.
    folder: PathBuf,
    /// Settings for apt.
    settings: Vec<String>,
}

impl Debian {
    /// What this machine takes its own packages from.
    pub(super) fn here(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), settings: Vec::new() }
    }

    /// The packages of `suite` for arm64, in a list that is read anew.
    pub(super) fn arm64(folder: &Path, suite: &str) -> Result<Self> {
        let place = folder.join("apt").join(suite);
        std::fs::create_dir_all(place.join("lists/partial"))?;
        std::fs::create_dir_all(place.join("cache/archives/partial"))?;
        let list = format!(
            "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] \
             http://deb.debian.org/debian {suite} main\n"
        );
        std::fs::write(place.join("sources.list"), list)?;
        // Nothing is installed, so that whatever a package needs is named.
        std::fs::write(place.join("status"), "")?;
        let place = place.canonicalize()?.display().to_string();
        let settings = [
            "APT::Architecture=arm64".to_owned(),
            "APT::Architectures=arm64".to_owned(),
            "APT::Sandbox::User=root".to_owned(),
            "Dir::Etc::sourceparts=/dev/null".to_owned(),
            format!("Dir::Etc::sourcelist={place}/sources.list"),
            format!("Dir::State::lists={place}/lists"),
            format!("Dir::State::status={place}/status"),
            format!("Dir::Cache={place}/cache"),
        ];
        let debian = Self { folder: folder.to_owned(), settings: settings.to_vec() };
        ensure!(
            debian.run(&["update", "-qq"])?,
            "apt cannot read the packages of arm64: is there a network?"
        );
        Ok(debian)
    }

    /// What `package`, which names the newest of its kind, depends on.
    pub(super) fn newest(&self, package: &str) -> Result<String> {
        let asked = Command::new("apt-cache").args(self.words(&["depends", package])).output();
        let out = asked.context("apt-cache cannot be started: this needs Debian")?;
        let text = String::from_utf8_lossy(&out.stdout);
        match text.lines().find_map(|line| line.trim().strip_prefix("Depends: ")) {
            Some(newest) => Ok(newest.to_owned()),
            None => {
                bail!("apt does not know {package}: run `apt-get update` as root, then try again")
            }
        }
    }

    /// The archive of one package.
    pub(super) fn archive(&self, package: &str) -> Result<PathBuf> {
        let done = self.run(&["download", "-qq", package])?;
        ensure!(
            done,
            "`apt-get download {package}` failed: run `apt-get update` as root, then try again"
        );
        let start = format!("{package}_");
        let found = archives(&self.folder)?.into_iter().find(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&start))
        });
        found.context("no package came")
    }

    /// The archives of packages and of all that they need. Only for another kind of processor: here what is installed
    /// would be left out.
    pub(super) fn with_needed(&self, packages: &[&str]) -> Result<Vec<PathBuf>> {
        const WAY: [&str; 5] =
            ["install", "-qq", "--yes", "--download-only", "--no-install-recommends"];
        let done = self.run(&[&WAY, packages].concat())?;
        ensure!(done, "apt cannot bring {}", packages.join(", "));
        let cache = self.settings.iter().find_map(|one| one.strip_prefix("Dir::Cache="));
        archives(&Path::new(cache.context("a folder of its own")?).join("archives"))
    }

    fn words(&self, arguments: &[&str]) -> Vec<String> {
        let settings = self.settings.iter().flat_map(|one| ["-o".to_owned(), one.clone()]);
        settings.chain(arguments.iter().map(|word| (*word).to_owned())).collect()
    }

    fn run(&self, arguments: &[&str]) -> Result<bool> {
        let mut apt = Command::new("apt-get");
        let status = apt.args(self.words(arguments)).current_dir(&self.folder).status();
        Ok(status.context("apt-get cannot be started: this needs Debian")?.success())
    }
}

/// What an archive holds, put into `folder`.
pub(super) fn unpack(archive: &Path, folder: &Path) -> Result<()> {
    let status = Command::new("dpkg-deb").arg("-x").arg(archive).arg(folder).status();
    let status = status.context("dpkg-deb cannot be started")?;
    ensure!(status.success(), "dpkg-deb cannot unpack {}", archive.display());
    Ok(())
}

fn archives(folder: &Path) -> Result<Vec<PathBuf>> {
    let paths = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let paths = paths.collect::<std::io::Result<Vec<_>>>()?;
    Ok(paths.into_iter().filter(|path| path.extension().is_some_and(|end| end == "deb")).collect())
}
