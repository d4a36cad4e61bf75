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
    /// Where programs look: at what the caller has named, then where the variables say, of which `variable` knows
    /// the values; one that is empty counts for nothing.
    #[must_use]
    pub fn of(named: Option<&Path>, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        Self {
            named: named.map(Path::to_owned),
            variable: variable(VARIABLE).map(PathBuf::from),
            here: Some(PathBuf::from(HERE)),
            cache: cache_folder(variable("XDG_CACHE_HOME"), variable("HOME")),
        }
    }

    /// Whether there is anything at any of these places that may have an atlas: a look that takes some microseconds,
    /// for those to whom more would be too much for nothing.
    #[must_use]
    pub fn may_have_one(&self) -> bool {
        let kept = self.cache.as_deref().map(folder);
        self.named.is_some()
            || self.variable.is_some()
            || self.here.iter().chain(&kept).any(|place| place.exists())
    }

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

impl Places {
    /// The atlas of this machine, as libraries ask for it; nothing is described or read where there can be none.
    ///
    /// # Errors
    /// In words, why one that was named, or the last of those that were there, cannot be used.
    pub fn of_this_machine(&self, check: Check) -> Result<Option<Found>, String> {
        if !self.may_have_one() {
            return Ok(None);
        }
        let us = Identity::of_this_machine().map_err(|error| error.to_string())?;
        let mut answer = self.find(&us, check).map_err(|refusal| refusal.to_string())?;
        match (answer.found, answer.passed_over.pop()) {
            (None, Some(refusal)) => Err(refusal.to_string()),
            (found, _) => Ok(found),
        }
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
    folder(cache).join(format!("{hash:016x}.atlas"))
}

fn folder(cache: &Path) -> PathBuf {
    cache.join("isochrone")
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
