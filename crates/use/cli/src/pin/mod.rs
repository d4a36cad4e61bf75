//! `isochrone pin`: the order in which `run --pin` fills cores, as others take it; and where memory is best for them.
//!
//! Nothing is measured and nothing is bound. Without an atlas cores are taken by their numbers, which is said.

mod forms;
mod memory;

use std::borrow::Cow;
use std::process::ExitCode;

use anyhow::Result;
use isochrone_console::run::atlas::{self, Found};
use isochrone_console::run::setup::{self, Binding, By};
use isochrone_distance::Unknown;
use isochrone_host::{SysRoot, this_machine};
use isochrone_machine::{Machine, spans};
use isochrone_units::CoreId;

use crate::args::PinArgs;
use isochrone_console::output::{Terminal, WrongUsage};

/// The order of cores is that of their numbers, though there is an atlas.
const BY_NUMBERS: &str =
    "cores are taken by their numbers: the atlas has no groups that tell these cores apart";

/// Runs the command.
pub(crate) fn run(args: &PinArgs, terminal: &Terminal) -> Result<ExitCode> {
    let found = atlas::known(args.atlas.as_deref(), terminal)?;
    let cores = cores(args, found.as_ref(), terminal)?;
    let machine = machine(found.as_ref())?;
    let lines = match args.memory {
        true => memory::lines(found.as_ref(), machine.regions.len(), &cores, terminal)?,
        false => forms::lines(args.form, &cores, machine.cores.len()),
    };
    terminal.print(&lines.join("\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// The machine that the atlas is of, or without one this machine.
fn machine(found: Option<&Found>) -> Result<Cow<'_, Machine>> {
    Ok(match found {
        Some(found) => Cow::Borrowed(&found.contents.machine),
        None => Cow::Owned(this_machine(&SysRoot::live())?),
    })
}

/// The cores that are asked for, in their order.
fn cores(args: &PinArgs, found: Option<&Found>, terminal: &Terminal) -> Result<Vec<CoreId>> {
    let binding = binding(args, found)?;
    let count = args.count.map_or(binding.cores.len(), usize::from);
    if count > binding.cores.len() {
        let usable: Vec<u16> = binding.cores.iter().map(|core| core.0).collect();
        return Err(WrongUsage::error(format!(
            "{count} cores are asked for: this process may use {}, by their numbers {}",
            usable.len(),
            spans(&usable)
        )));
    }
    match (found, binding.by) {
        (None, _) => {
            terminal
                .complain(&format!("isochrone: {}; cores are taken by their numbers", atlas::NONE));
        }
        (Some(_), Some(By::Numbers)) => terminal.complain(&format!("isochrone: {BY_NUMBERS}")),
        _ => {}
    }
    Ok(binding.in_order().take(count).collect())
}

fn binding(args: &PinArgs, found: Option<&Found>) -> Result<Binding> {
    let pin = args.order.into();
    Ok(match found {
        Some(found) => setup::binding(pin, setup::cores(&found.contents)?, &found.atlas.atlas()?),
        None => setup::binding(pin, setup::allowed_cores()?, &Unknown),
    })
}
