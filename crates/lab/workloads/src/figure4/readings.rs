//! The figure by every reading of what is not published: of which cores the 60 % are, and in which order stops lie on
//! the ring; with the paper's lists and with the nearest part of all lines.

use isochrone_alloc::Mode;
use isochrone_machine::{Cost, Machine};
use isochrone_stats::derive_seed;

use super::constants::Spread;
use super::sweep::RING_HOP;
use super::{Costs, Figure4Error, Learn, PUBLISHED, Plan, Recorded, Scene, Stage, rate};

/// The seed of orders, derived from the plan's.
const ORDERS_SEED: u64 = 73;

/// How nodes are placed on near lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placing {
    /// Each line on the list of the participating core that is nearest to it (section 4).
    Lists,
    /// Each core the nearest part of all lines.
    Nearest,
}

impl Placing {
    /// Both, in the order of gains.
    pub const ALL: [Self; 2] = [Self::Lists, Self::Nearest];

    /// In words.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lists => "the paper's lists",
            Self::Nearest => "nearest quarter",
        }
    }
}

/// One chip.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadingRun {
    /// Of which cores the published spread is.
    pub spread: Spread,
    /// What the order of stops was drawn from; `None` for the machine file's.
    pub order: Option<u64>,
    /// What a hop costs then.
    pub hop_cycles: f64,
    /// By shape, by number of cores and by [`Placing`]: the gain over lines at random.
    pub gains: Vec<Vec<[f64; 2]>>,
}

/// All chips.
#[derive(Clone, Debug, PartialEq)]
pub struct Readings {
    /// Numbers of cores: those of which the text says the gain, as far as the plan has them.
    pub cores: Vec<u16>,
    /// One entry a chip.
    pub runs: Vec<ReadingRun>,
    /// Readings of an order that would need a hop outside of the machine file's range, and were not run.
    pub contradicted: u32,
}

impl Readings {
    /// Least and most gain of a shape at a number of cores over all chips. `None` where nothing was run.
    #[must_use]
    pub fn interval(&self, shape: usize, cores: u16, placing: Placing) -> Option<[f64; 2]> {
        let gains = self.gains(shape, cores, placing);
        gains.fold(None, |seen, (_, gain)| {
            let [least, most] = seen.unwrap_or([gain, gain]);
            Some([least.min(gain), most.max(gain)])
        })
    }

    /// The gain of each chip.
    pub fn gains(
        &self,
        shape: usize,
        cores: u16,
        placing: Placing,
    ) -> impl Iterator<Item = (&ReadingRun, f64)> {
        let at = self.cores.iter().position(|n| *n == cores);
        self.runs
            .iter()
            .filter_map(move |run| Some((run, run.gains.get(shape)?.get(at?)?[placing as usize])))
    }
}

/// Runs all of them, one run each. The orders are the machine file's and as many as the plan draws.
///
/// # Errors
/// As for [`super::figure4`].
pub fn readings(
    machine: &Machine,
    plan: &Plan,
    recorded: &Recorded,
    learn: Learn<'_>,
) -> Result<Readings, Figure4Error> {
    let lacks = Figure4Error::Machine { name: machine.name.clone(), what: "costs of memory" };
    let frozen = Costs::of(machine).ok_or(lacks)?;
    let range = machine.cost(RING_HOP).and_then(Cost::sweep);
    let named = PUBLISHED.lowest_at.into_iter().chain([PUBLISHED.highest_at]);
    let cores: Vec<u16> = named.filter(|cores| plan.cores.contains(cores)).collect();
    let mut found = Readings { cores, runs: Vec::new(), contradicted: 0 };
    if found.cores.is_empty() {
        return Ok(found);
    }
    let seed = derive_seed(plan.seed, ORDERS_SEED);
    let drawn = (0..plan.orders).map(|order| Some(derive_seed(seed, u64::from(order))));
    for order in std::iter::once(None).chain(drawn) {
        for spread in Spread::ALL {
            let stage = Stage::new(machine, &Costs { spread, order, ..frozen })?;
            let hop_cycles = stage.chip.hop_cycles();
            if range.is_some_and(|(low, high)| !(low..=high).contains(&hop_cycles)) {
                found.contradicted += 1;
                continue;
            }
            let scene = stage.scene(plan, 0, learn)?;
            let gains = gains(&stage, plan, &scene, recorded, &found.cores)?;
            found.runs.push(ReadingRun { spread, order, hop_cycles, gains });
        }
    }
    Ok(found)
}

/// By shape and number of cores.
fn gains(
    stage: &Stage,
    plan: &Plan,
    scene: &Scene,
    recorded: &Recorded,
    cores: &[u16],
) -> Result<Vec<Vec<[f64; 2]>>, Figure4Error> {
    let modes = [Mode::Oblivious, Mode::NearestParticipant, Mode::Aware];
    let runs = stage.runs(plan, scene, &recorded.each(cores), modes)?;
    let gain = |arms: &[Vec<_>; 3]| {
        let [any, lists, nearest] = arms.each_ref().map(|runs| rate(runs));
        [lists / any - 1.0, nearest / any - 1.0]
    };
    let gains: Vec<[f64; 2]> = runs.iter().map(gain).collect();
    Ok(gains.chunks(cores.len()).map(<[_]>::to_vec).collect())
}
