//! Figure 4 of the Euro-Par paper on a simulated Knights Corner: A* on the 15-puzzle, one
//! instance a core, with nodes on near lines against nodes on any lines.
//!
//! "We measured the number of graph nodes the algorithm explores in unit time and report the
//! normalized improvement of the memory block aware allocator compared to the regular solution"
//! (section 5.2), for 4, 8, ... 60 cores, five times each. The allocator is the real one; the
//! searches are the real ones, recorded once; memory, ring and caches are simulated, in-order:
//! every access waits for the one before.
//!
//! What is not in it: prefetchers, translation, the three other hardware threads; queues on the ring
//! and at controllers are a variation. Which shape of A* the paper ran is not known, so both are here. All
//! constants ([`constants`]) were fixed before the figure was first run and none is fitted to it;
//! [`sweep()`] says what each assumption is worth, [`hop_range`] what the figure would be with
//! another cost of a hop, which nobody published, and [`readings()`] what it is by every reading of
//! what is not published, with the paper's lists beside ours.

mod blocks;
mod cache;
mod chip;
mod constants;
mod database;
mod error;
mod learnt;
mod map;
mod queues;
mod readings;
mod recording;
mod replay;
mod replays;
mod sweep;

use core::hash::Hash;

use isochrone_alloc::Mode;
use isochrone_machine::{Constant, Machine};
use isochrone_sim::synthetic::SyntheticMemory;
use isochrone_stats::derive_seed;
use isochrone_units::{CoreId, LINE_BYTES, Reading};

pub use blocks::{ChipBlocks, chip_blocks};
pub use constants::{Costs, Spread};
pub use database::{Database, Knowledge};
pub use error::Figure4Error;
pub use learnt::{Arm, Arms, Beside, BesideCurve, Learning, Measure, learnt};
pub use readings::{Placing, ReadingRun, Readings, readings};
pub use recording::SearchPlan;
pub use replay::{CoreRun, Read};
pub use sweep::{HopRange, Variation, hop_range, sweep};

use crate::at_once::all_at_once;
use chip::Chip;
use map::Map;
use recording::{Recording, record};
use replay::{CacheLines, Counts, Orders, Run, TABLE_PAGES, policy, replay};
use replays::Replays;

/// The paper's side of the figure, as far as its text states it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// Lowest improvement: "performance improvement scales from 17 % to 28 %".
    pub lowest: f64,
    /// Highest improvement.
    pub highest: f64,
    /// Core counts with the lowest: "utilizing 12 and 20 cores yields the lowest improvement".
    pub lowest_at: [u16; 2],
    /// "we do observe the highest improvement for 56 CPU cores".
    pub highest_at: u16,
}

/// Section 5.2 of the paper.
pub const PUBLISHED: Published =
    Published { lowest: 0.17, highest: 0.28, lowest_at: [12, 20], highest_at: 56 };

/// What to run.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Numbers of cores; cores 0 to n - 1 take part (assumed: the paper does not say which).
    pub cores: Vec<u16>,
    /// Runs at each number of cores, each with other frames and other oblivious choices.
    pub repeats: u32,
    /// Of everything random.
    pub seed: u64,
    /// Pages of memory that the allocator may use, as the paper's chunk.
    pub heap_pages: u32,
    /// The share of lines that count as near.
    pub near: f32,
    /// Memory that nearness may cost, as a share of what is live.
    pub waste: f32,
    /// The shapes of A*, each with its extent.
    pub searches: Vec<SearchPlan>,
    /// Numbers of cores at which what was learnt is beside the truth ([`learnt()`]).
    pub learnt_at: Vec<u16>,
    /// Orders of stops that are drawn beside the machine file's ([`readings()`]).
    pub orders: u32,
}

impl Plan {
    /// The paper's figure: 4, 8, ... 60 cores, five runs, sets larger than the 512 KiB second
    /// level (8192 lines). Hash shape: 32768 nodes, timed from 16384 on. Linear shape: four
    /// expansions with 16384 nodes held.
    #[must_use]
    pub fn paper(seed: u64) -> Self {
        Self {
            cores: (1..=15).map(|n| 4 * n).collect(),
            repeats: 5,
            seed,
            heap_pages: 1 << 16,
            near: 0.25,
            waste: 1e6,
            searches: vec![
                SearchPlan::Linear { nodes: 16_384, expansions: 4 },
                SearchPlan::Hashed { before: 16_384, nodes: 32_768 },
            ],
            learnt_at: LEARNT_AT.to_vec(),
            orders: ORDERS,
        }
    }

