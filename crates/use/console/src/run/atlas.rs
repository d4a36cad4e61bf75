//! Which atlas is used: as [`isochrone_places`] finds it, or a quick one that is measured now and kept.
//!
//! A refusal is complained of in one line. An atlas is measured in a process of its own, which leaves no pinned
//! threads and no handlers behind.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use isochrone_alloc::Policy;
use isochrone_atlas_store::contents::Contents;
use isochrone_atlas_store::{MappedAtlas, load, save};
use isochrone_malloc::{Instance, Settings};
pub use isochrone_places::HERE;
use isochrone_places::{Check, Identity, Places, kept};
use isochrone_units::CoreId;

use super::ended::{alone, ended};
use crate::output::{self, Terminal};
use crate::partner;

/// What is said where this machine has no atlas.
pub const NONE: &str = "no atlas of this machine: run `isochrone map`";
/// What is said where one is measured instead.
const QUICK: &str = "measuring a quick one for now, about 6 s";
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
    /// The same for queries.
    pub atlas: MappedAtlas,
}

impl Found {
    fn new(path: &Path) -> Result<Self> {
        let path = path.canonicalize().with_context(|| path.display().to_string())?;
        let (contents, atlas) = (load(&path)?, MappedAtlas::open(&path)?);
        Ok(Self { path, contents, atlas })
    }
}

/// This machine's atlas, where there is one. `named` is what the user named on the command line.
///
/// # Errors
/// Why an atlas that was named, there or by the environment, cannot be used.
pub fn known(named: Option<&Path>, terminal: &Terminal) -> Result<Option<Found>> {
    known_of(named, &here()?, terminal)
}

/// The atlas that somebody named, there or by the environment; `None` where nobody did. A name is a wish: whoever
/// takes one asks here before anything else is done, even where there may be no need for an atlas.
///
/// # Errors
/// Why it cannot be used.
pub fn wished(named: Option<&Path>, terminal: &Terminal) -> Result<Option<Found>> {
    let places = Places::of(named, output::variable);
    if places.named.or(places.variable).is_none() {
        return Ok(None);
    }
    known(named, terminal)
}

/// The same as [`known`] for commands that do nothing without an atlas.
///
/// # Errors
/// As [`known`], and where there is none.
pub fn needed(named: Option<&Path>, terminal: &Terminal) -> Result<Found> {
    known(named, terminal)?.context(NONE)
}

fn known_of(named: Option<&Path>, us: &Identity, terminal: &Terminal) -> Result<Option<Found>> {
    let answer = Places::of(named, output::variable).find(us, Check::Words)?;
    for refusal in answer.passed_over {
        terminal.complain(&format!("isochrone: {refusal}; it is passed over"));
    }
    answer.found.map(|found| Found::new(&found.path)).transpose()
}

/// This machine's atlas, measured now where there is none, unless `stop` says that nobody wants it any more. In
/// `scratch` lies what can be kept nowhere.
///
/// # Errors
/// As [`known`], and where none can be measured, or it was stopped.
pub fn find(
    named: Option<&Path>,
    scratch: &Path,
    terminal: &Terminal,
    stop: Stop<'_>,
) -> Result<Found> {
    let us = here()?;
    if let Some(found) = known_of(named, &us, terminal)? {
        return Ok(found);
    }
    let place = output::cache_folder().map(|folder| kept(&folder, us.hash));
    measured(place.as_deref(), scratch, terminal, stop)
}

/// Whether nobody wants it any more.
pub type Stop<'a> = &'a dyn Fn() -> bool;

/// What bounds a search for an atlas that has what cores wear now.
pub struct Limits<'a> {
    /// Asked before an atlas is measured: whether there is time for it.
    pub time_for_a_map: &'a dyn Fn() -> bool,
    /// Whether nobody wants it any more.
    pub stop: Stop<'a>,
}

