//! What lines of one page look like to each core: base patterns as strips, classes of pages as a
//! matrix, distributions, and how well all of it predicts.

use isochrone_atlas_store::contents::{Contents, Form};
use isochrone_report::fmt;
use isochrone_report::html::Figure;
use isochrone_report::svg::{
    self, HeatMap, Histogram, HistogramPanel, HistogramSeries, Strip, StripRow,
};
use isochrone_report::table::{Cell, Table};
use isochrone_stats::quantile;

use super::{name, ns, percent, reading, spread, whole};
use crate::clusters::Clusters;
use crate::level::{LevelView, ends};
use crate::words;

/// Bases drawn with all their classes; of more, one class each (the shape is common to all).
const BASES_IN_FULL: usize = 4;
/// Bases drawn at all; of more, some evenly spread over the cores.
const BASES_DRAWN: usize = 96;
/// Rows up to which a strip has bars beside its colours.
const BARS: usize = 12;
/// Cores whose distributions are drawn over one another.
const CORES_OVERLAID: usize = 4;

/// The base of every core as rows of lines; `None` where no base is worn or none has a shape.
pub(crate) fn base_strip(view: &LevelView<'_>) -> Option<Strip> {
    if view.map.form != Form::Pattern {
        return None;
    }
    let worn = view.wearers();
    let in_full = worn.len() <= BASES_IN_FULL;
    let mut rows = Vec::new();
    for (_, base, cores) in spread(&worn, BASES_DRAWN) {
        let drawn = if in_full { base.patterns.len() } else { 1 };
        for (class, pattern) in base.patterns.iter().take(drawn).enumerate() {
            let class =
                if base.patterns.len() > 1 { format!(", class {class}") } else { String::new() };
            let label = format!("{}{class}", words::cores(&cores));
            rows.push(StripRow { label, values: view.pattern_ns(pattern) });
        }
    }
    if rows.is_empty() || !worn.iter().any(|(_, base, _)| view.has_shape(base)) {
        return None;
    }
    let over = if view.map.period == 256 { "16 KiB" } else { "page" };
    Some(Strip {
        title: format!("{}: the pattern that each core sees", view.name()),
        unit: "ns".into(),
        index_title: format!("line of the canonical {over}"),
        rows,
    })
}

/// Mean latency of each class of pages from each core; `None` where there is one class.
pub(crate) fn class_map(view: &LevelView<'_>, clusters: &Clusters) -> Option<HeatMap> {
    let classes = usize::from(view.map.classes);
    if classes < 2 || view.map.form != Form::Pattern {
        return None;
    }
    let mut cells = Vec::new();
    for (place, _) in view.cores() {
        let means = view.worn(place).map_or(Vec::new(), |(_, base)| view.class_means_ns(base));
        cells.extend((0..classes).map(|class| means.get(class).copied().flatten()));
    }
    if cells.iter().all(Option::is_none) || !means_differ(view) {
        return None;
    }
    Some(clusters.arrange(HeatMap {
        title: format!("{}: mean latency of each class of pages", view.name()),
        unit: "ns".into(),
        rows: view.cores().map(|(_, core)| format!("core {core}")).collect(),
        columns: (0..classes).map(|class| format!("class {class}")).collect(),
        cells,
        missing: "no base is known".into(),
        ..HeatMap::default()
    }))
}

/// Whether classes differ by how far they are, and not by their patterns alone.
fn means_differ(view: &LevelView<'_>) -> bool {
    view.wearers().iter().any(|(_, base, _)| {
        let means: Vec<f64> = view.class_means_ns(base).into_iter().flatten().collect();
        let spread = view.spread_ns(base).unwrap_or(0.0);
        ends(&means).is_some_and(|(lo, hi)| hi - lo > spread / 4.0)
    })
}

/// The strip of a level with the table of all bases ever seen.
pub(crate) fn strip_figure(contents: &Contents, view: &LevelView<'_>) -> Option<Figure> {
    let strip = base_strip(view)?;
    let some = match view.wearers().len() {
        n if n > BASES_DRAWN => format!(" {BASES_DRAWN} of {n} patterns are drawn."),
        n if n > BASES_IN_FULL && view.map.classes > 1 => {
            " Class 0 is drawn; the other classes have the same shape.".to_owned()
        }
        _ => String::new(),
    };
    let how = if strip.rows.len() <= BARS {
        "bars below the mean are near, bars above are far"
    } else {
        "dark is near, bright is far"
    };
    let keys = if view.used_keys() > 1 {
        " The lines of a page are these, permuted by its key."
    } else {
        ""
    };
    Some(Figure {
        svg: svg::strip(&strip),
        caption: format!("Each line of a page as the cores see it: {how}.{keys}{some}"),
        badge: Some(reading(contents)),
        table: Some(base_table(view)),
        open: false,
    })
}

fn base_table(view: &LevelView<'_>) -> Table {
    let head = ["base", "learnt on", "worn by", "class", "mean, ns", "nearest line, ns"];
    let mut table = Table::new(head.into_iter().chain(["farthest line, ns", "rounds"]));
    let worn = view.wearers();
    for (number, base) in view.map.bases.iter().enumerate() {
        let by = worn.iter().find(|entry| entry.0 == number);
        let by = by.map_or("no core now".to_owned(), |entry| words::cores(&entry.2));
        let means = view.class_means_ns(base);
        for (class, pattern) in base.patterns.iter().enumerate() {
            let values: Vec<f64> = view.pattern_ns(pattern).into_iter().flatten().collect();
            let ends = crate::level::ends(&values);
            table.row([
                name(&format!("base {number}")),
                name(&format!("core {}", base.core)),
                name(&by),
                whole(class as u64),
                ns(means.get(class).copied().flatten()),
                ns(ends.map(|e| e.0)),
                ns(ends.map(|e| e.1)),
                whole(u64::from(base.rounds)),
            ]);
        }
    }
    table
}

