//! The Xeon Phi 7285 of the poster in its three modes, as one piece of silicon.
//!
//! What the even-numbered tiles of the SNC4 MCDRAM grid gave ([`super::silicon`]) is judged by the
//! odd-numbered ones and carried over to the other modes. DDR4 needs more, and what it needs is
//! said. Cells of All2All and Quadrant have no readable place, so only the numbers under their
//! pictures can be compared.

use anyhow::Context as _;
use isochrone_machine::{Grid, Machine};
use isochrone_placement::locate_controller;
use isochrone_stats::derive_seed;
use isochrone_units::Reading;

use super::apart::{self, CoresApart, Side};
use super::cells::{Cell, GridResult, Located, Role};
use super::constants::{self, Constant};
use super::die::{Die, DrawnCore};
use super::fit::Fitted;
use super::route::{Home, Network, Place};
use super::silicon::{Silicon, Timed, is_for_fitting};
use super::simulate::{HomePoints, Scene, Simulated, measure};
use super::words;

/// The three files of one machine.
pub(super) struct Modes<'a> {
    /// All2All mode.
    pub(super) all2all: &'a Machine,
    /// Quadrant mode.
    pub(super) quadrant: &'a Machine,
    /// SNC4 mode.
    pub(super) snc4: &'a Machine,
}

/// One grid to be simulated.
struct Job<'a> {
    machine: &'a Machine,
    grid: &'a Grid,
    network: Network,
    homes: Vec<Home>,
    floor_ns: Option<f64>,
    constants: Vec<Constant>,
    notes: Vec<String>,
    /// What a column costs over what it costs in the MCDRAM grid, where both were fitted.
    column_over_other: Option<f64>,
}

/// All grids of the machine, in the poster's order, and which cores its SNC4 grids tell apart.
pub(super) fn grids(
    modes: &Modes<'_>,
    seed: u64,
) -> anyhow::Result<(Vec<GridResult>, Vec<CoresApart>)> {
    let silicon = Silicon::of(modes.snc4, seed)?;
    let grid = |machine: &'_ Machine, name: &str| {
        machine.grid(name).cloned().with_context(|| format!("{} has no grid {name}", machine.name))
    };
    let a2a = [grid(modes.all2all, "all2all-mcdram")?, grid(modes.all2all, "all2all-ddr4")?];
    let quad = [grid(modes.quadrant, "quadrant-mcdram")?, grid(modes.quadrant, "quadrant-ddr4")?];
    let snc4 = [grid(modes.snc4, "snc4-mcdram")?, grid(modes.snc4, "snc4-ddr4")?];
    let jobs = [
        silicon.all2all_mcdram(modes.all2all, &a2a[0])?,
        silicon.all2all_ddr4(modes.all2all, &a2a[1], &a2a[1])?,
        silicon.quadrant_mcdram(modes.quadrant, &quad[0])?,
        silicon.quadrant_ddr4(modes.quadrant, &quad[1], &a2a[1])?,
        silicon.snc4_mcdram(modes.snc4, &snc4[0]),
        silicon.snc4_ddr4(modes.snc4, &snc4[1]),
    ];
    let simulated = jobs.iter().zip(0..);
    let grids: Vec<GridResult> = simulated
        .map(|(job, index)| silicon.simulate(job, derive_seed(seed, index)))
        .collect::<anyhow::Result<_>>()?;
    let [.., mcdram, ddr4] = &jobs;
    let [.., of_mcdram, of_ddr4] = grids.as_slice() else { return Ok((grids, Vec::new())) };
    let sides = [(mcdram, of_mcdram), (ddr4, of_ddr4)]
        .map(|(job, grid)| Side { grid, truth: silicon.truth(job) });
    let apart = apart::cores_apart(&sides)?;
    Ok((grids, apart))
}

const BASE: &str = "latency beside the way";
const MCDRAM_FIT: &str = "snc4-mcdram (even-numbered tiles)";
const DDR4_FIT: &str = "snc4-ddr4 (even-numbered tiles)";

impl Silicon {
    fn snc4_mcdram<'a>(&self, machine: &'a Machine, grid: &'a Grid) -> Job<'a> {
        self.snc4(machine, grid, &self.mcdram)
    }

