//! The die of the Xeon Phi 7285: what its SNC4 grids say of its network, and where directories
//! and controllers are in each mode.
//!
//! Costs and one controller's place are fitted for each memory on the even-numbered tiles of its
//! SNC4 grid. It sees no other cell, simulates nothing and compares nothing.

use anyhow::Context as _;
use isochrone_machine::{Grid, Machine};
use isochrone_placement::locate_controller;

use super::cells::extremes;
use super::die::Die;
use super::fit::{self, Fitted};
use super::route::{Home, Network, Place};

/// What one SNC4 grid says.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Timed {
    /// Costs and the controller's place.
    pub(super) fit: Fitted,
    /// The latency at which cells pile up, where they do.
    pub(super) floor_ns: Option<f64>,
}

/// What the SNC4 grids say of the silicon.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Silicon {
    /// Its tiles.
    pub(super) die: Die,
    /// From the MCDRAM grid.
    pub(super) mcdram: Timed,
    /// From the DDR4 grid.
    pub(super) ddr4: Timed,
}

impl Silicon {
    /// Fits both SNC4 grids on their even-numbered tiles.
    pub(super) fn of(snc4: &Machine, seed: u64) -> anyhow::Result<Self> {
        let die =
            Die::of(snc4).with_context(|| format!("{} gives no places of its cores", snc4.name))?;
        let fitted = |name: &str| {
            let grid = snc4.grid(name).with_context(|| format!("{} has no {name}", snc4.name))?;
            let cells = placed(grid, &die, |core| is_for_fitting(core, &die));
            let floor_ns = floor_of(name, &cells, seed);
            let homes = |controller| die.quarter_home(controller);
            let fit = fit::network(&cells, floor_ns, &die.free_places(), homes)
                .with_context(|| format!("no place of a controller explains {name}"))?;
            anyhow::Ok(Timed { fit, floor_ns })
        };
        Ok(Self { mcdram: fitted("snc4-mcdram")?, ddr4: fitted("snc4-ddr4")?, die })
    }

    /// The eight places, if the machine's file has eight controllers.
    pub(super) fn mcdram_controllers(&self, machine: &Machine) -> anyhow::Result<Vec<Place>> {
        let count = machine.controllers.iter().filter(|c| c.name.starts_with("MCDRAM")).count();
        let places = self.die.mcdram_places();
        anyhow::ensure!(
            count == places.len(),
            "{} has {count} MCDRAM controllers and the model places {}",
            machine.name,
            places.len()
        );
        Ok(places)
    }

    /// Costs of DDR4 where it is spread: hops as for MCDRAM, and a base that puts the middle of
    /// the range where the numbers under the All2All picture put it.
    pub(super) fn ddr4_network(&self, printed: &Grid, homes: &[Home]) -> anyhow::Result<Network> {
        let label = printed.labels.first();
        let ends = label.and_then(|l| Some((l.min?, l.max?)));
        let (a, b) = ends.with_context(|| format!("{} has no printed range", printed.name))?;
        let bare = Network { base_ns: 0.0, ..self.mcdram.fit.network };
        let ways = self.die.tiles.iter().map(|tile| bare.expected_ns(tile.place, homes));
        let (least, most) = extremes(ways).context("the die has no tile")?;
        Ok(Network { base_ns: f64::midpoint(a, b) - f64::midpoint(least, most), ..bare })
    }
}

/// Whether the cells of a tile are for fitting. Cores of one tile read the same to 0.3 ns, so
/// whole tiles are held out: a core beside its fitted twin would judge nothing.
pub(super) fn is_for_fitting(core: u16, die: &Die) -> bool {
    (core / die.cores_per_tile.max(1)).is_multiple_of(2)
}

/// Readable cells with the places of their tiles.
fn placed(grid: &Grid, die: &Die, wanted: impl Fn(u16) -> bool) -> Vec<(Place, f64)> {
    grid.readings()
        .filter(|(core, _)| wanted(core.0))
        .filter_map(|(core, ns)| Some((die.tile_of(core.0)?.place, ns)))
        .collect()
}

/// The poster prints one decimal.
const LAST_DIGIT_NS: f64 = 0.1;

/// The latency at which the cells pile up, if they do. The finding is a median over the cores of
/// a tile, so a core of the pile may read one digit more.
fn floor_of(name: &str, cells: &[(Place, f64)], seed: u64) -> Option<f64> {
    let places: Vec<Option<Place>> = cells.iter().map(|(place, _)| Some(*place)).collect();
    let ns: Vec<Option<f64>> = cells.iter().map(|(_, ns)| Some(*ns)).collect();
    locate_controller(name, &places, &ns, seed).floor.map(|(_, floor)| floor + LAST_DIGIT_NS)
}

impl Die {
    /// Memory of one controller in SNC4 mode: its lines have their directories in its quarter.
    pub(super) fn quarter_home(&self, controller: Place) -> Vec<Home> {
        let directories = self.places(self.quarter_at(controller));
        vec![Home { directories, controllers: vec![controller] }]
    }

