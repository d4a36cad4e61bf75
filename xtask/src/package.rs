//! `cargo xtask package`: what people install. One staged tree, the one of `cargo xtask install`, becomes a Debian
//! package, a Python wheel or an archive; no package builds anything by itself.

mod archive;
mod built;
mod deb;
mod floor;
mod notices;
mod stage;
mod symbols;
pub(crate) mod tool;
mod tree;
mod wheel;
mod zig;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use super::ci::say;
use built::build_for_floor;
pub(crate) use built::{Built, build};
use stage::Stage;
pub(crate) use stage::packed;
pub(crate) use tree::fill;
use zig::Zig;

/// What can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Archive,
    Deb,
    Static,
    Wheel,
}

/// What the command line says.
#[derive(Debug, PartialEq)]
struct Options {
    kinds: Vec<Kind>,
    out: PathBuf,
    profile: String,
    /// A folder of what was built already; nothing is built then.
    built: Option<PathBuf>,
    tried: bool,
    /// Where pip brings nothing, a wheel is neither made nor missed.
    unless_offline: bool,
}

impl Options {
    fn read(root: &Path, mut words: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self {
            kinds: Vec::new(),
            out: root.join("target/package"),
            profile: "dist".to_owned(),
            built: None,
            tried: false,
            unless_offline: false,
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word}: a value is missing"));
            match word.as_str() {
                "tarball" => options.kinds.push(Kind::Archive),
                "deb" => options.kinds.push(Kind::Deb),
                "static" => options.kinds.push(Kind::Static),
                "wheel" => options.kinds.push(Kind::Wheel),
                "--out" => options.out = value()?.into(),
                "--profile" => options.profile = value()?,
                "--built" => options.built = Some(value()?.into()),
                "--unless-offline" => options.unless_offline = true,
                "--try" => options.tried = true,
                _ => bail!(
                    "unknown word {word:?}: cargo xtask package tarball|deb|wheel|static ... [--out FOLDER] \
                     [--profile dist] [--built FOLDER] [--try] \
                     [--unless-offline]"
                ),
            }
        }
        ensure!(
            !options.kinds.is_empty(),
            "name what to make: tarball, deb, wheel, static, or several"
        );
        ensure!(
            options.built.is_none() || !options.kinds.contains(&Kind::Static),
            "static is built for musl, which no folder of --built has"
        );
        Ok(options)
    }
}

/// Builds, stages once and packs.
pub(crate) fn run(root: &Path, words: impl Iterator<Item = String>) -> Result<()> {
    let root = &root.canonicalize().with_context(|| root.display().to_string())?;
    let options = Options::read(root, words)?;
    if options.unless_offline
        && let Err(why) = wheel::ready(root)
    {
        say(&format!(
            "no wheel was made or tried, since pip does not bring what that takes: {why:#}"
        ));
        return Ok(());
    }
    let built = match &options.built {
        Some(folder) => Built::in_folder(folder),
        None => made(root, &options.profile)?,
    };
    let stage = Stage::of(root, &built)?;
    std::fs::create_dir_all(&options.out)?;
    for kind in &options.kinds {
        let made = match kind {
            Kind::Archive => archive::pack(&stage, &options.out)?,
            Kind::Deb => deb::pack(root, &stage, &options.out)?,
            Kind::Static => archive::pack_static(root, &options.profile, &stage, &options.out)?,
            Kind::Wheel => wheel::pack(root, &stage, &options.out)?,
        };
        for file in &made {
            let bytes = std::fs::metadata(file).with_context(|| file.display().to_string())?.len();
            say(&format!("{}: {bytes} bytes", file.display()));
        }
        if options.tried {
            match kind {
                Kind::Archive => archive::attempt(&made, &stage, "unpacked")?,
                Kind::Static => archive::attempt(&made, &stage, "unpacked-static")?,
                Kind::Deb => deb::attempt(root, &made, &stage)?,
                Kind::Wheel => wheel::attempt(root, &made, &stage)?,
            }
        }
    }
    Ok(())
}

/// Builds for the oldest C library that is supported, or for this machine's where nothing links with an older one.
fn made(root: &Path, profile: &str) -> Result<Built> {
    match Zig::brought(root) {
        Ok(zig) => build_for_floor(root, profile, &zig),
        Err(why) => {
            say(&format!(
                "linked with this machine's C library, since pip does not bring what links with an older one: {why:#}"
            ));
            build(root, profile)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_nonsense_is_refused() {
        let of =
            |line: &str| Options::read(Path::new("r"), line.split_whitespace().map(str::to_owned));
        let found = of("deb wheel --profile dev --out o").expect("sound");
        assert_eq!(found.kinds, [Kind::Deb, Kind::Wheel]);
        assert!(!found.tried && found.out == Path::new("o"));
        assert_eq!(of("tarball").expect("sound").profile, "dist");
        for line in ["", "rpm", "deb --out", "--try", "static --built o"] {
            assert!(of(line).is_err(), "{line}");
        }
    }

    #[test]
    fn python_has_the_version_of_everything_else() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let project = std::fs::read_to_string(root.join("python/pyproject.toml")).expect("there");
        let project: toml::Table = project.parse().expect("TOML");
        let version = stage::version(&root).expect("there");
        assert_eq!(project["project"]["version"].as_str(), Some(version.as_str()));
    }
}
