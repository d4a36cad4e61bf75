//! A published picture of latencies: one number for each core, in the layout of the drawing.
//!
//! Cells that the paper's text does not hold are `None`. The grid never fills them in, and the
//! numbers printed under a picture are kept as printed, even where they contradict the cells.

use alloc::string::String;
use alloc::vec::Vec;

use isochrone_units::CoreId;
use serde::{Deserialize, Serialize};

use crate::value::Interval;

/// The numbers that a paper prints under its picture, under the names that it gives them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GridLabels {
    /// The cores that the labels are about.
    pub cores: Vec<u16>,
    /// The number labelled "min".
    pub min: Option<f64>,
    /// The number labelled "max".
    pub max: Option<f64>,
    /// The number labelled "delta".
    pub delta: Option<f64>,
}

impl GridLabels {
    /// Whether the label "min" stands on the larger number and "max" on the smaller one. Where
    /// one of the two is not readable, `extremes` of the cells decide: a "min" above all cells
    /// but the largest, or a "max" below all but the smallest, is swapped too.
    #[must_use]
    pub fn are_swapped(&self, extremes: Option<(f64, f64)>) -> bool {
        match (self.min, self.max, extremes) {
            (Some(min), Some(max), _) => min > max,
            (Some(min), None, Some((lowest, highest))) => min - lowest > highest - min,
            (None, Some(max), Some((lowest, highest))) => highest - max > max - lowest,
            _ => false,
        }
    }
}

/// One number for each core.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Grid {
    /// What it is called, unique in its machine.
    pub name: String,
    /// What a cell is: `"memory read latency"`.
    pub what: String,
    /// Unit of the cells.
    pub unit: String,
    /// Mode of the machine: `"SNC4"`.
    pub mode: Option<String>,
    /// The memory that was read: `"MCDRAM"`.
    pub memory: Option<String>,
    /// The region whose memory was read, where that is known.
    pub region: Option<u16>,
    /// Cells in a row of the drawing; `None` where the layout is not known and the cells are
    /// only listed by core.
    pub columns: Option<u16>,
    /// The core drawn at each place, row-major; `None` where the drawing is empty.
    pub cores: Vec<Option<u16>>,
    /// The number at each place, same layout; `None` where it is not readable or empty.
    pub cells: Vec<Option<f64>>,
    /// The numbers printed under the picture.
    pub labels: Vec<GridLabels>,
    /// How the cells were read and what is doubtful.
    pub note: String,
    /// Where it stands: a source's id, then section or figure.
    pub source: String,
}

impl Grid {
    /// The number of `core`, if it is drawn and readable.
    #[must_use]
    pub fn value_of(&self, core: CoreId) -> Option<f64> {
        self.readings().find(|&(id, _)| id == core).map(|(_, value)| value)
    }

    /// Every readable cell, in the order of the drawing.
    pub fn readings(&self) -> impl Iterator<Item = (CoreId, f64)> {
        self.cores
            .iter()
            .zip(&self.cells)
            .filter_map(|(core, cell)| Some((CoreId((*core)?), (*cell)?)))
    }

    /// What stands for a core whose cell is not readable: the mean of the cells that are, and between which numbers it
    /// lies by the cells and by what is printed below the picture. `None` where no cell is readable.
    #[must_use]
    pub fn middle(&self) -> Option<(f64, Interval)> {
        let (low, high) = self.extremes(&[])?;
        let cells = self.readings().count();
        let sum: f64 = self.readings().map(|(_, value)| value).sum();
        // Whichever of the two the paper calls the smaller one.
        let printed =
            self.labels.iter().flat_map(|labels| labels.min.into_iter().chain(labels.max));
        let (low, high) = printed.fold((low, high), |(low, high), n| (low.min(n), high.max(n)));
        Some((sum / cells as f64, Interval::between(low, high)))
    }

    /// How many cores are drawn.
    #[must_use]
    pub fn drawn(&self) -> usize {
        self.cores.iter().flatten().count()
    }

    /// The cores that are drawn but whose number is not readable.
    #[must_use]
    pub fn unreadable(&self) -> Vec<u16> {
        let cells = self.cores.iter().zip(&self.cells);
        cells.filter(|(_, cell)| cell.is_none()).filter_map(|(core, _)| *core).collect()
    }

    /// Smallest and largest readable number among `cores`; among all where `cores` is empty.
    #[must_use]
    pub fn extremes(&self, cores: &[u16]) -> Option<(f64, f64)> {
        let wanted = |core: CoreId| cores.is_empty() || cores.contains(&core.0);
        self.readings().filter(|&(core, _)| wanted(core)).fold(None, |seen, (_, value)| {
            let (lowest, highest) = seen.unwrap_or((value, value));
            Some((lowest.min(value), highest.max(value)))
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn grid() -> Grid {
        Grid {
            columns: Some(2),
            cores: vec![Some(3), Some(2), None, Some(0)],
            cells: vec![Some(5.0), None, None, Some(4.0)],
            ..Grid::default()
        }
    }

    #[test]
    fn an_empty_place_is_not_an_unreadable_cell() {
        let grid = grid();
        assert_eq!((grid.drawn(), grid.unreadable()), (3, vec![2]));
        assert_eq!(grid.value_of(CoreId(3)), Some(5.0));
        assert_eq!(grid.value_of(CoreId(2)), None);
        assert_eq!(grid.extremes(&[]), Some((4.0, 5.0)));
        assert_eq!(grid.extremes(&[3]), Some((5.0, 5.0)));
        assert_eq!(grid.extremes(&[2]), None);
    }

    #[test]
    fn a_cell_that_is_not_readable_lies_where_the_others_and_the_print_say() {
        let labels = GridLabels { min: Some(7.0), max: Some(3.5), ..GridLabels::default() };
        let grid = Grid { labels: vec![labels], ..grid() };
        assert_eq!(grid.middle(), Some((4.5, Interval::between(3.5, 7.0))));
        assert_eq!(Grid::default().middle(), None);
    }

    #[test]
    fn swapped_labels_are_noticed_even_where_one_is_missing() {
        let labels = |min, max| GridLabels { min, max, ..GridLabels::default() };
        assert!(labels(Some(9.0), Some(1.0)).are_swapped(None));
        assert!(!labels(Some(1.0), Some(9.0)).are_swapped(None));
        assert!(labels(Some(9.0), None).are_swapped(Some((1.0, 8.0))));
        assert!(!labels(Some(1.0), None).are_swapped(Some((2.0, 8.0))));
        assert!(labels(None, Some(1.0)).are_swapped(Some((2.0, 8.0))));
        assert!(!labels(Some(9.0), None).are_swapped(None));
    }
}
