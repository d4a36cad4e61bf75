//! The reproduction as JSON: a row for each comparison, every case, and what it rests on. Missing is
//! `null`.

use isochrone_tier::simulated::Part;
use isochrone_units::Reading;
use isochrone_workloads::pspt::Cell;
use serde_json::{Value, json};

use super::Reproduction;
use super::tables::standing;

/// The whole as one JSON value.
pub(super) fn to_json(all: &Reproduction) -> Value {
    let simulated = &all.simulated;
    let (failed, must) = all.verdict();
    let rows = all.rows.iter().map(|row| {
        json!({
            "id": row.id,
            "paper": row.cells[0].paper,
            "ours": row.cells[0].ours,
            "tolerance": row.tolerance,
            "must": row.must,
            "tests": row.asks().then_some(row.tests),
            "narrow": row.narrow,
            "pass": row.pass,
            "note": row.note,
            "reading": Reading::Simulated,
        })
    });
    let constants = simulated.constants.iter().map(|constant| {
        json!({
            "name": constant.name,
            "value": constant.value.number,
            "unit": constant.value.unit,
            "standing": standing(&constant.value),
            "why": constant.value.source,
        })
    });
    json!({
        "paper": "pspt",
        "reading": Reading::Simulated,
        "seed": simulated.plan.seed,
        "compute_cycles_per_page": simulated.compute,
        "must": must,
        "must_failed": failed.len(),
        "rows": rows.collect::<Vec<_>>(),
        "changes": simulated.under_changes().map(|(change, under)| json!({
            "change": change.as_str(),
            "reading": Reading::Simulated,
            "cases": under.cells.iter().map(|cell| json!({
                "mode": cell.mode.as_str(),
                "threads": cell.smt.as_str(),
                "workers": cell.workers,
                "overhead": under.overhead(cell.mode, cell.smt, cell.workers),
                "fault_cycles": (cell.outcome.faults > 0.0).then(|| cell.outcome.fault()),
            })).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "cases": simulated.cells.iter().map(|cell| case(all, cell)).collect::<Vec<_>>(),
        "constants": constants.collect::<Vec<_>>(),
    })
}

fn case(all: &Reproduction, cell: &Cell) -> Value {
    let outcome = &cell.outcome;
    let parts =
        Part::ALL.map(|part| (part.as_str().to_owned(), json!(outcome.parts[part as usize])));
    json!({
        "mode": cell.mode.as_str(),
        "threads": cell.smt.as_str(),
        "workers": cell.workers,
        "million_cycles": all.runtime(cell.mode, cell.smt, cell.workers),
        "overhead": all.overhead(cell.mode, cell.smt, cell.workers),
        "fault_cycles": (outcome.faults > 0.0).then(|| outcome.fault()),
        "fault_parts": serde_json::Map::from_iter(parts),
        "faults_of_a_sweep_over_the_strip": outcome.faults,
        "minor": outcome.minor,
        "late": outcome.late,
        "prefetched": outcome.prefetched,
        "engines_busy": outcome.engines_busy,
        "interrupts_per_evicted_page": outcome.interrupts,
        "accesses_through_stale_entries": outcome.stale,
        "strip_pages": cell.width,
        "reading": Reading::Simulated,
    })
}