/// The classes of pages from each core.
pub(crate) fn class_figure(
    contents: &Contents,
    view: &LevelView<'_>,
    clusters: &Clusters,
) -> Option<Figure> {
    let map = class_map(view, clusters)?;
    let decoded = view.code_shares().decoded;
    let of = if decoded { "all decoded pages" } else { "the pages that were learnt from" };
    let share = |(class, share): (usize, &f64)| format!("{} class {class}", fmt::percent(*share));
    let shares: Vec<String> = view.class_shares().iter().enumerate().map(share).collect();
    Some(Figure {
        svg: svg::heat_map(&map),
        caption: format!(
            "Pages differ as a whole too. Of {of}: {}. Means of the base that each core wore \
             last.",
            words::and(&shares),
        ),
        badge: Some(reading(contents)),
        table: None,
        open: false,
    })
}

/// Distributions of single lines in all levels.
pub(crate) fn histogram_figure(contents: &Contents) -> Option<Figure> {
    let mut panels = Vec::new();
    let mut table = Table::new(
        ["level", "core", "lines", "5 %, ns", "25 %, ns", "median, ns"]
            .into_iter()
            .chain(["75 %, ns", "95 %, ns"]),
    );
    for view in LevelView::all(contents) {
        let known: Vec<(u16, Vec<f64>)> = view
            .cores()
            .map(|(place, core)| (core, view.lines_ns(place)))
            .filter(|(_, values)| !values.is_empty())
            .collect();
        for (core, values) in &known {
            let at = |q: f64| ns(quantile(values, q));
            let names = [Cell::text(view.name()), name(&format!("core {core}"))];
            let numbers = [whole(values.len() as u64), at(0.05), at(0.25), at(0.5)];
            table.row(names.into_iter().chain(numbers).chain([at(0.75), at(0.95)]));
        }
        let series: Vec<HistogramSeries> = spread(&known, CORES_OVERLAID)
            .into_iter()
            .map(|(core, values)| HistogramSeries { label: format!("core {core}"), values })
            .collect();
        if !series.is_empty() {
            panels.push(HistogramPanel { label: view.name(), series });
        }
    }
    if panels.is_empty() {
        return None;
    }
    let histogram =
        Histogram { title: "Latency of single lines".into(), unit: "ns".into(), panels };
    Some(Figure {
        svg: svg::histogram(&histogram),
        caption: "Held-out pages, each line's mean over many timed loads. Several humps are \
                  several distances, not noise."
            .into(),
        badge: Some(reading(contents)),
        table: Some(table),
        open: false,
    })
}

/// How well each level's map predicts, a row a core; `None` where nothing was scored.
pub(crate) fn quality_figure(contents: &Contents) -> Option<Figure> {
    let head = ["level", "core", "mean, ns", "nearest quarter, ns", "nearer by", "90 % over 10 %"];
    let more = ["explained", "could be", "codes right", "lost to wrong codes"];
    let mut table = Table::new(head.into_iter().chain(more));
    for view in LevelView::all(contents) {
        for (place, core) in view.cores() {
            let Some(quality) = view.quality(place).filter(|q| q.mean_ns.is_some()) else {
                continue;
            };
            table.row([
                Cell::text(view.name()),
                name(&format!("core {core}")),
                ns(quality.mean_ns),
                ns(quality.near_quarter_ns),
                percent(view.near(place).map(|near| near.share())),
                Cell::maybe(quality.spread_p90_p10, fmt::ratio),
                percent(quality.r2_heldout),
                percent(quality.r2_ceiling),
                percent(quality.key_accuracy),
                percent(quality.near_regret),
            ]);
        }
    }
    (!table.is_empty()).then(|| Figure {
        caption:
            "How well the map predicts pages that were not used to learn it: the share of the \
                  variance of a second, full pass over them that it explains, and the share that \
                  this pass's own noise leaves to be explained. What wrong codes lose is a share \
                  of the distance from near to mean."
                .into(),
        badge: Some(reading(contents)),
        table: Some(table),
        ..Figure::default()
    })
}

/// What decoding a page costs, a row a level; `None` where no page was decoded.
pub(crate) fn decoding_figure(contents: &Contents) -> Option<Figure> {
    let mut table = Table::new(
        ["level", "put there by", "pages", "lines a page", "timed loads a page", "µs a page"]
            .into_iter()
            .chain(["of it", "noise of one load"]),
    );
    for view in LevelView::all(contents) {
        let Some(quality) = view.decoding() else { continue };
        let parts: Vec<String> = quality
            .us_breakdown
            .iter()
            .map(|(name, us)| format!("{name} {}", fmt::significant(*us, 3)))
            .collect();
        table.row([
            Cell::text(view.name()),
            Cell::text(view.map.method.clone()),
            whole(quality.decoded_pages),
            Cell::maybe(quality.lines_per_page, |v| fmt::significant(v, 3)),
            Cell::maybe(quality.samples_per_page, |v| fmt::significant(v, 3)),
            Cell::maybe(quality.us_per_page, |v| fmt::significant(v, 3)),
            Cell::text(parts.join(", ")),
            Cell::maybe(Some(contents.clock.ns(view.map.noise_cycles)), fmt::ns),
        ]);
    }
    (!table.is_empty()).then(|| Figure {
        caption: "What it takes to know a page by a few of its lines.".into(),
        badge: Some(reading(contents)),
        table: Some(table),
        ..Figure::default()
    })
}