    /// The same at the three numbers of cores that the paper's text names, one run each.
    #[must_use]
    pub fn quick(seed: u64) -> Self {
        let cores = QUICK_CORES.to_vec();
        Self {
            learnt_at: cores.clone(),
            cores,
            repeats: 1,
            orders: QUICK_ORDERS,
            ..Self::paper(seed)
        }
    }

    /// Most cores that take part at once.
    fn most_cores(&self) -> u16 {
        self.cores.iter().chain(&self.learnt_at).copied().max().unwrap_or(0)
    }
}

/// Numbers of cores at which what was learnt is beside the truth: from one to the whole chip.
const LEARNT_AT: [u16; 4] = [1, 4, 16, 60];

/// Orders of stops that are drawn, and those of a quick figure.
const ORDERS: u32 = 8;
const QUICK_ORDERS: u32 = 2;

/// Numbers of cores of a quick figure: those of which the paper's text says the gain.
const QUICK_CORES: [u16; 3] = [12, 20, 56];

/// One run with some number of cores, in both arms.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// What each core did with nodes on any lines.
    pub oblivious: Vec<CoreRun>,
    /// What each core did with nodes on near lines.
    pub aware: Vec<CoreRun>,
}

impl Pair {
    /// Nodes explored in unit time with the aware allocator over those with the other, minus 1.
    #[must_use]
    pub fn gain(&self) -> f64 {
        rate(&self.aware) / rate(&self.oblivious) - 1.0
    }

    /// Misses of core 0 for each node expanded (Figure 4b): oblivious, aware.
    #[must_use]
    pub fn misses_per_expansion(&self) -> [f64; 2] {
        [&self.oblivious, &self.aware].map(|runs| {
            runs.first().map_or(f64::NAN, |run| {
                let misses = crate::number::real(run.node_misses + run.table_misses);
                misses / crate::number::real(run.expansions)
            })
        })
    }

    /// Mean latency of the lines that nodes were given, over all cores: oblivious, aware.
    #[must_use]
    pub fn placed_cycles(&self) -> [f64; 2] {
        [&self.oblivious, &self.aware].map(|runs| {
            let sum: f64 = runs.iter().map(|run| run.placed_cycles).sum();
            sum / crate::number::real(runs.len() as u64)
        })
    }
}

/// Nodes that all cores explore in a cycle.
fn rate(runs: &[CoreRun]) -> f64 {
    runs.iter().map(|run| crate::number::real(run.expansions) / run.cycles).sum()
}

/// One number of cores.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Cores that searched.
    pub cores: u16,
    /// One entry a run.
    pub runs: Vec<Pair>,
}

impl Point {
    /// Mean gain over the runs, and the smallest and largest.
    #[must_use]
    pub fn gain(&self) -> (f64, f64, f64) {
        let gains: Vec<f64> = self.runs.iter().map(Pair::gain).collect();
        let mean = gains.iter().sum::<f64>() / crate::number::real(gains.len() as u64);
        let least = gains.iter().copied().fold(f64::INFINITY, f64::min);
        (mean, least, gains.iter().copied().fold(f64::NEG_INFINITY, f64::max))
    }
}

/// The figure of one shape of A*.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The shape and its extent.
    pub search: SearchPlan,
    /// Of all boards that all cores expand, in order; both arms and all runs replay them.
    pub checksum: u64,
    /// By number of cores.
    pub points: Vec<Point>,
}

/// The whole figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure4 {
    /// Always simulated.
    pub reading: Reading,
    /// What it rests on.
    pub constants: Vec<Constant>,
    /// Over all blocks the most that one takes from one core over another; `None` without a run.
    pub block_spread: Option<f64>,
    /// One curve a shape.
    pub curves: Vec<Curve>,
    /// The paper's numbers.
    pub published: Published,
}

