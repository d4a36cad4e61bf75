//! Which atlas a program goes by: the one that was named, the one of the environment, the one in this folder,
//! or the one that is kept from before, the first that is there and is of this machine.
//!
//! Commands and libraries ask here, so that all of them go by the same one. An atlas is of this machine if the
//! hash in its header is that of the machine's fingerprint. One that somebody named is refused where it is not;
//! the others are passed over. Each refusal is one line. Nothing here reads the environment, prints, measures,
//! or parses the description in an atlas, unless the caller wants words for what differs.

#![forbid(unsafe_code)]

mod identity;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use isochrone_atlas_store::{LoadError, MappedAtlas, load};

pub use identity::Identity;

/// The environment variable that names an atlas.
pub const VARIABLE: &str = "ISOCHRONE_ATLAS";
/// What an atlas is called where no name was given: `isochrone map` leaves it in the current folder.
pub const HERE: &str = "isochrone.atlas";

/// Where an atlas may lie; each place that is `None` is not looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// Named by whoever asks, as by `--atlas`. Nothing else is looked at then.
    pub named: Option<PathBuf>,
    /// Named by [`VARIABLE`]; the places below are not looked at then.
    pub variable: Option<PathBuf>,
    /// In the current folder: usually [`HERE`].
    pub here: Option<PathBuf>,
    /// The user's cache folder, below which atlases are kept by fingerprint.
    pub cache: Option<PathBuf>,
}

/// How it is found out whether an atlas is of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// By the hashes alone, as in a program that is not ours: no description is parsed.
    Hash,
    /// Where hashes differ, by the words as well, which say what differs.
    Words,
}

/// Why an atlas is not used; one line.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// It is no atlas, or cannot be read; its path is in the words.
    #[error(transparent)]
    Unusable(#[from] LoadError),
    /// It is of another machine; the words that differ, where they were asked for.
    #[error("{} is of another machine{}: measure this one with `isochrone map`", .0.display(), between(.1.as_ref()))]
    OtherMachine(PathBuf, Option<(String, String)>),
}

/// An atlas of this machine.
#[derive(Debug)]
pub struct Found {
    /// The file, as an absolute path where the system says it.
    pub path: PathBuf,
    /// The atlas, mapped and checked.
    pub atlas: MappedAtlas,
}

/// What was found, and what was passed over on the way, each with its line.
#[derive(Debug, Default)]
pub struct Answer {
    /// The atlas; `None` where no place has one.
    pub found: Option<Found>,
    /// Atlases that were there but were not named by anybody, and cannot be used.
    pub passed_over: Vec<Refusal>,
}

fn between(words: Option<&(String, String)>) -> String {
    words.map(|(theirs, ours)| format!(" (`{theirs}`, here `{ours}`)")).unwrap_or_default()
}

impl Places {
    /// The atlas of the machine `of` that a program goes by.
    ///
    /// # Errors
    /// Why an atlas that was named, or that the environment names, cannot be used. Whoever has a rule without
    /// distances says that line and goes by the rule.
    pub fn find(&self, of: &Identity, check: Check) -> Result<Answer, Refusal> {
        if let Some(path) = self.named.as_ref().or(self.variable.as_ref()) {
            let found = Some(open(path, of, check)?);
            return Ok(Answer { found, passed_over: Vec::new() });
        }
        let kept =
            self.cache.as_deref().map(|cache| [kept(cache, of.hash), kept(cache, of.counted_hash)]);
        let mut answer = Answer::default();
        for path in self.here.iter().cloned().chain(kept.into_iter().flatten()) {
            if !path.exists() {
                continue;
            }
            match open(&path, of, check) {
                Ok(found) => {
                    answer.found = Some(found);
                    break;
                }
                Err(refusal) => answer.passed_over.push(refusal),
            }
        }
        Ok(answer)
    }
}

/// The user's folder for what can be made again (XDG Base Directory Specification), from the values of
/// `XDG_CACHE_HOME` and `HOME`; relative ones count for nothing.
#[must_use]
pub fn cache_folder(cache_home: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let folder = |value: Option<OsString>| value.map(PathBuf::from).filter(|p| p.is_absolute());
    folder(cache_home).or_else(|| Some(folder(home)?.join(".cache")))
}

/// Where the atlas of a machine is kept below the user's cache folder.
#[must_use]
pub fn kept(cache: &Path, hash: u64) -> PathBuf {
    cache.join("isochrone").join(format!("{hash:016x}.atlas"))
}

fn open(path: &Path, of: &Identity, check: Check) -> Result<Found, Refusal> {
    let mapped = MappedAtlas::open(path)?;
    let hash = mapped.atlas().map_err(LoadError::from)?.fingerprint();
    if !of.has(hash) {
        let differ = match check {
            Check::Hash => None,
            Check::Words => {
                let words = load(path)?.fingerprint.words;
                let Some(differ) = of.differs_from(&words) else { return Ok(at(path, mapped)) };
                Some(differ)
            }
        };
        return Err(Refusal::OtherMachine(path.to_owned(), differ));
    }
    Ok(at(path, mapped))
}

fn at(path: &Path, atlas: MappedAtlas) -> Found {
    Found { path: path.canonicalize().unwrap_or_else(|_| path.to_owned()), atlas }
}

#[cfg(test)]
mod tests;
