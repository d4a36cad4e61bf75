//! How far from the truth is what an atlas answers for pairs of cores that were not measured: what their group costs,
//! with the interval of a further pair of it.

use anyhow::Result;
use isochrone_atlas::Atlas;
use isochrone_atlas_store::contents::Contents;
use isochrone_atlas_store::encode;
use isochrone_distance::Distances;
use isochrone_survey::synthetic::{Order, Truth};
use isochrone_units::{CoreId, LineState, Reading};

use super::errors::{Errors, Seen};

/// Of all pairs that a group stands in for; `None` where every pair was measured.
pub(super) fn errors(order: &Order, contents: &Contents) -> Result<Option<Errors>> {
    let truth = Truth::new(&order.spec)?;
    let bytes = encode(&Contents { pages: Vec::new(), ..contents.clone() })?;
    let atlas = Atlas::open(&bytes)?;
    let cores: Vec<CoreId> = contents.machine.cores.iter().map(|core| CoreId(core.id)).collect();
    let state = LineState::Modified.as_str();
    let Some(map) = contents.transfers.iter().find(|map| map.state == state) else {
        return Ok(None);
    };
    let mut seen = Seen::default();
    let pairs = cores.iter().flat_map(|owner| cores.iter().map(move |asker| (*owner, *asker)));
    for ((owner, asker), cell) in pairs.zip(&map.latency_ns.cells) {
        if owner == asker || cell.is_some() {
            continue;
        }
        let found = atlas.line_costs(owner, asker).map(|costs| costs.transfer);
        let found = found.filter(|cost| cost.reading == Reading::Predicted);
        let interval = found.map(|cost| [cost.lo, cost.hi]);
        let value = found.map(|cost| cost.value);
        seen.add(value, interval, truth.transfer_ns(state, owner, asker));
    }
    let what = format!("line transfers, {state}, by their groups");
    Ok((!seen.is_empty()).then(|| seen.predicted(&what)))
}
