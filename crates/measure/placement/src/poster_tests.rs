//! The grids of the Latency Checker poster (Yuki and Endo, Intel Xeon Phi 7285, SNC4 mode), as far
//! as its text can be read: one cell a tile, six columns of tiles in seven rows, the cores' places
//! given. Where is the memory that was timed?

use super::*;

/// Tiles whose latency the text does not hold, or that do not exist.
const NONE: f64 = f64::NAN;

/// SNC4 mode, MCDRAM, nanoseconds; the first core of each tile. Cores 33, 25, 5 and 1 stand in
/// the first row. The largest is labelled 176.6, the smallest 161.1.
const MCDRAM_NS: [[f64; 6]; 7] = [
    [170.9, 168.1, NONE, NONE, 161.2, 163.1],
    [171.3, NONE, NONE, 162.9, 161.5, 163.8],
    [NONE, 168.9, 166.8, NONE, NONE, NONE],
    [NONE, 169.9, 167.8, 164.7, 162.9, NONE],
    [174.1, 171.8, 168.8, NONE, NONE, NONE],
    [175.7, 172.8, 170.5, NONE, NONE, NONE],
    [176.7, NONE, 171.6, NONE, NONE, NONE],
];

/// SNC4 mode, DDR4, nanoseconds; the second core of each tile where only it can be read.
const DDR4_NS: [[f64; 6]; 7] = [
    [137.4, 137.4, NONE, NONE, NONE, NONE],
    [137.4, NONE, NONE, 142.6, 148.3, 154.4],
    [NONE, 137.4, 137.5, NONE, 145.5, NONE],
    [NONE, 137.4, 137.4, 137.3, 144.4, NONE],
    [137.4, 137.4, 137.4, 137.4, 142.6, NONE],
    [137.4, NONE, NONE, 137.4, 145.4, 148.3],
    [137.4, NONE, 137.4, 141.8, 145.5, 151.0],
];

type Places = Vec<Option<(f64, f64)>>;

/// Places of all tiles, and the latencies that can be read.
fn tiles(grid: &[[f64; 6]; 7]) -> (Places, Vec<Option<f64>>) {
    let cells = grid.iter().zip(0_i32..).flat_map(|(row, y)| {
        row.iter().zip(0_i32..).map(move |(&ns, x)| ((f64::from(x), f64::from(y)), ns))
    });
    cells.map(|(place, ns)| (Some(place), (!ns.is_nan()).then_some(ns))).unzip()
}

fn located(name: &str, grid: &[[f64; 6]; 7]) -> ControllerFit {
    let (places, latencies) = tiles(grid);
    locate_controller(name, &places, &latencies, 1)
}

#[test]
fn the_mcdram_is_at_the_upper_right() {
    let found = located("MCDRAM", &MCDRAM_NS);
    // The column of cores 4 to 11, at the top edge: between cores 4 and 5, or beyond them.
    assert_eq!(found.best, Some((4.0, 0.0)), "{}", found.summary);
    assert_eq!(found.candidates, [(4.0, -1.0), (4.0, 0.0), (4.0, 1.0)]);
    assert!(found.summary.contains("beyond the top edge"), "{}", found.summary);
    assert_eq!(found.places, 22);
    assert_eq!(found.floor, None);
    assert!(found.p_value <= 0.01 && found.r2 > 0.95);
    // A tile to the side costs more than twice as much as one up or down.
    assert!(found.hop_x > 2.0 * found.hop_y && found.hop_y > 0.0);
    // The fitted line at the controller itself is below the smallest value that is labelled.
    assert!((159.0..161.1).contains(&found.base), "{}", found.base);
}

#[test]
fn the_ddr4_is_to_the_left_and_how_far_depends_on_the_floor() {
    let found = located("DDR4", &DDR4_NS);
    // Sixteen of the 27 tiles read 137.3 to 137.5: there is no gradient to the left of column 3.
    assert_eq!(found.floor, Some((16, 137.5)));
    // If they are truly no slower than that, the memory is at the left edge, in row 4.
    assert_eq!(found.best, Some((0.0, 4.0)), "{}", found.summary);
    assert_eq!(found.candidates, [(-1.0, 4.0), (0.0, 4.0), (1.0, 4.0)]);
    // If the repeated value is a fault, the row is all that can be told.
    let rows: Vec<f64> = found.candidates_without_floor.iter().map(|c| c.1).collect();
    let columns: Vec<f64> = found.candidates_without_floor.iter().map(|c| c.0).collect();
    assert_eq!(rows, [4.0; 5]);
    assert_eq!(columns, [-1.0, 0.0, 1.0, 2.0, 3.0]);
    assert!(found.p_value <= 0.01);
    assert!(found.summary.contains("16 of 27 places"), "{}", found.summary);
}

#[test]
fn the_record_says_that_places_were_given() {
    let (places, latencies) = tiles(&MCDRAM_NS);
    let labels: Vec<String> = (0..places.len()).map(|tile| format!("tile {tile}")).collect();
    let columns = ColumnLatencies::new(labels.len(), vec!["MCDRAM".to_owned()], latencies).unwrap();
    let observed =
        Observed { cores: &labels, pairs: None, columns: Some(&columns), places: Some(&places) };
    let found = infer(&observed, 1).unwrap();
    assert_eq!(found.placement.shape, "grid");
    assert!(found.placement.reason.contains("given"), "{}", found.placement.reason);
    assert!(found.placement.rank_correlation.is_some_and(|r| r > 0.95));
    assert_eq!(found.placement.places.last(), Some(&("MCDRAM".to_owned(), 4.0, 0.0)));
    // Without the places, the same column places nothing.
    let blind = infer(&Observed { places: None, ..observed }, 1).unwrap();
    assert_eq!(blind.placement.shape, "cannot tell");
    assert!(blind.placement.places.is_empty() && blind.controllers.is_empty());
}