    fn snc4_ddr4<'a>(&self, machine: &'a Machine, grid: &'a Grid) -> Job<'a> {
        let mut job = self.snc4(machine, grid, &self.ddr4);
        let ratio = self.ddr4.fit.network.column_ns / self.mcdram.fit.network.column_ns;
        job.column_over_other = Some(ratio);
        job.notes.push(format!(
            "A column costs {ratio:.1} times what it costs in the MCDRAM grid of the same silicon: \
             one mesh does not explain both grids."
        ));
        job
    }

    /// One controller's memory under the costs that its own grid gave.
    fn snc4<'a>(&self, machine: &'a Machine, grid: &'a Grid, timed: &Timed) -> Job<'a> {
        let mut constants = fitted_constants(&timed.fit);
        constants.push(directories("tiles of the controller's quarter", "SNC4 keeps them there"));
        let mut notes = vec![next_best(&timed.fit)];
        if let (Some(floor), Some((least, _))) = (timed.floor_ns, grid.extremes(&[])) {
            let readings = || grid.readings();
            let (count, all) = (readings().filter(|r| r.1 <= floor).count(), readings().count());
            notes.push(format!(
                "The published grid has a floor: {count} of {all} cells lie between {least:.1} and \
                 {floor:.1} ns and none is lower. A network of ways has none, so the simulated \
                 cells go on falling there; cells at the floor only bound the fit and count in no \
                 score."
            ));
        }
        Job {
            machine,
            grid,
            network: timed.fit.network,
            homes: self.die.quarter_home(timed.fit.controller),
            floor_ns: timed.floor_ns,
            constants,
            notes,
            column_over_other: None,
        }
    }

    fn all2all_mcdram<'a>(&self, machine: &'a Machine, grid: &'a Grid) -> anyhow::Result<Job<'a>> {
        let places = self.mcdram_controllers(machine)?;
        let mut constants = carried_constants(&self.mcdram.fit.network);
        constants.push(mcdram_controllers(&places));
        constants.push(directories("all tiles", "All2All spreads lines over all directories"));
        Ok(Job {
            machine,
            grid,
            network: self.mcdram.fit.network,
            homes: self.die.spread_home(&places),
            floor_ns: None,
            constants,
            notes: vec![NO_PLACES.to_owned()],
            column_over_other: None,
        })
    }

