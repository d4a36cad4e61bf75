//! The figures of the page: published and simulated grids side by side on one colour scale, the
//! die with the controller that each side tells, this machine's own grid, and consecutive blocks.
//! Where cores share a tile, a field is their mean; the table under it has every core.

use isochrone_report::svg::{
    Axis, FloorPlan, HeatMap, LineChart, LineSeries, Mark, Outline, Place, PlaceKind, Point,
    Verdict, floor_plan, heat_map, line_chart,
};
use isochrone_units::Reading;

use super::cells::{Cell, GridResult, Located, extremes};
use super::figure2::Blocks;
use super::measured::RegionGrid;

/// Wider drawings stand one under the other.
const MOST_COLUMNS_ABREAST: u16 = 8;

/// Published and simulated, on one colour scale. Only what has places is drawn.
pub(super) fn grids(grid: &GridResult) -> String {
    let tiles = (grid.size.0 / grid.cores_per_tile.max(1), grid.size.1);
    let published = fields(grid, tiles, |cell| cell.published);
    let simulated = fields(grid, tiles, |cell| cell.simulated.map(|s| s.ns));
    let range = extremes(published.iter().chain(&simulated).flatten().copied());
    let map = |title: &str, cells: Vec<Option<f64>>, missing: &str| {
        let names = |what: &str, count: u16| (0..count).map(|i| format!("{what}{i}")).collect();
        heat_map(&HeatMap {
            title: title.to_owned(),
            unit: "ns".to_owned(),
            rows: names("row ", tiles.1),
            columns: names("", tiles.0),
            cells,
            range,
            missing: missing.to_owned(),
            ..HeatMap::default()
        })
    };
    let mut pictures = Vec::new();
    if grid.cells.iter().any(|cell| cell.at.is_some() && cell.core.is_some()) {
        let missing = if grid.unreadable() > 0 { "unreadable or empty" } else { "empty" };
        pictures.push(map("Published", published, missing));
    }
    pictures.push(map("Simulated", simulated, "empty"));
    abreast(&pictures, tiles.0)
}

/// The mean over the cores of each tile, row-major.
fn fields(
    grid: &GridResult,
    tiles: (u16, u16),
    value: impl Fn(&Cell) -> Option<f64>,
) -> Vec<Option<f64>> {
    let all = (0..tiles.1).flat_map(|row| (0..tiles.0).map(move |column| (column, row)));
    all.map(|tile| {
        let own = grid.cells.iter().filter(|cell| {
            cell.at.is_some_and(|at| (at.0 / grid.cores_per_tile.max(1), at.1) == tile)
        });
        isochrone_stats::mean(&own.filter_map(&value).collect::<Vec<_>>())
    })
    .collect()
}

/// Pictures beside one another where they are narrow enough to be read so.
fn abreast(pictures: &[String], columns: u16) -> String {
    if columns > MOST_COLUMNS_ABREAST || pictures.len() < 2 {
        return pictures.concat();
    }
    let cells: String = pictures.iter().map(|picture| format!("<div>{picture}</div>")).collect();
    let columns = "repeat(auto-fit,minmax(min(100%,20rem),1fr))";
    format!("<div style=\"display:grid;grid-template-columns:{columns};gap:1.2rem\">{cells}</div>")
}

/// The die as the placement experiment sees it, from the published and from the simulated cells.
pub(super) fn dies(grid: &GridResult) -> String {
    let all: Vec<String> = grid.controllers.iter().map(|located| die(grid, located)).collect();
    abreast(&all, 0)
}

/// Tiles coloured by the cells that the experiment read, and the controller where it puts it.
fn die(grid: &GridResult, located: &Located) -> String {
    let title = format!("{}, from the {} cells", grid.memory, located.reading);
    let Some(best) = located.best else {
        let verdict = Verdict::CannotTell { reason: located.summary.clone() };
        return floor_plan(&FloorPlan { title, verdict });
    };
    let mut places = tiles(grid, located.reading);
    let at = outside(best, grid.size.0 / grid.cores_per_tile.max(1), grid.size.1);
    places.push(Place {
        label: "MC".to_owned(),
        kind: PlaceKind::Memory,
        x: at.0,
        y: at.1,
        value: None,
    });
    let verdict = Verdict::Placed {
        outline: Outline::Grid,
        places,
        symmetries: format!(
            "{} The cores' places were given, so no mirror image is left.",
            super::terminal::located(located)
        ),
        unit: "ns".to_owned(),
    };
    floor_plan(&FloorPlan { title, verdict })
}

