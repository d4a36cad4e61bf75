//! How a run is set up: from what C says to the runtime's settings.

use super::text;
use crate::sized::{OfC, read};
use crate::status::{Failure, Status, note};
use isochrone_host::{SysRoot, this_machine};
use isochrone_tasks::live::{Config, fitting_workers};
use isochrone_tasks::{Measured, Policy, Regime, Topology};
use std::ffi::c_char;
use std::path::Path;

/// How a run is set up, `isochrone_tasks_options` in C.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct IsochroneTasksOptions {
    /// Bytes of this struct, or 0.
    pub size: u64,
    /// A regime's name, or null.
    pub regime: *const c_char,
    /// A policy's name, or null.
    pub policy: *const c_char,
    /// Workers, or 0.
    pub workers: u32,
    /// [`PROCESSES`], [`UNPINNED`], [`TRACED`].
    pub flags: u32,
    /// The path of an atlas, or null.
    pub atlas: *const c_char,
    /// Addresses for data where workers are processes, in bytes, or 0.
    pub data_bytes: u64,
    /// Must be zeros.
    pub reserved: [u64; 4],
}

// SAFETY: numbers and pointers that may be null, without padding.
unsafe impl OfC for IsochroneTasksOptions {
    const FIRST: usize = size_of::<Self>();
}

/// `ISOCHRONE_TASKS_PROCESSES`.
pub const PROCESSES: u32 = 1;
/// `ISOCHRONE_TASKS_UNPINNED`.
pub const UNPINNED: u32 = 2;
/// `ISOCHRONE_TASKS_TRACED`.
pub const TRACED: u32 = 4;

/// Addresses for data at most: half of what a process has on x86-64.
const DATA_MOST: usize = 1 << 46;
/// Tasks of each worker that a trace keeps: some 50 MB.
const TRACED_MAX: u32 = 1 << 20;

/// What the options come to.
///
/// # Safety
/// Null, or points to options.
pub(super) unsafe fn config(options: *const IsochroneTasksOptions) -> Result<Config, Failure> {
    // SAFETY: the caller vouches for it.
    let options = unsafe { read(options) }?;
    let IsochroneTasksOptions { regime, policy, atlas, workers, flags, .. } = options;
    if flags & !(PROCESSES | UNPINNED | TRACED) != 0 || options.reserved != [0; 4] {
        return Err(Failure::argument(
            "options have flags that this library does not know; set what is unused to 0",
        ));
    }
    // SAFETY: the caller vouches for what the options point to.
    let regime = unsafe { text(regime, "regime") }?;
    // SAFETY: as above.
    let policy = unsafe { text(policy, "policy") }?;
    // SAFETY: as above.
    let atlas = unsafe { text(atlas, "atlas") }?;
    let regime: Regime =
        regime.map_or(Ok(Regime::Isochrone), str::parse).map_err(Failure::argument)?;
    let machine = this_machine(&SysRoot::live())
        .map_err(|error| Failure { status: Status::System, words: error.to_string() })?;
    let workers = match usize::try_from(workers).unwrap_or(usize::MAX) {
        0 => fitting_workers(),
        workers => workers,
    };
    let topology = measured(Topology::of(&machine), atlas.map(Path::new))?;
    let mut config = Config::new(regime, workers, topology);
    if let Some(name) = policy {
        config.setup.policy = Policy::preset(name).ok_or_else(|| {
            let names: Vec<&str> = Policy::PRESETS.iter().map(|preset| preset.name).collect();
            Failure::argument(format!("{name:?} is no policy; choose {}", names.join(", ")))
        })?;
    }
    config.processes = flags & PROCESSES != 0;
    config.pin = flags & UNPINNED == 0;
    if options.data_bytes > 0 {
        let bytes = usize::try_from(options.data_bytes).ok().filter(|bytes| *bytes <= DATA_MOST);
        config.data_bytes = Some(bytes.ok_or_else(|| {
            Failure::argument(format!(
                "{} bytes for data; the most is {DATA_MOST}",
                options.data_bytes
            ))
        })?);
    }
    if flags & TRACED != 0 {
        config.setup.capacity.trace = TRACED_MAX;
    }
    Ok(config)
}

/// The machine with what an atlas measured for costs: the one that was named, or else the one that every part of
/// Isochrone goes by. Only one that was named must be there and be of this machine.
fn measured(topology: Topology, named: Option<&Path>) -> Result<Topology, Failure> {
    if named.is_none() && topology.regions() < 2 {
        // Nothing to choose between.
        return Ok(topology);
    }
    let found = match (crate::atlas::find(named), named) {
        (Ok(Some(found)), _) => found,
        (Ok(None), _) => return Ok(topology),
        (Err(words), Some(_)) => return Err(Failure::argument(words)),
        (Err(words), None) => {
            note(&words);
            return Ok(topology);
        }
    };
    let several = topology.regions() > 1;
    let atlas = found.atlas.atlas().map_err(|error| Failure::argument(error.to_string()))?;
    match topology.measured(&atlas) {
        (_, Measured::Nothing) if several && named.is_some() => Err(Failure::argument(format!(
            "{} has no latencies between all regions of this machine; make it anew with isochrone map",
            found.path.display()
        ))),
        (topology, _) => Ok(topology),
    }
}
