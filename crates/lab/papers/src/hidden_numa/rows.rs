//! What the paper says in numbers beside what was simulated, with what each row tests and a verdict.

use isochrone_workloads::figure4::{Curve, Figure4, PUBLISHED, SearchPlan};

use crate::exhibit::Tests;
use crate::row::{Accepts, Cell, Row};

/// Percentage points by which a gain may differ from the one that the text gives.
const POINTS: f64 = 3.0;
/// The same of the ends of the whole curve, which the text gives without a fraction.
const ROUNDED: f64 = 0.5;
/// "Approximately the same" (section 4), as a part.
const SAME: f64 = 0.05;
/// What every gain rests on.
const HOP: &str = "a hop follows from the 60 % of Figure 2, read as the most over all pairs of cores; the order of \
                   stops is assumed, and the nearest quarter of all lines is placed, not the lists of the paper";

/// All comparisons; `spread` is what the paper says of one block from two cores.
pub(super) fn rows(all: &Figure4, spread: f64) -> Vec<Row> {
    let spread = Cell::factor("one block from two cores", spread, all.block_spread, 1.02);
    let id = "figure2/one block, two cores";
    let mut rows = vec![
        Row::single(id, Tests::Input, "2 %", spread)
            .named()
            .note("the cost of a hop follows from it"),
    ];
    for curve in &all.curves {
        rows.extend(gains(curve));
        rows.push(ends(curve));
    }
    rows.extend(all.curves.iter().map(misses));
    rows
}

/// The shape in a word, for names of rows.
const fn word(curve: &Curve) -> &'static str {
    match curve.search {
        SearchPlan::Hashed { .. } => "hashed",
        SearchPlan::Linear { .. } => "linear",
    }
}

/// The gains that the text gives for a number of cores, percent.
fn gains(curve: &Curve) -> impl Iterator<Item = Row> {
    let cell = |cores: u16, gain: f64| {
        Cell::within(format!("{cores} cores"), 100.0 * gain, at(curve, cores), POINTS)
    };
    let lowest = PUBLISHED.lowest_at.map(|cores| cell(cores, PUBLISHED.lowest));
    let highest = cell(PUBLISHED.highest_at, PUBLISHED.highest);
    let word = word(curve);
    lowest.into_iter().chain([highest]).map(move |cell| {
        let id = format!("figure4a/{word}/{}", cell.what);
        Row::single(id, Tests::OutOfSample, "3 points", cell).note(HOP)
    })
}

fn at(curve: &Curve, cores: u16) -> Option<f64> {
    let point = curve.points.iter().find(|point| point.cores == cores)?;
    Some(100.0 * point.gain().0)
}

/// The least and the most over all numbers of cores, percent.
fn ends(curve: &Curve) -> Row {
    let gains = || curve.points.iter().map(|point| 100.0 * point.gain().0);
    let [low, high] = [PUBLISHED.lowest, PUBLISHED.highest].map(|gain| 100.0 * gain);
    let inside = Accepts::between(low - ROUNDED, high + ROUNDED);
    let cells = vec![
        Cell::new("least", Some(low), gains().reduce(f64::min), inside),
        Cell::new("most", Some(high), gains().reduce(f64::max), inside),
    ];
    let numbers = format!("over {} numbers of cores", curve.points.len());
    let id = format!("figure4a/{}/least and most", word(curve));
    Row::new(&id, Tests::OutOfSample, "least and most gain, %", "17 to 28 %", cells)
        .named()
        .note(numbers)
}

/// Misses of core 0 with near lines over those without: the ratio that is farthest from 1.
fn misses(curve: &Curve) -> Row {
    let ratios = curve.points.iter().filter_map(|point| {
        let [oblivious, aware] = point.runs.first()?.misses_per_expansion();
        Some(aware / oblivious)
    });
    let farthest = ratios.max_by(|a, b| (a - 1.0).abs().total_cmp(&(b - 1.0).abs()));
    let cell = Cell::within("misses, aware over oblivious", 1.0, farthest, SAME);
    let id = format!("figure4b/{}", word(curve));
    Row::single(id, Tests::OutOfSample, "5 %", cell)
        .note("\"approximately the same\"; the farthest from 1")
}
