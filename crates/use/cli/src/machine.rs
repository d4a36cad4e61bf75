//! `isochrone machine`: this machine, or one from text, with every caveat.

use std::process::ExitCode;

use anyhow::Result;
use isochrone_host::{SysRoot, bundled_machines, find_machine, machine_state, this_machine};
use isochrone_machine::{Machine, spans};
use isochrone_report::{fmt, table::Table};

use crate::args::MachineArgs;
use crate::output::Terminal;

/// Runs the command.
pub(crate) fn run(args: &MachineArgs, terminal: &Terminal) -> Result<ExitCode> {
    if args.list {
        let mut table = Table::new(["name", "machine", "cores", "regions"]);
        for machine in bundled_machines()? {
            table.row([
                machine.name.clone().into(),
                machine.title.clone().into(),
                machine.cores.len().to_string().into(),
                machine.regions.len().to_string().into(),
            ]);
        }
        terminal.print(&table.to_terminal(u16::try_from(terminal.width).unwrap_or(80)))?;
        return Ok(ExitCode::SUCCESS);
    }
    let machine = match &args.name {
        Some(name) => find_machine(name)?,
        None => this_machine(&SysRoot::live())?,
    };
    if args.json {
        terminal.print(&serde_json::to_string_pretty(&machine)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    terminal.print(&described(&machine, terminal))?;
    if args.name.is_none() {
        let state = machine_state(&SysRoot::live());
        terminal.print(&format!("state\n{}", serde_json::to_string_pretty(&state)?))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn described(machine: &Machine, terminal: &Terminal) -> String {
    let cores: Vec<u16> = machine.cores.iter().map(|c| c.id).collect();
    let mut lines = vec![machine.title.clone(), format!("cores    {}", spans(&cores))];
    for region in &machine.regions {
        let bytes = region.bytes.map_or_else(|| "size unknown".into(), fmt::bytes);
        lines.push(format!("region {} {bytes}, cores {}", region.id, spans(&region.cores)));
    }
    for cache in &machine.caches {
        let size = cache.bytes.map_or_else(|| "size unknown".into(), fmt::bytes);
        lines.push(format!("L{} {size} for cores {}", cache.level, spans(&cache.shared_by)));
    }
    if !machine.costs.is_empty() {
        let mut table = Table::new(["cost", "value", "unit", "what"]);
        for cost in &machine.costs {
            let value = cost.number().map_or_else(|| "unknown".into(), |v| v.to_string());
            table.row([
                cost.name.clone().into(),
                value.into(),
                cost.unit().into(),
                cost.what.clone().into(),
            ]);
        }
        lines.push(table.to_terminal(u16::try_from(terminal.width).unwrap_or(80)));
    }
    lines.extend(machine.caveats().into_iter().map(|c| format!("caveat: {c}")));
    lines.join("\n")
}