/// How a placement learns the latencies of a memory before it places: the experiments of a
/// probe, or [`Database::of_truth`].
pub type Learn<'a> = &'a mut dyn FnMut(&SyntheticMemory) -> Option<Database>;

/// The searches of a plan, recorded: one a core for each shape. Every run and every sweep
/// replays them, each placement once.
#[derive(Debug)]
pub struct Recorded {
    curves: Vec<(SearchPlan, Vec<Recording>)>,
    replays: Replays<Counts>,
}

impl Recorded {
    /// Searches, and writes down what is done to memory. Core `i` has Korf's instance `i + 1`,
    /// so core 0 has the same one throughout, as in the paper.
    ///
    /// # Errors
    /// An instance is solved before the plan is through.
    pub fn new(plan: &Plan) -> Result<Self, Figure4Error> {
        let most = plan.most_cores();
        let number = |core| u8::try_from(core + 1).unwrap_or(0);
        let wanted: Vec<(u8, SearchPlan)> = (plan.searches.iter())
            .flat_map(|search| (0..most).map(move |core| (number(core), *search)))
            .collect();
        let mut all =
            all_at_once(&wanted, &|(number, search)| record(*number, *search)).into_iter();
        let of = |search: &SearchPlan| {
            let own = all.by_ref().take(most.into()).collect::<Result<_, _>>()?;
            Ok((*search, own))
        };
        let curves = plan.searches.iter().map(of).collect::<Result<_, Figure4Error>>()?;
        Ok(Self { curves, replays: Replays::default() })
    }

    /// A shape's searches on the first cores.
    fn first(&self, shape: usize, cores: u16) -> First<'_> {
        let all = self.curves.get(shape).map_or(&[][..], |(_, recordings)| recordings);
        let recordings = all.get(..usize::from(cores)).unwrap_or(all);
        First { shape, recordings, replays: &self.replays }
    }

    /// All shapes, each with all of these numbers of cores.
    fn each<'a>(&'a self, cores: &'a [u16]) -> Vec<First<'a>> {
        let shapes = 0..self.curves.len();
        shapes.flat_map(|shape| cores.iter().map(move |cores| self.first(shape, *cores))).collect()
    }
}

/// The searches of the first cores, of one shape.
#[derive(Clone, Copy)]
struct First<'a> {
    shape: usize,
    recordings: &'a [Recording],
    replays: &'a Replays<Counts>,
}

/// Runs the figure.
///
/// # Errors
/// [`Figure4Error`]: the machine is no Knights Corner, or the plan does not fit it.
pub fn figure4(
    machine: &Machine,
    plan: &Plan,
    recorded: &Recorded,
    learn: Learn<'_>,
) -> Result<Figure4, Figure4Error> {
    let lacks = Figure4Error::Machine { name: machine.name.clone(), what: "costs of memory" };
    let costs = Costs::of(machine).ok_or(lacks)?;
    let stage = Stage::new(machine, &costs)?;
    let mut curves: Vec<Curve> = recorded
        .curves
        .iter()
        .map(|(search, recordings)| Curve {
            search: *search,
            checksum: checksum(recordings),
            points: plan.cores.iter().map(|n| Point { cores: *n, runs: Vec::new() }).collect(),
        })
        .collect();
    let mut block_spread = None;
    for repeat in 0..plan.repeats {
        let scene = stage.scene(plan, repeat, learn)?;
        block_spread.get_or_insert_with(|| scene.database.spread_of_a_block());
        let points = curves.iter_mut().flat_map(|curve| &mut curve.points);
        for (point, pair) in points.zip(stage.pairs(plan, &scene, &recorded.each(&plan.cores))?) {
            point.runs.push(pair);
        }
    }
    Ok(Figure4 {
        reading: Reading::Simulated,
        constants: constants::list(machine, &costs, stage.chip.hop_cycles()),
        block_spread,
        curves,
        published: PUBLISHED,
    })
}

fn checksum(recordings: &[Recording]) -> u64 {
    let mut fold = crate::number::Fold::default();
    recordings.iter().for_each(|recording| fold.take(recording.checksum));
    fold.sum()
}

/// A chip and its caches.
struct Stage {
    chip: Chip,
    caches: CacheLines,
    costs: Costs,
}

/// One memory, as it is and as placement knows it.
struct Scene {
    map: Map,
    database: Database,
    seed: u64,
}

