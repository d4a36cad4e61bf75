//! `isochrone machine`: this machine, or one from text, with every caveat.

mod caches;
pub(crate) mod suits;

use std::process::ExitCode;

use anyhow::Result;
use isochrone_host::{
    SysRoot, bundled_machines, find_machine, machine_state, read_hwloc, this_machine,
};
use isochrone_machine::{Machine, MachineState, strides};
use isochrone_report::json::{self, Format};
use isochrone_report::lines::fit;
use isochrone_report::{fmt, table::Table};
use isochrone_view::state_rows;

use crate::args::MachineArgs;
use isochrone_console::output::Terminal;
use isochrone_console::written::{Place, each_written, on_stdout, write_to};

/// Runs the command.
pub(crate) fn run(args: &MachineArgs, terminal: &Terminal) -> Result<ExitCode> {
    if args.suits {
        return suits::run(args, terminal);
    }
    let [json] = Place::open_all([args.json.asked()])?;
    let alone = on_stdout(std::slice::from_ref(&json));
    if args.list {
        let machines = bundled_machines()?;
        // Each says what it is, since no list can.
        let stamped: Vec<_> =
            machines.iter().map(|machine| json::stamped(Format::Machine, machine)).collect();
        each_written([
            if alone { Ok(()) } else { terminal.print(&listed(&machines, terminal)) },
            write_to(json, terminal, || Ok(serde_json::to_string_pretty(&stamped)?)),
        ])?;
        return Ok(ExitCode::SUCCESS);
    }
    let machine = match (&args.name, &args.hwloc) {
        (Some(name), _) => find_machine(name)?,
        (None, Some(path)) => read_hwloc(path)?,
        (None, None) => this_machine(&SysRoot::live())?,
    };
    let is_this = args.name.is_none() && args.hwloc.is_none();
    let say = || {
        terminal.say(&described(&machine, terminal))?;
        let state = is_this.then(|| state(&machine_state(&SysRoot::live())));
        state.map_or(Ok(()), |state| terminal.say(&state))
    };
    each_written([
        if alone { Ok(()) } else { say() },
        write_to(json, terminal, || Ok(json::pretty(Format::Machine, &machine)?)),
    ])?;
    Ok(ExitCode::SUCCESS)
}

/// The machines that are described here, a row each.
fn listed(machines: &[Machine], terminal: &Terminal) -> String {
    let mut table = Table::new(["name", "machine", "cores", "regions"]);
    for machine in machines {
        table.row([
            machine.name.clone().into(),
            machine.title.clone().into(),
            machine.cores.len().to_string().into(),
            machine.regions.len().to_string().into(),
        ]);
    }
    table.to_terminal(terminal.columns())
}

/// What is known of the machine's state, a line each.
fn state(state: &MachineState) -> String {
    let known = state_rows(state).into_iter().filter_map(|(name, value)| Some((name, value?)));
    let lines: Vec<String> = known.map(|(name, value)| format!("{name}: {value}")).collect();
    lines.join("\n")
}

fn described(machine: &Machine, terminal: &Terminal) -> String {
    let cores: Vec<u16> = machine.cores.iter().map(|c| c.id).collect();
    let mut lines = vec![machine.title.clone(), format!("cores    {}", strides(&cores))];
    for region in &machine.regions {
        let bytes = region.bytes.map_or_else(|| "size unknown".into(), fmt::bytes);
        let cores = match region.cores.as_slice() {
            [] => "no cores".to_owned(),
            cores => format!("cores {}", strides(cores)),
        };
        lines.push(format!("region {} {bytes}, {cores}", region.id));
    }
    lines.extend(caches::rows(machine, terminal.width));
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
        lines.push(table.to_terminal(terminal.columns()));
    }
    lines.extend(machine.caveats().into_iter().map(|c| format!("caveat: {c}")));
    fit(&lines.join("\n"), terminal.width)
}
