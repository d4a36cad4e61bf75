//! What the paper says in numbers beside what was simulated, with what each row tests and a verdict.

use std::collections::BTreeSet;

use isochrone_workloads::figure4::{
    Curve, Figure4, PUBLISHED, Placing, ReadingRun, Readings, SearchPlan,
};

use crate::exhibit::Tests;
use crate::row::{Accepts, Cell, Row, short};

/// Percentage points by which a gain may differ from the one that the text gives.
const POINTS: f64 = 3.0;
/// The same of the ends of the whole curve, which the text gives without a fraction.
const ROUNDED: f64 = 0.5;
/// "Approximately the same" (section 4), as a part.
const SAME: f64 = 0.05;
/// What every gain rests on.
fn over(readings: &Readings) -> String {
    let drawn = readings.runs.iter().filter_map(|run| run.order).collect::<BTreeSet<_>>().len();
    format!(
        "least and most over {} chips with the paper's lists: both readings of the 60 %, the file's order of stops and \
         {drawn} drawn, {} readings of an order contradicted",
        readings.runs.len(),
        readings.contradicted
    )
}

/// All comparisons; `spread` is what the paper says of one block from two cores.
pub(super) fn rows(all: &Figure4, readings: &Readings, spread: f64) -> Vec<Row> {
    let spread = Cell::factor("one block from two cores", spread, all.block_spread, 1.02);
    let id = "figure2/one block, two cores";
    let mut rows = vec![
        Row::single(id, Tests::Input, "2 %", spread)
            .named()
            .note("the cost of a hop follows from it"),
    ];
    for (shape, curve) in all.curves.iter().enumerate() {
        rows.extend(gains(shape, curve, readings));
        rows.push(ends(shape, curve, readings));
    }
    rows.extend(all.curves.iter().map(misses));
    rows
}

/// The shape in a word, for names of rows.
pub(super) const fn word(curve: &Curve) -> &'static str {
    match curve.search {
        SearchPlan::Hashed { .. } => "hashed",
        SearchPlan::Linear { .. } => "linear",
    }
}

/// The gains that the text gives for a number of cores, percent: an interval has to hold at both ends.
fn gains(shape: usize, curve: &Curve, readings: &Readings) -> impl Iterator<Item = Row> {
    let lowest = PUBLISHED.lowest_at.map(|cores| (cores, PUBLISHED.lowest));
    let all = lowest.into_iter().chain([(PUBLISHED.highest_at, PUBLISHED.highest)]);
    all.map(move |(cores, gain)| {
        let paper = 100.0 * gain;
        let [least, most] = both(readings.interval(shape, cores, Placing::Lists));
        let cells = vec![
            Cell::within("least", paper, least, POINTS),
            Cell::within("most", paper, most, POINTS),
        ];
        let accepts = Accepts::within(paper, POINTS);
        let near = nearest(readings, shape, cores, paper);
        let is_near = near.is_some_and(|(_, gain)| accepts.takes(gain));
        let id = format!("figure4a/{}/{cores} cores", word(curve));
        Row::new(&id, Tests::OutOfSample, &format!("{cores} cores"), "3 points", cells)
            .note(over(readings))
            .note(near.map_or_else(String::new, |(run, gain)| said(run, gain)))
            .note(quarter(readings.interval(shape, cores, Placing::Nearest)))
            .explained(is_near)
    })
}

/// Both ends in percent.
fn both(interval: Option<[f64; 2]>) -> [Option<f64>; 2] {
    interval.map_or([None; 2], |ends| ends.map(|end| Some(100.0 * end)))
}

/// The chip whose gain is nearest to the paper's, percent.
fn nearest(
    readings: &Readings,
    shape: usize,
    cores: u16,
    paper: f64,
) -> Option<(&ReadingRun, f64)> {
    let gains = readings.gains(shape, cores, Placing::Lists);
    let percent = gains.map(|(run, gain)| (run, 100.0 * gain));
    percent.min_by(|a, b| (a.1 - paper).abs().total_cmp(&(b.1 - paper).abs()))
}

/// What that chip is, in words.
fn said(run: &ReadingRun, gain: f64) -> String {
    let order = if run.order.is_some() { "a drawn order" } else { "the file's order" };
    format!("nearest {} with {order}, 60 % of {}", short(gain), run.spread.as_str())
}

fn quarter(interval: Option<[f64; 2]>) -> String {
    interval.map_or_else(String::new, |ends| {
        let [least, most] = ends.map(|end| short(100.0 * end));
        format!("{least} to {most} with the nearest quarter")
    })
}

/// The least and the most over the numbers of cores that the text names, percent.
fn ends(shape: usize, curve: &Curve, readings: &Readings) -> Row {
    let [low, high] = [PUBLISHED.lowest, PUBLISHED.highest].map(|gain| 100.0 * gain);
    let inside = Accepts::between(low - ROUNDED, high + ROUNDED);
    let intervals = || {
        let of = |cores: &u16| readings.interval(shape, *cores, Placing::Lists);
        readings.cores.iter().filter_map(of)
    };
    let least = intervals().map(|[least, _]| 100.0 * least).reduce(f64::min);
    let most = intervals().map(|[_, most]| 100.0 * most).reduce(f64::max);
    let cells = vec![
        Cell::new("least", Some(low), least, inside),
        Cell::new("most", Some(high), most, inside),
    ];
    let id = format!("figure4a/{}/least and most", word(curve));
    let numbers = format!("over {} numbers of cores; {}", readings.cores.len(), over(readings));
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
