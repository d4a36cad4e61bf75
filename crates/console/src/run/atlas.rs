//! Which atlas is used: the one that was named, one in this folder, one kept from before, or a
//! quick one that is measured now and kept.
//!
//! An atlas of another machine is refused where it was named, and passed over where it was not.
//! It is measured in a process of its own, which leaves no pinned threads and no handlers behind.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail, ensure};
use isochrone_alloc::Policy;
use isochrone_atlas_store::contents::Contents;
use isochrone_atlas_store::{load, save};
use isochrone_host::{SysRoot, fingerprint, machine_state, this_machine};
use isochrone_malloc::{Instance, Settings};
use isochrone_units::CoreId;

use crate::output::Terminal;
use crate::partner;

/// Where `isochrone map` leaves its atlas.
const HERE: &str = "isochrone.atlas";
/// A word of the fingerprint that says how many cores a process may use, not which machine it is.
const MAY_DIFFER: &str = "cores: ";
/// Maps that are measured at most until one has what cores wear: a CPU that a host moves all the
/// time wears nothing for long enough.
const MAPS: usize = 3;
/// Cores that are looked at, each for a tenth of a second at most.
const LOOKED_AT: usize = 4;
/// The experiment that the allocator needs.
const BLOCK: &str = "block";
/// Memory that a look takes.
const ARENA_BYTES: u64 = 4 << 20;

/// An atlas and where it lies; the library reads the file itself.
#[derive(Debug)]
pub struct Found {
    /// The file, as an absolute path.
    pub path: PathBuf,
    /// What it holds.
    pub contents: Contents,
}

impl Found {
    fn new(path: &Path, contents: Contents) -> Result<Self> {
        let path = path.canonicalize().with_context(|| path.display().to_string())?;
        Ok(Self { path, contents })
    }
}

/// This machine's atlas. `cache` is the user's cache folder, where there is one; in `scratch` lies
/// what can be kept nowhere.
pub fn find(
    named: Option<&Path>,
    cache: Option<PathBuf>,
    scratch: &Path,
    terminal: &Terminal,
) -> Result<Found> {
    let (words, hash) = here()?;
    if let Some(named) = named {
        let contents = load(named)?;
        if let Some((theirs, ours)) = differs(&contents.fingerprint.words, &words) {
            bail!(
                "{} is of another machine (`{theirs}`, here `{ours}`): measure this one with \
                 `isochrone map`",
                named.display()
            );
        }
        return Found::new(named, contents);
    }
    let kept = cache.map(|folder| kept(&folder, hash));
    for path in [Some(PathBuf::from(HERE)), kept.clone()].into_iter().flatten() {
        if !path.exists() {
            continue;
        }
        match load(&path) {
            Ok(found) if differs(&found.fingerprint.words, &words).is_none() => {
                return Found::new(&path, found);
            }
            Ok(_) => terminal.complain(&format!(
                "isochrone: {} is of another machine and is passed over",
                path.display()
            )),
            Err(error) => terminal.complain(&format!("isochrone: {error}; it is passed over")),
        }
    }
    measured(kept.as_deref(), scratch, terminal)
}

/// An atlas, measured anew, that has what these cores wear now; `None` if this one has. A host
/// moves virtual CPUs to cores that no map has seen, and then nothing can be placed.
pub fn fresh(
    found: &Found,
    cores: &[CoreId],
    scratch: &Path,
    terminal: &Terminal,
) -> Result<Option<Found>> {
    let mut new = None;
    for _ in 0..MAPS {
        if is_worn(new.as_ref().unwrap_or(found), cores)? {
            break;
        }
        terminal.complain(
            "isochrone: the cores see the last-level cache from where the atlas does not know it: \
             measuring anew, about 6 s",
        );
        new = Some(quick(BLOCK, scratch)?);
    }
    Ok(new)
}

