//! The reproduction as one page.

use isochrone_cla::predicted::{Prediction, svg};
use isochrone_report::html::{Badge, Figure, Page, Section};
use isochrone_report::svg::{Axis, LineChart, LineSeries, Mark, Point, line_chart};
use isochrone_report::table::Table;
use isochrone_units::Reading;

use super::tables::{FIGURE_3, INTRODUCTION, OTHERS, beside, figure3, others, summary};
use super::{Reproduction, Row};

/// The reproduction as a page.
pub(super) fn to_page(all: &Reproduction) -> Page {
    let mut badges = vec![
        Badge::Reading(Reading::Published),
        Badge::Reading(Reading::Predicted),
        Badge::Reading(Reading::Simulated),
    ];
    badges.extend(all.machine.as_ref().map(|_| Badge::Reading(Reading::Measured)));
    Page {
        title: "Cache-line-aware optimisation, beside our graph, band and simulation".to_owned(),
        subtitle:
            "S. Ramos and T. Hoefler: Cache Line Aware Optimizations for ccNUMA Systems (HPDC 2015)"
                .to_owned(),
        badges,
        summary: std::iter::once(INTRODUCTION.to_owned()).chain(summary(all)).collect(),
        facts: all.machine.iter().map(|m| ("This machine".to_owned(), m.clone())).collect(),
        sections: vec![costs(all), graph(all), curve(all)],
        json: crate::embedded(all),
        links: Vec::new(),
        footer: format!("isochrone {}", env!("CARGO_PKG_VERSION")),
    }
}

fn section(id: &str, heading: &str, prose: Vec<String>, figures: Vec<Figure>) -> Section {
    Section { id: id.to_owned(), heading: heading.to_owned(), prose, figures, ..Section::default() }
}

fn numbers(caption: &str, table: Table) -> Figure {
    Figure { caption: caption.to_owned(), table: Some(table), open: true, ..Figure::default() }
}

fn costs(all: &Reproduction) -> Section {
    let figures = vec![
        numbers("Table 1: several lines, T = q + oN + cnN.", beside(&all.table1)),
        numbers("Section 2.1: one line, by where it is.", beside(&all.latencies)),
    ];
    section("costs", "Table 1 and the five latencies", Vec::new(), figures)
}

fn graph(all: &Reproduction) -> Section {
    let [printed, ours] = &all.figure2;
    let figure = |prediction: &Prediction, rules: &str| Figure {
        svg: svg(prediction, &prediction.min, &format!("Figure 2 by {rules}")),
        caption: format!(
            "By {rules}: {:.1} ns at the cheapest, {:.1} ns at the dearest. The critical path is thick.",
            prediction.min.total_ns, prediction.max.total_ns
        ),
        badge: Some(Badge::Reading(Reading::Predicted)),
        ..Figure::default()
    };
    let figures = vec![figure(printed, "the printed rules"), figure(ours, "our rules")];
    let prose =
        "The graph of a one-line broadcast over a binary tree of four, from the recorded program.";
    section("figure-2", "Figure 2", vec![prose.to_owned()], figures)
}

fn curve(all: &Reproduction) -> Section {
    let point = |row: &Row, y: f64, band| Point { x: threads(row), y: Some(y), band };
    let series = |label: &str, of: &dyn Fn(&Row) -> Point, mark| LineSeries {
        label: label.to_owned(),
        points: all.figure3.iter().map(of).collect(),
        mark,
    };
    let ours = |row: &Row| point(row, row.ours.min_ns, Some((row.ours.min_ns, row.ours.max_ns)));
    let printed =
        |row: &Row| point(row, row.printed.min_ns, Some((row.printed.min_ns, row.printed.max_ns)));
    let chart = LineChart {
        title: "one-line broadcast, from memory".to_owned(),
        x: Axis { title: "threads".to_owned(), ..Axis::default() },
        y: Axis { title: "ns".to_owned(), ..Axis::default() },
        series: vec![
            series("band by our rules (T_min to T_max)", &ours, Mark::Line),
            series("band by the printed rules", &printed, Mark::Line),
            series("simulated median", &|row| point(row, row.simulated_ns, None), Mark::Dots),
            series(
                "flat tree, simulated",
                &|row| point(row, row.flat_simulated_ns, None),
                Mark::Dots,
            ),
            series(
                "HMPI between two barriers, simulated",
                &|row| point(row, row.hmpi[1].simulated_ns, None),
                Mark::Dots,
            ),
        ],
        apart: false,
    };
    let figure = Figure {
        svg: line_chart(&chart),
        caption: "Bands are predicted, dots are simulated; nothing is measured. Where the flat tree is the best one, \
                  its dots lie on those of the median."
            .to_owned(),
        badge: Some(Badge::Reading(Reading::Simulated)),
        table: Some(figure3(all)),
        open: true,
    };
    let beside = numbers("Beside it.", others(all));
    let prose = vec![FIGURE_3.to_owned(), OTHERS.to_owned()];
    section("figure-3", "Figure 3", prose, vec![figure, beside])
}

#[allow(clippy::cast_precision_loss, reason = "numbers of threads are small")]
const fn threads(row: &Row) -> f64 {
    row.threads as f64
}
