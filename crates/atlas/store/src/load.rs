//! Reads an atlas back: whole, as records, or mapped, for queries.
//!
//! A file is refused with its reason before anything of it is used. It never repairs.

use crate::contents::{Contents, PageBlock};
use crate::description;
use crate::error::LoadError;
use isochrone_atlas::format::{HEADER_BYTES, level_tag};
use isochrone_atlas::{Atlas, AtlasError};
use isochrone_units::{Level, Reading};
use memmap2::Mmap;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// Reads a whole atlas from a file. Measured lines come back sorted by core and frame.
///
/// # Errors
/// [`LoadError`] with the reason for which the file is refused.
pub fn load(path: &Path) -> Result<Contents, LoadError> {
    let io = |source| LoadError::from_io(path, source);
    let mut file = File::open(path).map_err(io)?;
    let mut bytes = Vec::new();
    // What is no atlas may be a disk, or have no end (/dev/zero).
    file.by_ref().take(HEADER_BYTES as u64).read_to_end(&mut bytes).map_err(io)?;
    if let Err(foreign @ AtlasError::Foreign) = Atlas::open(&bytes) {
        return Err(LoadError::from(foreign).in_file(path));
    }
    file.read_to_end(&mut bytes).map_err(io)?;
    decode(&bytes).map_err(|fault| fault.in_file(path))
}

/// Reads a whole atlas from its bytes.
///
/// # Errors
/// [`LoadError`] with the reason for which the bytes are refused.
pub fn decode(bytes: &[u8]) -> Result<Contents, LoadError> {
    let atlas = Atlas::open(bytes)?;
    let mut contents = description::read(&atlas)?;
    let told = if atlas.is_measured() { Reading::Measured } else { Reading::Simulated };
    if contents.complete != atlas.is_complete() || contents.reading != told {
        return Err(LoadError::Inconsistent("header and description differ"));
    }
    contents.pages = atlas
        .blocks()
        .map(|block| PageBlock {
            first_frame: block.first_frame,
            llc: Box::new(block.llc),
            dram: Box::new(block.dram),
        })
        .collect();
    for record in atlas.measured_lines() {
        let level = Level::ALL.into_iter().find(|level| level_tag(*level) == record.level);
        let named =
            contents.levels.iter_mut().find(|map| Some(&*map.level) == level.map(Level::as_str));
        let map = named.ok_or(LoadError::Inconsistent("lines of a level that is not there"))?;
        map.lines.push((record.frame, record.core, record.cycles.to_vec()));
    }
    for info in Level::ALL.into_iter().filter_map(|level| atlas.level(level)) {
        let map = contents.levels.iter_mut().find(|map| map.level == info.level.as_str());
        if let Some(map) = map.filter(|_| info.has_density()) {
            map.penalties = Some(info.penalties());
        }
    }
    Ok(contents)
}

/// An atlas file mapped into memory, read-only: pages of it are loaded when a query needs them.
#[derive(Debug)]
pub struct MappedAtlas {
    map: Mmap,
}

impl MappedAtlas {
    /// Maps a file and checks all of it once.
    ///
    /// # Errors
    /// [`LoadError`] with the reason for which the file is refused.
    pub fn open(path: &Path) -> Result<Self, LoadError> {
        let io = |source| LoadError::from_io(path, source);
        // Whoever opens a pipe waits for its writer, and a device has no end: asked before, since a command that runs a
        // program keeps its signals for that one, and would not be ended meanwhile.
        if !fs::metadata(path).map_err(io)?.is_file() {
            return Err(LoadError::NotAFile(path.to_owned()));
        }
        let file = File::open(path).map_err(io)?;
        #[allow(unsafe_code, reason = "the one mapping of this crate")]
        // SAFETY: the mapping is read-only and private to this value. A map is sound only while
        // nobody changes the file under it. This program never does: `save` writes another file
        // and renames it, which leaves a mapped one as it was. If somebody else overwrites the
        // file, queries give wrong numbers, since each value is checked where it is used; if
        // somebody truncates it, a query beyond the new end gets SIGBUS. `load` has neither
        // hazard.
        let map = unsafe { Mmap::map(&file) }.map_err(io)?;
        Atlas::open(&map).map_err(|fault| LoadError::from(fault).in_file(path))?;
        Ok(Self { map })
    }

    /// The atlas, for queries.
    ///
    /// # Errors
    /// [`AtlasError`] only if somebody overwrote the file since it was opened.
    pub fn atlas(&self) -> Result<Atlas<'_>, AtlasError> {
        Atlas::reopen(&self.map)
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.map
    }
}
