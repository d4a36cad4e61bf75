//! A map of some regions as one of all regions of the machine, so that columns mean the same in every atlas of it.

use isochrone_atlas_store::contents::{Matrix, RegionMap};
use isochrone_units::RegionId;

/// The map with a column for each of `all`; those that were not measured have no numbers. A map whose columns are
/// others, such as classes of pages, stays as it is.
pub(super) fn of_all(map: RegionMap, all: &[RegionId]) -> RegionMap {
    let columns: Vec<String> = all.iter().map(ToString::to_string).collect();
    let Matrix { what, rows, columns: had, cells } = map.latency_ns;
    let places: Vec<Option<usize>> =
        columns.iter().map(|name| had.iter().position(|column| column == name)).collect();
    let is_part = places.iter().flatten().count() == had.len();
    let latency_ns = if is_part && !had.is_empty() {
        let row = |row: usize| places.iter().map(move |at| (row, *at));
        let cell =
            |(row, at): (usize, Option<usize>)| cells.get(row * had.len() + at?).copied().flatten();
        let cells = (0..rows.len()).flat_map(row).map(cell).collect();
        Matrix { what, rows, columns, cells }
    } else {
        Matrix { what, rows, columns: had, cells }
    };
    RegionMap { latency_ns, ..map }
}

#[cfg(test)]
mod tests {
    use isochrone_atlas_store::contents::Cell;
    use isochrone_units::CoreId;

    use super::*;

    #[test]
    fn regions_that_were_not_measured_are_columns_without_numbers() {
        let cells = [10.0, 20.0, 30.0, 40.0].map(|ns| Some(Cell::single(ns))).to_vec();
        let regions = |ids: &[u16]| ids.iter().copied().map(RegionId).collect::<Vec<_>>();
        let some = RegionMap::of_chase("random", 1, [4, 5].map(CoreId), regions(&[1, 3]), cells);
        let all = of_all(some.clone(), &regions(&[0, 1, 2, 3]));
        let found: Vec<Option<f64>> =
            all.latency_ns.cells.iter().map(|cell| cell.map(|cell| cell.median)).collect();
        let row = |a, b| [None, Some(a), None, Some(b)];
        assert_eq!(found, [row(10.0, 20.0), row(30.0, 40.0)].concat());
        assert_eq!(all.latency_ns.columns.len(), 4);
        assert_eq!(of_all(all.clone(), &regions(&[0, 1, 2, 3])), all, "nothing is lacking");
        assert_eq!(of_all(some.clone(), &regions(&[0, 1])), some, "not a part of these");
    }
}
