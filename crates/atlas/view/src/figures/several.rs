//! Several lines, several readers and writers, several cores at once: the multi-line fit, the
//! interactions and the bandwidth.

use isochrone_atlas_store::contents::{Contents, Interaction, MultiLineFit};
use isochrone_report::fmt;
use isochrone_report::html::Figure;
use isochrone_report::svg::{self, Axis, LineChart, LineSeries, Mark, Point, Scale};
use isochrone_report::table::{Cell, Table};

use super::{ns, reading, whole};
use crate::words;

/// Pieces of a drawn fit.
const CURVE_STEPS: i32 = 48;

/// Multi-line transfers with their fit, one figure a fit that has points.
pub(crate) fn multiline_figures(contents: &Contents) -> Vec<Figure> {
    let figure = |fit: &MultiLineFit| Figure {
        svg: svg::line_chart(&chart(fit)),
        caption: format!(
            "Time until a reader has N lines of the owner, {}: medians (dots) and the fit of \
             equation (1) of the CLa paper, T = q + oN + cnN for n readers (lines).",
            fit.what
        ),
        badge: Some(reading(contents)),
        table: Some(table(fit)),
        open: true,
    };
    contents.multiline.iter().filter(|fit| !fit.points.is_empty()).map(figure).collect()
}

/// Readers that were tried, ascending.
fn readers(fit: &MultiLineFit) -> Vec<u32> {
    let mut all: Vec<u32> = fit.points.iter().map(|point| point.1).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The fit between the first and the last of some points, dense enough to look like a curve.
fn fitted_curve(fit: &MultiLineFit, points: &[&(u32, u32, f64)], readers: u32) -> Vec<Point> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return Vec::new() };
    let (first, ratio) = (f64::from(first.0), f64::from(last.0) / f64::from(first.0.max(1)));
    let at = |i: i32| first * ratio.powf(f64::from(i) / f64::from(CURVE_STEPS));
    let point = |x: f64| Point { x, y: Some(fitted_ns(fit, x, readers)), band: None };
    (0..=CURVE_STEPS).map(at).map(point).collect()
}

fn fitted_ns(fit: &MultiLineFit, lines: f64, readers: u32) -> f64 {
    let readers = f64::from(readers);
    fit.q_ns.0 + fit.o_ns.0 * lines + fit.c_ns.map_or(0.0, |c| c.0) * readers * lines
}

fn chart(fit: &MultiLineFit) -> LineChart {
    let mut series = Vec::new();
    for n in readers(fit) {
        let mut points: Vec<&(u32, u32, f64)> = fit.points.iter().filter(|p| p.1 == n).collect();
        points.sort_by_key(|point| point.0);
        let label = words::counted(n as usize, "reader");
        let point = |p: &&(u32, u32, f64)| Point { x: f64::from(p.0), y: Some(p.2), band: None };
        series.push(LineSeries {
            label: label.clone(),
            points: fitted_curve(fit, &points, n),
            mark: Mark::Line,
        });
        series.push(LineSeries {
            label,
            points: points.iter().map(point).collect(),
            mark: Mark::Dots,
        });
    }
    LineChart {
        title: format!("Transfers of several lines, {}", fit.what),
        x: Axis { title: "lines".into(), scale: Scale::Log2, ..Axis::default() },
        y: Axis { title: "time, ns".into(), scale: Scale::Log2, ..Axis::default() },
        series,
        apart: false,
    }
}

fn table(fit: &MultiLineFit) -> Table {
    let mut table = Table::new(["lines", "readers", "median, ns", "fit, ns", "median over fit"]);
    for (lines, readers, median) in &fit.points {
        let fitted = fitted_ns(fit, f64::from(*lines), *readers);
        table.row([
            whole(u64::from(*lines)),
            whole(u64::from(*readers)),
            ns(Some(*median)),
            ns(Some(fitted)),
            Cell::maybe(Some(median / fitted), fmt::ratio),
        ]);
    }
    table
}