impl std::fmt::Debug for Limits<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Limits").finish_non_exhaustive()
    }
}

/// What came of such a search.
#[derive(Debug)]
pub struct Fresh {
    /// An atlas that was measured anew.
    pub found: Option<Found>,
    /// Whether the cores wear bases of it, or of the one before.
    pub worn: bool,
}

/// An atlas, measured anew within limits, that has what these cores wear now, if this one has not. A host moves
/// virtual CPUs to cores that no map has seen, and then nothing can be placed.
///
/// # Errors
/// Where cores cannot be looked from, no atlas can be measured, or it was stopped.
pub fn fresh(
    found: &Found,
    cores: &[CoreId],
    scratch: &Path,
    terminal: &Terminal,
    limits: &Limits<'_>,
) -> Result<Fresh> {
    let mut new = None;
    for _ in 0..MAPS {
        if is_worn(new.as_ref().unwrap_or(found), cores)? {
            return Ok(Fresh { found: new, worn: true });
        }
        if !(limits.time_for_a_map)() {
            break;
        }
        terminal.complain(
            "isochrone: the cores see the last-level cache from where the atlas does not know it: \
             measuring anew, about 6 s",
        );
        new = Some(quick(BLOCK, scratch, limits.stop)?);
    }
    Ok(Fresh { found: new, worn: false })
}

/// Whether each of the cores wears a base of the atlas.
fn is_worn(found: &Found, cores: &[CoreId]) -> Result<bool> {
    for core in cores.iter().take(LOOKED_AT) {
        let settings = Settings {
            atlas: found.atlas.bytes(),
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

/// By what this machine is known.
fn here() -> Result<Identity> {
    Identity::of_this_machine().context("this machine cannot be described")
}

/// A quick atlas, kept in `kept` where that can be written.
fn measured(
    kept: Option<&Path>,
    scratch: &Path,
    terminal: &Terminal,
    stop: Stop<'_>,
) -> Result<Found> {
    let found = quick_for_now(BLOCK, scratch, terminal, stop)?;
    let Some(kept) = kept else { return Ok(found) };
    match keep(&found.contents, kept) {
        Ok(()) => {
            terminal.complain(&format!("isochrone: kept as {}", kept.display()));
            Found::new(kept)
        }
        Err(error) => {
            terminal.complain(&format!(
                "isochrone: the atlas cannot be kept, the next run measures again: {error:#}"
            ));
            Ok(found)
        }
    }
}

/// The same as [`quick`] where there is no atlas, which is said.
///
/// # Errors
/// As [`quick`].
pub fn quick_for_now(
    only: &str,
    scratch: &Path,
    terminal: &Terminal,
    stop: Stop<'_>,
) -> Result<Found> {
    terminal.complain(&format!("isochrone: {NONE}; {QUICK}"));
    quick(only, scratch, stop)
}

/// A quick atlas in `scratch` with the results of these experiments, as `map --only` has them, unless `stop`
/// says that nobody wants it any more.
///
/// # Errors
/// Where it cannot be measured, or was stopped.
pub fn quick(only: &str, scratch: &Path, stop: Stop<'_>) -> Result<Found> {
    let place = scratch.join(HERE);
    let mut map = partner::command()?;
    map.args(["map", "--quiet", "--force", "--quick", "--only", only, "--out"])
        .arg(&place)
        .arg("--html")
        .arg(scratch.join("report.html"))
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    alone(&mut map);
    let mut child = map.spawn().context("the map cannot be started")?;
    let status = ended(&mut child, stop)?.context("the quick map was ended before its time")?;
    ensure!(status.success(), "the quick map did not end well: try `isochrone map` alone");
    Found::new(&place)
}

/// Saves an atlas in a folder that need not be there yet.
pub fn keep(contents: &Contents, place: &Path) -> Result<()> {
    if let Some(folder) = place.parent() {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    save(contents, place)?;
    Ok(())
}
