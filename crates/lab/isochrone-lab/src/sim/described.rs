//! The machine that a simulated run is of.

use anyhow::Result;
use isochrone_host::find_machine;
use isochrone_machine::Machine;
use isochrone_sim::coherence::NumaSpec;

/// A machine and what it means as a coherent one.
pub(crate) fn machine(name: &str) -> Result<(Machine, NumaSpec)> {
    let machine = find_machine(name)?;
    let spec = NumaSpec::of(&machine)?;
    Ok((machine, spec))
}