    fn all2all_ddr4<'a>(
        &self,
        machine: &'a Machine,
        grid: &'a Grid,
        printed: &Grid,
    ) -> anyhow::Result<Job<'a>> {
        let places = self.die.both_sides(self.ddr4.fit.controller);
        let homes = self.die.spread_home(&places);
        let network = self.ddr4_network(printed, &homes)?;
        let mut constants = ddr4_constants(&network, 1);
        constants.push(ddr4_controllers(&places));
        constants.push(directories("all tiles", "All2All spreads lines over all directories"));
        let notes = vec![
            NO_PLACES.to_owned(),
            "The base is set so that the middle of the simulated range is the middle of the \
             printed one: only the delta is a test."
                .to_owned(),
        ];
        let floor_ns = None;
        let column_over_other = None;
        Ok(Job { machine, grid, network, homes, floor_ns, constants, notes, column_over_other })
    }

    fn quadrant_mcdram<'a>(&self, machine: &'a Machine, grid: &'a Grid) -> anyhow::Result<Job<'a>> {
        let places = self.mcdram_controllers(machine)?;
        let within = |quarter: u16| {
            let inside = |p: &&Place| self.die.quarter_at(**p) == Some(quarter);
            places.iter().filter(inside).copied().collect()
        };
        let mut constants = carried_constants(&self.mcdram.fit.network);
        constants.push(mcdram_controllers(&places));
        constants.push(directories(
            "tiles of the controller's quarter",
            "Quadrant keeps a line's directory and controller in one quarter",
        ));
        Ok(Job {
            machine,
            grid,
            network: self.mcdram.fit.network,
            homes: self.die.quarter_homes(within),
            floor_ns: None,
            constants,
            notes: vec![NO_CELLS.to_owned()],
            column_over_other: None,
        })
    }

    fn quadrant_ddr4<'a>(
        &self,
        machine: &'a Machine,
        grid: &'a Grid,
        printed: &Grid,
    ) -> anyhow::Result<Job<'a>> {
        let places = self.die.both_sides(self.ddr4.fit.controller);
        let network = self.ddr4_network(printed, &self.die.spread_home(&places))?;
        let side = |quarter: u16| {
            let tiles = self.die.places(Some(quarter));
            let middle = tiles.iter().map(|p| p.0).sum::<f64>() / tiles.len().max(1) as f64;
            let nearer = (places[0].0 - middle).abs() <= (places[1].0 - middle).abs();
            vec![places[usize::from(!nearer)]]
        };
        let mut constants = ddr4_constants(&network, 0);
        constants.push(ddr4_controllers(&places));
        constants.push(directories(
            "tiles of a quarter on the controller's side",
            "Quadrant keeps a line's directory near its controller",
        ));
        let homes = self.die.quarter_homes(side);
        let notes = vec![NO_CELLS.to_owned()];
        let floor_ns = None;
        let column_over_other = None;
        Ok(Job { machine, grid, network, homes, floor_ns, constants, notes, column_over_other })
    }

    /// Measures the model of a job and sets it beside what was published.
    fn simulate(&self, job: &Job<'_>, seed: u64) -> anyhow::Result<GridResult> {
        let mut result = GridResult::frame(job.machine, job.grid);
        let found = self.measure(job, seed)?;
        result.cores_per_tile = self.die.cores_per_tile;
        result.size = (self.die.columns * self.die.cores_per_tile, self.die.rows);
        result.constants = job.constants.clone();
        result.notes.extend(job.notes.iter().cloned());
        result.column_over_other = job.column_over_other;
        result.cells = GridResult::published(job.machine, job.grid);
        if Die::of(job.machine).is_some() {
            self.fill_placed(&mut result, job.floor_ns, &found);
            let truth = job.homes.first().and_then(|home| home.controllers.first()).copied();
            result.controllers = self.locate(&result, truth, seed);
        } else {
            fill_unplaced(&mut result, &found);
            result.notes.push(self.edge_and_centre(&found));
        }
        result.compare_printed(job.grid);
        Ok(result)
    }

    /// What a load from each core costs in the model of a job.
    fn truth(&self, job: &Job<'_>) -> Vec<(u16, f64)> {
        let cost = |core: &DrawnCore| (core.id, job.network.expected_ns(core.tile, &job.homes));
        self.die.cores.iter().map(cost).collect()
    }

    /// Every core of the silicon with its simulated cell.
    fn measure(&self, job: &Job<'_>, seed: u64) -> anyhow::Result<Vec<(DrawnCore, Simulated)>> {
        let network = job.network;
        let points = |places: &[Place]| places.iter().map(|p| network.point_ns(*p)).collect();
        let homes = job.homes.iter().map(|home| HomePoints {
            directories: points(&home.directories),
            controllers: points(&home.controllers),
        });
        let scene = Scene {
            name: format!("{}/{}", job.machine.name, job.grid.name),
            cores: self.die.cores.iter().map(|core| network.point_ns(core.tile)).collect(),
            homes: homes.collect(),
            base_ns: network.base_ns,
        };
        let found = measure(&scene, seed)?;
        Ok(self.die.cores.iter().copied().zip(found).collect())
    }

    /// Cells whose cores have places: compared one by one.
    fn fill_placed(
        &self,
        result: &mut GridResult,
        floor_ns: Option<f64>,
        found: &[(DrawnCore, Simulated)],
    ) {
        for cell in &mut result.cells {
            let Some(core) = cell.core else { continue };
            cell.simulated = found.iter().find(|(drawn, _)| drawn.id == core).map(|(_, s)| *s);
            let Some(published) = cell.published else {
                continue;
            };
            let fitting = is_for_fitting(core, &self.die);
            (cell.role, cell.group) = match floor_ns {
                Some(floor) if published <= floor => (Role::AtFloor, None),
                _ if fitting => (Role::Fitted, Some(0)),
                _ => (Role::HeldOut, Some(1)),
            };
        }
        result.score(&[
            ("even-numbered tiles".to_owned(), Role::Fitted),
            ("odd-numbered tiles".to_owned(), Role::HeldOut),
        ]);
    }

    /// Where the placement experiment puts the controller, from either side's numbers.
    fn locate(&self, result: &GridResult, truth: Option<Place>, seed: u64) -> Vec<Located> {
        let side = |reading, truth, value: fn(&Cell) -> Option<f64>| {
            let place = |cell: &Cell| Some(self.die.tile_of(cell.core?)?.place);
            let places: Vec<Option<Place>> = result.cells.iter().map(place).collect();
            let values: Vec<Option<f64>> = result.cells.iter().map(value).collect();
            let found = locate_controller(&result.memory, &places, &values, seed);
            Located {
                reading,
                best: found.best,
                truth,
                candidates: found.candidates,
                floor: found.floor,
                r2: found.r2,
                summary: found.summary,
            }
        };
        vec![
            side(Reading::Published, None, |cell| cell.published),
            side(Reading::Simulated, truth, |cell| cell.simulated.map(|s| s.ns)),
        ]
    }

    /// "Edge and border cores have high latency, cores around the centre low" (poster), for the
    /// simulated grid.
    fn edge_and_centre(&self, found: &[(DrawnCore, Simulated)]) -> String {
        let mean = |border: bool| {
            let cells = found.iter().filter(|(core, _)| self.die.is_border(core.tile) == border);
            let ns: Vec<f64> = cells.map(|(_, s)| s.ns).collect();
            isochrone_stats::mean(&ns)
        };
        match (mean(true), mean(false)) {
            (Some(border), Some(inner)) => format!(
                "The poster finds edge and border cores far and those around the centre near; the \
                 simulated means are {border:.1} ns from tiles on the edge and {inner:.1} ns from \
                 the others."
            ),
            _ => "The die has no edge.".to_owned(),
        }
    }
}

