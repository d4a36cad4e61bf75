//! The reproduction as JSON: a row for each point, with its reading. Missing is `null`.

use isochrone_machine::Constant;
use isochrone_units::Reading;
use isochrone_workloads::figure4::{Curve, PUBLISHED};
use serde_json::{Value, json};

use super::{
    Benched, Ends, PUBLISHED_SPREAD, Reproduction, shape, spread, spread_of_a_block, tables,
};

/// The whole as one JSON value.
pub(super) fn to_json(all: &Reproduction) -> Value {
    json!({
        "paper": "hidden-numa",
        "seed": all.seed,
        "figure2": {
            "published": { "reading": Reading::Published, "one_block_two_cores": PUBLISHED_SPREAD },
            "measured": figure2(all),
        },
        "figure4": {
            "published": {
                "reading": Reading::Published,
                "lowest_gain": PUBLISHED.lowest,
                "highest_gain": PUBLISHED.highest,
                "lowest_at_cores": PUBLISHED.lowest_at,
                "highest_at_cores": PUBLISHED.highest_at,
            },
            "simulated": all.curves().map(|(of, ends)| curve(of, ends)).collect::<Vec<_>>(),
            "assumed_hop_cycles": all.hop_range.as_ref().map(|range| range.hop_cycles),
            "constants": constants(all),
            "variations": all.variations.iter().map(|v| json!({
                "what": v.what,
                "hop_cycles": v.hop_cycles,
                "gains": v.gains,
                "reading": Reading::Simulated,
            })).collect::<Vec<_>>(),
            "measured": all.benched.as_ref().map(benched),
        },
    })
}

fn figure2(all: &Reproduction) -> Value {
    let Some(measured) = &all.measured else { return Value::Null };
    let levels = all.blocks().iter().map(|blocks| {
        let cores =
            blocks.cores.iter().map(|(core, line)| json!({ "core": core, "relative": line }));
        json!({
            "level": blocks.level.as_str(),
            "reading": blocks.reading,
            "what": blocks.what,
            "first_frame": blocks.first_frame,
            "fastest_ns": blocks.fastest_ns,
            "slowest_over_fastest": spread(blocks),
            "one_block_two_cores": spread_of_a_block(blocks),
            "cores": cores.collect::<Vec<_>>(),
        })
    });
    json!({ "machine": measured.title, "levels": levels.collect::<Vec<_>>() })
}

fn curve(curve: &Curve, ends: Option<Ends<'_>>) -> Value {
    let points = curve.points.iter().enumerate().map(|(at, point)| {
        let (mean, least, most) = point.gain();
        let misses = point.runs.first().map(|run| run.misses_per_expansion());
        let placed = point.runs.first().map(|run| run.placed_cycles());
        json!({
            "cores": point.cores,
            "gain": mean,
            "least": least,
            "most": most,
            "gain_at_assumed_hops": ends.and_then(|ends| ends.gains.get(at)),
            "runs": point.runs.iter().map(|run| run.gain()).collect::<Vec<_>>(),
            "misses_per_expansion": misses.map(|[o, a]| json!({ "oblivious": o, "aware": a })),
            "placed_cycles": placed.map(|[o, a]| json!({ "oblivious": o, "aware": a })),
        })
    });
    json!({
        "shape": shape(curve),
        "reading": Reading::Simulated,
        "checksum": format!("{:016x}", curve.checksum),
        "points": points.collect::<Vec<_>>(),
    })
}

fn constants(all: &Reproduction) -> Vec<Value> {
    let one = |c: &Constant| {
        let standing = json!({ tables::standing(&c.value): c.value.source });
        json!({ "name": c.name, "value": c.value.number, "unit": c.value.unit, "standing": standing })
    };
    all.simulated.constants.iter().map(one).collect()
}

fn benched(benched: &Benched) -> Value {
    let ratio = |ratio: Option<super::benched::Interval>| {
        ratio.map(|r| json!({ "median": r.median, "lo": r.lo, "hi": r.hi }))
    };
    let runs = benched.runs.iter().map(|run| {
        json!({
            "shape": run.shape,
            "cores": run.cores,
            "budget": run.budget,
            "mib": run.mib,
            "nodes_per_s": run.nodes_per_s,
            "aware_over_oblivious": ratio(run.aware_over_oblivious),
            "oracle_over_oblivious": ratio(run.oracle_over_oblivious),
            "aa_control": ratio(run.aa_control),
        })
    });
    json!({
        "reading": benched.reading,
        "complete": benched.complete,
        "machine": benched.machine,
        "runs": runs.collect::<Vec<_>>(),
    })
}