impl Stage {
    fn new(machine: &Machine, costs: &Costs) -> Result<Self, Figure4Error> {
        let lines = |level| {
            let bytes = machine.cache(CoreId(0), level).and_then(|cache| cache.bytes);
            let lines = bytes.map(|bytes| crate::number::index(bytes / LINE_BYTES as u64));
            let what = "private caches of two levels";
            lines.ok_or(Figure4Error::Machine { name: machine.name.clone(), what })
        };
        let caches = CacheLines { l1: lines(1)?, l2: lines(2)? };
        Ok(Self { chip: Chip::new(machine, costs)?, caches, costs: *costs })
    }

    /// The memory of a plan whose frames a seed draws.
    fn memory(&self, plan: &Plan, seed: u64) -> Result<SyntheticMemory, Figure4Error> {
        let pages = plan.heap_pages + u32::from(plan.most_cores()) * TABLE_PAGES;
        self.chip.memory(u64::from(pages), seed)
    }

    fn scene(&self, plan: &Plan, repeat: u32, learn: Learn<'_>) -> Result<Scene, Figure4Error> {
        let seed = derive_seed(plan.seed, u64::from(repeat));
        let most = plan.most_cores();
        let memory = self.memory(plan, seed)?;
        let map = Map::of(&memory).ok_or(Figure4Error::Database)?;
        let database = learn(&memory).ok_or(Figure4Error::Database)?;
        let covers = database::covers(&database, most, plan.heap_pages);
        if covers { Ok(Scene { map, database, seed }) } else { Err(Figure4Error::Database) }
    }

    /// One run with nodes placed in one way, by what a database says.
    fn arm(
        &self,
        plan: &Plan,
        map: &Map,
        believes: Believes<'_>,
        first: First<'_>,
    ) -> Result<Vec<CoreRun>, Figure4Error> {
        let run = Run {
            map,
            database: believes.database,
            heap_pages: plan.heap_pages,
            caches: self.caches,
            policy: policy(believes.mode, plan.near, plan.waste, believes.seed),
        };
        let orders = Orders::new(&run, first.recordings.len())?;
        let depends = |key: &mut _| {
            (first.shape, first.recordings.len()).hash(key);
            run.hash_into(key);
            orders.hash_into(key);
        };
        let counts = first.replays.of(depends, || replay(&run, &orders, first.recordings))?;
        let price =
            |(core, counts): (usize, &Counts)| counts.priced(core, map, &self.costs, plan.near);
        Ok(counts.iter().enumerate().map(price).collect())
    }

    /// Runs with nodes placed in each of these modes, by number of searches: all at once, since they share nothing that
    /// changes.
    fn runs<const N: usize>(
        &self,
        plan: &Plan,
        scene: &Scene,
        of: &[First<'_>],
        modes: [Mode; N],
    ) -> Result<Vec<[Vec<CoreRun>; N]>, Figure4Error> {
        let Scene { map, database, seed } = scene;
        let wanted: Vec<(First<'_>, Mode)> =
            of.iter().flat_map(|first| modes.map(|mode| (*first, mode))).collect();
        let arm = |(first, mode): &(First<'_>, Mode)| {
            self.arm(plan, map, Believes { database, mode: *mode, seed: *seed }, *first)
        };
        let all: Vec<Vec<CoreRun>> =
            all_at_once(&wanted, &arm).into_iter().collect::<Result<_, _>>()?;
        let mut all = all.into_iter();
        Ok(of.iter().map(|_| modes.map(|_| all.next().unwrap_or_default())).collect())
    }

    fn pairs(
        &self,
        plan: &Plan,
        scene: &Scene,
        of: &[First<'_>],
    ) -> Result<Vec<Pair>, Figure4Error> {
        let runs = self.runs(plan, scene, of, [Mode::Oblivious, Mode::Aware])?;
        Ok(runs.into_iter().map(|[oblivious, aware]| Pair { oblivious, aware }).collect())
    }
}

/// How an arm places.
#[derive(Clone, Copy, Debug)]
struct Believes<'a> {
    database: &'a Database,
    mode: Mode,
    /// Of what the oblivious one chooses.
    seed: u64,
}

#[cfg(test)]
mod tests;
