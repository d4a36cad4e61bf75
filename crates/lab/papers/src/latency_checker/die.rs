//! A die of tiles in rows and columns, as a machine's file draws it.
//!
//! Only places: which tile each core is in, which quarter each tile is in, and where there is no
//! tile, so that something else may stand there. Costs are not known here.

use isochrone_machine::{Interconnect, Machine};

use super::route::{Place, whole};

/// Cores that share a stop of the network.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tile {
    /// Where it is.
    pub(super) place: Place,
    /// The quarter (region) of its cores.
    pub(super) quarter: u16,
    /// Its cores, by number.
    pub(super) cores: Vec<u16>,
}

/// A core of the drawing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct DrawnCore {
    /// Its number.
    pub(super) id: u16,
    /// Column and row of the drawing, in which the cores of a tile stand side by side.
    pub(super) at: (u16, u16),
    /// Where its tile is.
    pub(super) tile: Place,
}

/// A die of tiles.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Die {
    /// Tiles across.
    pub(super) columns: u16,
    /// Tiles down.
    pub(super) rows: u16,
    /// Cores side by side in a tile.
    pub(super) cores_per_tile: u16,
    /// The tiles.
    pub(super) tiles: Vec<Tile>,
    /// The cores, by number.
    pub(super) cores: Vec<DrawnCore>,
}

impl Die {
    /// From the places of a machine's cores and the size of its mesh; `None` where either is
    /// missing.
    pub(super) fn of(machine: &Machine) -> Option<Self> {
        let Some(Interconnect::Mesh { columns, rows, .. }) = machine.interconnect else {
            return None;
        };
        let across = machine.cores.iter().filter_map(|c| c.place).map(|p| p.x + 1.0);
        let drawn = across.fold(0.0, f64::max);
        if columns == 0 || drawn <= 0.0 {
            return None;
        }
        let cores_per_tile = (drawn / f64::from(columns)).ceil();
        let (mut tiles, mut cores): (Vec<Tile>, Vec<DrawnCore>) = (Vec::new(), Vec::new());
        for core in &machine.cores {
            let drawn = core.place?;
            let place = ((drawn.x / cores_per_tile).floor(), drawn.y);
            let at = (whole(drawn.x), whole(drawn.y));
            cores.push(DrawnCore { id: core.id, at, tile: place });
            match tiles.iter_mut().find(|tile| tile.place == place) {
                Some(tile) => tile.cores.push(core.id),
                None => tiles.push(Tile { place, quarter: core.region, cores: vec![core.id] }),
            }
        }
        Some(Self { columns, rows, cores_per_tile: whole(cores_per_tile), tiles, cores })
    }

    /// The tile of a core.
    pub(super) fn tile_of(&self, core: u16) -> Option<&Tile> {
        self.tiles.iter().find(|tile| tile.cores.contains(&core))
    }

    /// Places of all tiles, or of one quarter's.
    pub(super) fn places(&self, quarter: Option<u16>) -> Vec<Place> {
        let wanted = |tile: &&Tile| quarter.is_none_or(|q| tile.quarter == q);
        self.tiles.iter().filter(wanted).map(|tile| tile.place).collect()
    }

    /// The quarters, ascending.
    pub(super) fn quarters(&self) -> Vec<u16> {
        let mut all: Vec<u16> = self.tiles.iter().map(|tile| tile.quarter).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Places where a controller may stand: on the die where no tile is drawn, and one step
    /// beyond each edge.
    pub(super) fn free_places(&self) -> Vec<Place> {
        let steps = |count: u16| std::iter::once(-1.0).chain((0..=count).map(f64::from));
        let all = steps(self.rows).flat_map(|y| steps(self.columns).map(move |x| (x, y)));
        all.filter(|place| !self.tiles.iter().any(|tile| tile.place == *place)).collect()
    }

    /// The quarter of a place: that of the nearest tile, the first of several.
    pub(super) fn quarter_at(&self, place: Place) -> Option<u16> {
        let reach = |tile: &Tile| (tile.place.0 - place.0).abs() + (tile.place.1 - place.1).abs();
        let nearest = self.tiles.iter().min_by(|a, b| reach(a).total_cmp(&reach(b)))?;
        Some(nearest.quarter)
    }

    /// Whether a tile lies on the edge of the die: one of its four neighbours is missing because
    /// the die ends there.
    pub(super) fn is_border(&self, place: Place) -> bool {
        let last = (f64::from(self.columns) - 1.0, f64::from(self.rows) - 1.0);
        place.0 <= 0.0 || place.1 <= 0.0 || place.0 >= last.0 || place.1 >= last.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snc4() -> Die {
        let machine = isochrone_host::find_machine("xeon-phi-7285-snc4").expect("bundled");
        Die::of(&machine).expect("its places are known")
    }

    #[test]
    fn the_snc4_drawing_has_34_tiles_of_two_cores_in_four_quarters() {
        let die = snc4();
        assert_eq!((die.columns, die.rows, die.cores_per_tile), (6, 7, 2));
        assert_eq!(die.tiles.len(), 34);
        assert!(
            die.tiles.iter().all(|tile| {
                tile.cores.len() == 2 && tile.cores[0].abs_diff(tile.cores[1]) == 1
            })
        );
        assert_eq!(die.quarters(), [0, 1, 2, 3]);
        assert_eq!(die.tile_of(33).map(|tile| tile.place), Some((0.0, 0.0)));
        assert_eq!(die.tile_of(38).map(|tile| tile.place), Some((5.0, 6.0)));
    }

    #[test]
    fn controllers_stand_where_no_tile_is() {
        let die = snc4();
        let free = die.free_places();
        assert_eq!(free.len(), 8 * 9 - 34);
        assert!(free.contains(&(4.0, -1.0)) && free.contains(&(0.0, 2.0)));
        assert!(!free.contains(&(4.0, 0.0)));
        assert_eq!(die.quarter_at((4.0, -1.0)), Some(0));
        assert_eq!(die.quarter_at((-1.0, 4.0)), Some(3));
    }

    #[test]
    fn a_machine_without_places_has_no_die() {
        let machine = isochrone_host::find_machine("xeon-phi-7285-all2all").expect("bundled");
        assert_eq!(Die::of(&machine), None);
    }
}