/// Whether each of the cores wears a base of the atlas.
fn is_worn(found: &Found, cores: &[CoreId]) -> Result<bool> {
    let atlas = std::fs::read(&found.path).with_context(|| found.path.display().to_string())?;
    for core in cores.iter().take(LOOKED_AT) {
        let settings = Settings {
            atlas: &atlas,
            policy: Policy::default(),
            arena_bytes_max: ARENA_BYTES,
            huge_pages: true,
            cores: std::slice::from_ref(core),
        };
        if Instance::new(&settings)?.recognises()? != Some(true) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Where the atlas of a machine is kept below the user's cache folder.
pub fn kept(cache: &Path, hash: u64) -> PathBuf {
    cache.join("isochrone").join(format!("{hash:016x}.atlas"))
}

/// The words and the number by which this machine is known.
fn here() -> Result<(Vec<String>, u64)> {
    let root = SysRoot::live();
    let machine = this_machine(&root).context("this machine cannot be described")?;
    Ok(fingerprint(&machine, &machine_state(&root)))
}

/// The first word in which two machines differ.
pub fn differs<'a>(theirs: &'a [String], ours: &'a [String]) -> Option<(&'a str, &'a str)> {
    let counts = |word: &&String| !word.starts_with(MAY_DIFFER);
    let (mut a, mut b) = (theirs.iter().filter(counts), ours.iter().filter(counts));
    loop {
        match (a.next(), b.next()) {
            (None, None) => return None,
            (a, b) if a == b => {}
            (a, b) => {
                let word = |w: Option<&'a String>| w.map_or("nothing", String::as_str);
                return Some((word(a), word(b)));
            }
        }
    }
}

/// A quick atlas, kept in `kept` where that can be written.
fn measured(kept: Option<&Path>, scratch: &Path, terminal: &Terminal) -> Result<Found> {
    terminal.complain(
        "isochrone: no atlas of this machine yet: measuring a quick one first, about 6 s \
         (a full one: `isochrone map`)",
    );
    let found = quick(BLOCK, scratch)?;
    let Some(kept) = kept else { return Ok(found) };
    match keep(&found.contents, kept) {
        Ok(()) => {
            terminal.complain(&format!("isochrone: kept as {}", kept.display()));
            Found::new(kept, found.contents)
        }
        Err(error) => {
            terminal.complain(&format!(
                "isochrone: the atlas cannot be kept, the next run measures again: {error:#}"
            ));
            Ok(found)
        }
    }
}

/// A quick atlas in `scratch` with the results of these experiments, as `map --only` has them.
///
/// # Errors
/// Where it cannot be measured.
pub fn quick(only: &str, scratch: &Path) -> Result<Found> {
    let place = scratch.join(HERE);
    let status = partner::command()?
        .args(["map", "--force", "--quick", "--only", only, "--out"])
        .arg(&place)
        .arg("--html")
        .arg(scratch.join("report.html"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .context("the map cannot be started")?;
    ensure!(status.success(), "the quick map did not end well: try `isochrone map` alone");
    Found::new(&place, load(&place)?)
}

/// Saves an atlas in a folder that need not be there yet.
pub fn keep(contents: &Contents, place: &Path) -> Result<()> {
    if let Some(folder) = place.parent() {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    save(contents, place)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(cpu: &str, cores: u32) -> Vec<String> {
        vec![format!("cpu: {cpu}"), format!("cores: {cores}"), "memory: 24 GiB".into()]
    }

    #[test]
    fn a_machine_is_the_same_however_many_of_its_cores_may_be_used() {
        assert_eq!(differs(&words("A", 2), &words("A", 1)), None);
        assert_eq!(differs(&words("A", 2), &words("B", 2)), Some(("cpu: A", "cpu: B")));
        let shorter = words("A", 2)[..2].to_vec();
        assert_eq!(differs(&shorter, &words("A", 2)), Some(("nothing", "memory: 24 GiB")));
    }

    #[test]
    fn this_machine_is_itself() {
        let (words, hash) = here().unwrap();
        assert_eq!(differs(&words, &here().unwrap().0), None);
        assert_eq!(hash, here().unwrap().1);
    }
}
