//! A grid of a machine that nobody here owns, measured: the probe's region experiment, plan and
//! runner, on a modelled mesh.
//!
//! The model adds up each load's own way from core to directory to controller and back, with
//! noise; the experiment chases through the memory from every core and gives medians with
//! intervals, as it does on a real machine. Nothing here knows what was published.

use anyhow::Context as _;
use isochrone_probe::region::model::ModelRegions;
use isochrone_probe::region::plan::{Mode, RegionOptions, RegionPlan};
use isochrone_probe::region::run::run;
use isochrone_sim::synthetic::{
    AddressHash, Geometry, Mesh, Noise, RegionUnits, SyntheticMachine, SyntheticMemory,
    SyntheticSpec,
};
use isochrone_units::{LINES_PER_PAGE, PAGE_BYTES, RegionId};

use super::route::Place;

/// The model's mesh has whole steps of equal cost; this fine a raster holds any two costs.
const RASTER_NS: f64 = 0.01;
/// Pages of each home: 4096 lines, enough that the mean over their directories and controllers
/// is the expected one to a few hundredths of a nanosecond.
const PAGES_PER_HOME: u64 = 64;
/// Loads in one chase.
const STEPS: u64 = 2048;
/// Chases from every core.
const ROUNDS: u32 = 9;
/// Standard deviation of one load. Assumed: the poster gives no spread of its cells.
pub(super) const NOISE_SD_NS: f64 = 8.0;

/// Memory behind the same directories and controllers; distances between points are times.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HomePoints {
    /// The directories.
    pub(super) directories: Vec<Place>,
    /// The controllers.
    pub(super) controllers: Vec<Place>,
}

/// A machine to be measured; distances between points are times in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scene {
    /// What it is called.
    pub(super) name: String,
    /// Where each core is.
    pub(super) cores: Vec<Place>,
    /// The memory that is chased through, spread evenly over these homes.
    pub(super) homes: Vec<HomePoints>,
    /// What a load costs beside its way.
    pub(super) base_ns: f64,
}

/// One simulated cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Simulated {
    /// Median over chases, nanoseconds a load.
    pub(crate) ns: f64,
    /// Lower end of its 95 % interval.
    pub(crate) lo_ns: f64,
    /// Upper end of its 95 % interval.
    pub(crate) hi_ns: f64,
}

/// Measures a scene: one cell for each of its cores.
pub(super) fn measure(scene: &Scene, seed: u64) -> anyhow::Result<Vec<Simulated>> {
    let memory = SyntheticMemory::new(spec(scene, seed)?)
        .with_context(|| format!("the model of {} does not fit together", scene.name))?;
    // One buffer over all homes, as a program sees memory that the machine spreads by itself.
    let lines = ModelRegions::lines(&memory).into_iter().flat_map(|(_, lines)| lines).collect();
    let pages = PAGES_PER_HOME * scene.homes.len() as u64;
    let options = RegionOptions {
        buffer_bytes: pages * PAGE_BYTES as u64,
        steps: STEPS,
        rounds_min: ROUNDS,
        rounds_max: ROUNDS,
        budget_s: f64::INFINITY,
        ..RegionOptions::new(Mode::OneClass { lines: vec![lines] }, seed)
    };
    let plan = RegionPlan::new(1, options).context("planning the chase")?;
    let mut target = ModelRegions::new(memory, &[RegionId(0)], &plan.orders);
    let report = run(&mut target, &plan, &mut || false)
        .with_context(|| format!("chasing through the model of {}", scene.name))?;
    let cells = report.map.latency_ns.cells.iter();
    let found: Vec<Simulated> = cells
        .flatten()
        .map(|cell| Simulated { ns: cell.median, lo_ns: cell.lo, hi_ns: cell.hi })
        .collect();
    anyhow::ensure!(
        found.len() == scene.cores.len(),
        "the experiment on {} gave {} cells for {} cores",
        scene.name,
        found.len(),
        scene.cores.len()
    );
    Ok(found)
}

