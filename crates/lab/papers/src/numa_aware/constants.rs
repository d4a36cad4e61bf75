//! What a simulation rests on that nobody published: every constant that could be turned, counted.

use isochrone_machine::{Constant, Cost, Machine, Value};
use isochrone_report::fmt;
use isochrone_report::table::{Cell, Table};
use isochrone_tasks::simulated::Choices;
use isochrone_workloads::numa::SPAWN_NS;
use serde_json::{Value as Json, json};

/// Cells of the paper that constants were fitted on.
///
/// Messages of 16 and 80 bytes, and not of 8 and 72, because of the first; bits that stay, directories that hear of
/// what leaves and shared copies for readers elsewhere, because of the second; the poll of idle workers, because of
/// the third; that ranges which are read and written count twice, because of the fourth; a call to the system for
/// each large range that a task writes first, because of the fifth.
pub const FITTED_CELLS: [&str; 5] = [
    "J20, control of streamcluster under DI: 29 %",
    "J4, section 6.3: more SNP into the switches than out of them",
    "section 6.4: under DFT most data are in one module, and not in one socket",
    "Table 3b, DWB of Cholesky: -98 %",
    "J17, Figure 7: one outlier of the histogram under DFT at 96 threads",
];

/// Costs that change energy and nothing else.
const ENERGY: &str = "pJ/B";

/// All free constants of runs on a machine: those assumed in its file, and those of the runtime.
pub fn constants(machine: &Machine) -> Vec<Constant> {
    let assumed = machine.costs.iter().filter(|cost| cost.unit() != ENERGY).filter_map(|cost| {
        let value = cost.assumed()?.clone();
        let Cost { name, what, .. } = cost.clone();
        Some(Constant { name, what, value })
    });
    let choices = Choices::default();
    #[allow(clippy::cast_precision_loss, reason = "small numbers")]
    let of_runtime = [
        (
            "registering a task",
            SPAWN_NS as f64,
            "ns",
            "StarPU's documentation: tasks of 128 us for 30 to 36 cores",
        ),
        (
            "taking and ending a task",
            choices.task_ns,
            "ns",
            "some cache misses and atomic operations",
        ),
        ("page", choices.page_bytes as f64, "B", "transparent huge pages of RHEL 6"),
        ("page fault", choices.fault_ns, "ns", "clearing 2 MiB at 8 GB/s"),
        ("allocation", choices.allocation_ns, "ns", "a call to mmap"),
        (
            "poll",
            choices.poll_ns,
            "ns",
            "how late an idle worker looks at its queue, at most: a call of sched_yield",
        ),
    ]
    .map(|(name, value, unit, why)| Constant::new(name, Value::assumed(value, unit, why)));
    assumed.chain(of_runtime).collect()
}

/// Constants for programs. A range is `null` where none is swept.
pub fn to_json(constants: &[Constant]) -> Json {
    let one = |Constant { name, value, .. }: &Constant| {
        json!({ "name": name, "value": value.number, "unit": value.unit,
                "range": value.interval.ends(), "why": value.source })
    };
    constants.iter().map(one).collect()
}

/// The free constants as a table.
pub fn constants_table(free: &[Constant]) -> Table {
    let mut table = Table::new(["constant", "value", "unit", "range", "why"]);
    for constant in free {
        let Constant { name, value, .. } = constant;
        let range = value.interval.ends();
        let range = range.map_or_else(String::new, |(low, high)| format!("{low} to {high}"));
        table.row([
            name.as_str().into(),
            Cell::number(value.number, fmt::significant(value.number, 4)),
            value.unit.as_str().into(),
            range.into(),
            value.source.as_str().into(),
        ]);
    }
    table
}