    /// Memory of all `controllers`, directories anywhere.
    pub(super) fn spread_home(&self, controllers: &[Place]) -> Vec<Home> {
        vec![Home { directories: self.places(None), controllers: controllers.to_vec() }]
    }

    /// Memory of all `controllers`, each line's directory in the quarter of its controller.
    pub(super) fn quarter_homes(&self, controllers: impl Fn(u16) -> Vec<Place>) -> Vec<Home> {
        let home = |quarter: u16| Home {
            directories: self.places(Some(quarter)),
            controllers: controllers(quarter),
        };
        self.quarters().into_iter().map(home).collect()
    }

    /// Places of the eight MCDRAM controllers: the two outer columns on either side, above and
    /// below the tiles. Assumed; the place that the SNC4 grid tells is one of them.
    fn mcdram_places(&self) -> Vec<Place> {
        let last = f64::from(self.columns) - 1.0;
        let beyond = [-1.0, f64::from(self.rows)];
        beyond.iter().flat_map(|y| [0.0, 1.0, last - 1.0, last].map(|x| (x, *y))).collect()
    }

    /// A place and its image on the other side of the die.
    pub(super) fn both_sides(&self, place: Place) -> [Place; 2] {
        let mirrored = (f64::from(self.columns) - 1.0 - place.0, place.1);
        if place.0 <= mirrored.0 { [place, mirrored] } else { [mirrored, place] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snc4() -> Machine {
        isochrone_host::find_machine("xeon-phi-7285-snc4").expect("bundled")
    }

    /// The machine with the cells of some cores moved by an amount of their own.
    fn disturbed(wanted: impl Fn(u16) -> bool) -> Machine {
        let mut machine = snc4();
        for grid in &mut machine.grids {
            for (core, cell) in grid.cores.iter().zip(&mut grid.cells) {
                let Some(core) = core.filter(|core| wanted(*core)) else { continue };
                *cell = cell.map(|ns| ns + 5.0 + f64::from(core % 7));
            }
        }
        machine
    }

    #[test]
    fn held_out_cells_take_no_part_in_the_fit() {
        let silicon = Silicon::of(&snc4(), 1).unwrap();
        let fitting = |core| is_for_fitting(core, &silicon.die);
        let without = Silicon::of(&disturbed(|core| !fitting(core)), 1).unwrap();
        assert_eq!(silicon, without, "held-out cells were changed and nothing follows");
        let with = Silicon::of(&disturbed(fitting), 1).unwrap();
        assert_ne!(silicon.mcdram.fit.network, with.mcdram.fit.network);
    }

    #[test]
    fn tiles_are_held_out_whole() {
        let die = Die::of(&snc4()).unwrap();
        for tile in &die.tiles {
            let sides = tile.cores.iter().map(|core| is_for_fitting(*core, &die));
            assert_eq!(sides.collect::<std::collections::BTreeSet<_>>().len(), 1, "{tile:?}");
        }
        let fitting = die.tiles.iter().filter(|t| is_for_fitting(t.cores[0], &die)).count();
        assert_eq!(fitting, die.tiles.len() / 2);
    }

    #[test]
    fn the_grids_tell_two_controllers_where_no_tile_is() {
        let silicon = Silicon::of(&snc4(), 1).unwrap();
        assert_eq!(silicon.mcdram.fit.controller, (4.0, -1.0));
        assert!(silicon.die.mcdram_places().contains(&silicon.mcdram.fit.controller));
        assert_eq!(silicon.mcdram.floor_ns, None);
        assert_eq!(silicon.ddr4.fit.controller, (-1.0, 4.0));
        assert_eq!(silicon.die.both_sides((-1.0, 4.0)), [(-1.0, 4.0), (6.0, 4.0)]);
        let floor = silicon.ddr4.floor_ns.expect("most DDR4 cells read 137.4");
        assert!((137.45..137.65).contains(&floor), "{floor}");
    }

    #[test]
    fn a_base_puts_the_middle_where_it_is_printed() {
        let silicon = Silicon::of(&snc4(), 1).unwrap();
        let machine = isochrone_host::find_machine("xeon-phi-7285-all2all").expect("bundled");
        let printed = machine.grid("all2all-ddr4").unwrap();
        let homes = silicon.die.spread_home(&silicon.die.both_sides((-1.0, 4.0)));
        let network = silicon.ddr4_network(printed, &homes).unwrap();
        assert_eq!(network.column_ns, silicon.mcdram.fit.network.column_ns);
        let ns = silicon.die.tiles.iter().map(|tile| network.expected_ns(tile.place, &homes));
        let (least, most) = extremes(ns).unwrap();
        let middle = f64::midpoint(147.669_091, 143.260_333);
        assert!((f64::midpoint(least, most) - middle).abs() < 1e-9);
    }
}