/// The modelled machine. Its clock ticks once a nanosecond, so cycles are nanoseconds.
fn spec(scene: &Scene, seed: u64) -> anyhow::Result<SyntheticSpec> {
    let raster = Raster::of(scene)?;
    let mut mesh = Mesh {
        cores: raster.all(&scene.cores),
        slices: Vec::new(),
        controllers: Vec::new(),
        hop_cycles: RASTER_NS,
    };
    let mut regions = Vec::new();
    for home in &scene.homes {
        let units = |from: usize, count: usize| {
            (from..from + count).filter_map(|unit| u16::try_from(unit).ok()).collect()
        };
        regions.push(RegionUnits {
            slices: units(mesh.slices.len(), home.directories.len()),
            controllers: units(mesh.controllers.len(), home.controllers.len()),
            gb_per_s: None,
        });
        mesh.slices.extend(raster.all(&home.directories));
        mesh.controllers.extend(raster.all(&home.controllers));
    }
    let machine = SyntheticMachine {
        geometry: Geometry::Mesh(mesh),
        llc_base_cycles: None,
        dram_base_cycles: scene.base_ns,
    };
    let pages = PAGES_PER_HOME * scene.homes.len() as u64;
    let mut spec = SyntheticSpec::from_machine(&scene.name, seed, machine)
        .with_pages(pages)
        .with_small_pages()
        .with_noise(Noise { dram_sd_cycles: NOISE_SD_NS, ..Noise::none() });
    // Which line has which directory does not matter to a chase over all of them, only that each
    // has its share.
    spec.slice_hash = AddressHash::Irregular { seed };
    spec.controller_hash = AddressHash::Irregular { seed: !seed };
    spec.regions = regions;
    spec.timer.hz = 1e9;
    Ok(spec)
}

/// Points as whole steps of the raster.
struct Raster {
    origin: Place,
}

impl Raster {
    fn of(scene: &Scene) -> anyhow::Result<Self> {
        let homes = scene.homes.iter().flat_map(|h| h.directories.iter().chain(&h.controllers));
        let points: Vec<&Place> = scene.cores.iter().chain(homes).collect();
        let least =
            |axis: fn(&Place) -> f64| points.iter().map(|p| axis(p)).fold(f64::INFINITY, f64::min);
        let most = |axis: fn(&Place) -> f64| {
            points.iter().map(|p| axis(p)).fold(f64::NEG_INFINITY, f64::max)
        };
        let span = most(|p| p.0) - least(|p| p.0) + most(|p| p.1) - least(|p| p.1);
        // Three legs of a way are added up in 16 bits.
        let room = f64::from(u16::MAX) * RASTER_NS / 3.0;
        anyhow::ensure!(
            span.is_finite() && span < room,
            "{} is {span:.0} ns across; the model holds less than {room:.0} ns",
            scene.name
        );
        Ok(Self { origin: (least(|p| p.0), least(|p| p.1)) })
    }

    fn all(&self, points: &[Place]) -> Vec<(u16, u16)> {
        let steps = |ns: f64| super::route::whole(ns / RASTER_NS);
        points.iter().map(|p| (steps(p.0 - self.origin.0), steps(p.1 - self.origin.1))).collect()
    }
}

/// How a simulated cell was measured, in words.
pub(super) fn method() -> String {
    let lines = PAGES_PER_HOME * LINES_PER_PAGE as u64;
    format!(
        "dependent chase, {ROUNDS} rounds of {STEPS} loads from every core over {lines} lines a \
         home, median with its 95 % interval"
    )
}

#[cfg(test)]
mod tests {
    use super::super::route::{Home, Network};
    use super::*;

    fn scene() -> (Scene, Network, Home) {
        let network = Network { base_ns: 150.0, column_ns: 1.3, row_ns: 0.7 };
        let home = Home {
            directories: vec![(3.0, 0.0), (4.0, 1.0), (5.0, 3.0)],
            controllers: vec![(4.0, -1.0)],
        };
        let points = |places: &[Place]| places.iter().map(|p| network.point_ns(*p)).collect();
        let cores: Vec<Place> = vec![(0.0, 0.0), (5.0, 6.0), (4.0, 0.0)];
        let homes = vec![HomePoints {
            directories: points(&home.directories),
            controllers: points(&home.controllers),
        }];
        (Scene { name: "test".into(), cores: points(&cores), homes, base_ns: 150.0 }, network, home)
    }

    #[test]
    fn the_experiment_finds_what_the_ways_cost() {
        let (scene, network, home) = scene();
        let found = measure(&scene, 3).unwrap();
        for (place, cell) in [(0.0, 0.0), (5.0, 6.0), (4.0, 0.0)].into_iter().zip(&found) {
            let expected = network.expected_ns(place, std::slice::from_ref(&home));
            assert!((cell.ns - expected).abs() < 0.4, "{place:?}: {cell:?} against {expected}");
            assert!(cell.lo_ns <= cell.ns && cell.ns <= cell.hi_ns);
            assert!(cell.hi_ns > cell.lo_ns, "a measurement has a spread");
        }
    }

    #[test]
    fn one_seed_is_one_measurement() {
        let (scene, ..) = scene();
        assert_eq!(measure(&scene, 3).unwrap(), measure(&scene, 3).unwrap());
        assert_ne!(measure(&scene, 3).unwrap(), measure(&scene, 4).unwrap());
    }

    #[test]
    fn a_machine_too_large_for_the_raster_is_refused() {
        let (mut scene, ..) = scene();
        scene.cores.push((900.0, 0.0));
        let why = measure(&scene, 3).unwrap_err().to_string();
        assert!(why.contains("900") || why.contains("ns across"), "{why}");
    }
}
