//! The reproduction as JSON: a row for each point, with its reading. Missing is `null`.

use isochrone_machine::Constant;
use isochrone_stats::Interval;
use isochrone_units::Reading;
use isochrone_workloads::figure4::{
    Arm, Arms, Beside, ChipBlocks, Curve, Learning, Measure, PUBLISHED, Placing,
};
use serde_json::{Value, json};

use super::learnt::{GOAL, part};
use super::{
    Benched, Ends, PUBLISHED_SPREAD, Reproduction, extent, shape, spread, spread_of_a_block, tables,
};

/// The whole as one JSON value.
pub(super) fn to_json(all: &Reproduction) -> Value {
    json!({
        "paper": "hidden-numa",
        "seed": all.seed,
        "figure2": {
            "published": { "reading": Reading::Published, "one_block_two_cores": PUBLISHED_SPREAD },
            "measured": figure2(all),
            "simulated": all.chip.iter().map(chip).collect::<Vec<_>>(),
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
            "learnt": learnt(&all.learning),
            "readings": readings(all),
            "measured": all.benched.as_ref().map(benched),
        },
    })
}

fn chip(of: &ChipBlocks) -> Value {
    let cores = of.cores.iter().map(|(core, cycles)| json!({ "core": core, "cycles": cycles }));
    json!({
        "reading": Reading::Simulated,
        "spread_of": of.spread.as_str(),
        "hop_cycles": of.hop_cycles,
        "cores": cores.collect::<Vec<_>>(),
    })
}

fn readings(all: &Reproduction) -> Value {
    let runs = all.readings.runs.iter().map(|run| {
        let gains = run.gains.iter().zip(&all.simulated.curves).map(|(gains, curve)| {
            let of = |placing| gains.iter().map(|gain| gain[placing as usize]).collect::<Vec<_>>();
            json!({
                "shape": shape(curve),
                "lists": of(Placing::Lists),
                "nearest": of(Placing::Nearest),
            })
        });
        json!({
            "spread_of": run.spread.as_str(),
            "order": run.order.map(|order| format!("{order:016x}")),
            "hop_cycles": run.hop_cycles,
            "gains": gains.collect::<Vec<_>>(),
        })
    });
    json!({
        "reading": Reading::Simulated,
        "cores": all.readings.cores,
        "contradicted": all.readings.contradicted,
        "runs": runs.collect::<Vec<_>>(),
    })
}

fn learnt(learning: &Learning) -> Value {
    let knowledge = learning.knowledge.iter().map(|known| {
        json!({
            "cores_with_base": known.cores,
            "bases": known.bases,
            "lines_of_a_base": known.indices,
            "pages_with_code": known.decoded,
            "pages_with_right_code": known.right,
        })
    });
    let curves = learning.curves.iter().map(|curve| {
        json!({
            "shape": extent(curve.search),
            "points": curve.points.iter().map(beside).collect::<Vec<_>>(),
        })
    });
    json!({
        "reading": Reading::Simulated,
        "goal_of_oracle": GOAL,
        "knowledge": knowledge.collect::<Vec<_>>(),
        "curves": curves.collect::<Vec<_>>(),
    })
}

fn beside(point: &Beside) -> Value {
    let interval =
        |of: Option<Interval>| of.map(|r| json!({ "median": r.median, "lo": r.lo, "hi": r.hi }));
    let arms = |of: &dyn Fn(&Arms, Arm) -> f64| {
        let one = |arm| interval(point.over_runs(|run| of(run, arm)));
        json!({
            "oblivious": one(Arm::Oblivious),
            "again": one(Arm::Again),
            "learnt": one(Arm::Learnt),
            "learnt_codes": one(Arm::LearntCodes),
            "oracle": one(Arm::Oracle),
        })
    };
    let parts = |measure| {
        json!({
            "learnt": interval(point.of_oracle(measure, Arm::Learnt)),
            "learnt_codes": interval(point.of_oracle(measure, Arm::LearntCodes)),
            "goal": part(point, measure).map(|(_, said)| said.as_str()),
        })
    };
    let gains =
        |arm| point.runs.iter().map(|run| run.gain(Measure::Speed, arm)).collect::<Vec<_>>();
    json!({
        "cores": point.cores,
        "near_share": arms(&|run, arm| run.near_share(arm)),
        "time_over_oblivious": arms(&|run, arm| run.time(arm)),
        "speed_gain": arms(&|run, arm| run.gain(Measure::Speed, arm)),
        "near_share_of_oracle": parts(Measure::NearShare),
        "time_of_oracle": parts(Measure::Time),
        "speed_of_oracle": parts(Measure::Speed),
        "runs": { "learnt": gains(Arm::Learnt), "oracle": gains(Arm::Oracle) },
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
    all.simulated.constants.iter().chain(&super::learner::constants()).map(one).collect()
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
