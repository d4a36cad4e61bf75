//! What the assumptions behind Figure 4 are worth: each at the ends of its range, and the whole
//! curve at the ends of the one that decides.

use isochrone_machine::{Cost, Machine};

use super::queues::{Roofs, queued, units};
use super::{Costs, Figure4Error, Learn, Pair, Plan, Recorded, Stage, rate};

/// The machine file's name of what a stop of the ring costs.
pub(super) const RING_HOP: &str = "ring hop";

/// One assumption changed, everything else as in the figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Variation {
    /// What was changed, and to what.
    pub what: String,
    /// Cycles of a hop with it.
    pub hop_cycles: f64,
    /// Gain by shape, in the order of the plan.
    pub gains: Vec<f64>,
}

/// What each assumption is worth: one run with the plan's middle number of cores for each end
/// of its range.
///
/// # Errors
/// As for [`super::figure4`].
pub fn sweep(
    machine: &Machine,
    plan: &Plan,
    recorded: &Recorded,
    learn: Learn<'_>,
) -> Result<Vec<Variation>, Figure4Error> {
    let lacks = Figure4Error::Machine { name: machine.name.clone(), what: "costs of memory" };
    let frozen = Costs::of(machine).ok_or(lacks)?;
    let mut all: Vec<Variation> = variations(machine, &frozen, plan)
        .into_iter()
        .map(|(what, costs, plan)| {
            let stage = Stage::new(machine, &costs)?;
            let scene = stage.scene(&plan, 0, learn)?;
            let middle = plan.cores.get(plan.cores.len() / 2).copied().unwrap_or(0);
            let pairs = stage.pairs(&plan, &scene, &recorded.each(&[middle]))?;
            let gains = pairs.iter().map(Pair::gain).collect();
            Ok(Variation { what, hop_cycles: stage.chip.hop_cycles(), gains })
        })
        .collect::<Result<_, Figure4Error>>()?;
    all.extend(with_queues(machine, &frozen, plan, recorded, learn)?);
    Ok(all)
}

/// GB/s of a controller, by its published peak and by half of it, which STREAM reaches.
const CONTROLLERS: [f64; 2] = [40.0, 20.0];

/// The figure with queues on the ring and at the controllers: all cores that the plan has at once.
fn with_queues(
    machine: &Machine,
    frozen: &Costs,
    plan: &Plan,
    recorded: &Recorded,
    learn: Learn<'_>,
) -> Result<Vec<Variation>, Figure4Error> {
    let lacks = || Figure4Error::Machine { name: machine.name.clone(), what: "a ring" };
    let stage = Stage::new(machine, frozen)?;
    let scene = stage.scene(plan, 0, learn)?;
    let ring = stage.chip.ring().ok_or_else(lacks)?;
    let memory = stage.memory(plan, scene.seed)?;
    let units = units(&memory, ring, &scene.map.keys).ok_or_else(lacks)?;
    let most = plan.cores.iter().copied().max().unwrap_or(0);
    let pairs = stage.pairs(plan, &scene, &recorded.each(&[most]))?;
    let plain = pairs.iter().map(|pair| rate(&pair.aware) / rate(&pair.oblivious) - 1.0);
    let hop_cycles = stage.chip.hop_cycles();
    let what = format!("{most} cores, without queues");
    let mut all = vec![Variation { what, hop_cycles, gains: plain.collect() }];
    for gb_per_s in CONTROLLERS {
        let roofs = Roofs::with_controller(gb_per_s);
        let of = |runs| queued(ring, &units, runs, &roofs);
        let both = || pairs.iter().map(|pair| [of(&pair.oblivious), of(&pair.aware)]);
        let used = both().flatten().map(|(_, used)| used).fold(0.0, f64::max);
        let what = format!(
            "{most} cores, queues on the ring and at controllers of {gb_per_s} GB/s (the fullest {:.0} % in use)",
            100.0 * used
        );
        let gains = both().map(|[(any, _), (aware, _)]| aware / any - 1.0).collect();
        all.push(Variation { what, hop_cycles, gains });
    }
    Ok(all)
}

/// The frozen constants, then each assumption at the ends of its range.
fn variations(machine: &Machine, frozen: &Costs, plan: &Plan) -> Vec<(String, Costs, Plan)> {
    let range = |name| machine.cost(name).and_then(Cost::sweep);
    let mut all = vec![("as frozen".to_owned(), *frozen, plan.clone())];
    let mut vary = |what: String, costs: Costs| all.push((what, costs, plan.clone()));
    if let Some((low, high)) = range(RING_HOP) {
        let middle = machine.cost(RING_HOP).and_then(Cost::number);
        for hop in [Some(low), middle, Some(high)].into_iter().flatten() {
            let costs = Costs { hop: Some(hop), ..*frozen };
            vary(format!("ring hop {hop} cycles, the published spread ignored"), costs);
        }
    }
    for memory in range("memory access").map_or([None; 2], |(l, h)| [Some(l), Some(h)]) {
        let Some(memory) = memory else { continue };
        vary(format!("memory access {memory} cycles"), Costs { memory, ..*frozen });
    }
    for directory in range("directory lookup").map_or([None; 2], |(l, h)| [Some(l), Some(h)]) {
        let Some(directory) = directory else { continue };
        vary(format!("directory lookup {directory} cycles"), Costs { directory, ..*frozen });
    }
    for work in [0.5, 2.0] {
        vary(format!("work at each step times {work}"), Costs { work, ..*frozen });
    }
    vary("first write of a node waits".to_owned(), Costs { stores_wait: true, ..*frozen });
    for near in [0.5, 0.125] {
        let what = format!("nearest {near} of the lines");
        all.push((what, *frozen, Plan { near, ..plan.clone() }));
    }
    let what = "memory for nearness limited to a quarter of what is live".to_owned();
    all.push((what, *frozen, Plan { waste: 0.25, ..plan.clone() }));
    all
}

/// The figure at the ends of the range that the machine file gives the cost of a hop, which
/// nobody published: everything else as in the figure, one run each.
#[derive(Clone, Debug, PartialEq)]
pub struct HopRange {
    /// Least and most of the range, cycles.
    pub hop_cycles: [f64; 2],
    /// By shape, in the order of the plan, and by number of cores: the gain at either end.
    pub gains: Vec<Vec<[f64; 2]>>,
}

/// Runs the figure at both ends of the range of a hop. `None` where the machine file has no range.
///
/// # Errors
/// As for [`super::figure4`].
pub fn hop_range(
    machine: &Machine,
    plan: &Plan,
    recorded: &Recorded,
    learn: Learn<'_>,
) -> Result<Option<HopRange>, Figure4Error> {
    let lacks = Figure4Error::Machine { name: machine.name.clone(), what: "costs of memory" };
    let frozen = Costs::of(machine).ok_or(lacks)?;
    let Some((low, high)) = machine.cost(RING_HOP).and_then(Cost::sweep) else {
        return Ok(None);
    };
    let mut gains = vec![vec![[f64::NAN; 2]; plan.cores.len()]; recorded.curves.len()];
    for (end, hop) in [low, high].into_iter().enumerate() {
        let stage = Stage::new(machine, &Costs { hop: Some(hop), ..frozen })?;
        let scene = stage.scene(plan, 0, learn)?;
        let pairs = stage.pairs(plan, &scene, &recorded.each(&plan.cores))?;
        for (gain, pair) in gains.iter_mut().flatten().zip(&pairs) {
            gain[end] = pair.gain();
        }
    }
    Ok(Some(HopRange { hop_cycles: [low, high], gains }))
}