/// Contention, congestion, stealing: over the number of participants where there are several.
pub(crate) fn interaction_figure(contents: &Contents) -> Option<Figure> {
    if contents.interactions.is_empty() {
        return None;
    }
    let mut table =
        Table::new(["interaction", "n", "median, ns", "95 % from", "95 % to", "values", "what"]);
    // What was measured first.
    let mut all: Vec<&Interaction> = contents.interactions.iter().collect();
    all.sort_by_key(|one| one.ns.is_none());
    for one in all {
        let cell = one.ns;
        table.row([
            super::name(&one.kind),
            whole(u64::from(one.n)),
            ns(cell.map(|c| c.median)),
            ns(cell.map(|c| c.lo)),
            ns(cell.map(|c| c.hi)),
            cell.map_or_else(Cell::missing, |c| whole(u64::from(c.n))),
            Cell::text(one.note.clone()),
        ]);
    }
    Some(Figure {
        svg: interaction_chart(&contents.interactions)
            .map_or(String::new(), |c| svg::line_chart(&c)),
        caption: "Section 2 of the CLa paper: many readers of one line (contention) and of \
                  different lines (congestion), n readers and n writers stealing a polled line, \
                  and taking over a line that n others share. n counts the participants beside \
                  the owner or poller."
            .into(),
        badge: Some(reading(contents)),
        table: Some(table),
        open: false,
    })
}

/// `None` where no interaction was measured for two numbers of participants.
fn interaction_chart(all: &[Interaction]) -> Option<LineChart> {
    let mut series: Vec<LineSeries> = Vec::new();
    for one in all {
        let Some(cell) = one.ns else { continue };
        let band = Some((cell.lo, cell.hi));
        let point = Point { x: f64::from(one.n), y: Some(cell.median), band };
        match series.iter_mut().find(|s| s.label == one.kind) {
            Some(found) => found.points.push(point),
            None => series.push(LineSeries {
                label: one.kind.clone(),
                points: vec![point],
                mark: Mark::Line,
            }),
        }
    }
    series.iter_mut().for_each(|s| s.points.sort_by(|a, b| a.x.total_cmp(&b.x)));
    series.iter().any(|s| s.points.len() > 1).then(|| LineChart {
        title: "Interactions by the number of participants".into(),
        x: Axis { title: "participants".into(), scale: Scale::Log2, ..Axis::default() },
        y: Axis { title: "time an operation, ns".into(), scale: Scale::Log2, ..Axis::default() },
        series,
        apart: false,
    })
}

/// What the model of collectives leaves out.
pub(crate) fn term_figure(contents: &Contents) -> Option<Figure> {
    let mut table = Table::new([
        "term",
        "more, ns",
        "95 % from",
        "95 % to",
        "with, ns",
        "without, ns",
        "lines",
        "what",
    ]);
    for term in &contents.terms {
        let cell = term.ns;
        let what = term
            .missing
            .as_ref()
            .map_or_else(|| term.what.clone(), |why| format!("{}: {why}", term.what));
        table.row([
            super::name(&term.name),
            ns(cell.map(|c| c.median)),
            ns(cell.map(|c| c.lo)),
            ns(cell.map(|c| c.hi)),
            ns(term.with_ns.map(|c| c.median)),
            ns(term.without_ns.map(|c| c.median)),
            cell.map_or_else(Cell::missing, |c| whole(u64::from(c.n))),
            Cell::text(what),
        ]);
    }
    (!table.is_empty()).then(|| Figure {
        caption: "What the model of the CLa paper leaves out: the same lines with and without. \
                  `isochrone predict --term measured` adds them one by one."
            .into(),
        badge: Some(reading(contents)),
        table: Some(table),
        ..Figure::default()
    })
}

/// Triad bandwidth as a table.
pub(crate) fn bandwidth_figure(contents: &Contents) -> Option<Figure> {
    let mut table = Table::new(["cores", "region", "median, GB/s", "95 % from", "95 % to", "runs"]);
    for one in &contents.bandwidth {
        let cell = one.gb_per_s;
        let rate = |v: f64| Cell::maybe(Some(v), |v| fmt::significant(v, 3));
        // One run has no interval.
        let end = |v: f64| Cell::maybe((cell.n > 1).then_some(v), |v| fmt::significant(v, 3));
        table.row([
            super::name(&words::cores(&one.cores)),
            whole(u64::from(one.region)),
            rate(cell.median),
            end(cell.lo),
            end(cell.hi),
            whole(u64::from(cell.n)),
        ]);
    }
    (!table.is_empty()).then(|| Figure {
        caption: "Triad, all cores of a group together: 10^9 bytes read and written a second, \
                  write-allocate not counted."
            .into(),
        badge: Some(reading(contents)),
        table: Some(table),
        ..Figure::default()
    })
}
