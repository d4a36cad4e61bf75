//! The arms: allocators that are preloaded, and ours over them, which is told one of two things.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use isochrone_atlas_store::contents::Contents;
use isochrone_console::run::aside;
use isochrone_malloc::{Config, PathBytes};
use std::os::unix::ffi::OsStrExt as _;

pub(super) const BASE: &str = "glibc";
pub(super) const AGAIN: &str = "glibc again";
pub(super) const OURS: &str = "isochrone";
/// What stands behind the name of an arm whose library steps aside.
const ASIDE: &str = "aside";

/// What our library is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// To place, whatever is to be gained: what placing costs is to be seen where it gains nothing, too.
    Forced,
    /// An atlas that fits no machine, by which it steps aside.
    Aside,
}

/// An allocator to preload.
#[derive(Clone, Debug)]
pub(super) struct Arm {
    pub(super) name: String,
    /// Libraries in the order in which symbols are looked up.
    pub(super) preload: Vec<PathBuf>,
    /// What ours is told, where it is one of them.
    pub(super) told: Option<Told>,
    /// The arm that ours is a layer over.
    pub(super) below: Option<String>,
}

impl Arm {
    pub(super) fn plain(name: &str, library: Option<PathBuf>) -> Self {
        let preload = library.into_iter().collect();
        Self { name: name.to_owned(), preload, told: None, below: None }
    }
}

/// An allocator, the same again as a control where it is the base, and ours over it, stepped aside and placing.
pub(super) fn plain_and_ours(name: &str, library: Option<PathBuf>, ours: &Path) -> Vec<Arm> {
    let is_base = name == BASE;
    let over = |named: String, told| Arm {
        name: named,
        preload: std::iter::once(ours.to_owned()).chain(library.clone()).collect(),
        told: Some(told),
        below: Some(name.to_owned()),
    };
    let placing = if is_base { OURS.to_owned() } else { format!("{name} + {OURS}") };
    let aside = format!("{placing} {ASIDE}");
    let again = Arm::plain(&format!("{name} again"), library.clone());
    vec![
        Arm::plain(name, library.clone()),
        again,
        over(placing, Told::Forced),
        over(aside, Told::Aside),
    ]
}

/// What our library is told in its arms, in files.
#[derive(Debug)]
pub(super) struct Configs {
    forced: PathBuf,
    aside: PathBuf,
}

impl Configs {
    /// Writes them into a folder; `config` is that of who places.
    pub(super) fn write(config: Config, contents: &Contents, folder: &Path) -> Result<Self> {
        let strange = aside::atlas(contents, folder)?;
        let strange = PathBytes::new(strange.as_os_str().as_bytes()).context("too long a path")?;
        let (forced, aside) = (folder.join("forced"), folder.join("aside"));
        std::fs::write(&aside, Config { atlas: strange, ..config.clone() }.to_bytes())?;
        std::fs::write(&forced, Config { force: true, ..config }.to_bytes())?;
        Ok(Self { forced, aside })
    }

    pub(super) fn of(&self, told: Told) -> &Path {
        match told {
            Told::Forced => &self.forced,
            Told::Aside => &self.aside,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_stands_before_what_it_is_a_layer_over() {
        let arms = plain_and_ours("mimalloc", Some("m.so".into()), Path::new("ours.so"));
        let names: Vec<&str> = arms.iter().map(|arm| arm.name.as_str()).collect();
        let ours = "mimalloc + isochrone";
        assert_eq!(names, ["mimalloc", "mimalloc again", ours, &format!("{ours} aside")]);
        assert_eq!(arms[2].preload, [Path::new("ours.so"), Path::new("m.so")]);
        assert_eq!((arms[2].told, arms[3].told), (Some(Told::Forced), Some(Told::Aside)));
        assert_eq!(arms[3].below.as_deref(), Some("mimalloc"));
        let arms = plain_and_ours("glibc", None, Path::new("ours.so"));
        assert_eq!((arms[1].name.as_str(), arms[2].name.as_str()), (AGAIN, OURS));
        assert!(arms[0].preload.is_empty() && arms[2].preload.len() == 1);
    }
}
