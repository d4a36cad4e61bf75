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
use isochrone_places::{Check, HERE, Identity, Places, kept};
use isochrone_units::CoreId;

use crate::output::{self, Terminal};
use crate::partner;

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

/// The same for commands that do nothing without an atlas.
///
/// # Errors
/// As [`known`], and where there is none.
pub fn needed(named: Option<&Path>, terminal: &Terminal) -> Result<Found> {
    known(named, terminal)?
        .context("there is no atlas of this machine yet: measure one with `isochrone map`")
}

fn known_of(named: Option<&Path>, us: &Identity, terminal: &Terminal) -> Result<Option<Found>> {
    let answer = Places::of(named, output::variable).find(us, Check::Words)?;
    for refusal in answer.passed_over {
        terminal.complain(&format!("isochrone: {refusal}; it is passed over"));
    }
    answer.found.map(|found| Found::new(&found.path)).transpose()
}

/// This machine's atlas, measured now where there is none. In `scratch` lies what can be kept nowhere.
///
/// # Errors
/// As [`known`], and where none can be measured.
pub fn find(named: Option<&Path>, scratch: &Path, terminal: &Terminal) -> Result<Found> {
    let us = here()?;
    if let Some(found) = known_of(named, &us, terminal)? {
        return Ok(found);
    }
    let place = output::cache_folder().map(|folder| kept(&folder, us.hash));
    measured(place.as_deref(), scratch, terminal)
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