const NO_PLACES: &str = "Which core is drawn where cannot be read in this mode, so simulated \
    cells stand by place and published ones by core; only the numbers under the picture compare.";
const NO_CELLS: &str = "No cell of this picture can be read; the simulated grid stands alone.";

/// Simulated cells by place beside published cells without one.
fn fill_unplaced(result: &mut GridResult, found: &[(DrawnCore, Simulated)]) {
    result.cells.extend(found.iter().map(|(drawn, simulated)| Cell {
        core: None,
        at: Some(drawn.at),
        published: None,
        simulated: Some(*simulated),
        role: Role::Unused,
        group: None,
    }));
}

/// The costs and the place that a grid gave itself.
fn fitted_constants(fit: &Fitted) -> Vec<Constant> {
    let network = fit.network;
    vec![
        constants::fitted(BASE, words::ns(network.base_ns), 1),
        constants::fitted("from column to column", words::ns(network.column_ns), 1),
        constants::fitted("from row to row", words::ns(network.row_ns), 1),
        constants::fitted("the controller's place", words::place(fit.controller), 2),
    ]
}

/// The costs of the MCDRAM fit, untouched.
fn carried_constants(network: &Network) -> Vec<Constant> {
    let base = constants::carried(BASE, words::ns(network.base_ns), MCDRAM_FIT);
    vec![base, carried_hops(network)]
}

fn carried_hops(network: &Network) -> Constant {
    let value = format!("{} and {}", words::ns(network.column_ns), words::ns(network.row_ns));
    constants::carried("from column to column, from row to row", value, MCDRAM_FIT)
}

/// Hops of the MCDRAM fit and a base of its own, counted as `free` where this grid set it.
fn ddr4_constants(network: &Network, free: usize) -> Vec<Constant> {
    let base = words::ns(network.base_ns);
    let base = match free {
        0 => constants::carried(BASE, base, "all2all-ddr4"),
        free => constants::fitted(BASE, base, free),
    };
    vec![base, carried_hops(network)]
}

fn mcdram_controllers(places: &[Place]) -> Constant {
    let list = |axis: fn(&Place) -> f64| {
        let mut all: Vec<f64> = places.iter().map(axis).collect();
        all.sort_by(f64::total_cmp);
        all.dedup();
        all.iter().map(f64::to_string).collect::<Vec<_>>().join(", ")
    };
    let value = format!("columns {} of rows {}", list(|p| p.0), list(|p| p.1));
    let why = "the poster draws one of eight; the outer columns above and below the tiles, of \
               which the SNC4 grid tells one";
    constants::assumed("MCDRAM controllers", value, why)
}

fn ddr4_controllers(places: &[Place; 2]) -> Constant {
    let value = format!("{} and {}", words::place(places[0]), words::place(places[1]));
    let why = format!("one from {DDR4_FIT}, the other its mirror image");
    constants::assumed("DDR4 controllers", value, &why)
}

fn directories(which: &str, why: &str) -> Constant {
    let why = format!("{why}; tiles without cores are not drawn and have no share");
    constants::assumed("directories", which.to_owned(), &why)
}

fn next_best(fit: &Fitted) -> String {
    let next = fit
        .next_rms_ns
        .map_or(String::new(), |next| format!("; the next best place leaves {next:.2} ns"));
    format!(
        "The fit puts the controller at {}, where {:.2} ns (root mean square) are left{next}. Only \
         places without a tile are offered.",
        words::place(fit.controller),
        fit.rms_ns
    )
}