/// Just outside the tile at `at`, towards the nearer edge, so that neither hides the other.
fn outside(at: (f64, f64), columns: u16, rows: u16) -> (f64, f64) {
    let step = |at: f64, count: u16| match at {
        at if at <= 0.0 => -0.6,
        at if at >= f64::from(count) - 1.0 => 0.6,
        _ => 0.0,
    };
    match (step(at.0, columns), step(at.1, rows)) {
        (0.0, 0.0) => (at.0 + 0.5, at.1 + 0.5),
        (0.0, down) => (at.0, at.1 + down),
        (across, _) => (at.0 + across, at.1),
    }
}

fn tiles(grid: &GridResult, reading: Reading) -> Vec<Place> {
    let columns = grid.size.0 / grid.cores_per_tile.max(1);
    let values = fields(grid, (columns, grid.size.1), |cell| match reading {
        Reading::Simulated => cell.simulated.map(|s| s.ns),
        _ => cell.published,
    });
    let tile_of = |at: (u16, u16)| (at.0 / grid.cores_per_tile.max(1), at.1);
    let all = (0..grid.size.1).flat_map(|row| (0..columns).map(move |column| (column, row)));
    let place = |(tile, value): ((u16, u16), Option<f64>)| {
        let core = grid.cells.iter().find(|cell| cell.at.is_some_and(|at| tile_of(at) == tile))?;
        Some(Place {
            label: core.core?.to_string(),
            kind: PlaceKind::Core,
            x: f64::from(tile.0),
            y: f64::from(tile.1),
            value,
        })
    };
    all.zip(values).filter_map(place).collect()
}

/// This machine's own grid.
pub(super) fn own_grid(grid: &RegionGrid) -> String {
    heat_map(&HeatMap {
        title: format!("Core to region, {} chase", grid.mode),
        unit: "ns".to_owned(),
        row_title: "from".to_owned(),
        column_title: "to".to_owned(),
        rows: grid.rows.clone(),
        columns: grid.columns.clone(),
        cells: grid.cells.iter().map(|cell| cell.map(|c| c.median)).collect(),
        intervals: grid.cells.iter().map(|cell| cell.map(|c| (c.lo, c.hi))).collect(),
        ..HeatMap::default()
    })
}

/// Figure 2 of the Euro-Par paper: relative latency over consecutive blocks, a line a core.
pub(crate) fn figure2(blocks: &Blocks) -> String {
    let first = blocks.first_frame.map_or(0, |frame| frame * 4096);
    let series = blocks.shown().iter().map(|(core, line)| LineSeries {
        label: format!("core {core}"),
        points: (0_u32..)
            .zip(line)
            .map(|(block, y)| Point { x: f64::from(block), y: Some(*y), band: None })
            .collect(),
        mark: Mark::Steps,
    });
    let from = match blocks.first_frame {
        Some(_) => format!("block of 64 bytes, from physical address {first:#x}"),
        None => "block of 64 bytes in its page".to_owned(),
    };
    line_chart(&LineChart {
        title: format!("Consecutive blocks, {}", blocks.level),
        x: Axis { title: from, ..Axis::default() },
        y: Axis { title: "times the fastest access".to_owned(), ..Axis::default() },
        series: series.collect(),
        apart: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_is_drawn_beside_its_tile_towards_the_edge() {
        assert_eq!(outside((4.0, 0.0), 6, 7), (4.0, -0.6));
        assert_eq!(outside((0.0, 4.0), 6, 7), (-0.6, 4.0));
        assert_eq!(outside((5.0, 6.0), 6, 7), (5.6, 6.0));
        assert_eq!(outside((2.0, 3.0), 6, 7), (2.5, 3.5));
    }
}
